"""Schedules as Python sees them."""

from __future__ import annotations

import pytest

import tutti
from tutti import errors


def test_ring_is_laid_out_as_it_is_drawn() -> None:
    ring = tutti.schedule("ring", collective="all_reduce", ranks=4)
    assert (ring.name, ring.collective, ring.root) == ("ring", "all_reduce", None)
    assert (ring.ranks, ring.chunks, ring.slots, ring.result) == (4, 4, 2, 0)
    assert [ring.steps(rank) for rank in range(4)] == [6] * 4  # 2 (n - 1)
    assert [repr(op) for op in ring.ops(0, 0)] == [
        "send 3 of slot 0 to rank 1",
        "recv 2 into slot 1 from rank 3",
        "reduce 2 into slot 0 = 1 + 0",
    ]
    send, recv, reduce = ring.ops(0, 0)
    assert (send.kind, send.peer, send.chunks, send.operands) == ("send", 1, (3, 4), None)
    assert (recv.kind, recv.peer, recv.slot) == ("recv", 3, 1)
    assert reduce.operands == [1, 0]
    assert ring.step_name(0, 0) == "reduce_scatter 0"


@pytest.mark.parametrize(
    ("algorithm", "collective", "ranks", "kind"),
    [
        ("no_such", "all_reduce", 4, "unknown"),
        ("ring", "all_gossip", 4, "unknown_collective"),
        ("ring", "broadcast", 4, "wrong_collective"),
        ("ring", "all_reduce", 1, "too_few_ranks"),
        ("ring", "all_reduce", 0, "too_few_ranks"),
        ("ring", "all_reduce", 2**30, "too_many_ranks"),
        ("ring:4", "all_reduce", 4, "argument"),
    ],
)
def test_what_cannot_be_laid_out_is_refused(
    algorithm: str, collective: str, ranks: int, kind: str
) -> None:
    with pytest.raises(errors.AlgorithmError) as caught:
        tutti.schedule(algorithm, collective=collective, ranks=ranks)
    assert caught.value.kind == kind


def test_ranks_and_steps_that_are_not_there_are_refused() -> None:
    ring = tutti.schedule("ring", collective="all_gather", ranks=3)
    with pytest.raises(errors.ScheduleError, match="ranks 0 to 2"):
        ring.steps(3)
    with pytest.raises(errors.ScheduleError, match="no step 2"):
        ring.ops(0, 2)


def test_every_algorithm_describes_itself() -> None:
    for entry in tutti.algorithms():
        assert entry.summary
        assert entry.source
        assert entry.ranks
        assert entry.collectives
        assert any(entry.claims(collective, 8) for collective in entry.collectives)

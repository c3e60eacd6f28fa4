"""The Python interface of schedules."""

from __future__ import annotations

import pytest

import tutti
from tutti import errors
from tutti.schedules.ir import candidates


def test_the_steps_of_a_ring() -> None:
    ring = tutti.schedule("ring", collective="all_reduce", ranks=4)
    assert (ring.name, ring.collective, ring.root) == ("ring", "all_reduce", None)
    assert (ring.ranks, ring.chunks, ring.slots, ring.result) == (4, 4, 2, 0)
    assert [ring.steps(rank) for rank in range(4)] == [6] * 4  # 2 (n - 1)
    assert [repr(op) for op in ring.ops(0, 0)] == [
        "send data[3] to 1",
        "recv s1[2] from 3",
        "reduce data[2] = s1 + data",
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
def test_invalid_requests_are_refused(
    algorithm: str, collective: str, ranks: int, kind: str
) -> None:
    with pytest.raises(errors.AlgorithmError) as caught:
        tutti.schedule(algorithm, collective=collective, ranks=ranks)
    assert caught.value.kind == kind


@pytest.mark.parametrize("number", [-1, 2**32, 2**70])
def test_numbers_out_of_range_are_refused(number: int) -> None:
    builder = tutti.ScheduleBuilder("all_reduce", ranks=2)
    for refused in (
        lambda: tutti.schedule("ring", ranks=number),
        lambda: tutti.schedule("binomial", collective="broadcast", ranks=4, root=number),
        lambda: tutti.ScheduleBuilder("all_reduce", ranks=number),
        lambda: builder.rank(0).send(number),
        lambda: builder.rank(0).reduce(0, [0, number]),
        lambda: builder.rank(0).copy(0, 1, to=number),
        lambda: tutti.schedule("ring", ranks=4).steps(number),
    ):
        with pytest.raises((errors.ScheduleError, errors.AlgorithmError)):
            refused()
    assert builder.build().ranks == 2


def test_missing_ranks_and_steps_are_refused() -> None:
    ring = tutti.schedule("ring", collective="all_gather", ranks=3)
    with pytest.raises(errors.ScheduleError, match="expected 0 to 2"):
        ring.steps(3)
    with pytest.raises(errors.ScheduleError, match="invalid step 2"):
        ring.ops(0, 2)


def test_every_algorithm_has_a_description() -> None:
    for entry in tutti.algorithms():
        assert entry.summary
        assert entry.source
        assert entry.ranks
        assert entry.collectives
        assert any(entry.claims(collective, 16) for collective in entry.collectives)


def exchange() -> tutti.ScheduleBuilder:
    builder = tutti.ScheduleBuilder("all_reduce", ranks=2, name="exchange")
    for rank in range(2):
        program = builder.rank(rank).step("exchange").send(1 - rank).recv(1 - rank, slot=1)
        program.reduce(0, [0, 1]).compute("1.5 us").sleep("3 ns").copy(0, into=1)
    return builder


def test_a_schedule_is_built_op_by_op() -> None:
    built = exchange().build()
    assert (built.name, built.ranks, built.chunks, built.slots) == ("exchange", 2, 1, 2)
    assert [built.steps(rank) for rank in range(2)] == [1, 1]
    assert [str(op) for op in built.ops(1, 0)] == [
        "send data[0] to 0",
        "recv s1[0] from 0",
        "reduce data[0] = data + s1",
        "compute 1.5 us",
        "sleep 3 ns",
        "copy data[0] to s1[0]",
    ]
    assert built.step_name(0, 0) == "exchange"


@pytest.mark.parametrize("name", [entry.name for entry in tutti.algorithms()])
def test_the_text_form_round_trips(name: str) -> None:
    schedule = tutti.schedule(name, collective=collective_of(name), ranks=16)
    text = schedule.to_text()
    again = tutti.Schedule.from_text(text)
    assert again.to_text() == text
    assert (again.name, again.ranks) == (schedule.name, 16)


def collective_of(name: str) -> str:
    entry = next(entry for entry in tutti.algorithms() if entry.name == name)
    return next(c for c in entry.collectives if entry.claims(c, 16))


def test_text_errors_name_their_line() -> None:
    text = exchange().build().to_text().replace("recv", "receive", 1)
    with pytest.raises(errors.TextError, match="line 12: `receive") as caught:
        tutti.Schedule.from_text(text)
    assert caught.value.line == 12


def test_builder_errors_are_refused() -> None:
    builder = tutti.ScheduleBuilder("all_reduce", ranks=2, chunks=4)
    with pytest.raises(errors.ScheduleError, match="rank 2 does not exist"):
        builder.rank(2)
    with pytest.raises(errors.ScheduleError, match="one of them"):
        builder.rank(0).send(1, chunk=0, chunks=(0, 2))
    with pytest.raises(errors.UnitError):
        builder.rank(0).compute("5")
    builder.rank(0).send(1, chunks=(3, 1))
    with pytest.raises(errors.ScheduleError, match=r"3\.\.1"):
        builder.build()
    with pytest.raises(errors.ScheduleError, match="at least one rank"):
        tutti.ScheduleBuilder("all_reduce", ranks=0).build()


def test_a_correct_schedule_is_verified() -> None:
    proof = exchange().build().verify()
    assert (proof.messages, proof.reductions, proof.steps) == (2, 2, 2)
    assert proof.rendezvous_safe
    assert proof.same_on_all_ranks
    assert str(proof) == (
        "verified: each contribution exactly once; the bits of the sequential sum; "
        "no buffers needed"
    )


@pytest.mark.parametrize("name", [entry.name for entry in tutti.algorithms()])
@pytest.mark.parametrize("ranks", [2, 3, 8, 12])
def test_every_algorithm_is_verified_for_its_claims(name: str, ranks: int) -> None:
    entry = next(entry for entry in tutti.algorithms() if entry.name == name)
    for collective in entry.collectives:
        if entry.claims(collective, ranks):
            tutti.schedule(name, collective=collective, ranks=ranks).verify()


def test_an_incorrect_schedule_is_refused_with_its_position() -> None:
    builder = tutti.ScheduleBuilder("all_reduce", ranks=2)
    builder.rank(0).send(1).recv(1, slot=1).reduce(0, [0, 1, 1])
    builder.rank(1).send(0).recv(0, slot=1).reduce(0, [0, 1])
    with pytest.raises(errors.VerificationError) as caught:
        builder.build().verify()
    assert caught.value.kind == "doubled"
    assert (caught.value.rank, caught.value.contribution) == (0, (1, 0))
    assert caught.value.exit_code == errors.ExitCode.FAILED


def test_a_deadlock_is_reported_as_a_cycle() -> None:
    builder = tutti.ScheduleBuilder("all_reduce", ranks=2)
    for rank in range(2):
        builder.rank(rank).recv(1 - rank, slot=1).send(1 - rank).reduce(0, [0, 1])
    with pytest.raises(errors.VerificationError, match="deadlock") as caught:
        builder.build().verify()
    assert sorted(caught.value.cycle) == [((0, 0), 1), ((1, 0), 0)]


def test_notebooks_show_a_table() -> None:
    shown = exchange().build()._repr_html_()
    assert "send data[0] to 1" in shown
    assert shown.count("<tr>") == 2


@pytest.mark.parametrize(("ranks", "kind"), [(-1, "too_few_ranks"), (1 << 32, "too_many_ranks")])
def test_rank_counts_out_of_range(ranks: int, kind: str) -> None:
    with pytest.raises(errors.AlgorithmError) as laid_out:
        tutti.schedule("ring", ranks=ranks)
    with pytest.raises(errors.AlgorithmError) as compared:
        candidates("all_reduce", ranks)
    assert (laid_out.value.kind, compared.value.kind) == (kind, kind)


def test_phases_are_timed_separately_and_verified_together() -> None:
    rings = tutti.schedule("mirrored_ring:4x4", ranks=16)
    torus = tutti.Topology.build("torus:4x4", rate="10 GB/s", latency="50 ns").routes()
    ends = tutti.PipeliningPostal(alpha_p="100 ns", alpha_r="10 ns")
    machine = tutti.Platform(name="t", model=ends, routes=torus, contention=tutti.Packets())
    complete = tutti.simulate(rings, machine, size="16 KiB")
    assert rings.verify().messages == complete.messages == 192
    parts = [rings.phase(index) for index in range(rings.phases)]
    assert [part.name for part in parts] == [f"mirrored_ring:4x4 phase {i}" for i in range(3)]
    runs = [tutti.simulate(part, machine, size="16 KiB") for part in parts]
    assert [run.messages for run in runs] == [48, 96, 48]
    assert sum(run.message_bytes for run in runs) == complete.message_bytes
    # All ranks stay synchronised, so waiting for the slowest between phases costs no time.
    assert sum(run.completion_ps for run in runs) == complete.completion_ps
    assert {run.bound.at_least_ps for run in runs} == {0}
    for part in parts:
        with pytest.raises(errors.VerificationError, match="cannot be verified alone") as caught:
            part.verify()
        assert caught.value.kind == "part"
    with pytest.raises(errors.ScheduleError, match="its phases are 0 to 2") as missing:
        rings.phase(3)
    assert missing.value.kind == "no_such_phase"
    ring = tutti.schedule("ring", ranks=4)
    assert (ring.phases, ring.phase(0).verify()) == (1, ring.verify())

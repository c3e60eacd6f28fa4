"""Which schedules are measured: those named, or all of recursive multiplying, or some of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tutti import _core
from tutti.errors import BenchError
from tutti.mpi.bench import Candidate
from tutti.platform import PipeliningPostal, Platform
from tutti.schedule import schedule
from tutti.search import KINDS, MOST_SCHEDULES

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["candidates_of", "every_schedule"]

OWN: Final = "own"
CALL: Final = "call:"
EVERY: Final = "every"

_RATIO_4: Final = Platform(
    name="ratio 4", model=PipeliningPostal(alpha_p="4 us", alpha_r="1 us", beta="1 ns/B")
)
"""What orders schedules where no machine is given."""


def candidates_of(
    names: Sequence[str],
    *,
    collective: str,
    ranks: int,
    size: int,
    machine: Platform | None = None,
) -> list[Candidate]:
    """What names stand for, each once, in their order.

    Args:
        names: Notations; ``own`` for the MPI's own; ``call:NOTATION`` for a call of an application
            that the library answers; ``every`` for each schedule of recursive multiplying there is,
            ``every:40`` for at most so many of them.
        collective: What they perform.
        ranks: On how many ranks.
        size: In bytes, for which a model orders schedules.
        machine: The model's machine.

    Raises:
        AlgorithmError: A notation that does not fit.
        BenchError: ``every`` of something else than an all_reduce, or of too many.
    """
    found: dict[tuple[str, str], Candidate] = {}
    for name in names:
        for one in _candidates(name, collective, ranks, size, machine):
            found.setdefault((one.way, one.name), one)
    return list(found.values())


def _candidates(
    name: str, collective: str, ranks: int, size: int, machine: Platform | None
) -> list[Candidate]:
    if name == OWN:
        return [Candidate("own")]
    if name.partition(":")[0] == EVERY:
        if collective != "all_reduce":
            message = f"{name} of {collective}: recursive multiplying performs an all_reduce only"
            raise BenchError(message, kind="request")
        notations = every_schedule(ranks, size, most=_budget(name), machine=machine)
        return [Candidate("schedule", schedule(notation, ranks=ranks)) for notation in notations]
    way, notation = (
        ("call", name.removeprefix(CALL)) if name.startswith(CALL) else ("schedule", name)
    )
    return [Candidate(way, schedule(notation, collective=collective, ranks=ranks))]


def _budget(name: str) -> int | None:
    _, colon, count = name.partition(":")
    if not colon:
        return None
    if not count.isdigit() or int(count) < 1:
        message = f"{name}: expected {EVERY}, or {EVERY}:40 for at most 40 of them"
        raise BenchError(message, kind="request")
    return int(count)


def every_schedule(
    ranks: int, size: int, *, most: int | None = None, machine: Platform | None = None
) -> list[str]:
    """The schedules of recursive multiplying for an all_reduce, fastest by the model first.

    Args:
        ranks: On how many ranks.
        size: In bytes.
        most: At most so many: half of them the fastest by the model, the rest evenly spread over
            all others, so that what the model misjudges has its chance. None for all.
        machine: The model's machine; one with alpha_p = 4 alpha_r unless given.

    Raises:
        BenchError: There are more than can be listed.
    """
    model = (machine or _RATIO_4).model
    search = _core.ScheduleSearch(model.core, size=size)
    rows = search.all(ranks, list(KINDS), most=MOST_SCHEDULES)
    if rows is None:
        message = f"there are more than {MOST_SCHEDULES:,} schedules on {ranks} ranks"
        raise BenchError(message, kind="request")
    every = [notation for notation, *_ in rows]
    if most is None or len(every) <= most:
        return [_full(notation) for notation in every]
    first = -(-most // 2)
    rest = every[first:]
    spread = [rest[place * len(rest) // (most - first)] for place in range(most - first)]
    return [_full(notation) for notation in every[:first] + spread]


def _full(notation: str) -> str:
    return notation if ":" in notation else f"recursive_multiplying:{notation}"

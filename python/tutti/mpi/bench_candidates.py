"""Selects the schedules to measure: named ones, or those of recursive multiplying."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tutti import _core
from tutti.collectives.schedule_search import MOST_SCHEDULES, MULTIPLYING_KINDS
from tutti.mpi.bench import BenchCandidate
from tutti.mpi.errors import BenchError
from tutti.platforms.machine import PipeliningPostal, Platform
from tutti.schedules.ir import schedule

if TYPE_CHECKING:
    from collections.abc import Sequence

OWN: Final = "own"
CALL: Final = "call:"
EVERY: Final = "every"

_RATIO_4: Final = Platform(
    name="ratio 4", model=PipeliningPostal(alpha_p="4 us", alpha_r="1 us", beta="1 ns/B")
)
"""The platform that orders schedules if none is given."""


def candidates_of(
    names: Sequence[str],
    *,
    collective: str,
    ranks: int,
    size: int,
    machine: Platform | None = None,
) -> list[BenchCandidate]:
    """Resolves names to candidates, in order and without duplicates.

    Args:
        names: Notations; ``own`` for the MPI library; ``call:NOTATION`` for an application's call
            that the library performs; ``every`` for all schedules of recursive multiplying,
            ``every:40`` for at most 40 of them.
        collective: The collective that they perform.
        ranks: Number of ranks.
        size: In bytes, for which a model orders schedules.
        machine: Platform whose model orders schedules.

    Raises:
        AlgorithmError: A notation is invalid.
        BenchError: ``every`` of another collective than all_reduce, or of too many schedules.
    """
    found: dict[tuple[str, str], BenchCandidate] = {}
    for name in names:
        for one in _candidates(name, collective, ranks, size, machine):
            found.setdefault((one.implementation, one.name), one)
    return list(found.values())


def _candidates(
    name: str, collective: str, ranks: int, size: int, machine: Platform | None
) -> list[BenchCandidate]:
    if name == OWN:
        return [BenchCandidate("own")]
    if name.partition(":")[0] == EVERY:
        if collective != "all_reduce":
            message = (
                f"{name} of {collective}: expected all_reduce, as recursive multiplying is one"
            )
            raise BenchError(message, kind="request")
        notations = every_schedule(ranks, size, most=_budget(name), machine=machine)
        return [
            BenchCandidate("schedule", schedule(notation, ranks=ranks)) for notation in notations
        ]
    implementation, notation = (
        ("call", name.removeprefix(CALL)) if name.startswith(CALL) else ("schedule", name)
    )
    return [BenchCandidate(implementation, schedule(notation, collective=collective, ranks=ranks))]


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
    """Lists the schedules of recursive multiplying for an all_reduce, fastest by the model first.

    Args:
        ranks: Number of ranks.
        size: In bytes.
        most: Maximum number of schedules: half of them the fastest by the model, the rest evenly
            spread over all others, to compensate for errors of the model. None for all.
        machine: Platform of the model; by default one with alpha_p = 4 alpha_r.

    Raises:
        BenchError: There are too many schedules.
    """
    model = (machine or _RATIO_4).model
    search = _core.ScheduleSearch(model.core, size=size)
    rows = search.all(ranks, list(MULTIPLYING_KINDS), most=MOST_SCHEDULES)
    if rows is None:
        message = f"more than {MOST_SCHEDULES:,} schedules on {ranks} ranks: expected fewer ranks"
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

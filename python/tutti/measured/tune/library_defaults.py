"""The algorithms that MPI libraries select without tuning.

The table is `library_defaults.toml`: the fixed decisions of Open MPI's component tuned, and the
selection trees of MPICH.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from tutti.base.bundled import bundled
from tutti.measured.tune.forced import ChosenAlgorithm
from tutti.measured.tune.library_algorithms import library_algorithm, release_line, release_lines
from tutti.measured.tune.targets import library_of

if TYPE_CHECKING:
    from tutti.measured.tune.library_algorithms import LibraryAlgorithm

LIBRARIES = ("openmpi", "mpich")
"""The libraries whose defaults are known."""


def default_algorithm(
    library: str, version: str, collective: str, ranks: int, size: int, *, element: int = 4
) -> ChosenAlgorithm:
    """Returns the algorithm that a library selects.

    Args:
        library: one of :data:`LIBRARIES`.
        version: such as ``5.0.11``.
        collective: name of the collective.
        ranks: number of ranks.
        size: in bytes, by the convention of nccl-tests.
        element: bytes of an element.

    Raises:
        TuningError: The version is older than the table, or not a version.

    Examples:
        >>> default_algorithm("openmpi", "5.0", "all_reduce", 4, 1 << 20).algorithm.name
        'rabenseifner'
        >>> default_algorithm("mpich", "5.0", "broadcast", 16, 8).algorithm.name
        'binomial'
    """
    table = _table()[library]
    line = release_line(library, version)
    bytes_ = size // ranks if collective in table["by_part"] else size
    name = next(
        name
        for row in table["rules"][collective]
        if ranks < row["below"] and (not row.get("ranks") or ranks & (ranks - 1) == 0)
        for below, name in row["sizes"]
        if bytes_ < below
    )
    algorithm = library_algorithm(library, line, collective, name)
    elements = None if collective == "barrier" else size // element
    while algorithm.instead and not algorithm.runs_on(ranks, elements):
        algorithm = library_algorithm(library, line, collective, algorithm.instead)
    return ChosenAlgorithm(algorithm, fan=_fan(table["fans"], algorithm, line))


def _fan(fans: list[dict[str, Any]], algorithm: LibraryAlgorithm, line: str) -> int:
    """Returns the fan-out that the default passes; 0 if it passes none."""
    lines = release_lines(algorithm.library)
    fitting = [
        row["fan"]
        for row in fans
        if row["name"] == algorithm.name
        and row.get("collective", algorithm.collective) == algorithm.collective
        and lines.index(row.get("since", lines[0])) <= lines.index(line)
    ]
    return int(fitting[-1]) if fitting else 0


def default_of(target: str) -> tuple[str, str] | None:
    """Returns the library and release line of a target whose defaults are known, or None."""
    if target == "plan" or library_of(target)[0] not in LIBRARIES:
        return None
    return library_of(target)


def default_schedules(
    library: str, version: str, collective: str, ranks: int, size: int, *, element: int = 4
) -> list[tuple[str, str]] | None:
    """Returns the schedules that a library's default executes in turn.

    Args:
        library: one of :data:`LIBRARIES`.
        version: such as ``5.0.11``.
        collective: name of the collective.
        ranks: number of ranks.
        size: in bytes, by the convention of nccl-tests.
        element: bytes of an element.

    Returns:
        Pairs of a collective and a notation; None if tutti has no schedule for one.

    Examples:
        >>> default_schedules("openmpi", "5.0", "all_reduce", 128, 8)
        [('reduce', 'binomial'), ('broadcast', 'binary_tree')]
    """
    found = default_algorithm(library, version, collective, ranks, size, element=element)
    if not found.algorithm.composed:
        notation = found.notation(ranks, size)
        return None if notation is None else [(collective, notation)]
    listed: list[tuple[str, str]] = []
    for part in found.algorithm.composed:
        schedules = default_schedules(library, version, part, ranks, size, element=element)
        if schedules is None:
            return None
        listed += schedules
    return listed


@cache
def _table() -> dict[str, Any]:
    return bundled("measured/tune/library_defaults.toml")

"""Algorithms of other libraries that correspond to tutti's schedules.

A pair is listed if both send the same messages: the same number and sizes, and if ``exact`` between
the same ranks. The table is that of :mod:`tutti.measured.tune.library_algorithms`; algorithms that
only resemble a schedule are not listed, nor are those that no rule of the library can select.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from tutti.measured.tune.library_algorithms import (
    TITLES,
    LibraryAlgorithm,
    equivalents,
    library_algorithms,
)

TARGETS = ("plan", "openmpi", "openmpi4", "openmpi6", "mpich", "ucc")
"""The outputs: a plan of libtutti_mpi, rules of Open MPI 5 and 4.1 (classic) and of 6 (JSON),
MPICH's selections, UCC's tune string."""

_VERSIONS = {
    "openmpi": ("openmpi", "5.0"),
    "openmpi4": ("openmpi", "4.1"),
    "openmpi6": ("openmpi", "6.0"),
    "mpich": ("mpich", "5.0"),
    "ucc": ("ucc", "1.4"),
}


def library_of(target: str) -> tuple[str, str]:
    """Returns the library of a target, and the release line that its rules are written for."""
    return _VERSIONS[target]


def library_title(target: str) -> str:
    """Returns the library of a target and its release line, such as ``Open MPI 5.0``."""
    library, line = library_of(target)
    return f"{TITLES[library]} {line}"


@dataclass(frozen=True)
class Counterpart:
    """An algorithm of a library with its parameters, and the schedule that sends its messages.

    Attributes:
        algorithm: the algorithm.
        schedule: in the algorithm notation.
        segment: segment size in bytes; 0 without segments.
        fan: fan-out or radix; 0 without one.
        exact: whether the same pairs of ranks exchange messages. If not, the number of messages and
            the bytes of each rank are the same up to renumbering.
        proved: whether this has been counted; UCC has no counters.
    """

    algorithm: LibraryAlgorithm
    schedule: str
    segment: int = 0
    fan: int = 0
    exact: bool = True
    proved: bool = True

    @property
    def collective(self) -> str:
        """The name of the collective in tutti."""
        return self.algorithm.collective

    @property
    def name(self) -> str:
        """The name of the algorithm in the library's rules."""
        mine = self.algorithm
        return mine.tree_name if mine.library == "mpich" else mine.name

    @property
    def number(self) -> int:
        """The number of the algorithm in Open MPI."""
        return self.algorithm.number

    @property
    def parameters(self) -> dict[str, int | str]:
        """The parameters of the algorithm, as the library's rules write them."""
        if self.algorithm.library == "openmpi":
            return {"faninout": self.fan} if self.fan else {}
        found: dict[str, int | str] = {}
        if self.algorithm.variant:
            found["tree_type"] = self.algorithm.variant
        if self.fan:
            found["k"] = self.fan
        if self.algorithm.segmented:
            found["chunk_size"] = self.segment
        return found | dict(self.algorithm.json)


@cache
def counterparts(target: str, collective: str, ranks: int) -> tuple[Counterpart, ...]:
    """Lists a library's algorithms for a collective on a number of ranks; none for a plan."""
    if target not in _VERSIONS:
        return ()
    return tuple(
        Counterpart(one, same.notation, fan=fan, exact=same.exact, proved=same.proved)
        for one in library_algorithms(*library_of(target), collective)
        for fan, same in equivalents(one, ranks)
    )


def counterpart(target: str, collective: str, ranks: int, schedule: str) -> Counterpart | None:
    """Returns the algorithm of a library that is this schedule, or None."""
    found = counterparts(target, collective, ranks)
    return next((one for one in found if one.schedule == schedule), None)

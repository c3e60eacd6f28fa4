"""Algorithms of an installed MPI library, forced in turn in one run of the ranks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tutti.measured.tune.library_algorithms import FORCING, library_algorithms, variables

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tutti.measured.tune.library_algorithms import LibraryAlgorithm
    from tutti.mpi.underneath import Mpi

_SEGMENTS: Final = (1 << 10, 8 << 10, 32 << 10, 128 << 10, 1 << 20)
"""Segment sizes in bytes to consider; 1, 8, 32, 64 and 128 KiB occur in Open MPI's decisions."""
_MOST_SEGMENTS: Final = 256
_FANS: Final = (2, 4, 8)
_FIRST_TREES: Final = {"all_reduce": "knomial_1", "broadcast": "kary"}
"""MPICH reads the kind of tree when it starts, so others cannot be forced during a run."""


@dataclass(frozen=True)
class ChosenAlgorithm:
    """An algorithm with its parameters.

    Attributes:
        algorithm: The algorithm.
        segment: Segment size in bytes; 0 without segments.
        fan: Fan-out or radix; 0 without one.
    """

    algorithm: LibraryAlgorithm
    segment: int = 0
    fan: int = 0

    @property
    def name(self) -> str:
        """The library's name, with the parameters."""
        segment = f" segment={self.segment}" if self.segment else ""
        return f"{self.algorithm.label}{segment}{f' fan={self.fan}' if self.fan else ''}"

    @property
    def controls(self) -> dict[str, str]:
        """The control variables that force it."""
        of_algorithm = variables(self.algorithm, segment=self.segment, fan=self.fan)
        named = FORCING[self.algorithm.library] | of_algorithm
        return {name: value for name, value in named.items() if not name.endswith("TREE_TYPE")}

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables that force it from the start of a run on."""
        prefix = "OMPI_MCA_" if self.algorithm.library == "openmpi" else ""
        return {f"{prefix}{name}": value for name, value in self.controls.items()}

    def notation(self, ranks: int, size: int) -> str | None:
        """Returns the schedule that sends its messages, or None."""
        return self.algorithm.notation(ranks, size, segment=self.segment, fan=self.fan)


def forced(
    mpi: Mpi, collective: str, ranks: int, size: int, only: Sequence[str] = ()
) -> list[ChosenAlgorithm]:
    """Returns the algorithms of a library that can be forced at a size.

    Args:
        mpi: The MPI library; one without a table of algorithms has none.
        collective: The collective.
        ranks: Number of ranks.
        size: In bytes, by the convention of nccl-tests.
        only: Only algorithms of these names, tutti's or the library's; empty for all.

    Raises:
        TuningError: The version of the library is older than the table.
    """
    if mpi.kind not in FORCING:
        return []
    every = [
        ChosenAlgorithm(algorithm, segment, fan)
        for algorithm in library_algorithms(mpi.kind, mpi.version, collective)
        if algorithm.in_rules
        and algorithm.runs_on(ranks)
        and algorithm.variant in {"", _FIRST_TREES.get(collective)}
        for segment in _segments(algorithm, ranks, size)
        for fan in _fans(algorithm, ranks)
    ]
    return [
        one for one in every
        if not only
        or not {one.name, one.algorithm.label, one.notation(ranks, size)}.isdisjoint(only)
    ]  # fmt: skip


def _segments(algorithm: LibraryAlgorithm, ranks: int, size: int) -> Iterator[int]:
    """Yields segment sizes that divide what the algorithm divides; 0 where none does."""
    if not algorithm.segmented:
        yield 0
        return
    divided = size // {"halves": 2, "phases": ranks}.get(algorithm.cut, 1)
    fitting = [one for one in _SEGMENTS if one < divided <= one * _MOST_SEGMENTS]
    yield from fitting or [_SEGMENTS[0]]


def _fans(algorithm: LibraryAlgorithm, ranks: int) -> list[int]:
    if not algorithm.fan:
        return [0]
    if not algorithm.fan_in_rules:
        return [algorithm.fan_default]
    return [fan for fan in _FANS if fan < max(ranks, _FANS[0] + 1)]

"""The algorithms that MPI libraries use where nobody has tuned anything.

Choices and thresholds are those of Thakur, Rabenseifner and Gropp, Optimization of Collective
Communication Operations in MPICH, IJHPCA 19(1), 2005, sections 4 to 8: a start, not a promise about
any machine.

An MPI runs these algorithms itself, and in shared memory better ones. A plan of them pays where the
library is not slower, which `usual` keeps to: docs/performance-mpi.md has the measurements.
"""

from __future__ import annotations

__all__ = ["to_beat", "untuned", "usual"]

Choice = tuple[str, tuple[int, int | None]]

_KIB = 1024

_NOT_SLOWER: dict[str, tuple[int, int | None]] = {
    "all_reduce": (512 * _KIB, None),
    "reduce_scatter": (0, None),
    "all_gather": (1 * _KIB, None),
    "gather": (1 * _KIB, None),
    "scatter": (1 * _KIB, 512 * _KIB - 1),
    "all_to_all": (0, None),
}
"""Sizes on which the library took at most 1.05 of the time of Open MPI 5.0.11 and of MPICH 5.0.2
(2 ranks, 2 cores of one host, 8 B to 4 MiB); none of broadcast, reduce and barrier."""

_LEAST_GAIN_PS = 500_000
"""What a call through the library costs at most more than the MPI's own, where it costs the most:
0.1 to 0.3 us were measured."""


def usual(collective: str, ranks: int) -> list[Choice]:
    """The algorithms of `untuned` on the sizes on which the MPI's own code is not faster."""
    least, most = _NOT_SLOWER.get(collective, (0, -1))
    end = float("inf") if most is None else most
    found: list[Choice] = []
    for algorithm, (first, last) in untuned(collective, ranks):
        start, until = max(first, least), end if last is None else min(last, end)
        if start <= until:
            found.append((algorithm, (start, None if until == float("inf") else int(until))))
    return found


def to_beat(untuned_ps: int) -> int:
    """The time below which a schedule is taken to be faster than the MPI's own code.

    A model says nothing of that code. It is taken to be the untuned algorithm, and a schedule has
    to gain a tenth of its time, and what the library costs.

    Args:
        untuned_ps: What the model says of that algorithm, in picoseconds.

    Returns:
        Picoseconds, 0 at the least.
    """
    return max(min(untuned_ps * 10 // 11, untuned_ps - _LEAST_GAIN_PS), 0)


def untuned(collective: str, ranks: int) -> list[Choice]:
    """Algorithms with the sizes they are for, in bytes by the collective's convention."""
    doubling = ranks & (ranks - 1) == 0
    table: dict[str, list[tuple[str, int | None]]] = {
        "all_reduce": [("recursive_doubling", 2 * _KIB), ("recursive_halving_doubling", None)],
        "reduce_scatter": [("recursive_halving_doubling", 512 * _KIB - 1), ("pairwise", None)],
        "all_gather": [
            ("recursive_doubling", 512 * _KIB - 1) if doubling else ("bruck", 80 * _KIB - 1),
            ("ring", None),
        ],
        "broadcast": [("binomial", 12 * _KIB - 1), ("scatter_all_gather", None)],
        "gather": [("binomial", None)],
        "scatter": [("binomial", None)],
        "reduce": [("binomial", 2 * _KIB), ("reduce_scatter_gather", None)],
        "all_to_all": [
            ("bruck", 256 * ranks),
            ("scatter_destination", 32 * _KIB * ranks),
            ("pairwise", None),
        ],
        "barrier": [("dissemination", None)],
    }
    choices: list[Choice] = []
    first = 0
    for algorithm, last in table[collective]:
        choices.append((algorithm, (first, last)))
        first = 0 if last is None else last + 1
    return choices

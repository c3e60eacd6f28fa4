"""The MPICH default: the algorithms that MPICH uses without tuning.

Choices and thresholds are those of Thakur, Rabenseifner and Gropp, Optimization of Collective
Communication Operations in MPICH, IJHPCA 19(1), 2005, sections 4 to 8. They are not tuned for any
machine.

An MPI library runs these algorithms itself, and better ones in shared memory. A plan of them only
pays where libtutti_mpi is not slower, which `usual` ensures: see docs/performance-mpi.md.
"""

from __future__ import annotations

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
"""Sizes for which libtutti_mpi took at most 1.05 times as long as Open MPI 5.0.11 and MPICH 5.0.2
(2 ranks, 2 cores of one host, 8 B to 4 MiB); none of broadcast, reduce and barrier."""

LEAST_GAIN = 0.1
"""The predicted gain over a default that a schedule needs, unless the model has a larger error: 0.1
is 10 %."""

_LEAST_GAIN_PS = 500_000
"""Upper bound of the overhead of a call through libtutti_mpi over the MPI library's: 0.1 to 0.3 us
were measured."""


def usual(collective: str, ranks: int) -> list[Choice]:
    """Returns the MPICH default, for sizes at which the native collective is not faster."""
    least, most = _NOT_SLOWER.get(collective, (0, -1))
    end = float("inf") if most is None else most
    found: list[Choice] = []
    for algorithm, (first, last) in untuned(collective, ranks):
        start, until = max(first, least), end if last is None else min(last, end)
        if start <= until:
            found.append((algorithm, (start, None if until == float("inf") else int(until))))
    return found


def to_beat(untuned_ps: int, least_gain: float = LEAST_GAIN) -> int:
    """Returns the time below which a schedule is considered faster than the MPI library.

    A model does not predict native collectives. The MPI library is assumed to run the MPICH
    default, which must take longer than a schedule by the error of a model, and by the overhead of
    libtutti_mpi.

    Args:
        untuned_ps: Predicted time of the MPICH default, in picoseconds.
        least_gain: How much longer it must take: 0.1 is 10 %.

    Returns:
        Picoseconds, at least 0.
    """
    shorter = untuned_ps * 1000 // round(1000 * (1 + least_gain))
    return max(min(shorter, untuned_ps - _LEAST_GAIN_PS), 0)


def untuned(collective: str, ranks: int) -> list[Choice]:
    """Returns the MPICH default: algorithms and sizes in bytes, by the collective's convention."""
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

"""The algorithms that MPI libraries use where nobody has tuned anything.

Choices and thresholds are those of Thakur, Rabenseifner and Gropp, Optimization of Collective
Communication Operations in MPICH, IJHPCA 19(1), 2005, sections 4 to 8: a start, not a promise about
any machine.
"""

from __future__ import annotations

__all__ = ["usual"]

Choice = tuple[str, tuple[int, int | None]]

_KIB = 1024


def usual(collective: str, ranks: int) -> list[Choice]:
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

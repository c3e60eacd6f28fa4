"""MPI's names of collectives, and the names of algorithms in MPI libraries, as aliases.

Only names that tutti does not use itself are aliases. The algorithms that a library can be forced
to execute are in ``docs/reference/library-algorithms.md``.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from tutti import _core
from tutti.schedules.errors import AlgorithmError

_COLLECTIVES: Final = {
    "MPI_Allreduce": "all_reduce",
    "MPI_Reduce_scatter_block": "reduce_scatter",
    "MPI_Allgather": "all_gather",
    "MPI_Bcast": "broadcast",
    "MPI_Reduce": "reduce",
    "MPI_Gather": "gather",
    "MPI_Scatter": "scatter",
    "MPI_Alltoall": "all_to_all",
    "MPI_Alltoallv": "all_to_all_v",
    "MPI_Barrier": "barrier",
}

_DIRECT: Final = {"linear": "direct", "basic_linear": "direct"}
_ALGORITHMS: Final[dict[str, dict[str, str]]] = {
    "all_reduce": {
        "rabenseifner": "recursive_halving_doubling",
        "reduce_scatter_allgather": "recursive_halving_doubling",
        "segmented_ring": "ring",
        "sra": "recursive_halving_doubling",
        "dbt": "double_binary_tree",
    },
    "reduce_scatter": {"recursive_halving": "recursive_halving_doubling"},
    "all_gather": {"brucks": "bruck", "neighbor": "neighbor_exchange"},
    "broadcast": {
        **_DIRECT,
        "pipeline": "chain",
        "binary": "binary_tree",
        "split_binary": "split_binary_tree",
        "scatter_allgather": "scatter_all_gather:recursive_doubling",
        "scatter_recursive_doubling_allgather": "scatter_all_gather:recursive_doubling",
        "scatter_allgather_ring": "scatter_all_gather",
        "scatter_ring_allgather": "scatter_all_gather",
    },
    "reduce": {
        **_DIRECT,
        "rabenseifner": "reduce_scatter_gather",
        "pipeline": "chain",
        "binary": "binary_tree",
        "in_order_binary": "binary_tree:in_order",
    },
    "all_to_all": {
        **_DIRECT,
        "scattered": "direct",
        "brucks": "bruck",
        "modified_bruck": "bruck",
    },
    "gather": _DIRECT,
    "scatter": _DIRECT,
}
"""tutti's algorithm for a name, by collective."""


def collective_name(name: str) -> str:
    """Returns tutti's name of a collective for MPI's, and any other name unchanged.

    Examples:
        >>> collective_name("MPI_Allreduce"), collective_name("broadcast")
        ('all_reduce', 'broadcast')
    """
    return {mpi.lower(): own for mpi, own in _COLLECTIVES.items()}.get(name.lower(), name)


def algorithm_name(notation: str, collective: str) -> str:
    """Returns the notation with tutti's name for an alias, and any other notation unchanged.

    Args:
        notation: Such as ``rabenseifner`` or ``pipeline:segments=4``.
        collective: The collective, in tutti's words.

    Raises:
        AlgorithmError: It is an alias for other collectives only.

    Examples:
        >>> algorithm_name("rabenseifner", "reduce")
        'reduce_scatter_gather'
        >>> algorithm_name("pipeline:segments=4", "broadcast")
        'chain:segments=4'
    """
    name, _, argument = notation.partition(":")
    alias = _normalised(name)
    if not is_alias(name):
        return notation
    own = _ALGORITHMS.get(collective, {}).get(alias)
    if own is None:
        performed = [one for one, names in _ALGORITHMS.items() if alias in names]
        message = f"{name} is a name of MPI libraries for {', '.join(performed)}, not {collective}"
        raise AlgorithmError(message, kind="wrong_collective")
    base, _, given = own.partition(":")
    arguments = ",".join(filter(None, [given, argument]))
    return f"{base}:{arguments}" if arguments else base


def is_alias(name: str) -> bool:
    """Returns whether it is a name of MPI libraries that tutti does not use itself."""
    return name not in _own() and any(_normalised(name) in names for names in _ALGORITHMS.values())


def _normalised(name: str) -> str:
    return name.lower().replace("-", "_")


@cache
def _own() -> frozenset[str]:
    return frozenset(entry.name for entry in _core.algorithms())

"""Algorithms of other libraries that correspond to tutti's schedules.

A pair is listed if both send the same messages: the same number and sizes, and if ``exact`` between
the same ranks. This has been counted with :mod:`tutti.measured.tune.watch` on 2 to 8 ranks of Open
MPI 5.0.11 and MPICH 5.0.2. Algorithms that only resemble a schedule, such as Open MPI's segmented
ring, are not listed; neither are algorithms that no rule of the library can select.

Sources: ``coll_base_*_.c`` and ``docs/tuning-apps/collectives/tuned.rst`` of Open MPI 5.0,
``src/mpi/coll`` of MPICH 5.0, ``src/components/tl/ucp`` of UCC 1.4 to 1.9.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

TARGETS = ("plan", "openmpi", "openmpi6", "mpich", "ucc")
"""The outputs: a plan of libtutti_mpi, rules of Open MPI 5 (classic) and of 6 (JSON), MPICH's
selections, UCC's tune string."""


def _always(_ranks: int) -> bool:
    return True


def _power_of_two(ranks: int) -> bool:
    return ranks & (ranks - 1) == 0


def _no_power_of_two(ranks: int) -> bool:
    return not _power_of_two(ranks)


@dataclass(frozen=True)
class Counterpart:
    """An algorithm of a library, and the schedule that sends the same messages.

    Attributes:
        collective: name in tutti.
        schedule: in the algorithm notation.
        name: name of the algorithm in the library.
        number: number of the algorithm, if rules use numbers.
        parameters: parameters of the algorithm, as the library writes them.
        fits: whether they are the same on a number of ranks.
        exact: whether the same pairs of ranks exchange messages. If not, the number of messages and
            the bytes of each rank are the same up to renumbering.
        proved: whether this has been counted; UCC has no counters.
    """

    collective: str
    schedule: str
    name: str
    number: int = 0
    parameters: Mapping[str, int] = field(default_factory=dict)
    fits: Callable[[int], bool] = _always
    exact: bool = True
    proved: bool = True


def counterparts(target: str, collective: str, ranks: int) -> list[Counterpart]:
    """Lists a library's algorithms for a collective on a number of ranks; none for a plan."""
    known = {"openmpi": _OPEN_MPI, "openmpi6": _OPEN_MPI, "mpich": _MPICH, "ucc": _UCC}
    listed = [one for one in known.get(target, ()) if one.collective == collective]
    if target == "mpich":
        listed += _multiplying(collective, ranks, "MPIR_Allreduce_intra_recursive_multiplying")
    if target == "ucc":
        listed += _multiplying(collective, ranks, "knomial", proved=False)
    return [one for one in listed if one.fits(ranks)]


def counterpart(target: str, collective: str, ranks: int, schedule: str) -> Counterpart | None:
    """Returns the algorithm of a library that is this schedule, or None."""
    found = counterparts(target, collective, ranks)
    return next((one for one in found if one.schedule == schedule), None)


def _multiplying(
    collective: str, ranks: int, name: str, *, proved: bool = True
) -> list[Counterpart]:
    """Exchanges in groups of k: equal in all libraries if the ranks are a power of k."""
    if collective != "all_reduce":
        return []
    found = []
    for k in range(3, ranks + 1):
        stages, left = 0, ranks
        while left % k == 0:
            stages, left = stages + 1, left // k
        if left == 1:
            notation = f"recursive_multiplying:{','.join([f'a{k}'] * stages)}"
            found.append(
                Counterpart(collective, notation, name, parameters={"k": k}, proved=proved)
            )
    return found


_OPEN_MPI = (
    Counterpart("all_reduce", "recursive_doubling", "recursive_doubling", 3),
    Counterpart("all_reduce", "ring", "ring", 4),
    Counterpart("all_reduce", "recursive_halving_doubling", "rabenseifner", 6, fits=_power_of_two),
    # The even rank of each pair continues, not the odd one.
    Counterpart(
        "all_reduce",
        "recursive_halving_doubling:2-1",
        "rabenseifner",
        6,
        fits=_no_power_of_two,
        exact=False,
    ),
    Counterpart("broadcast", "direct", "basic_linear", 1),
    # Its tree is mirrored: rank 1 has the largest subtree.
    Counterpart("broadcast", "binomial", "binomial", 6, exact=False),
    Counterpart(
        "broadcast",
        "scatter_all_gather:recursive_doubling",
        "scatter_allgather",
        8,
        fits=_power_of_two,
    ),
    Counterpart("broadcast", "scatter_all_gather", "scatter_allgather_ring", 9),
    Counterpart("reduce", "direct", "linear", 1),
    Counterpart("reduce", "binomial", "binomial", 5),
    # From 6.0 on it has any fan-out, and hangs without one.
    Counterpart("all_gather", "bruck", "bruck", 2, parameters={"faninout": 2}),
    Counterpart("all_gather", "recursive_doubling", "recursive_doubling", 3, fits=_power_of_two),
    Counterpart("all_gather", "ring", "ring", 4),
    Counterpart("all_to_all", "direct", "linear", 1),
    Counterpart("all_to_all", "pairwise", "pairwise", 2),
    Counterpart("all_to_all", "bruck", "modified_bruck", 3),
    Counterpart("reduce_scatter", "recursive_halving_doubling", "recursive_halving", 3),
    Counterpart("barrier", "recursive_doubling", "recursive_doubling", 3, fits=_power_of_two),
    Counterpart("barrier", "dissemination", "bruck", 4),
)

_MPICH = (
    Counterpart("all_reduce", "recursive_doubling", "MPIR_Allreduce_intra_recursive_doubling"),
    Counterpart("all_reduce", "ring", "MPIR_Allreduce_intra_ring"),
    Counterpart(
        "all_reduce",
        "recursive_halving_doubling",
        "MPIR_Allreduce_intra_reduce_scatter_allgather",
    ),
    Counterpart("broadcast", "binomial", "MPIR_Bcast_intra_binomial"),
    Counterpart("broadcast", "scatter_all_gather", "MPIR_Bcast_intra_scatter_ring_allgather"),
    Counterpart(
        "broadcast",
        "scatter_all_gather:recursive_doubling",
        "MPIR_Bcast_intra_scatter_recursive_doubling_allgather",
        fits=_power_of_two,
    ),
    Counterpart("reduce", "binomial", "MPIR_Reduce_intra_binomial"),
    # It halves with the farthest partner last, and retains the other half.
    Counterpart(
        "reduce",
        "reduce_scatter_gather",
        "MPIR_Reduce_intra_reduce_scatter_gather",
        fits=_power_of_two,
        exact=False,
    ),
    Counterpart("all_gather", "bruck", "MPIR_Allgather_intra_brucks"),
    Counterpart(
        "all_gather",
        "recursive_doubling",
        "MPIR_Allgather_intra_recursive_doubling",
        fits=_power_of_two,
    ),
    Counterpart("all_gather", "ring", "MPIR_Allgather_intra_ring"),
    Counterpart("all_to_all", "bruck", "MPIR_Alltoall_intra_brucks"),
    Counterpart("all_to_all", "pairwise", "MPIR_Alltoall_intra_pairwise"),
    Counterpart("all_to_all", "direct", "MPIR_Alltoall_intra_scattered"),
    Counterpart(
        "reduce_scatter",
        "recursive_halving_doubling",
        "MPIR_Reduce_scatter_block_intra_recursive_halving",
    ),
    Counterpart("reduce_scatter", "pairwise", "MPIR_Reduce_scatter_block_intra_pairwise"),
    Counterpart(
        "barrier", "dissemination", "MPIR_Barrier_intra_k_dissemination", parameters={"k": 2}
    ),
)

_UCC = (
    Counterpart("all_reduce", "recursive_doubling", "knomial", parameters={"k": 2}, proved=False),
    Counterpart("all_reduce", "recursive_halving_doubling", "sra_knomial", parameters={"k": 2},
                fits=_power_of_two, proved=False),
    Counterpart("all_reduce", "double_binary_tree", "dbt", proved=False),
    Counterpart("broadcast", "binomial", "knomial", parameters={"k": 2}, proved=False),
    Counterpart("all_gather", "ring", "ring", proved=False),
    Counterpart("all_gather", "bruck", "bruck", proved=False),
    Counterpart("reduce", "binomial", "knomial", parameters={"k": 2}, proved=False),
    Counterpart("reduce_scatter", "ring", "ring", proved=False),
    Counterpart("all_to_all", "pairwise", "pairwise", proved=False),
    Counterpart("all_to_all", "bruck", "bruck", proved=False),
    # UCC rejects the complete string if it names the algorithm of a barrier.
)  # fmt: skip

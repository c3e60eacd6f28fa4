"""Which results of a collective all ranks share, and whether each rank gets the same bits of them.

MPI programs rely on it: an iterative solver tests the residual that an all_reduce gives each rank,
and where one rank stops and another does not, the others wait for ever. Broadcasts and all_gathers
copy their bytes, and each shard of a reduce_scatter has one owner: only an all_reduce may combine
contributions in an order of each rank's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tutti.schedule import Schedule

__all__ = ["bits_differ", "is_exact"]


def is_exact(datatype: str) -> bool:
    """Whether sums, products, minima and maxima of a type have the same bits in every order.

    Integers wrap around, so all orders agree. Floating-point sums and products round; maxima and
    minima keep one of NaN and a number, or of -0 and +0, as the order has it.
    """
    return datatype.startswith(("int", "uint"))


def bits_differ(schedule: Schedule) -> bool:
    """Whether ranks may get different bits of an inexact operation from a schedule.

    Raises:
        VerificationError: It does not do what it is meant to do.
    """
    return schedule.collective == "all_reduce" and not schedule.verify().same_on_all_ranks

"""Whether all ranks get the same bits of the results of a collective that they share.

MPI programs rely on it: an iterative solver tests the residual that an all_reduce returns, and if
one rank stops and another does not, the others wait forever. Broadcasts and all_gathers copy bytes,
and each shard of a reduce_scatter has one owner. Only an all_reduce may combine contributions in a
different order on each rank.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tutti.schedules.ir import Schedule


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

"""Clocks of routers that differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tutti.base.units import Time
from tutti.networks.flit.named_routers import entry_of_each, refused
from tutti.networks.flit.settings import RouterClock

if TYPE_CHECKING:
    from collections.abc import Sequence

_LONGEST_PERIOD = 64
"""Cycles of the network."""


def clocks_of(
    names: Sequence[str], cycle_ps: int, clocks: Sequence[RouterClock]
) -> list[tuple[int, int, int]]:
    """Returns number, period in ps and cycles of the synchroniser of each router's clock.

    Args:
        names: Names of all routers.
        cycle_ps: The cycle of the network: the period of routers in no entry. Their clock has
            number 0.
        clocks: The other clocks.

    Raises:
        NocError: No router has a name, a router is named by two entries, or a period is shorter
            than the cycle or longer than 64 cycles.
    """
    shared = RouterClock(at=(), period=Time(ps=cycle_ps))
    for number, clock in enumerate(clocks):
        if not cycle_ps <= clock.period_ps <= _LONGEST_PERIOD * cycle_ps:
            longest = Time(ps=_LONGEST_PERIOD * cycle_ps)
            expected = f"{shared.period}, which is `cycle`, to {longest}"
            raise refused(f"`period` is {clock.period}", "clocks", number, expected)
    known = [(number, clock.period_ps, clock.synchroniser)
             for number, clock in enumerate((shared, *clocks))]  # fmt: skip
    chosen = entry_of_each(names, clocks, "clocks")
    return [known[0 if number is None else number + 1] for number in chosen]

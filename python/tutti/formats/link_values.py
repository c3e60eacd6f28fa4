"""Values of links and routes that the files of several network simulators share."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Final

from tutti.base.units import TimePerByte
from tutti.formats.formats import INFERRED

if TYPE_CHECKING:
    from tutti.topologies import Link

_PREFIXES: Final = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


def hashes(tool: str) -> str:
    """Returns the line about the routing of a fabric, which the tool's files do not state."""
    return f"{INFERRED}routing ecmp, as {tool} distributes flows over equal paths"


def gbps_of(rate: TimePerByte) -> tuple[Decimal, bool]:
    """Returns a rate in Gb/s, and whether it is exact."""
    number, _, unit = (rate.core.exact_text or "").partition(" ")
    prefix = unit.removesuffix("B/s")
    if unit.endswith("B/s") and prefix in _PREFIXES:
        return Decimal(number) * _PREFIXES[prefix] * 8 / 10**9, True
    return Decimal(round(rate.core.bytes_per_second * 8)) / 10**9, False


def rate_of_bits(bits_per_second: Decimal) -> TimePerByte:
    """Returns the rate of a number of bits per second.

    Raises:
        UnitError: The rate is zero.
    """
    return TimePerByte.parse(f"{bits_per_second / 8:f} B/s")


def cables_of(links: tuple[Link, ...]) -> tuple[list[Link], list[Link]]:
    """Returns a link of each cable, which is two links of equal rate and latency.

    Returns:
        A link per cable, from the vertex that comes first; and the links that are no cable.
    """
    groups: dict[tuple[str, str], list[Link]] = {}
    for link in links:
        groups.setdefault((link.source, link.target), []).append(link)
    found: list[Link] = []
    single: list[Link] = []
    done: set[tuple[str, str]] = set()
    for (source, target), there in groups.items():
        back = groups.get((target, source), [])
        values, others = ([(each.rate, each.latency.ps) for each in one] for one in (there, back))
        if sorted(values, key=repr) != sorted(others, key=repr):
            single += there
        elif (target, source) not in done:
            done.add((source, target))
            found += there
    return found, single

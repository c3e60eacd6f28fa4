"""ACE on all four sizes: its share of the ideal send rate, its SRAM bandwidth, its designs."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import polars as pl

from tutti.base.progress import at_once
from tutti.base.units import Size
from tutti.training.endpoint import Configuration
from tutti_papers.ace.system import MESSAGE, SIZES, ace, alone

if TYPE_CHECKING:
    from collections.abc import Sequence

IDEAL = Configuration(name="ideal", kind="ideal")
AMPLE: dict[str, Any] = {"sram": Size.parse("64 MiB"), "fsms": 128, "banks": 16}
"""Settings of an ACE that is limited only by memory bandwidth and links."""
VARIANT: dict[str, Any] = {"banks": 8, "fsms": 24}
"""A named variant of the paper's ACE: twice the SRAM bandwidth, half as many FSMs again."""
BANKS = (2, 4, 6, 8, 16)
"""Of 64 B per cycle each: 159, 319, 478, 637 and 1275 GB/s of reads, and as much of writes."""

PACKET = Size.parse("256 B")

Design = tuple[str, int]


def shares() -> pl.DataFrame:
    """Returns ACE's send rates as shares of the ideal endpoint's, on all sizes.

    Loads of packets share the ports of the SRAM with the packets of links.
    """
    engines = {
        "ace, 128 GB/s": ace(),
        "ace, loads of packets": ace(loads=2 * MESSAGE.bytes // PACKET.bytes),
        "ace, 900 GB/s": ace("900 GB/s"),
        "8 banks, 24 FSMs, 128 GB/s": ace(**VARIANT),
        "ample, 128 GB/s": ace(**AMPLE),
        "ample but 4 banks, 900 GB/s": ace("900 GB/s", **(AMPLE | {"banks": 4})),
    }
    return _of_ideal(engines)


def sram_rates() -> pl.DataFrame:
    """Returns shares of ideal over SRAM banks, with ample space, FSMs and memory bandwidth."""
    return _of_ideal(
        {f"{banks} banks": ace("900 GB/s", **(AMPLE | {"banks": banks})) for banks in BANKS}
    )


def _of_ideal(engines: dict[str, Configuration]) -> pl.DataFrame:
    cases = list(product(SIZES, ("ideal", *engines)))
    known = engines | {"ideal": IDEAL}

    def rate(case: tuple[str, str]) -> float:
        message = PACKET if case[1].endswith("packets") else MESSAGE
        return alone(known[case[1]], case[0], message=message).rate

    rates = at_once(rate, cases)
    return pl.DataFrame(
        [
            {"torus": size, "ideal GB/s": round(rates[size, "ideal"] / 1e9, 1)}
            | {name: round(rates[size, name] / rates[size, "ideal"], 3) for name in engines}
            for size in SIZES
        ]
    )


def designs_on_all_sizes(designs: Sequence[Design]) -> pl.DataFrame:
    """Returns the time of an all_reduce in microseconds, a row per design and a column per size."""

    def time(case: tuple[str, Design]) -> float:
        size, (sram, fsms) = case
        return alone(ace(sram=Size.parse(sram), fsms=fsms), size).time.ps / 1e6

    times = at_once(time, product(SIZES, designs))
    return pl.DataFrame(
        [
            {"sram": design[0], "fsms": design[1]}
            | {size: round(times[size, design], 1) for size in SIZES}
            for design in designs
        ]
    )

"""What the speedups of figure 10 depend on, and which conclusions survive every reading."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING

import polars as pl

from tutti.papers import watched
from tutti.papers.aries.applications import BATCHES
from tutti.papers.aries.iterations import interpolated, speedups
from tutti.papers.aries.published import NETWORKS
from tutti.papers.aries.system import ALGORITHMS, DEFAULT, SIDES, Readings

if TYPE_CHECKING:
    from tutti.papers.aries.iterations import Iteration, Key, Speedups


@dataclass(frozen=True)
class Variation:
    """One thing read otherwise.

    Attributes:
        name: What it is.
        readings: All of them.
        networks: Which it touches; the others are as they stand.
        algorithms: Which it touches.
        batch: Of the applications.
    """

    name: str
    readings: Readings = DEFAULT
    networks: tuple[str, ...] = ("aries",)
    algorithms: tuple[str, ...] = ALGORITHMS
    batch: str = BATCHES[0]


EVERY = ("aries", *NETWORKS)
RING, TREES, MANY_TREES = (("ring",), ("double_binary_tree",), ("multi_tree",))
BUTTERFLY = ("flattened_butterfly",)


def _other(name: str, **changed: object) -> Variation:
    about = {key: changed.pop(key) for key in ("networks", "algorithms") if key in changed}
    return Variation(name, replace(DEFAULT, **changed), **about)  # type: ignore[arg-type]


READINGS = (
    _other("two bypass wires", wires=2, networks=("aries", "adapt_noc")),
    _other("muxes: same sign", muxes="sign"),
    _other("muxes: own axis", muxes="axis"),
    _other("hop of 10 ns", hop="10 ns", networks=EVERY),
    _other("long wires slower", per_span=True, networks=EVERY),
    _other("configured once", switched=False),
    _other("a switch takes 1 us", switch="1 us"),
    _other("rings both ways round", both_ways=True, algorithms=RING),
    _other(
        "plain rings alone",
        grid_rings=False,
        algorithms=RING,
        networks=("flattened_butterfly", "adapt_noc"),
    ),
    _other("trees in 1 chunk", chunks=1, algorithms=TREES, networks=EVERY),
    _other("trees in 16 chunks", chunks=16, algorithms=TREES, networks=EVERY),
    _other("2 accumulators", accumulators=2, algorithms=MANY_TREES),
    _other("1 accumulator", accumulators=1, algorithms=MANY_TREES),
    _other("butterfly: wide links", butterfly="wide", networks=BUTTERFLY),
    _other("butterfly: 4 chiplets a router", butterfly="concentrated", networks=BUTTERFLY),
    *(Variation(batch, networks=EVERY, batch=batch) for batch in BATCHES[1:]),
)
"""What the paper leaves open, one after the other."""


def sensitivity(default: dict[Key, Iteration]) -> dict[str, pl.DataFrame]:
    """Speedups of iterations in every reading, a table for each size, and what survives."""
    every = {"as it stands": speedups(default)}
    for one in watched("readings", READINGS):
        found = interpolated(one.readings, one.batch, one.networks, one.algorithms)
        every[one.name] = speedups(default | found)
    columns = list(product(ALGORITHMS, NETWORKS))
    tables = {
        f"sensitivity_{side}x{side}": pl.DataFrame(
            [
                {"reading": name}
                | {
                    f"{SHORT[of]} {SHORT[network]}": round(found[of, side, network][0], 2)
                    for of, network in columns
                }
                for name, found in every.items()
            ]
        )
        for side in SIDES
    }
    return tables | {"conclusions": _conclusions(every)}


SHORT = {
    "ring": "ring",
    "double_binary_tree": "DBT",
    "multi_tree": "MT",
    "mesh": "mesh",
    "torus": "torus",
    "flattened_butterfly": "FB",
    "adapt_noc": "Adapt",
}


def _conclusions(every: dict[str, Speedups]) -> pl.DataFrame:
    """In how many readings ARIES is faster, and where it is not."""
    rows = []
    for algorithm, network, side in product(ALGORITHMS, NETWORKS, SIDES):
        ratios = {name: found[algorithm, side, network][0] for name, found in every.items()}
        slower = [name for name, ratio in ratios.items() if ratio < 1]
        rows.append(
            {
                "ARIES is faster": f"{SHORT[algorithm]} than {SHORT[network]} {side}x{side}",
                "readings": f"{len(ratios) - len(slower)} of {len(ratios)}",
                "least": round(min(ratios.values()), 2),
                "most": round(max(ratios.values()), 2),
                "not with": "; ".join(slower) or "-",
            }
        )
    return pl.DataFrame(rows)

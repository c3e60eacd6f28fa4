"""Sensitivity of the speedups of figure 10, and the conclusions that hold in every variation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING

import polars as pl

from tutti.base.progress import watched
from tutti.bypass.package_networks import ALGORITHMS, DEFAULT, SIDES, Assumptions
from tutti_papers.aries.applications import BATCHES
from tutti_papers.aries.iterations import read_as, speedups
from tutti_papers.aries.published import NETWORKS

if TYPE_CHECKING:
    from tutti_papers.aries.iterations import Iteration, Key, Speedups


@dataclass(frozen=True)
class Variation:
    """An alternative to one assumption.

    Attributes:
        name: The label.
        assumptions: All assumptions.
        batch: The batch of the applications.
    """

    name: str
    assumptions: Assumptions = DEFAULT
    batch: str = BATCHES[0]


def _variation(name: str, **changed: object) -> Variation:
    return Variation(name, replace(DEFAULT, **changed))  # type: ignore[arg-type]


VARIATIONS = (
    _variation("two bypass wires", wires=2),
    _variation("muxes: same sign", muxes="sign"),
    _variation("muxes: own axis", muxes="axis"),
    _variation("hop of 10 ns", hop="10 ns"),
    _variation("long wires slower", per_span=True),
    _variation("configured once", switched=False),
    _variation("reconfiguration takes 1 us", switch="1 us"),
    _variation("bidirectional rings", bidirectional=True),
    _variation("plain rings only", rings="plain"),
    _variation("Adapt-NoC: rings in rows and columns", rings="grid"),
    _variation("trees in 1 chunk", chunks=1),
    _variation("trees in 16 chunks", chunks=16),
    _variation("2 accumulators", accumulators=2),
    _variation("1 accumulator", accumulators=1),
    _variation("butterfly: wide links", butterfly="wide"),
    _variation("butterfly: 4 chiplets per router", butterfly="concentrated"),
    *(Variation(batch, batch=batch) for batch in BATCHES[1:]),
)
"""Alternatives to what the paper leaves open, one assumption changed at a time."""


def sensitivity(default: dict[Key, Iteration]) -> dict[str, pl.DataFrame]:
    """Returns the speedups of iterations in every variation by size, and the conclusions."""
    by_variation = {"default": speedups(default)}
    for one in watched("variations", VARIATIONS):
        by_variation[one.name] = speedups(read_as(default, one.assumptions, one.batch))
    columns = list(product(ALGORITHMS, NETWORKS))
    tables = {
        f"sensitivity_{side}x{side}": pl.DataFrame(
            [
                {"variation": name}
                | {
                    f"{SHORT[of]} {SHORT[network]}": round(found[of, side, network][0], 2)
                    for of, network in columns
                }
                for name, found in by_variation.items()
            ]
        )
        for side in SIDES
    }
    return tables | {"conclusions": _conclusions(by_variation)}


SHORT = {
    "ring": "ring",
    "double_binary_tree": "DBT",
    "multi_tree": "MT",
    "mesh": "mesh",
    "torus": "torus",
    "flattened_butterfly": "FB",
    "adapt_noc": "Adapt",
}


def _conclusions(by_variation: dict[str, Speedups]) -> pl.DataFrame:
    """Returns the number of variations in which ARIES is faster, and the exceptions."""
    rows = []
    for algorithm, network, side in product(ALGORITHMS, NETWORKS, SIDES):
        ratios = {name: found[algorithm, side, network][0] for name, found in by_variation.items()}
        slower = [name for name, ratio in ratios.items() if ratio < 1]
        rows.append(
            {
                "ARIES is faster": f"{SHORT[algorithm]} than {SHORT[network]} {side}x{side}",
                "variations": f"{len(ratios) - len(slower)} of {len(ratios)}",
                "least": round(min(ratios.values()), 2),
                "most": round(max(ratios.values()), 2),
                "exceptions": "; ".join(slower) or "-",
            }
        )
    return pl.DataFrame(rows)

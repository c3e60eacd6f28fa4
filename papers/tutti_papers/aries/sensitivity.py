"""Sensitivity of the speedups of figure 10, and the conclusions that hold in every variation."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import polars as pl

from tutti.base.progress import watched
from tutti.bypass.package_networks import ALGORITHMS, SIDES
from tutti_papers.aries.applications import BATCHES
from tutti_papers.aries.iterations import speedups
from tutti_papers.aries.published import NETWORKS

if TYPE_CHECKING:
    from tutti_papers.aries.iterations import Speedups
    from tutti_papers.aries.reading import JointReading

VARIATIONS: dict[str, dict[str, Any]] = {
    "one bypass wire": {"wires": 1},
    "muxes: same sign": {"muxes": "sign"},
    "muxes: own axis": {"muxes": "axis"},
    "hop of 10 ns": {"hop": "10 ns"},
    "long wires slower": {"per_span": True},
    "configured once": {"switched": False},
    "reconfiguration takes no time": {"switch": "0 ns"},
    "reconfiguration takes 1 us": {"switch": "1 us"},
    "rings in one direction": {"bidirectional": False},
    "plain rings only": {"rings": "plain"},
    "Adapt-NoC: plain rings": {"rings": "butterfly"},
    "ARIES: also as a mesh or torus": {"shapes": True},
    "trees in 1 chunk": {"chunks": 1},
    "trees in 16 chunks": {"chunks": 16},
    "2 accumulators": {"accumulators": 2},
    "1 accumulator": {"accumulators": 1},
    "butterfly: wide links": {"butterfly": "wide"},
    "butterfly: 4 chiplets per router": {"butterfly": "concentrated"},
    "all-reduces in 4 parts": {"splits": 4},
    "geometric means": {"mean": "geometric"},
    **{batch: {"batch": batch} for batch in BATCHES[1:]},
}
"""Alternatives to what the paper leaves open, one assumption changed at a time, by label."""


def sensitivity(default: JointReading) -> dict[str, pl.DataFrame]:
    """Returns the speedups of iterations in every variation by size, and the conclusions."""
    by_variation = {"default": speedups(default.iterations(), default.mean)}
    for name, changed in watched("variations", list(VARIATIONS.items())):
        reading = default.with_answers(changed)
        by_variation[name] = speedups(reading.iterations(), reading.mean)
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
    return tables | {"exceptions": _conclusions(by_variation)}


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

"""Large all-reduces of figure 10: their times, and the busiest link of each network.

They show why networks are faster or slower than the paper states.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import polars as pl

from tutti.base.progress import at_once
from tutti.base.units import Size
from tutti.bypass.package_networks import SIDES, variants
from tutti_papers.aries.conclusions import (
    BUTTERFLY_FASTEST,
    BUTTERFLY_SLOWEST,
    NOC_FASTEST,
    faster,
)
from tutti_papers.aries.published import NETWORKS

if TYPE_CHECKING:
    from tutti.bypass.package_networks import Assumptions

SIZE = Size.parse("1 MiB")
"""An all-reduce at which transfers take most of the time."""
ON_A_LINK = SIZE.bytes / 68e9 * 1e12
"""The time of the payload on a link in ps, the unit of times here."""
TREES, MULTI = "double_binary_tree", "multi_tree"
Case = tuple[str, int, str]
"""Algorithm, side, network."""


def bottlenecks(its: Assumptions) -> pl.DataFrame:
    """Returns by case the fastest schedule, its time, and the busiest link.

    Columns: algorithm, side, network, schedule; time and busy (of the busiest link) over the time
    of the payload on a link of 68 GB/s; payloads (bytes of that link over the payload).
    """
    cases = product((TREES, MULTI), SIDES, (*NETWORKS, "aries"))
    found = at_once(lambda case: _row(case, its), cases, "busiest links")
    return pl.DataFrame(list(found.values()))


def _row(case: Case, its: Assumptions) -> dict[str, Any]:
    algorithm, side, network = case
    known = {one: one.run(SIZE) for one in variants(network, algorithm, side, its)}
    variant = min(known, key=lambda one: known[one].completion_ps)
    links = pl.concat([run.links for run in known[variant].runs])
    busiest = links.sort("busy_ps").row(-1, named=True)
    return {
        "algorithm": algorithm,
        "side": side,
        "network": network,
        "schedule": variant.name,
        "time": round(known[variant].completion_ps / ON_A_LINK, 3),
        "busy": round(busiest["busy_ps"] / ON_A_LINK, 3),
        "payloads": round(busiest["bytes"] / SIZE.bytes, 3),
    }


def reasons(frame: pl.DataFrame) -> dict[str, str]:
    """Returns the reasons of conclusions that may not hold, from `bottlenecks`."""
    rows = {
        (row["algorithm"], row["side"], row["network"]): row for row in frame.iter_rows(named=True)
    }
    butterfly, mesh, noc = (
        rows[TREES, 4, network] for network in ("flattened_butterfly", "mesh", "adapt_noc")
    )
    wide, torus = (rows[MULTI, 8, network] for network in ("flattened_butterfly", "torus"))
    times = {
        network: " and ".join(f"{rows[MULTI, side, network]['time']:.2f}" for side in SIDES)
        for network in ("aries", "torus", "flattened_butterfly")
    }
    unit = "of the payload's time on a link"
    return {
        BUTTERFLY_SLOWEST: (
            f"on 4x4 its busiest link carries {butterfly['payloads']:.2f} payloads in "
            f"{butterfly['busy']:.2f} {unit}; that of a mesh carries {mesh['payloads']:.2f} in "
            f"{mesh['busy']:.2f}"
        ),
        NOC_FASTEST: (
            f"on 4x4 its fastest schedule is {noc['schedule']}: {SIZE} takes {noc['time']:.2f} "
            f"{unit}, on the butterfly {butterfly['time']:.2f}"
        ),
        BUTTERFLY_FASTEST: (
            f"on 8x8 its busiest link is busy for {wide['busy']:.3f} {unit}, that of a torus for "
            f"{torus['busy']:.3f}"
        ),
        faster(MULTI): (
            f"{SIZE} takes {times['aries']} {unit} on 4x4 and 8x8, on a torus {times['torus']}, on "
            f"the butterfly {times['flattened_butterfly']}"
        ),
    }

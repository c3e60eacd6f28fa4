"""Concentrated MultiTree by size: its speedups over MultiTree on a mesh and a torus.

The sizes show which messages the published speedups could belong to.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any

import polars as pl

from tutti.base.progress import at_once
from tutti.base.units import Size
from tutti.bypass.package_networks import DEFAULT, SIDES, variants
from tutti_papers.aries.published import NETWORKS, SPEEDUPS
from tutti_papers.claims import Conclusion

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tutti.bypass.package_networks import Assumptions

SIZES = tuple(Size.parse(text) for text in ("1 KiB", "16 KiB", "64 KiB", "2 MiB"))
"""The smallest and the largest message of figure 9, and those between."""
OVER = ("mesh", "torus")
CONFIGURED: dict[str, dict[str, Any]] = {
    "once": {"switched": False},
    "for each phase, 100 ns": {"switched": True, "switch": "100 ns"},
    "for each phase, 0 ns": {"switched": True, "switch": "0 ns"},
}
"""When ARIES is configured, and the time of a switch between phases."""
NO_TIME = "for each phase, 0 ns"
Row = dict[str, Any]


def by_size() -> pl.DataFrame:
    """Returns the speedups of concentrated MultiTree by size, wires and configuration."""
    cases = [
        (side, wires, configured) for side, wires, configured in product(SIDES, (1, 2), CONFIGURED)
    ]
    own = {
        case: replace(DEFAULT, wires=case[1], shapes=False, **CONFIGURED[case[2]]) for case in cases
    }
    points = [("multi_tree", network, side, DEFAULT) for network, side in product(OVER, SIDES)]
    points += [("multi_tree", "aries", case[0], its) for case, its in own.items()]
    took = at_once(lambda point: _fastest(*point), product(points, SIZES), "MultiTree by size")
    rows: list[Row] = []
    for (side, wires, configured), its in own.items():
        for size in SIZES:
            ours = took[("multi_tree", "aries", side, its), size]
            row: Row = {"side": side, "wires": wires, "configured": configured, "size": str(size)}
            for network in OVER:
                published = SPEEDUPS["multi_tree", side][NETWORKS.index(network)]
                gain = took[("multi_tree", network, side, DEFAULT), size] / ours
                row |= {f"over_{network}": round(gain, 2), f"{network}_published": published}
            rows.append(row)
    return pl.DataFrame(rows)


def _fastest(point: tuple[str, str, int, Assumptions], size: Size) -> int:
    algorithm, network, side, assumptions = point
    known = variants(network, algorithm, side, assumptions)
    return min(variant.run(size).completion_ps for variant in known)


def conclusions(rows: pl.DataFrame, its: Assumptions) -> tuple[Conclusion, ...]:
    """Returns whether concentrated MultiTree is faster at each size.

    Args:
        rows: The result of `by_size`.
        its: The number of wires, and when they are configured.
    """
    times = [one for one in CONFIGURED if one.endswith(its.switch)]
    configured = times[0] if its.switched else "once"
    gains, at_best = (_gains(rows, its, one) for one in (configured, NO_TIME))
    faster = (_faster(gains, at_best, *which) for which in product(OVER, map(str, SIZES)))
    return (*faster, _grows(gains))


Gains = dict[tuple[int, str, str], float]
"""Speedup by side, other network and size."""


def _gains(rows: pl.DataFrame, its: Assumptions, configured: str) -> Gains:
    chosen = rows.filter(pl.col("configured") == configured, pl.col("wires") == its.wires)
    return {
        (row["side"], network, row["size"]): row[f"over_{network}"]
        for row in chosen.iter_rows(named=True)
        for network in OVER
    }


def _faster(gains: Gains, at_best: Gains, network: str, size: str) -> Conclusion:
    """Returns whether ARIES is faster; `at_best` are the gains if a switch takes no time."""
    each, best = ({side: of[side, network, size] for side in SIDES} for of in (gains, at_best))
    why, holds = _shown(each), min(each.values()) > 1
    if not holds:
        why += f". Reason: if a switch between phases took no time, {_shown(best)}"
        if min(best.values()) < 1:
            why += "; the rest is the length of a phase (figure 8)"
    return Conclusion(
        statement=f"concentrated MultiTree is faster than on a {network} at {size}",
        holds=holds,
        why=why,
    )


def _shown(gains: Mapping[int, float]) -> str:
    return ", ".join(f"{side}x{side}: {gain:.2f}" for side, gain in gains.items())


def _grows(gains: Gains) -> Conclusion:
    small, large = SIDES
    size = str(SIZES[-1])
    pairs = {network: (gains[small, network, size], gains[large, network, size])
             for network in OVER}  # fmt: skip
    holds = all(after > before for before, after in pairs.values())
    why = "; ".join(
        f"over a {network} {before:.2f} and {after:.2f} at {size}"
        for network, (before, after) in pairs.items()
    )
    if not holds:
        why += (
            ". Reason: phases are shorter on a larger torus, but not with concentration (figure 8)"
        )
    return Conclusion(
        statement="concentrated MultiTree gains more on 8x8 than on 4x4", holds=holds, why=why
    )

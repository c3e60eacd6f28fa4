"""Every network with its best schedule: a search over the algorithms that fit it."""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import TYPE_CHECKING

import polars as pl

import tutti
from tutti.base.progress import at_once
from tutti.base.units import Size
from tutti.bypass.package_networks import (
    ALGORITHMS,
    SIDES,
    Variant,
    all_reduce,
    routes_of,
    variants,
)
from tutti_papers.aries.applications import APPLICATIONS, BATCHES
from tutti_papers.aries.iterations import Load, fastest, grid, ratios
from tutti_papers.aries.published import NETWORKS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tutti.training.overlap import Overlapped

CANDIDATES = (
    "ring:{0}",
    "ring:{0},bidirectional",
    "multi_ring:{0}:all_dimensions",
    "multi_ring:{0}:all_dimensions:bidirectional",
    "mirrored_ring:{0},bidirectional",
    "blue_connect:{0}:direct",
    "swing:{0}",
    "recursive_halving_doubling",
    "double_binary_tree:nccl,4",
    "double_binary_tree:nccl,16",
)
"""Schedules that run on any network of k x k chiplets."""
ON_GRAPH = ("multi_tree", "forest", "forest:depth=least")
"""Schedules that are built for the graph of a network."""
SIZES = tuple(Size.parse(text) for text in ("1 KiB", "16 KiB", "128 KiB", "1 MiB", "8 MiB"))
"""Gradients of layers have 16 KB to 9.4 MB in ResNet-50, messages of figure 9 1 KB to 2 MB."""


PARTS = {
    "aries": ("mesh", "torus", "aries"),
    "mesh": ("mesh",),
    "torus": ("torus",),
    "flattened_butterfly": ("flattened_butterfly",),
    "adapt_noc": ("mesh", "torus"),
}
"""The configurations of each network. Muxes for any wire can select those of their own axis, so
ARIES has the configurations of Adapt-NoC, and its own for each schedule."""

Point = tuple[str, int, int]
"""Configuration, side, index of the candidate."""


@cache
def candidates(part: str, side: int) -> tuple[Variant, ...]:
    """Returns the schedules that can run on a configuration of k x k chiplets."""
    if part == "aries":
        return tuple(one for algorithm in ALGORITHMS for one in variants(part, algorithm, side))
    routes = routes_of(part, side)
    known = [all_reduce(notation.format(f"{side}x{side}"), side) for notation in CANDIDATES]
    known += [
        tutti.schedule(notation, collective="all_reduce", ranks=side * side, topology=routes)
        for notation in ON_GRAPH
    ]
    return tuple(Variant(f"{one.name} on a {part}", one, (routes,)) for one in known)


def best_schedules() -> dict[str, pl.DataFrame]:
    """Returns the best schedule of each network by size, and the speedups of ARIES over them."""
    parts = list(dict.fromkeys(part for of_one in PARTS.values() for part in of_one))
    known = at_once(lambda at: candidates(*at), product(parts, SIDES), "candidates")
    points = [(*at, index) for at, of_one in known.items() for index in range(len(of_one))]
    took = _times(points, SIZES, "best schedules")
    best = {
        (network, side, size): min(
            (point for point in points if point[0] in PARTS[network] and point[1] == side),
            key=lambda point: took[point, size],
        )
        for network, side, size in product(PARTS, SIDES, SIZES)
    }
    rows = [
        {
            "side": side,
            "network": network,
            "size": str(size),
            "schedule": known[point[:2]][point[2]].name,
            "us": round(took[point, size] / 1e6, 3),
            "over_aries": round(took[point, size] / took[best["aries", side, size], size], 2),
        }
        for (network, side, size), point in best.items()
    ]
    return {"best_schedules": pl.DataFrame(rows), "best_iterations": _iterations(best)}


def _times(
    points: Iterable[Point], sizes: Iterable[Size], what: str
) -> dict[tuple[Point, Size], int]:
    """Returns the times of candidates in ps."""

    def of(request: tuple[Point, Size]) -> int:
        (part, side, index), size = request
        return candidates(part, side)[index].run(size).completion_ps

    return at_once(of, product(points, sizes), what)


def _iterations(best: Mapping[tuple[str, int, Size], Point]) -> pl.DataFrame:
    """Returns speedups if every network runs the fastest of its best schedules for each size."""
    took = _times(dict.fromkeys(best.values()), grid(), "best iterations")

    def of(network: str, side: int, name: str) -> Overlapped:
        mine = [best[network, side, size] for size in SIZES]
        times = tuple(tuple(took[point, size] for size in grid()) for point in mine)
        return fastest(times, Load(name, BATCHES[0])).overlapped

    rows = []
    for network, side in product(NETWORKS, SIDES):
        pairs = [(of(network, side, name), of("aries", side, name)) for name in APPLICATIONS]
        iteration, communication = ratios(pairs)
        rows.append(
            {
                "over": f"{network} {side}x{side}",
                "iterations": round(iteration, 2),
                "all_reduces": round(communication, 2),
            }
        )
    return pl.DataFrame(rows)

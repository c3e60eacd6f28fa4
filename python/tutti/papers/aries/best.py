"""Every network with its best schedule: a search over the algorithms that fit it."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import product
from typing import TYPE_CHECKING

import polars as pl

import tutti
from tutti.bypass import BypassMesh
from tutti.papers import at_once
from tutti.papers.aries.applications import APPLICATIONS, BATCHES
from tutti.papers.aries.iterations import EVERY, grid, overlapped, ratios
from tutti.papers.aries.published import NETWORKS
from tutti.papers.aries.system import (
    ALGORITHMS,
    DEFAULT,
    SIDES,
    Variant,
    all_reduce,
    fastest_of,
    routes_of,
    shaped,
    variants,
)
from tutti.units import Size

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tutti.overlap import Overlapped
    from tutti.topology import Routes

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


@cache
def candidates(network: str, side: int) -> tuple[Variant, ...]:
    """Returns the schedules that a network can run, from which it takes the fastest for a size.

    ARIES runs its own variants, in both directions, and everything that Adapt-NoC can run: muxes
    for any wire can select wires of their own axis.
    """
    if network not in ("aries", "adapt_noc"):
        return tuple(_on(routes_of(network, side), side, ""))
    own = BypassMesh(side=side, muxes="axis")
    shapes = (
        one
        for shape in ("mesh", "torus")
        for one in _on(shaped(shape, own, DEFAULT), side, f" on a {shape}")
    )
    extended = replace(DEFAULT, bidirectional=True)
    mapped = (
        one for algorithm in ALGORITHMS for one in variants(network, algorithm, side, extended)
    )
    return (*shapes, *mapped)


def _on(routes: Routes, side: int, where: str) -> Iterator[Variant]:
    """Yields all candidates on a network with these routes."""
    for notation in CANDIDATES:
        schedule = all_reduce(notation.format(f"{side}x{side}"), side)
        yield Variant(f"{schedule.name}{where}", schedule, (routes,))
    for notation in ON_GRAPH:
        schedule = tutti.schedule(
            notation, collective="all_reduce", ranks=side * side, topology=routes
        )
        yield Variant(f"{schedule.name}{where}", schedule, (routes,))


def best_schedules() -> dict[str, pl.DataFrame]:
    """Returns the best schedule of each network by size, and the speedups of ARIES over them."""
    known = at_once(lambda at: candidates(*at), product(EVERY, SIDES), "candidates")
    points = [
        (at, index, size)
        for at, of_one in known.items()
        for index in range(len(of_one))
        for size in SIZES
    ]
    took = at_once(
        lambda point: known[point[0]][point[1]].run(point[2]).completion_ps,
        points,
        "best schedules",
    )
    rows, fast = [], {}
    for (network, side), of_one in known.items():
        winners = []
        for size in SIZES:
            times = [took[(network, side), index, size] for index in range(len(of_one))]
            winners.append(times.index(min(times)))
            rows.append(
                {
                    "side": side,
                    "network": network,
                    "size": str(size),
                    "schedule": of_one[winners[-1]].name,
                    "us": round(min(times) / 1e6, 3),
                }
            )
        fast[network, side] = tuple(of_one[index] for index in sorted(set(winners)))
    return {"best_schedules": _compared(rows), "best_iterations": _iterations(fast)}


def _compared(rows: list[dict[str, object]]) -> pl.DataFrame:
    """Adds the time over that of ARIES."""
    frame = pl.DataFrame(rows)
    aries = frame.filter(network="aries").select("side", "size", aries="us")
    return frame.join(aries, on=["side", "size"], maintain_order="left").select(
        pl.exclude("aries"), over_aries=(pl.col("us") / pl.col("aries")).round(2)
    )


def _iterations(fast: Mapping[tuple[str, int], tuple[Variant, ...]]) -> pl.DataFrame:
    """Returns speedups if every network runs the fastest of its best schedules for each size."""
    points = list(product(fast, grid()))
    took = at_once(
        lambda point: fastest_of(fast[point[0]], point[1]).completion_ps, points, "best iterations"
    )

    def of(network: str, side: int, name: str) -> Overlapped:
        times = {size: took[(network, side), size] for size in grid()}
        return overlapped(times, BATCHES[0], name).overlapped

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

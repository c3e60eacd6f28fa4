"""The packet model of the exhibits compared with a simulation flit by flit."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from tutti.base.progress import at_once
from tutti.base.units import Size
from tutti.bypass.package_networks import ALGORITHMS, DEFAULT, variants
from tutti.collectives.phases import simulate_phases
from tutti.networks.flit.settings import Router
from tutti.platforms.contention import Flits
from tutti.platforms.machine import LogGP, Platform

if TYPE_CHECKING:
    from tutti.bypass.package_networks import Variant

SIZE, SIDE = Size.parse("256 KiB"), 4
NETWORKS = ("mesh", "torus", "aries")
FLITS = Flits(
    cycle="1 ns",
    flit="68 B",
    packet=4,
    router=Router(vcs=4, buffer=32, injection=4, ejection=4),
    # A message waits for its predecessor, so that cyclic routes of rings do not block.
    deadlock="ignore",
)
"""A flit of 68 B per cycle and link, 4 VCs of 32 flits (section V), and an NPU port per link."""
_WIRE = "10 ns"
"""The latency of a wire; two cycles of a router are simulated."""


def flit_check() -> pl.DataFrame:
    """Returns the times of both models on 4x4, and the speedups over the mesh."""
    points = [
        (network, algorithm, index)
        for algorithm in ALGORITHMS
        for network in NETWORKS
        for index in range(len(variants(network, algorithm, SIDE)))
    ]

    def times(point: tuple[str, str, int]) -> tuple[Variant, int, int]:
        network, algorithm, index = point
        packets = variants(network, algorithm, SIDE)[index]
        flits = variants(network, algorithm, SIDE, replace(DEFAULT, hop=_WIRE))[index]
        return packets, packets.run(SIZE).completion_ps, _by_flits(flits)

    took = at_once(times, points, "flits")
    rows = []
    for (network, algorithm, _), (variant, packets, flits) in took.items():
        _, mesh_packets, mesh_flits = took["mesh", algorithm, 0]
        rows.append(
            {
                "algorithm": algorithm,
                "network": network,
                "schedule": variant.name,
                "packets_us": round(packets / 1e6, 2),
                "flits_us": round(flits / 1e6, 2),
                "over_mesh_packets": round(mesh_packets / packets, 2),
                "over_mesh_flits": round(mesh_flits / flits, 2),
                "flits_over_packets": round(flits / packets, 3),
            }
        )
    return pl.DataFrame(rows)


def _by_flits(variant: Variant) -> int:
    """Returns the time of an all-reduce flit by flit, in ps."""
    model = LogGP(L="1 ns", o="0 ns", g="0 ns", G="0 ns/B")
    platforms = {
        id(routes): Platform(name="flits", model=model, routes=routes, contention=FLITS)
        for routes in variant.routes
    }
    return simulate_phases(
        variant.schedule,
        [platforms[id(routes)] for routes in variant.routes],
        size=SIZE,
        datatype="int8",
        switch=variant.switch,
    ).completion_ps

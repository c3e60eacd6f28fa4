"""Compares forest schedules with the cut bound of a topology, and times their generation.

For each topology and collective, it prints the percentage of the bound that the most loaded link
allows (`Routes.most_loaded`), and the percentage that a packet simulation reaches with free
endpoints and links of 1 ns. It also prints the CPU seconds of schedule generation. The rows are
those of `docs/performance-history.md`. Nothing here passes or fails.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import NamedTuple

import tutti
from tutti.platforms import platform
from tutti.topologies import Routes, Topology, link_classes

COLLECTIVES = ("all_gather", "reduce_scatter", "all_reduce")
SLOW, FAST, FASTER = "50 GB/s", "200 GB/s", "450 GB/s"
# Notation, and the rate of each class of links; one rate stands for all of them.
TOPOLOGIES: dict[str, tuple[str, ...]] = {
    "ring:8": (SLOW,),
    "switch:8": (SLOW,),
    "torus:4x4": (SLOW,),
    "mesh:4x4": (SLOW,),
    "hierarchical:switch:4/switch:4": (SLOW,),
    "hierarchical:switch:8/ring:4": (FAST, SLOW),
    "ring:256": (SLOW,),
    "torus:16x16": (SLOW,),
    "torus:4x8x8": (SLOW,),
    "torus:2x2x4x4x4": (SLOW,),
    "mesh:16x16": (SLOW,),
    "switch:256": (SLOW,),
    "hierarchical:switch:8/switch:32": (FASTER, SLOW),
    "hierarchical:switch:4/switch:8/switch:8": (FASTER, FAST, SLOW),
    "hierarchical:switch:8/rail:switch:32": (FASTER, SLOW),
    "hierarchical:ring:16/switch:16": (SLOW,),
    "dragonfly:p=2,a=4,h=2,g=9": (SLOW,),
    "dragonfly:p=4,a=8,h=4,g=8": (SLOW,),
    "fat_tree:k=4,n=4": (SLOW,),
    "fat_tree:m=16x16,w=1x8": (SLOW,),
    "hyperx:s=8x8,t=4": (SLOW,),
    "rail_optimized:npus=8,hosts=16,pods=2,spines=8": (FASTER, SLOW, SLOW),
}
PRESETS = {"dgx_h100": 8, "dgx_h100_cluster": 256}
SIZE = tutti.Size.parse("1 GiB")


class Row(NamedTuple):
    """A measurement: shares of the bound, pieces of a shard, and seconds."""

    loaded: float
    packets: float | None
    pieces: int
    seconds: float


def routes_of(name: str) -> tuple[Routes, int]:
    """Returns the routes of a topology or preset, and the number of ranks."""
    if name in PRESETS:
        routes = platform(name).routes
        assert routes is not None
        return routes, PRESETS[name]
    rates = TOPOLOGIES[name]
    rates *= len(link_classes(name)) if len(rates) == 1 else 1
    links = [{"rate": rate, "latency": "1 ns"} for rate in rates]
    topology = Topology.build(name, links=links)
    return topology.routes(), topology.ranks


def measured(name: str, collective: str, algorithm: str, simulated: bool) -> Row:
    """Returns one row."""
    routes, ranks = routes_of(name)
    routes.pair(0, ranks - 1)
    started = time.process_time()
    schedule = tutti.schedule(algorithm, ranks=ranks, collective=collective, topology=routes)
    seconds = time.process_time() - started
    limit = routes.topology.bound_by_links(collective, ranks=ranks).of(SIZE).ps
    loaded = limit / routes.most_loaded(schedule).of(SIZE).ps
    packets = None
    if simulated:
        # A message has eight packets, or more if they would exceed 64 KiB.
        size = max(1024, min(65536, SIZE.bytes // schedule.chunks // 8))
        machine = tutti.Platform(
            name="links",
            model=tutti.PipeliningPostal(alpha_p="0 ns", alpha_r="1 ps"),
            routes=routes,
            contention=tutti.Packets(size=f"{size} B", buffer=f"{8 * size} B"),
        )
        packets = limit / tutti.simulate(schedule, machine, size=SIZE).completion_time
    return Row(loaded, packets, schedule.chunks // ranks, seconds)


def main() -> None:
    """Measures the selected topologies and collectives."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", help="parts of the names of topologies")
    parser.add_argument("--algorithm", default="forest", help="in its notation")
    parser.add_argument("--collectives", nargs="+", default=COLLECTIVES, choices=COLLECTIVES)
    parser.add_argument("--no-packets", action="store_true", help="leave out the simulation")
    options = parser.parse_args()
    print("| topology | collective | pieces | by link load | in packets | seconds |")
    print("|---|---|---|---|---|---|")
    for name in [*TOPOLOGIES, *PRESETS]:
        if options.parts and not any(part in name for part in options.parts):
            continue
        for collective in options.collectives:
            row = measured(name, collective, options.algorithm, not options.no_packets)
            packets = "" if row.packets is None else f"{row.packets:.1%}"
            print(
                f"| `{name}` | {collective} | {row.pieces} | {row.loaded:.1%} | {packets} "
                f"| {row.seconds:.2g} |"
            )
            sys.stdout.flush()


if __name__ == "__main__":
    main()

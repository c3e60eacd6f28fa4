"""What an endpoint engine is worth: all-reduces of several algorithms on several topologies.

Prints a Markdown table: the time with ACE, and how much longer the baseline with the same memory
bandwidth (`comp_opt`) takes. Run it with `python benchmarks/endpoint_engines.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import tutti
from tutti.base.units import Size
from tutti.training.collective import Alone
from tutti.training.endpoint import configurations
from tutti.training.fabric import Dimension
from tutti.view.quantity import format_time

if TYPE_CHECKING:
    from tutti.topologies.graph import Rule

TOPOLOGIES: dict[str, tuple[str, Rule]] = {
    "torus 4x4": ("torus:4x4", "dimension_order"),
    "fat tree, 16 NPUs": ("fat_tree:k=4,n=2", "d_mod_k"),
    "dragonfly, 16 NPUs": ("dragonfly:p=2,a=4,h=1,g=2", "shortest_path"),
    "ARIES package 4x4": ("bypass:4x4:mesh,0=>3", "shortest_path"),
}
ALGORITHMS = ("ring", "recursive_halving_doubling", "swing", "double_binary_tree", "forest")
SIZE = Size.parse("4 MiB")


def main() -> None:
    """Prints the table."""
    print("| algorithm |", " | ".join(TOPOLOGIES), "|")
    print("|---|" + "--:|" * len(TOPOLOGIES))
    for algorithm in ALGORITHMS:
        cells = (cell(algorithm, *chosen) for chosen in TOPOLOGIES.values())
        print(f"| {algorithm} |", " | ".join(cells), "|", flush=True)


def cell(algorithm: str, notation: str, rule: Rule) -> str:
    """Returns the time with ACE, and the extra time of the baseline."""
    known = configurations()
    topology = tutti.Topology.build(notation, rate="50 GB/s", latency="500 ns")
    model = tutti.PipeliningPostal(alpha_p="0 ns", alpha_r="1 ns")
    where = tutti.Platform(name=notation, model=model, routes=topology.routes(rule))
    rings, chosen = (Dimension("all", 16),), {"all_reduce": algorithm}
    alone = Alone(size=SIZE, rings=rings, platform=where, algorithms=chosen)
    ace, baseline = (alone.run(known[one]).time.ps for one in ("ace", "comp_opt"))
    return f"{format_time(ace)}, {100 * (baseline / ace - 1):+.0f} %"


if __name__ == "__main__":
    main()

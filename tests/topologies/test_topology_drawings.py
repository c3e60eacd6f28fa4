"""Drawings of topologies: every family has a layout without overlaps."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import pytest

from tutti.topologies import Topology, families
from tutti.topologies.view.layout import layout

if TYPE_CHECKING:
    from pathlib import Path

NOTATIONS = [family.example for family in families()] + [
    "butterfly:3:2",
    "cmesh:4x4:4,express",
    "cmesh:3x3x3:1",
    "cmesh:5:2",
    "dragonfly:p=2,a=4,h=0,g=1",
    "dragonfly:p=1,a=4x3,h=2,g=4,k=1x2",
    "dragonfly:p=3,a=1,h=3",
    "fat_tree:radix=4,levels=3",
    "flattened_butterfly:4x4:3",
    "hyperx:s=3x3x3,t=1",
    "hyperx:s=4,t=2",
    "hyperx:s=4x4,t=5",
    "chiplet_mesh:chiplets=2x2,tiles=3x2,boundary=1",
    "rail_optimized:npus=4,hosts=3",
    "torus:3x2x2x2x2",
]


def built(notation: str) -> Topology:
    return Topology.build(notation, rate="50 GB/s", latency="300 ns")


@pytest.mark.parametrize("notation", NOTATIONS)
def test_no_vertex_covers_another(notation: str) -> None:
    topology = built(notation)
    placed = layout(topology)
    assert placed.at.keys() == {vertex.name for vertex in topology.vertices}
    xs, ys = zip(*placed.at.values(), strict=True)
    extent = max(max(xs) - min(xs), max(ys) - min(ys))
    nearest = min(math.dist(a, b) for a, b in itertools.combinations(placed.at.values(), 2))
    assert nearest > extent / 100


def test_fat_tree_has_npus_at_the_bottom() -> None:
    at = layout(built("fat_tree:k=2,n=3")).at
    heights = [at[name][1] for name in ("npu0", "level1.switch0", "level2.switch0")]
    assert heights == sorted(heights)
    assert len({y for _, y in at.values()}) == 4


def test_butterfly_has_npus_at_the_bottom_and_bent_return_links() -> None:
    placed = layout(built("butterfly:2:3"))
    names = ("npu0", "stage0.router0", "stage1.router0", "stage2.router0")
    heights = [placed.at[name][1] for name in names]
    assert heights == sorted(heights)
    assert ("stage2.router0", "npu0") in placed.bent
    assert ("npu0", "stage0.router0") not in placed.bent


def test_routers_of_a_chip_lie_on_their_grid() -> None:
    placed = layout(built("cmesh:4x4:2x2,express"))
    x, y = placed.at["router5"]
    assert (x, y) == (placed.at["router1"][0], placed.at["router4"][1])
    assert ("router0", "router2") in placed.bent
    assert ("router0", "router1") not in placed.bent
    nearest = min(placed.at, key=lambda name: math.dist(placed.at[name], (x, y)) or math.inf)
    assert nearest in {"npu18", "npu19", "npu26", "npu27"}


def test_the_groups_of_a_dragonfly_are_apart() -> None:
    topology = built("dragonfly:p=2,a=4,h=2")
    at = layout(topology).at
    inside = {
        math.dist(at[link.source], at[link.target])
        for link in topology.links
        if link.source.partition(".")[0] == link.target.partition(".")[0]
    }
    heart = {f"group{g}": [at[f"group{g}.switch{n}"] for n in range(4)] for g in range(9)}
    middles = [(sum(x for x, _ in s) / 4, sum(y for _, y in s) / 4) for s in heart.values()]
    between = min(math.dist(a, b) for a, b in itertools.combinations(middles, 2))
    assert max(inside) < between


def test_links_that_would_cover_others_are_bent() -> None:
    torus = layout(built("torus:4x4")).bent
    assert ("npu0", "npu3") in torus
    assert ("npu0", "npu1") not in torus
    hyperx = layout(built("hyperx:s=3x3x3,t=1")).bent
    assert {("switch0", "switch2"), ("switch0", "switch6"), ("switch0", "switch18")} <= hyperx
    assert not {("switch0", "switch1"), ("switch0", "switch9"), ("npu0", "switch0")} & hyperx


@pytest.mark.parametrize("ending", ["svg", "png"])
def test_drawings_are_deterministic(ending: str, tmp_path: Path) -> None:
    topology = built("dragonfly:p=1,a=3x2,h=1,g=3")
    first = topology.draw(tmp_path / f"first.{ending}").read_bytes()
    assert topology.draw(tmp_path / f"second.{ending}").read_bytes() == first

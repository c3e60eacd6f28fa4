"""The ideal capacity: closed forms, bottlenecks, and where results show it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from called import call
from flit_networks import SHORT, mesh, network
from tutti.networks import flit as noc

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("notation", "routing", "pattern", "load"),
    [
        # k / 4 flits per cycle over the middle links of a mesh of k x k, k / 8 of a torus.
        ("mesh:8x8", "dimension_order", "uniform", 0.5),
        ("torus:8x8", "dimension_order", "uniform", 1.0),
        ("mesh:8x8", "dimension_order", "transpose", 1 / 7),
        ("mesh:8x8", "o1_turn", "transpose", 2 / 7),
        ("mesh:8x8", "dimension_order", "bit_complement", 1 / 4),
        # Ejection at the hotspot: 16 nodes send all packets there.
        ("mesh:4x4", "dimension_order", "hotspot:5", 1 / 16),
        # A node ejects no more than a flit per cycle.
        ("mesh:4x4", "dimension_order", "neighbour", 1.0),
    ],
)
def test_capacities_are_those_of_closed_forms(
    notation: str, routing: str, pattern: str, load: float
) -> None:
    traffic = noc.Traffic(rate=0.2, pattern=pattern)
    found = noc.capacity(noc.Network(topology=mesh(notation), routing=routing), traffic)
    assert found is not None
    assert found.load == pytest.approx(load)
    assert not found.is_mean


def test_the_bottleneck_is_named() -> None:
    found = noc.capacity(network(), noc.Traffic(rate=0.1, pattern="hotspot:5"))
    assert found is not None
    assert (found.kind, found.bottleneck) == ("ejection", "ejection at npu5")


def test_adaptive_routings_are_bounded_by_the_mean_load_of_links() -> None:
    """Node (x, y) sends to (3 - x, 3 - y), which is 4 links away on average; there are 48."""
    traffic = noc.Traffic(rate=0.1, pattern="bit_complement")
    found = noc.capacity(network(routing="minimal_adaptive"), traffic)
    assert found is not None
    assert (found.is_mean, found.bottleneck) == (True, "mean of all links")
    assert found.load == pytest.approx(48 / (16 * 4))


def test_classes_and_replies_share_channels() -> None:
    requests = noc.Traffic(rate=0.1, vcs=(0, 1), reply=noc.Reply(packet=5, vcs=(2, 3)))
    alone = noc.capacity(network(), noc.Traffic(rate=0.1))
    both = noc.capacity(network(), requests)
    assert alone is not None
    assert both is not None
    assert both.load == pytest.approx(alone.load / 6)


def test_saturation_stays_below_capacity() -> None:
    traffic = noc.Traffic(rate=0.1, pattern="transpose")
    found = noc.capacity(network(), traffic)
    assert found is not None
    saturation = noc.saturation(network(), traffic, SHORT, tolerance=0.02)
    assert 0.8 * found.load < saturation.load < 1.05 * found.load


def test_traces_and_idle_traffic_have_no_capacity() -> None:
    trace = noc.Trace(text="cycle,source,destination,flits\n0,0,5,1\n")
    assert noc.capacity(network(), trace) is None
    assert noc.capacity(noc.Network(topology=mesh("mesh:96x96")), noc.Traffic(rate=0.1)) is None


def test_a_sweep_shows_the_capacity_in_table_json_and_page(tmp_path: Path) -> None:
    given = ["noc", "sweep", "--mesh", "4x4", "--traffic", "transpose", "--loads", "0.1,0.2",
             "--set", "measure.measure=1000", "--set", "measure.warmup=200",
             "--tolerance", "0.1", "-o", "out"]  # fmt: skip
    done = call(*given, cwd=tmp_path)
    text = " ".join(done.stdout.split())
    assert "ideal capacity: 0.3333 flits per node and cycle, bounded by the channel load" in text
    assert "hops ideal" in text
    found = json.loads(call(*given, "--json", cwd=tmp_path).stdout)
    assert found["result"]["capacity"]["load"] == pytest.approx(1 / 3)
    assert found["result"]["saturation"]["capacity_share"] < 1.1
    shares = [row["capacity_share"] for row in found["tables"]["results"]]
    assert shares[0] == pytest.approx(0.3)


def test_single_cycle_meshes_show_the_same_capacity_line(tmp_path: Path) -> None:
    given = ["noc", "sweep", "--mesh", "4x4", "--design", "sfo_greedy", "--loads", "0.02,0.05",
             "--set", "measure.measure=500", "--set", "measure.warmup=100",
             "--set", "measure.seeds=1", "--no-report", "-o", "out"]  # fmt: skip
    done = call(*given, "--no-saturation", cwd=tmp_path)
    text = " ".join(done.stdout.split())
    # Each node ejects the broadcasts of the 15 others, a flit each.
    expected = "ideal capacity: 0.06667 broadcasts per source and cycle, bounded by the busiest"
    assert expected in text
    assert "in flight ideal" in text
    found = json.loads(call(*given, "--json", cwd=tmp_path).stdout)
    assert found["result"]["capacity"]["load"] == pytest.approx(1 / 15)
    by_load = {row["load"]: row["capacity_share"] for row in found["tables"]["results"]}
    assert by_load[0.05] == pytest.approx(0.75)

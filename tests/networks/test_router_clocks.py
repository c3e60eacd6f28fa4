"""Networks whose routers have different clocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from flit_networks import SHORT, mesh, network
from tutti.base.errors import ConfigError
from tutti.energy.technology import Technology
from tutti.networks import flit as noc
from tutti.networks.errors import NocError
from tutti.networks.flit.files.network_file import load_noc
from tutti.networks.flit.view.run import run_view

if TYPE_CHECKING:
    from pathlib import Path

CHIP = Technology(router="dsent_45nm", link="dsent_45nm")
FILE = """
cycle = "1 ns"

[topology]
build = "mesh:4x1"
links = [{ rate = "16 GB/s", latency = "1 ns" }]

[[clocks]]
at = ["npu[23]"]
period = "1.25 ns"
synchroniser = 3

[traffic]
rate = 0.1
"""


def slow(*at: str, period: str = "2 ns", **changed: Any) -> noc.RouterClock:
    return noc.RouterClock(at=at, period=period, **changed)


def alone(flits: int, **options: Any) -> float:
    """Returns the latency of a packet over a row of 4 routers."""
    trace = noc.Trace(text=f"cycle,source,destination,flits\n0,0,3,{flits}")
    plan = noc.MeasurementPlan(warmup=0, measure=100, batches=2)
    return noc.run(network("mesh:4x1", **options), trace, plan).latency.mean


def test_a_packet_waits_for_edges_and_synchronisers() -> None:
    """At 10 ns at the boundary; from there 2 cycles of the synchroniser, and routers of 6 ns."""
    half = slow("npu2", "npu3")
    assert alone(1) == 18
    assert alone(1, clocks=(half,)) == 30
    assert alone(4, clocks=(half,)) == 30 + 3 * 2
    assert alone(1, clocks=(slow("npu[23]", synchroniser=0),)) == 26
    # The clock of the network under another number: only the synchronisers remain.
    assert alone(1, clocks=(slow("npu[23]", period="1 ns"),)) == 18 + 2
    assert alone(1, clocks=(slow("*", period="1 ns"),)) == 18
    assert alone(1, clocks=(slow("*"),)) == 2 * 18


def test_results_state_the_slower_ends() -> None:
    made = network("mesh:4x1", clocks=(slow("npu[23]"),))
    traffic = noc.Traffic(rate=0.2, pattern="uniform")
    run, plain = (noc.run(one, traffic, SHORT) for one in (made, network("mesh:4x1")))
    shown = str(run_view(run))
    assert "cycle time 1 ns (2 ns at npu[23])" in shown
    assert "latencies and loads count them; synchronisers take 2 cycles" in shown
    times = {(sent.source, sent.target): sent.cycles_per_flit for sent in run.sent}
    assert times["npu0", "npu1"] == 1
    assert times["npu1", "npu2"] == times["npu3", "npu2"] == times["npu3", "npu3"] == 2
    capacities = [noc.capacity(one, traffic) for one in (made, network("mesh:4x1"))]
    slower, faster = (one.load for one in capacities if one is not None)
    assert slower == faster / 2
    (remark,) = network("mesh:4x1", clocks=made.clocks, router=noc.Router(buffer=1)).remarks()
    # T, C, S and the synchroniser in cycles of 2 ns, S and the synchroniser of 1 ns, wires of 2 ns.
    assert "npu2 > npu1 (the longest of 6 such links) is 15 cycles" in remark
    parts = [one.energy(CHIP).frame for one in (run, plain)]
    leaks, dynamic = ([frame[name].sum() for frame in parts] for name in ("leakage_j", "dynamic_j"))
    assert leaks[0] == pytest.approx(leaks[1])
    assert dynamic[0] < dynamic[1]


def test_the_width_of_a_link_is_that_of_its_slower_end() -> None:
    half = mesh("mesh:4x1", rate="8 GB/s")
    with pytest.raises(NocError, match="npu0 > npu1 carries in a cycle of 1 ns"):
        network(topology=half, clocks=(slow("npu[23]"),)).core([None])
    network(topology=half, clocks=(slow("npu[123]"),)).core([None])


@pytest.mark.parametrize(
    ("entries", "text"),
    [
        ([slow("npu99")], "clocks[0]: no router is named `npu99`: expected names or patterns of"),
        ([slow("npu1"), slow("npu*")], "clocks[1]: router `npu1` is also in clocks[0]"),
        ([slow("npu1", period="900 ps")], "`period` is 900 ps: expected 1 ns, which is `cycle`, "),
        ([slow("npu1", period="65 ns")], "to 64 ns"),
    ],
)
def test_invalid_clocks_are_refused(entries: list[noc.RouterClock], text: str) -> None:
    with pytest.raises(NocError) as caught:
        network(clocks=tuple(entries)).core([None])
    assert text in str(caught.value)
    assert caught.value.kind == "router_clocks"
    hint = "did you mean `npu9`?" if "npu99" in text else "`cycle` is the shortest period"
    assert hint in str(caught.value.hint)


def test_files_name_clocks(tmp_path: Path) -> None:
    path = tmp_path / "network.toml"
    path.write_text(FILE)
    (clock,) = load_noc(path).network.clocks
    assert (clock.at, clock.period_ps, clock.synchroniser) == (("npu[23]",), 1250, 3)
    for change, text in [
        ("clocks=[{at = ['x'], period = '2 ns'}]", "clocks[0]: no router is named `x`"),
        ("clocks=[{at = ['npu0'], period = '1 ps'}]", "clocks[0]: `period` is 1 ps"),
        ("clocks=[{at = ['npu0']}]", "clocks[0].period"),
        ("clocks=[{at = ['npu0'], period = 2}]", "clocks[0].period"),
        ("clocks=[{at = ['npu0'], period = '2 ns', synchroniser = 65}]", "clocks[0].synchroniser"),
        ("router.output_speedup=2", "clocks: flits queue behind the switch"),
    ]:
        with pytest.raises(ConfigError) as caught:
            load_noc(path, [change])
        assert text in str(caught.value), str(caught.value)
    with pytest.raises(NocError, match="`synchroniser` is -1"):
        slow("npu0", synchroniser=-1)

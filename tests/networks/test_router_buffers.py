"""Networks whose routers differ in VCs and buffers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from flit_networks import SHORT, network
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
[topology]
build = "mesh:3x3"
links = [{ rate = "16 GB/s", latency = "1 ns" }]

[router]
vcs = 4
buffer = 8

[[routers]]
at = ["npu4", "npu[78]"]
vcs = 2
buffer = 3

[traffic]
rate = 0.1
"""


def few(*at: str, **changed: Any) -> noc.RouterBuffers:
    return noc.RouterBuffers(at=at, **changed)


def test_a_network_of_small_routers_is_that_of_small_parameters() -> None:
    """But for the nodes, whose VCs single flits only take in another order."""
    small = noc.Router(vcs=2, buffer=4)
    traffic = noc.Traffic(rate=0.25)
    alike = noc.run(network(router=small), traffic, SHORT)
    named = noc.run(network(routers=(few("*", vcs=2, buffer=4),)), traffic, SHORT)
    assert named.latency.mean == pytest.approx(alike.latency.mean, rel=0.005)
    assert named.occupancy.select("router", "vc").equals(alike.occupancy.select("router", "vc"))
    assert named.buffer_capacity == alike.buffer_capacity == 64 * 8
    energies = [run.energy(CHIP).total.nominal for run in (named, alike)]
    assert energies[0] == pytest.approx(energies[1], rel=0.005)
    assert named.area(CHIP) == alike.area(CHIP)


def test_a_stream_is_limited_by_the_buffer_that_it_enters() -> None:
    """One slot at router 2 of a row of 4, with a credit round trip of 6 cycles."""
    flits = "".join(f"\n{cycle},0,3,1" for cycle in range(60))
    trace = noc.Trace(text=f"cycle,source,destination,flits{flits}")
    last = {}
    for buffers in ((), (few("npu2", vcs=1, buffer=1),)):
        run = noc.run(network("mesh:4x1", routers=buffers), trace)
        last[bool(buffers)] = run.last_arrival
        assert run.ending == "stable"
    assert last[False] < 150
    assert 59 * 6 <= last[True] < 59 * 6 + 100


def test_results_have_the_vcs_that_exist() -> None:
    made = network("mesh:3x3", routers=(few("npu4", vcs=1, buffer=2),))
    plan = noc.MeasurementPlan(warmup=100, measure=500, sample=10, keep_vcs=True)
    run = noc.run(made, noc.Traffic(rate=0.3), plan)
    of_centre = run.occupancy.filter(run.occupancy["router"] == "npu4")
    assert of_centre["vc"].to_list() == [0] * 5
    assert run.occupancy.height == (24 + 9 - 5) * 4 + 5
    assert max(of_centre["flits"]) <= 2
    into = run.vcs.filter((run.vcs["target"] == "npu4") & (run.vcs["kind"] == "link"))
    assert into["vc"].to_list() == [0] * 4
    over = run.vcs_over_time("npu3", "npu4")
    assert set(over["vc"]) == {0}
    assert max(over["flits"]) <= 2
    assert run.buffer_capacity == (24 + 9 - 5) * 32 + 5 * 2
    shown = run_view(run)
    assert "1 VC of 2 flits at npu4" in str(shown)


def test_routers_have_vcs_of_each_class() -> None:
    """The VCs 0 and 2 of two classes with two VCs each."""
    made = network("mesh:3x3", routers=(few("npu4", vcs_per_class=1),))
    plan = noc.MeasurementPlan(warmup=100, measure=500, sample=10, keep_vcs=True)
    classes = [noc.Traffic(rate=0.15, vcs=(0, 1)), noc.Traffic(rate=0.15, vcs=(2, 3))]
    run = noc.run(made, classes, plan)
    assert run.ending == "stable"
    of_centre = run.occupancy.filter(run.occupancy["router"] == "npu4")
    assert of_centre["vc"].to_list() == [0, 2] * 5
    assert set(run.vcs_over_time("npu3", "npu4")["vc"]) == {0, 2}
    into = run.vcs.filter((run.vcs["target"] == "npu4") & (run.vcs["kind"] == "link"))
    assert into["vc"].to_list() == [0, 2] * 4
    assert min(into["flits"]) > 0
    assert run.buffer_capacity == (24 + 9 - 5) * 32 + 5 * 2 * 8
    assert "1 VC per class of 8 flits at npu4" in str(run_view(run))
    for entry, text in [
        ({"vcs_per_class": 3}, "`vcs_per_class` is 3: expected 1 to 2, as the traffic classes"),
        ({"vcs_per_class": 65}, "`vcs_per_class` is 65: expected an integer from 1 to 64"),
        ({"vcs": 1, "vcs_per_class": 1}, "`vcs` and `vcs_per_class` are both given"),
    ]:
        with pytest.raises(NocError, match=text):
            network(routers=(few("npu4", **entry),)).core([(0, 1), (2, 3)])


def test_the_credit_warning_names_the_smallest_buffers() -> None:
    traffic = [None]
    assert network("mesh:3x3").remarks(traffic) == []
    (remark,) = network("mesh:3x3", routers=(few("npu4", vcs=1, buffer=2),)).remarks(traffic)
    assert "> npu4 (the longest of 4 such links) is 6 cycles" in remark
    assert "1 VC of depth 2 use at most 33 % of the link; buffer = 6 allows 100 %" in remark


@pytest.mark.parametrize(
    ("entries", "text"),
    [
        ([few("npu99")], "routers[0]: no router is named `npu99`: expected names or patterns of"),
        ([few("npu1", vcs=2), few("npu*")], "routers[1]: router `npu1` is also in routers[0]"),
        ([few("npu1", vcs=8)], "`vcs` is 8: expected 1 to 4, as `router.vcs` is 4"),
        ([few("npu1", buffer=9)], "`buffer` is 9: expected 1 to 8, as `router.buffer` is 8"),
    ],
)
def test_invalid_buffers_are_refused(entries: list[noc.RouterBuffers], text: str) -> None:
    with pytest.raises(NocError) as caught:
        network(routers=tuple(entries)).core([None])
    assert text in str(caught.value)
    assert caught.value.kind == "router_buffers"
    hint = "did you mean `npu9`?" if "npu99" in text else "`routers` names those with less"
    assert hint in str(caught.value.hint)


def test_vcs_that_routers_need_are_checked() -> None:
    with pytest.raises(NocError, match="`vcs` is 0: expected an integer from 1 to 64"):
        few("npu1", vcs=0)
    one = (few("npu1", vcs=2),)
    with pytest.raises(NocError, match="some routers have 2 of 4 VCs"):
        network(routing="o1_turn", routers=one).core([None])
    network(routing="o1_turn", routers=(few("npu1", buffer=1),)).core([None])
    with pytest.raises(NocError, match=r"routers\[0\]: `vcs` is 2: .* class 1 has 2 to 3") as at:
        network(routers=one).core([(0, 1), (2, 3)])
    assert "vcs_per_class" in str(at.value.hint)


def test_errors_of_vcs_name_the_key_and_the_class(tmp_path: Path) -> None:
    path = tmp_path / "network.toml"
    path.write_text(FILE.replace("rate = 0.1", "rate = 0.1\nvcs = [0, 1]\nreply = {vcs = [2, 3]}"))
    changed = "routers=[]"
    for changes, text in [
        ([], "routers[0]: `vcs` is 2: its routers have the VCs 0 to 1, and class 0 (replies) has"),
        ([changed, "traffic.vcs=[0, 9]"], "traffic.vcs: class 0 (requests) has the VCs 0 to 9"),
        ([changed, "traffic.reply.vcs=[4, 9]"],
         "traffic.reply.vcs: class 0 (replies) has the VCs 4 to 9"),
        ([changed, "traffic.reply.vcs=[2, 2]", "topology.routing=o1_turn"],
         "traffic.reply.vcs: routing `o1_turn` needs at least 2 VCs per class, and class 0 (repl"),
        ([changed, "traffic=[{rate = 0.1}, {rate = 0.1, vcs = [5, 6]}]"],
         "traffic[1].vcs: class 1 has the VCs 5 to 6"),
        ([changed, "traffic={rate = 0.1}", "router.vcs=1", "topology.routing=o1_turn"],
         "router.vcs: routing `o1_turn` needs at least 2 VCs per class, and class 0 has 1"),
        (["traffic={rate = 0.1}", "topology.routing=o1_turn"],
         "routers: vcs: the routing divides the VCs"),
    ]:  # fmt: skip
        with pytest.raises(ConfigError) as caught:
            load_noc(path, changes)
        assert text in str(caught.value), str(caught.value)


def test_files_name_routers(tmp_path: Path) -> None:
    path = tmp_path / "network.toml"
    path.write_text(FILE)
    found = load_noc(path)
    assert found.network.routers == (few("npu4", "npu[78]", vcs=2, buffer=3),)
    built = found.network.core([None])
    depths = {built.channels()[port].buffer for port in built.inputs()}
    assert depths == {3, 8}
    changed = load_noc(path, ["routers=[{at = ['npu0'], buffer = 2}]"])
    assert changed.network.routers == (few("npu0", buffer=2),)
    for change, text in [
        ("routers=[{at = ['x']}]", "routers[0]: no router is named `x`"),
        ("routers=[{at = [], vcs = 2}]", "routers[0].at"),
        ("routers=[{vcs = 2}]", "routers[0].at"),
        ("routers=[{at = ['npu0'], vcs = 65}]", "routers[0].vcs"),
        ("routers=[{at = ['npu0'], depth = 2}]", "unknown key `depth`"),
    ]:
        with pytest.raises(ConfigError) as caught:
            load_noc(path, [change])
        assert text in str(caught.value), str(caught.value)

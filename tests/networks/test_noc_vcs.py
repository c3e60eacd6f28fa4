"""VCs from Python: deadlocks, buffers that throttle links, occupancy over time."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

import tutti
from flit_networks import SHORT, mesh, network
from tutti.networks import flit as noc
from tutti.networks.errors import NocError


def test_remarks_report_a_routing_that_can_deadlock() -> None:
    ring = tutti.Topology.build("ring:5", rate="16 GB/s", latency="1 ns")
    (remark,) = noc.Network(topology=ring).remarks()
    assert "`shortest_path` can deadlock" in remark
    assert "npu0 > npu1" in remark
    assert noc.Network(topology=ring, deadlock="ignore").remarks() == []
    assert noc.Network(topology=mesh(), routing="o1_turn").remarks() == []
    with pytest.raises(NocError, match="can deadlock"):
        noc.run(noc.Network(topology=ring, deadlock="refuse"), noc.Traffic(rate=0.1), SHORT)


def test_a_network_too_large_to_check_is_reported_or_refused() -> None:
    large = tutti.Topology.build("mesh:96x96", rate="16 GB/s", latency="1 ns")
    (remark,) = noc.Network(topology=large, routing="o1_turn").remarks()
    assert (
        "`o1_turn` was not checked for deadlock: it has too many routes between 9,216 nodes"
        in remark
    )
    refusing = noc.Network(topology=large, routing="o1_turn", deadlock="refuse")
    with pytest.raises(NocError, match="not checked") as refused:
        refusing.core([None])
    assert refused.value.kind == "deadlock_unknown"
    middling = tutti.Topology.build("mesh:32x32", rate="16 GB/s", latency="1 ns")
    assert noc.Network(topology=middling, routing="o1_turn").remarks() == []


def test_remarks_report_buffers_smaller_than_a_credit_round_trip() -> None:
    """The credit round trip of a link of L cycles is (1 + L + 1) + (L + 1 + 1) cycles."""
    long = tutti.Topology.build("mesh:3x3", rate="16 GB/s", latency="20 ns")
    network = noc.Network(topology=long, routing="dimension_order")
    (remark,) = network.remarks()
    assert (
        "the credit round trip of npu0 > npu1 (the longest of 24 such links) is 44 cycles" in remark
    )
    assert "packets on 4 VCs of depth 8" in remark
    assert "use at most 72 % of the link; buffer = 11 allows 100 %" in remark
    (remark,) = network.remarks([(0, 1), (2, 3)])
    assert "2 VCs of depth 8 use" in remark
    assert "at most 36 % of the link; buffer = 22" in remark
    (remark,) = network.remarks([None], 16)
    assert "16-flit packets on 1 VC of depth 8" in remark
    assert "at most 18 % of the link; buffer = 44" in remark
    deep = replace(network, router=noc.Router(buffer=11))
    assert deep.remarks() == []
    assert noc.Network(topology=mesh(), routing="dimension_order").remarks([None], 16) == []


def test_utilisation_of_a_throttled_link_is_that_of_the_remark() -> None:
    """4 VCs of 8 flits on a link of 20 cycles: 32 flits per round trip of 44 cycles."""
    long = tutti.Topology.build("mesh:2", rate="16 GB/s", latency="20 ns")
    full = noc.Traffic(rate=1, pattern="bit_complement")
    plan = replace(SHORT, sample=0)
    for buffer, accepted in ((8, 32 / 44), (11, 1.0)):
        network = noc.Network(
            topology=long, routing="dimension_order", router=noc.Router(buffer=buffer)
        )
        run = noc.run(network, full, plan)
        assert 0.95 * accepted < run.accepted.mean < accepted + 0.001


def test_a_deadlocked_run_has_its_deadlock_cycle() -> None:
    ring = tutti.Topology.build("ring:8", rate="16 GB/s", latency="1 ns")
    network = noc.Network(topology=ring, router=noc.Router(vcs=1, buffer=2))
    plan = noc.MeasurementPlan(warmup=2000, measure=2000, patience=500)
    traffic = noc.Traffic(rate=0.9, pattern="uniform_others", packet=8)
    run = noc.run(network, traffic, plan)
    assert run.ending == "deadlocked"
    assert len(run.deadlock_cycle) > 2
    assert all(one.startswith("VC 0 of npu") for one in run.deadlock_cycle)
    row = noc.frame([run]).row(0, named=True)
    assert (row["ending"], row["load"]) == ("deadlocked", 0.9)
    for name in ("offered", "accepted", "accepted_least", "latency", "hops", "packets"):
        assert row[name] is None, name
    assert noc.run(network, noc.Traffic(rate=0.01), plan).deadlock_cycle == ()


def test_flits_of_vcs_add_up_to_those_of_channels() -> None:
    plan = noc.MeasurementPlan(warmup=200, measure=2000, batches=4, sample=50, keep_vcs=True)
    run = noc.run(network(), noc.Traffic(rate=0.3, packet=3), plan)
    vcs, channels = run.vcs, run.channels
    keys = ["kind", "source", "target"]
    assert (
        vcs.group_by(keys, maintain_order=True)
        .agg(pl.col("flits").sum())
        .equals(channels.select(*keys, "flits"))
    )
    assert vcs["utilisation"].sum() == pytest.approx(channels["utilisation"].sum())
    by_vc = run.buffered_by_vc
    assert by_vc.group_by("cycle", maintain_order=True).agg(pl.col("flits").sum())[
        "flits"
    ].to_list() == list(run.buffered)
    link = channels.filter(pl.col("kind") == "link").row(0, named=True)
    series = run.vcs_over_time(link["source"], link["target"])
    assert series.height == 40 * 4
    assert series["cycle"].to_list()[::4] == list(range(50, 2001, 50))
    assert series["sent"].sum() == link["flits"]
    mean = run.occupancy.filter(
        (pl.col("source") == link["source"]) & (pl.col("router") == link["target"])
    )["flits"].sum()
    assert series["flits"].sum() / 40 == pytest.approx(mean)
    with pytest.raises(NocError) as caught:
        run.vcs_over_time("npu0", "npu15")
    assert caught.value.kind == "unknown_channel"


def test_vcs_that_were_not_recorded_raise() -> None:
    run = noc.run(network(), noc.Traffic(rate=0.1), SHORT)
    with pytest.raises(NocError) as caught:
        run.vcs_over_time("npu0", "npu1")
    assert caught.value.kind == "not_recorded"
    plan = noc.MeasurementPlan(warmup=10, measure=100, batches=2, sample=0, keep_vcs=True)
    with pytest.raises(NocError, match="`sample` is 0: expected 1 to 65535"):
        noc.run(network(), noc.Traffic(rate=0.1), plan)

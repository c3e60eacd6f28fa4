"""Flit-level networks from Python: exact latencies, results of runs, and errors."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

import tutti
from flit_networks import SHORT, mesh, network
from tutti import _core
from tutti.energy import technology as energy
from tutti.energy.technology import Technology
from tutti.networks import flit as noc
from tutti.networks.errors import NocError, TrafficError
from tutti.topologies.errors import TopologyError

PIPELINES: list[dict[str, Any]] = [
    {},
    {"routing_delay": 1},
    {"routing_delay": 2, "vc_delay": 3, "switch_delay": 2, "traversal_delay": 4},
    {"traversal_delay": 0},
    {"port_latency": 3},
    {"speculation": noc.Speculation()},
]


@pytest.mark.parametrize("pipeline", PIPELINES, ids=str)
@pytest.mark.parametrize(
    ("target", "hops", "latency"), [(0, 0, 1), (1, 1, 1), (11, 5, 1), (15, 6, 5)]
)
def test_zero_load_latency_is_that_of_the_pipeline(
    pipeline: dict[str, Any], target: int, hops: int, latency: int
) -> None:
    router = noc.Router(**pipeline)
    alone = noc.Network(
        topology=mesh(latency=f"{latency} ns"), routing="dimension_order", router=router
    )
    flits = 6
    trace = noc.Trace(text=f"cycle,source,destination,flits\n7,0,{target},{flits}\n")
    plan = noc.MeasurementPlan(warmup=0, measure=100, batches=2, sample=0)
    run = noc.run(alone, trace, plan)
    ahead = router.speculation is not None
    each = router.routing_delay + router.vc_delay + router.switch_delay + router.traversal_delay
    each -= ahead
    wires = hops * latency + router.port_latency
    into = 1 + router.port_latency
    assert run.ending == "stable"
    assert run.hops.mean == hops + 1
    expected = into + (hops + 1) * each + wires + (flits - 1) * router.switch_delay
    assert run.all.latency_extremes == (expected, expected)
    assert run.quantiles == dict.fromkeys(("50", "90", "99", "99.9"), expected)


@pytest.mark.parametrize(
    ("limits", "longer"),
    [
        ({"injection": 0.5}, 0),
        ({"injection": 0.25}, 8),
        ({"injection": 0.1}, 38),
        ({"ejection": 0.5}, 5),
        ({"ejection": 0.1}, 45),
    ],
)
def test_limits_of_ports_space_the_flits_of_a_packet(limits: dict[str, Any], longer: int) -> None:
    """The tail of six flits passes the port 5 (1 / limit - 1) cycles later.

    Behind an injection port it regains one cycle in each of 7 routers, where only the head waits
    for a VC.
    """
    trace = noc.Trace(text="cycle,source,destination,flits\n7,0,15,6\n")
    plan = noc.MeasurementPlan(warmup=0, measure=100, batches=2, sample=0)
    took = [
        noc.run(network(router=router), trace, plan).all.latency_extremes[1]
        for router in (noc.Router(), noc.Router(**limits))
    ]
    assert took[1] - took[0] == longer


@pytest.mark.parametrize("limit", ["injection", "ejection"])
def test_limits_of_ports_hold_under_load(limit: str) -> None:
    given: dict[str, Any] = {limit: 0.3}
    limited = network(router=noc.Router(**given))
    run = noc.run(limited, noc.Traffic(rate=0.6, pattern="neighbour"), SHORT)
    assert run.ending == "saturated"
    assert 0.299 < run.accepted.mean < 0.3005
    assert noc.run(network(), noc.Traffic(rate=0.6, pattern="neighbour"), SHORT).is_stable
    concentrated = network("cmesh:2x2:4", router=noc.Router(**given))
    free = network("cmesh:2x2:4")
    runs = [noc.run(one, noc.Traffic(rate=0.2), SHORT).latency for one in (concentrated, free)]
    assert runs[0] == runs[1], "links of the graph keep their rates"
    for wrong in (0, 64.5, True):
        given[limit] = wrong
        with pytest.raises(NocError, match=f"`{limit}`: "):
            noc.Router(**given)


def test_event_counts_of_flits() -> None:
    trace = noc.Trace(text="cycle,source,destination,flits\n0,0,5,3\n0,2,2,1\n")
    run = noc.run(network(), trace, noc.MeasurementPlan(warmup=0, measure=100, batches=2))
    busy = run.channels.filter(pl.col("flits") > 0)
    assert sorted(busy.select("kind", "source", "target", "flits").rows()) == [
        ("ejection", "npu2", "npu2", 1),
        ("ejection", "npu5", "npu5", 3),
        ("injection", "npu0", "npu0", 3),
        ("injection", "npu2", "npu2", 1),
        ("link", "npu0", "npu1", 3),
        ("link", "npu1", "npu5", 3),
    ]
    assert run.events == noc.Events(
        buffer_writes=10,
        buffer_reads=10,
        crossbar_traversals=10,
        vc_grants=4,
        link_flits=6,
        link_flit_mm=12.0,
    )
    assert busy["utilisation"].max() == 0.03


def test_a_stable_run_accepts_the_offered_load() -> None:
    run = noc.run(network(), noc.Traffic(rate=0.2, packet=4), SHORT)
    assert run.is_stable
    assert run.load == 0.2
    # Bernoulli: 8,000 node cycles of 4-flit packets; five standard deviations.
    assert abs(run.offered - 0.2) < 5 * 4 * (0.05 * 0.95 / (16 * 2000)) ** 0.5
    assert abs(run.accepted.mean - run.offered) < 0.01
    least, most = run.all.accepted_extremes
    assert least <= run.accepted.mean <= most
    assert run.network_latency.mean <= run.latency.mean
    assert (
        run.quantiles["50"] <= run.quantiles["90"] <= run.quantiles["99"] <= run.quantiles["99.9"]
    )
    assert len(run.buffered) == 40
    assert run.occupancy["flits"].sum() == pytest.approx(sum(run.buffered) / 40)
    parts = run.stalls
    assert parts.busy == parts.routing + parts.no_vc + parts.no_credit + parts.switch


def test_a_saturated_run_reports_offered_and_accepted_load() -> None:
    run = noc.run(network(), noc.Traffic(rate=0.9, packet=4), SHORT)
    assert run.ending == "saturated"
    assert abs(run.offered - 0.9) < 0.05
    assert run.accepted.mean < 0.8
    row = noc.frame([run]).row(0, named=True)
    assert row["latency"] is None
    assert row["latency_99"] is None
    assert row["accepted"] == run.accepted.mean


def test_a_ring_without_datelines_deadlocks() -> None:
    ring = noc.Network(
        topology=tutti.Topology.build("ring:8", rate="16 GB/s", latency="1 ns"),
        routing="shortest_path",
        router=noc.Router(vcs=1, buffer=2),
    )
    run = noc.run(ring, noc.Traffic(rate=0.9, pattern="uniform_others", packet=8), SHORT)
    assert run.ending == "deadlocked"
    found = noc.saturation(ring, noc.Traffic(rate=0.9, packet=8), SHORT, tolerance=0.3)
    assert found.deadlocks


def test_narrow_links_are_reported() -> None:
    slow = noc.Network(
        topology=mesh(rate="4 GB/s"), routing="dimension_order", narrow_links="serialize"
    )
    run = noc.run(slow, noc.Traffic(rate=0.05), SHORT)
    links = run.channels.filter(pl.col("kind") == "link")
    assert links["cycles_per_flit"].unique().to_list() == [4.0]
    assert links["utilisation"].sum() == pytest.approx(4 * links["flits"].sum() / 2000)
    assert max(links["utilisation"]) <= 1


def test_classes_stay_on_their_vcs() -> None:
    classes = (
        noc.Traffic(rate=0.1, packet=1, vcs=(0, 0)),
        noc.Traffic(rate=0.2, packet=5, pattern="transpose", vcs=(2, 3)),
    )
    run = noc.run(network(), classes, SHORT)
    held = dict(run.occupancy.group_by("vc").agg(pl.col("flits").sum()).iter_rows())
    assert held[1] == 0
    assert min(held[vc] for vc in (0, 2, 3)) > 0
    assert len(run.classes) == 2
    assert run.all.packets == sum(one.packets for one in run.classes)


def test_the_number_of_threads_changes_nothing() -> None:
    loads = [0.1, 0.3, 0.5, 0.7]
    one, three = (
        noc.sweep(network(), noc.Traffic(rate=0, packet=2), loads, SHORT, threads=threads)
        for threads in (1, 3)
    )
    assert [run.load for run in one] == loads
    assert noc.frame(one).equals(noc.frame(three))
    assert all(a.channels.equals(b.channels) for a, b in zip(one, three, strict=True))


def test_saturation_lies_between_a_stable_and_an_unstable_load() -> None:
    traffic = noc.Traffic(rate=0, packet=4)
    found = noc.saturation(network(), traffic, SHORT, tolerance=0.02)
    assert found.below is not None
    assert 0 < found.load < found.below <= found.load + 0.02
    endings = {run.load: run.is_stable for run in found.runs}
    assert endings[found.load]
    assert not endings[found.below]
    assert found.accepted is not None
    assert abs(found.accepted.mean - found.load) < 0.02
    again = noc.saturation(network(), traffic, SHORT, tolerance=0.02, known=found.runs)
    assert (again.load, again.below) == (found.load, found.below)
    assert len(again.runs) == len(found.runs)


def test_a_network_stable_at_every_load_does_not_saturate() -> None:
    traffic = noc.Traffic(rate=0, pattern="permutation:" + ",".join(map(str, range(16))))
    found = noc.saturation(network(), traffic, SHORT, most=0.5)
    assert (found.load, found.below) == (0.5, None)


def test_classes_keep_their_proportions() -> None:
    both = noc.at_load((noc.Traffic(rate=0.1), noc.Traffic(rate=0.3)), 0.2)
    assert [one.rate for one in both] == pytest.approx([0.05, 0.15])


ROUTINGS = [
    ("mesh:4x4", "dimension_order", 1),
    ("mesh:4x4", "dimension_order:yx", 1),
    ("mesh:4x4", "o1_turn", 2),
    ("mesh:4x4", "o1_turn:adaptive", 2),
    ("mesh:4x4", "romm", 2),
    ("mesh:4x4", "valiant", 2),
    ("mesh:4x4", "minimal_adaptive", 2),
    ("torus:4x4", "dimension_order", 2),
    ("torus:4x4", "dimension_order:balanced", 2),
    ("torus:4x4", "valiant", 4),
    ("torus:4x4", "minimal_adaptive", 3),
    ("torus:4x4", "minimal_adaptive:one_vc", 3),
    ("cmesh:3x3:2x2", "dimension_order", 1),
    ("cmesh:3x3:2x2", "o1_turn", 2),
    ("flattened_butterfly:3x3:2", "dimension_order", 1),
    ("fat_tree:k=2,n=3", "d_mod_k", 1),
    ("fat_tree:k=2,n=3", "ecmp:7", 1),
    ("fat_tree:k=2,n=3", "nca", 1),
    ("fat_tree:m=4x4,w=2x2,p=1x2", "nca:adaptive", 1),
    ("dragonfly:p=2,a=4,h=2,g=9", "minimal", 2),
    ("dragonfly:p=2,a=4,h=2,g=9", "minimal:one_vc", 2),
    ("dragonfly:p=2,a=4,h=2,g=9", "valiant", 3),
    ("mesh:4x4", "ugal", 2),
    ("torus:4x4", "ugal:0", 4),
    ("flattened_butterfly:3x3:2", "ugal", 2),
    ("dragonfly:p=2,a=3x2,h=1,g=4", "ugal:8", 3),
    ("mesh:4x4", "minimal_adaptive:first_dimension", 2),
    ("mesh:2x2", "source_routed:0-3=0.1.2;*=o1_turn", 2),
    ("ring:6", "shortest_path", 1),
    ("fully_connected:5", "least_latency", 1),
    ("chiplet_mesh:chiplets=2x2,tiles=2x2,boundary=1", "up_down", 1),
    ("mesh:2x2", "paths:0>1>3;3>1>0", 1),
    ("bypass:2x2:mesh,0=>1", "shortest_path", 1),
]


@pytest.mark.parametrize(("notation", "routing", "vcs"), ROUTINGS)
def test_every_routing_delivers_on_its_minimum_of_vcs(
    notation: str, routing: str, vcs: int
) -> None:
    topology = tutti.Topology.build(notation, rate="16 GB/s", latency="1 ns")
    small = noc.Network(topology=topology, routing=routing, router=noc.Router(vcs=vcs))
    run = noc.run(small, noc.Traffic(rate=0.02, packet=2), SHORT)
    assert run.is_stable
    if vcs > 1:
        less = noc.Network(topology=topology, routing=routing, router=noc.Router(vcs=vcs - 1))
        with pytest.raises(NocError) as caught:
            noc.run(less, noc.Traffic(rate=0.02), SHORT)
        assert caught.value.kind == "too_few_vcs"
        assert caught.value.routing == routing


def test_every_routing_is_tried() -> None:
    assert {entry.name for entry in noc.routings()} == {r.split(":")[0] for _, r, _ in ROUTINGS}
    for entry in [*noc.routings(), *noc.patterns()]:
        assert entry.summary


Changes = dict[str, Any]
REFUSED: list[tuple[Changes, Changes, type[Exception], str]] = [
    (
        {"router": noc.Router(cut_through=True, buffer=4)},
        {"packet": 5},
        NocError,
        "a VC buffer of 4 flits holds no packet of 5 flits",
    ),
    ({"routing": "zigzag"}, {}, NocError, "routing `zigzag`"),
    ({"routing": "dimension_order:zy"}, {}, NocError, "or `dimension_order:yx`"),
    ({"routing": "romm:2"}, {}, NocError, "expected `romm`"),
    ({"routing": "ecmp:x"}, {}, NocError, "or `ecmp:SEED`"),
    ({"routing": "minimal_adaptive:x"}, {}, NocError, "or `minimal_adaptive:one_vc`"),
    ({"routing": "ugal:-1"}, {}, NocError, "or `ugal:THRESHOLD`"),
    ({"routing": "ugal", "topology": mesh("fully_connected:4")}, {}, NocError, "or dragonfly"),
    ({"routing": "nca"}, {}, NocError, "needs a fat tree, which mesh:4x4 is not"),
    ({"routing": "minimal"}, {}, NocError, "needs a dragonfly"),
    ({"routing": "source_routed"}, {}, NocError, "such as `0-5=1.1.3`"),
    ({"routing": "source_routed:0-1=0.x"}, {}, NocError, "`0-1=0.x` cannot be read"),
    ({"routing": "source_routed:*=source_routed:*=romm"}, {}, NocError, "or once `*=ROUTING`"),
    ({"routing": "source_routed:0-1=0.3"}, {}, NocError, "node 0 to node 0"),
    ({"routing": "source_routed:0-1=7;*=romm"}, {}, NocError, "router 0 has no output port 7"),
    ({"routing": "source_routed:0-1=0.0.0;*=romm"}, {}, NocError, "comes to router 0 twice"),
    ({"routing": "source_routed:0-1=0;*=romm"}, {}, NocError, "it ends at router 1; expected a"),
    ({"routing": "source_routed:0-1=2;*=romm"}, {}, NocError, "port 2 of router 0 leads to node 0"),
    ({"routing": "source_routed:0-1=0.3.1;*=romm"}, {}, NocError, "ports follow 3"),
    ({"routing": "source_routed:0-99=0;*=romm"}, {}, NocError, "node 99"),
    ({"routing": "d_mod_k"}, {}, TopologyError, "fat tree"),
    ({"routing": "romm", "topology": mesh("torus:4x4")}, {}, NocError, "needs a mesh, which torus"),
    ({"topology": mesh("ring:4")}, {}, TopologyError, "ring:4"),
    ({"cycle": "0 ns"}, {}, NocError, "a cycle of 0 s"),
    ({"cycle": "1 ps", "topology": mesh(latency="1 us")}, {}, NocError, "expected a longer cycle"),
    ({"router": noc.Router(arbiter="first")}, {}, NocError, "unknown arbiter `first`"),
    (
        {"router": noc.Router(speculation=noc.Speculation(), vc_delay=2)},
        {},
        NocError,
        "speculation: VC allocation takes 2",
    ),
    ({"grid": (3, 3)}, {"pattern": "tornado"}, TrafficError, "a grid of 3x3 does not hold 16"),
    ({"seed": -1}, {}, NocError, "invalid seed -1"),
    ({}, {"vcs": (2, 4)}, NocError, "class 0 has the VCs 2 to 4, but there are 4"),
    ({}, {"pattern": "uniformly"}, TrafficError, "unknown traffic pattern `uniformly`"),
    ({}, {"pattern": "hotspot:16"}, TrafficError, "names node 16"),
    ({}, {"process": "poisson"}, TrafficError, "unknown injection process `poisson`"),
    ({}, {"rate": 1.5}, TrafficError, "a rate of 1.5 is refused"),
    ({}, {"packet": "0"}, TrafficError, "a packet of 0 flits"),
]


@pytest.mark.parametrize(("changes", "traffic", "error", "text"), REFUSED, ids=str)
def test_errors_state_the_reason(
    changes: Changes, traffic: Changes, error: type[Exception], text: str
) -> None:
    with pytest.raises(error) as caught:
        noc.run(network(**changes), noc.Traffic(**{"rate": 0.1, **traffic}), SHORT)
    assert text in str(caught.value)


@pytest.mark.parametrize(
    ("plan", "text"),
    [
        ({"batches": 1}, "`batches` is 1"),
        ({"measure": 5}, "`measure` is 5"),
        ({"patience": 0}, "`patience` is 0"),
    ],
)
def test_an_invalid_plan_is_refused(plan: Changes, text: str) -> None:
    with pytest.raises(NocError) as caught:
        noc.run(network(), noc.Traffic(rate=0.1), noc.MeasurementPlan(**plan))
    assert text in str(caught.value)


def test_numbers_out_of_range_are_refused() -> None:
    with pytest.raises(NocError, match="`vcs`: is -1: expected 1 to 64"):
        noc.Router(vcs=-1)
    with pytest.raises(NocError, match="`buffer`: is 0: expected 1 to 32768"):
        noc.Router(buffer=0)
    with pytest.raises(NocError, match="`vc_allocator`: 'best' is unknown: expected 'separable_"):
        noc.Router(vc_allocator="best")
    with pytest.raises(NocError, match="`warmup` is -1"):
        noc.MeasurementPlan(warmup=-1)
    with pytest.raises(NocError, match="expected both above 0"):
        noc.saturation(network(), noc.Traffic(rate=0), tolerance=0)
    with pytest.raises(TrafficError, match="line 2 of the trace"):
        noc.run(network(), noc.Trace(text="cycle,source,destination,flits\n0,0,99,1\n"))


def test_an_exception_in_the_callback_stops_all_runs() -> None:
    core = network().core([None])
    load = noc.Traffic(rate=0.1).core_load()
    plans = [
        SHORT,
        noc.MeasurementPlan(warmup=0, measure=1 << 40),
    ]  # one takes a millisecond, the other days
    cases = [_core.FlitCase(core, [load], plan.core_plan()) for plan in plans]

    def stop(index: int, result: object) -> None:
        assert index == 0
        assert isinstance(result, _core.FlitResult)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _core.measure(cases, stop, threads=2)


CHIP = Technology(router="dsent_45nm", link="dsent_45nm")


def test_energy_of_identical_routers_follows_from_event_counts() -> None:
    ring = tutti.Topology.build("ring:6", rate="16 GB/s", latency="1 ns", length="2 mm")
    network = noc.Network(topology=ring, routing="shortest_path")
    run = noc.run(network, noc.Traffic(rate=0.1, packet=2), SHORT)
    events = run.events
    # Two neighbours and an NPU: three ports each; twelve links.
    same = energy.NetworkHardware(
        router=energy.RouterHardware(ports=3, vcs=4, buffer_flits=32, flit_bits=128),
        routers=6,
        links=(energy.LinkHardware(length="2 mm", count=12),),
        cycle="1 ns",
    )
    counted = energy.EventCounts(
        cycles=run.window,
        buffer_writes=events.buffer_writes,
        buffer_reads=events.buffer_reads,
        crossbar_traversals=(events.crossbar_traversals,),
        vc_allocations=events.vc_grants,
        switch_allocations=events.crossbar_traversals,
        link_flits=(events.link_flits,),
    )
    assert run.energy(CHIP) == energy.energy(same, counted, CHIP)
    assert run.area(CHIP) == energy.area(same, CHIP)


def test_area_distinguishes_routers_by_their_ports() -> None:
    grid = tutti.Topology.build("mesh:3x3", rate="16 GB/s", latency="1 ns", length="1 mm")
    network = noc.Network(topology=grid, routing="dimension_order")
    run = noc.run(network, noc.Traffic(rate=0.1), SHORT)

    def area(ports: int, routers: int) -> float:
        router = energy.RouterHardware(ports=ports, vcs=4, buffer_flits=32, flit_bits=128)
        alike = energy.NetworkHardware(router=router, routers=routers, cycle="1 ns")
        return energy.area(alike, CHIP).um2_by_component["crossbar"].nominal

    # Four corners, four sides, one in the middle.
    expected = area(3, 4) + area(4, 4) + area(5, 1)
    assert run.area(CHIP).um2_by_component["crossbar"].nominal == pytest.approx(expected)
    wires = energy.costs(
        energy.RouterHardware(ports=5, vcs=4, buffer_flits=32, flit_bits=128),
        CHIP,
        lengths=["1 mm"],
    )["link of 1 mm"]
    links = run.energy(CHIP).dynamic_by_component["links"]
    assert links.nominal == pytest.approx(run.events.link_flits * wires.nominal * 1e-12)

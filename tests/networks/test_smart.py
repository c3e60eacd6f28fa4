"""Single-cycle multi-hop meshes from Python: settings, runs, saturation and recordings."""

from __future__ import annotations

import math
import pickle
from dataclasses import fields, replace
from typing import Any

import pytest
from pydantic import ValidationError

from tutti import _core
from tutti.base.files.described import bounds_of
from tutti.networks import mesh as smart
from tutti.networks.errors import NocError, TrafficError
from tutti.networks.mesh.energy import mesh_energy
from tutti.networks.mesh.files import SmartMeshTable
from tutti.networks.mesh.view.text import describe_mesh

PLAN = smart.ReplicationPlan(warmup=200, measure=1500, drain=2000, seeds=3)


LONELY = smart.Traffic(kind="unicast", rate=0.002, pattern="bit_complement", packet=1)
"""On 4x4, the first packet of seed 36 is from node 0 to node 15, with no other in flight."""


def broadcast(rate: float = 0.002, **changed: Any) -> smart.Traffic:
    return replace(smart.Traffic(kind="broadcast", rate=rate), **changed)


def mesh(design: str = "sfo_greedy", **changed: Any) -> smart.SmartMesh:
    return smart.SmartMesh(design=design, **changed)


def test_a_design_sets_defaults() -> None:
    found = mesh("sfo_complete", vcs=3).settings
    assert (found["fan_out"], found["vcs"], found["hpc_max"]) == ("complete:6", 3, 8)
    assert mesh("baseline").settings["hpc_max"] == 1
    for name in smart.designs():
        assert mesh(name).nodes == 64


def test_settings_rebuild_the_mesh() -> None:
    one = mesh("sfo_greedy_pvt", priority="bypass", fan_in="complete", yx=True, split_vcs=True)
    assert mesh(**one.settings).settings == one.settings
    assert pickle.loads(pickle.dumps(one)) == one


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"design": "sfo_gredy"}, "did you mean `sfo_greedy`?"),
        ({"fan_out": "complete"}, "complete:INTERVAL"),
        ({"fan_out": "complete:2"}, "expected `complete:3`"),
        ({"fan_in": "all"}, "fan_in `all`"),
        ({"priority": "oldest"}, "expected local, bypass, bypass_responses or an expression"),
        ({"priority": "distance +"}, "`distance +` cannot be read: an operand is missing"),
        ({"arbiter": "random"}, "arbiter `random`"),
        ({"hold": "stays < 3"}, "unknown name `stays` at character 1; expected an expression over"),
        ({"hold": "stay < 3", "fan_in": "complete"}, "routers hold responses only if they merge"),
        ({"columns": 1}, "`columns` is 1: expected an integer from 2 to 64"),
        ({"vcs": True}, "`vcs` is True"),
        ({"vcs": -1}, "`vcs` is -1"),
        (
            {"reducer": True, "hpc_max": 12},
            "hpc_max: 12 hops per cycle past routers with a reducer",
        ),
        ({"fan_in": "complete", "art_entries": 63}, "expected 64 to 65536: an entry of the"),
        ({"design": "sfo_complete", "fan_in": "complete", "art_entries": 3}, "for each corner"),
        ({"fan_out": "greedy:pvt", "vcs": 2, "split_vcs": True}, "three stages"),
        (
            {"design": "baseline", "bypass_turns": True},
            "bypass_turns: with one hop per cycle, a flit passes no router; expected `hpc_max`",
        ),
        (
            {"design": "fully_connected", "bypass_turns": True},
            "bypass_turns: a fully connected network has no paths that turn",
        ),
        ({"collective_turns": True}, "collective_turns: paths end at turns; expected `bypass"),
        (
            {"design": "smart_2d", "collective_turns": True},
            "routers neither fork multicasts nor combine responses; expected another `fan_out`",
        ),
        (
            {"design": "sfo_complete", "bypass_turns": True, "collective_turns": True},
            "expected `fan_out` of `greedy:svt` or `greedy:pvt`, or `collective_turns = false`",
        ),
    ],
)
def test_invalid_settings_are_refused(given: dict[str, Any], text: str) -> None:
    with pytest.raises(NocError) as caught:
        smart.SmartMesh(**given)
    assert text in str(caught.value)


@pytest.mark.parametrize("name", bounds_of(smart.SmartMesh))
def test_files_python_and_the_core_have_the_same_bounds(name: str) -> None:
    least, most = bounds_of(smart.SmartMesh)[name]
    for value in (least, most):
        given: dict[str, Any] = {name: value}
        assert mesh(**given).settings[name] == value
        SmartMeshTable.model_validate({name: value})
    for value in (least - 1, most + 1):
        with pytest.raises(NocError, match=f"from {least} to {most}"):
            mesh(**{name: value})  # type: ignore[arg-type]
        with pytest.raises(ValidationError, match=r"than or equal|than 4294967296"):
            SmartMeshTable.model_validate({name: value})
        if 0 <= value < 1 << 32:
            core: Any = {one.name: None for one in fields(smart.SmartMesh)}
            core |= {"columns": 8, "rows": 8, name: value}
            with pytest.raises(NocError, match=f"`{name}` is {value}: expected "):
                _core.SmartMesh("sfo_greedy", core)


@pytest.mark.parametrize(
    ("design", "cycles"),
    [("baseline_collective", 28), ("sfo_greedy", 4), ("sfo_greedy_pvt", 4), ("fully_connected", 1)],
)
def test_latency_of_a_broadcast_from_a_corner(design: str, cycles: float) -> None:
    traffic = broadcast(0.0002, sources="corners")
    run = smart.run(mesh(design), traffic, replace(PLAN, measure=20_000))
    assert run.is_stable
    assert run.loads[0].latency_extremes[0] == cycles
    assert run.latency.mean == pytest.approx(cycles, abs=0.2)


def test_paths_with_turns_take_a_segment_per_reach() -> None:
    """Bit complement on 4x4 has 2, 4 or 6 hops; with 5 hops per cycle, one or two segments."""
    traffic = smart.Traffic(kind="unicast", rate=0.0005, pattern="bit_complement")
    plan = replace(PLAN, measure=8000)
    settings = {"columns": 4, "rows": 4, "hpc_max": 5}
    straight, turning = (
        smart.run(mesh(design, **settings), traffic, plan) for design in ("smart_1d", "smart_2d")
    )
    assert straight.loads[0].latency_extremes[0] == 4
    assert turning.loads[0].latency_extremes[0] == 2
    # A quarter of the nodes has 6 hops.
    assert straight.latency.mean == pytest.approx(4, abs=0.05)
    assert turning.latency.mean == pytest.approx(2.5, abs=0.2)
    again = mesh("smart_1d", bypass_turns=True, **settings)
    assert smart.run(again, traffic, plan).loads == turning.loads
    assert "5 hops per cycle on paths with a turn" in describe_mesh(again)
    assert "turn" not in describe_mesh(straight.mesh)


def test_a_broadcast_with_turns_is_one_crossing() -> None:
    """On 4x4, the farthest node is at most 6 hops away; 8 hops fit into a crossing."""
    traffic = broadcast(0.0005)
    plan = replace(PLAN, measure=8000)
    turning, straight = (
        smart.run(mesh(design, columns=4, rows=4), traffic, plan)
        for design in ("sfo_greedy_2d", "sfo_greedy")
    )
    assert turning.loads[0].latency_extremes[0] == 2
    assert straight.loads[0].latency_extremes[0] == 4
    assert turning.latency.mean == pytest.approx(2, abs=0.1)
    assert "8 hops per cycle on paths with a turn, collectives too" in describe_mesh(turning.mesh)
    again = mesh(columns=4, rows=4, bypass_turns=True, collective_turns=True)
    assert smart.run(again, traffic, plan).loads == turning.loads
    # Copies are retained at every router, too, so forks in passing save time and no buffers.
    assert turning.counts["buffer_writes"] == pytest.approx(straight.counts["buffer_writes"])


def test_requests_of_paths_with_turns_drive_the_wires_of_both_parts() -> None:
    """All routes turn: one request instead of two, to the same edges of the row and the column."""
    straight, turning = (
        smart.run(mesh(design, columns=4, rows=4), LONELY, PLAN)
        for design in ("smart_1d", "smart_2d")
    )
    assert turning.counts["requests"] == pytest.approx(straight.counts["requests"] / 2, rel=0.05)
    hops = [run.counts["request_hops"] for run in (turning, straight)]
    assert hops[0] == pytest.approx(hops[1], rel=0.05)
    energy = mesh_energy(turning.counts, turning.mesh).dynamic_by_component["requests"]
    # Four bits over 8 mm are 0.91 pJ.
    assert energy.nominal == pytest.approx(hops[0] * 0.91e-12 / 8, rel=0.01)


def test_complete_fan_in_delivers_one_response() -> None:
    traffic = smart.Traffic(kind="reduction", rate=0.1)
    runs = [
        smart.run(mesh(fan_in=fan_in, priority="bypass"), traffic, PLAN)
        for fan_in in ("complete", "greedy", "unicasts")
    ]
    one, some, all_ = [run.loads[0].arrivals.mean for run in runs]
    assert one == 1
    assert 1 < some < 5
    assert all_ == 63
    assert runs[0].table_entries.mean > 0 == runs[1].table_entries.mean


def test_rules_replace_named_priorities() -> None:
    """Equal to the names if routers do not merge responses."""
    traffic = [
        broadcast(0.004),
        smart.Traffic(kind="unicast", rate=0.1, packet="1,5", message_class=1),
    ]
    for name, rule in (("local", "-distance"), ("bypass", "distance")):
        named, by_rule = (
            smart.run(mesh(priority=one, depth=5), traffic, PLAN) for one in (name, rule)
        )
        assert named.loads == by_rule.loads
        assert named.counts == by_rule.counts
    found = mesh(priority="distance if response else -distance", hold="missing and stay < 4")
    assert mesh(**found.settings).settings == found.settings


def test_priority_of_responses_leaves_other_traffic_as_with_local_priority() -> None:
    alone = broadcast(0.008)
    of = {one: smart.run(mesh(priority=one), alone, PLAN) for one in ("local", "bypass_responses")}
    assert of["local"].loads == of["bypass_responses"].loads
    acks = smart.Traffic(kind="reduction", rate=0.2)
    of = {one: smart.run(mesh(priority=one), acks, PLAN) for one in ("bypass", "bypass_responses")}
    assert of["bypass"].loads == of["bypass_responses"].loads


def test_held_responses_meet_others() -> None:
    traffic = smart.Traffic(kind="reduction", rate=0.05)
    free, waits, all_ = (
        smart.run(mesh("baseline_collective", hold=hold), traffic, PLAN)
        for hold in (None, "stay < 4", "missing")
    )
    arrivals = [run.loads[0].arrivals.mean for run in (free, waits, all_)]
    assert arrivals[0] > arrivals[1] > arrivals[2] == 1
    assert waits.stay.mean > free.stay.mean


def test_reductions_in_flight_can_be_limited() -> None:
    traffic = smart.Traffic(kind="reduction", rate=0.8)
    free, few = (
        smart.run(mesh("baseline_collective"), replace(traffic, outstanding=limit), PLAN)
        for limit in (None, 8)
    )
    assert few.loads[0].active.mean <= 8 < free.loads[0].active.mean
    assert few.loads[0].arrivals.mean < free.loads[0].arrivals.mean
    with pytest.raises(TrafficError, match="`outstanding` is 0"):
        smart.run(mesh(), replace(traffic, outstanding=0), PLAN)
    with pytest.raises(NocError, match="only reductions have a limit"):
        smart.run(mesh(), replace(broadcast(), outstanding=4), PLAN)


def test_results_do_not_depend_on_threads_and_seeds_differ() -> None:
    one, other = (smart.run(mesh(), broadcast(), PLAN, threads=n) for n in (1, 3))
    assert one.loads == other.loads
    assert one.counts == other.counts
    assert smart.run(mesh(), broadcast(), replace(PLAN, seed=9)).loads != one.loads
    assert one.latency.half_width > 0
    alone = smart.run(mesh(), broadcast(), replace(PLAN, seeds=1))
    assert math.isnan(alone.latency.half_width)


def test_kinds_of_traffic_run_in_separate_classes() -> None:
    traffic = [
        broadcast(0.001),
        smart.Traffic(kind="reduction", rate=0.05, message_class=1),
        smart.Traffic(kind="unicast", rate=0.05, packet="1,5", message_class=2),
        smart.Traffic(kind="multicast", members="half", rate=0.001),
    ]
    run = smart.run(mesh(depth=5), traffic, PLAN)
    assert run.is_stable
    assert [one.parts.mean for one in run.loads[:2]] == [63, 63]
    assert run.loads[2].parts.mean == pytest.approx(3, abs=0.2)
    assert run.loads[3].parts.mean == pytest.approx(31.5, abs=2)
    table = smart.frame([run])
    assert table["kind"].to_list() == ["broadcast", "reduction", "unicast", "multicast"]
    assert table["latency"].null_count() == 0


def test_a_mesh_accepts_less_than_is_offered_above_saturation() -> None:
    found = smart.saturation(mesh("sfo_complete"), broadcast(), PLAN, tolerance=0.05)
    # Two of six cycles are broadcast slots, in which no NIC takes a flit.
    assert found.peak == pytest.approx(4 / 6, abs=0.03)
    assert found.by_throughput * 64 == pytest.approx(4 / 6, abs=0.06)
    assert 0 < found.by_latency <= found.by_throughput
    assert found.deadlocks is None
    loads = [run.load for run in found.runs]
    assert loads == sorted(loads)
    assert smart.frame(found.runs[-1:])["latency"].to_list() == [None]


def test_an_ejection_port_accepts_one_response_per_cycle() -> None:
    found = smart.run(
        mesh("fully_connected_narrow"), smart.Traffic(kind="reduction", rate=0.01), PLAN
    )
    assert found.loads[0].latency_extremes[0] == 63
    assert found.loads[0].arrivals.mean == 63


def test_a_deadlock_is_reported() -> None:
    """The credit delay exceeds `patience`, so no flit moves for `patience` cycles."""
    stuck = mesh("sfo_greedy", vcs=1, credit_delay=200, patience=50)
    run = smart.run(stuck, broadcast(0.01), PLAN)
    assert run.ending == "deadlocked"
    table = smart.frame([run])
    assert table["accepted"].to_list() == [None]


def test_loads_keep_their_proportions() -> None:
    several = (broadcast(0.002), smart.Traffic(kind="reduction", rate=0.1))
    assert [one.rate for one in smart.at_load(several, 0.004)] == [0.004, 0.2]
    with pytest.raises(NocError, match="no rate to scale"):
        smart.at_load((broadcast(0.0), broadcast()), 0.1)


def test_ideal_loads() -> None:
    of = {
        name: smart.ideal(mesh(), traffic)
        for name, traffic in {
            "broadcast": broadcast(),
            "corners": broadcast(sources="corners"),
            "uniform": smart.Traffic(kind="unicast", rate=0.1),
            "reduction": smart.Traffic(kind="reduction", rate=0.1),
            "transpose": smart.Traffic(kind="unicast", rate=0.1, pattern="transpose"),
        }.items()
    }
    assert of.pop("transpose") is None
    loads = {name: one.load for name, one in of.items() if one is not None}
    expected = {"broadcast": 1 / 63, "corners": 0.25, "uniform": 0.5, "reduction": 64 / 63}
    assert loads == pytest.approx(expected)


@pytest.mark.parametrize(
    ("traffic", "text"),
    [
        (smart.Traffic(kind="unicast", rate=0.1, pattern="unifrm"), "unifrm"),
        (smart.Traffic(kind="broadcast", rate=2.0), "2"),
        (smart.Traffic(kind="unicast", rate=0.1, packet=5), "at least 5"),
        (smart.Traffic(kind="reduction", rate=-1.0), "-1"),
        (smart.Traffic(kind="gossip", rate=0.1), "kind `gossip`"),  # type: ignore[arg-type]
    ],
)
def test_invalid_traffic_is_refused(traffic: smart.Traffic, text: str) -> None:
    with pytest.raises((NocError, TrafficError)) as caught:
        smart.run(mesh(), traffic, PLAN)
    assert text in str(caught.value)


def test_a_plan_has_cycles_and_seeds() -> None:
    with pytest.raises(TrafficError, match="`message_class` is 16"):
        smart.Traffic(kind="broadcast", rate=0.1, message_class=16)
    for given in ({"measure": 0}, {"seeds": 0}, {"warmup": -1}, {"seed": True}):
        with pytest.raises(NocError, match="expected an integer"):
            smart.ReplicationPlan(**given)


def test_a_recorded_broadcast_takes_four_cycles() -> None:
    found = smart.watch(mesh(columns=5, rows=5), broadcast(0.0005), 200, seed=3)
    arrived = [event for event in found.events if event.what == "arrived"]
    per_message = {packet.message for packet in found.packets}
    assert per_message
    first = found.packets[0]
    of_first = [event for event in arrived if event.packet == 0]
    assert len(of_first) == 24
    assert {event.router for event in of_first} == set(first.to) == set(range(25)) - {first.source}
    # Its row and column in cycle 1, the other columns in cycle 3.
    flights = found.flights()
    crossings = sorted(c for c, some in flights.items() if any(one.packet == 0 for one in some))
    assert crossings == [first.cycle + 1, first.cycle + 3]
    passed = sum(
        len(one.retained) + 1 for some in flights.values() for one in some if one.packet == 0
    )
    assert passed == 24


def test_stays_cover_the_events_of_a_flit() -> None:
    traffic = [broadcast(0.01), smart.Traffic(kind="reduction", rate=0.3, message_class=1)]
    found = smart.watch(mesh(columns=4, rows=4, priority="bypass"), traffic, 80)
    assert {event.what.partition(":")[0] for event in found.events} >= {
        "injected", "granted", "requested", "crossed", "retained", "stopped", "merged", "arrived"
    }  # fmt: skip
    stays = {(stay.router, stay.packet): stay for stay in found.stays()}
    for event in found.events:
        if event.what in {"granted", "arrived"}:
            stay = stays[event.router, event.packet]
            assert stay.start <= event.cycle <= stay.end, event


def test_a_flight_goes_on_at_a_turn() -> None:
    found = smart.watch(mesh("smart_2d", columns=4, rows=4), LONELY, cycles=30, seed=36)
    [(cycle, flights)] = found.flights().items()
    start = found.packets[0].cycle
    assert cycle == start + 1
    assert [(one.router, one.port, one.hops, one.why) for one in flights] == [
        (0, 0, 3, "turn"),
        (3, 2, 3, "end"),
    ]
    stays = [(stay.router, stay.start, stay.end) for stay in found.stays()]
    assert stays == [(0, start, start), (15, start + 2, start + 2)]
    requested = [one for one in found.events if one.what == "requested"]
    assert [(one.router, one.hops) for one in requested] == [(0, 3), (3, 3)]


def test_stays_with_turns_cover_the_events_of_a_flit() -> None:
    traffic = smart.Traffic(kind="unicast", rate=0.2, packet="1,5")
    found = smart.watch(mesh("smart_2d", columns=5, rows=4, hpc_max=4, depth=5), traffic, 80)
    assert {"turned", "stopped:passing", "stopped:local"} <= {one.what for one in found.events}
    stays = {(stay.router, stay.packet): stay for stay in found.stays()}
    for event in found.events:
        if event.what in {"granted", "arrived"}:
            stay = stays[event.router, event.packet]
            assert stay.start <= event.cycle <= stay.end, event


def test_a_fork_in_passing_is_several_flights() -> None:
    found = smart.watch(mesh("sfo_greedy_2d", columns=4, rows=4), broadcast(0.003), 40, seed=2)
    sent = found.packets[0]
    [(crossing, flights), *_] = found.flights().items()
    mine = [one for one in flights if one.packet == 0]
    assert crossing == sent.cycle + 1
    # One per direction of the row and of the source's column, and per column of another router.
    x, y = sent.source % 4, sent.source // 4
    columns = [(0 if x < 3 else None), (1 if x else None)]
    rows = (y < 3) + (y > 0)
    assert len(mine) == sum(port is not None for port in columns) + rows + 3 * rows
    covered = {at for one in mine for at in found.path(one.router, one.port, one.hops)}
    assert covered == set(range(16)) - {sent.source}


def test_a_fully_connected_mesh_cannot_be_watched() -> None:
    with pytest.raises(NocError, match="no routers"):
        smart.watch(mesh("fully_connected"), broadcast(), 10)
    with pytest.raises(NocError, match="`cycles` is 0"):
        smart.watch(mesh(), broadcast(), 0)

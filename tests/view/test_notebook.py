"""What notebooks show: well-formed HTML without scripts, whose styles stay inside."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest

import tutti
from tutti.base.units import Time, TimePerByte
from tutti.networks import flit as noc
from tutti.networks import mesh as smart
from tutti.networks.view import load_curves
from tutti.schedules.view import notebook as notebook_schedule
from tutti.schedules.view.rounds import rounds
from tutti.training.endpoint import Ring, configurations
from tutti.training.step import Step
from tutti.view.errors import ReportError
from tutti.view.notebook import facts_html
from tutti.view.quantity import format_time
from tutti.workloads import build

if TYPE_CHECKING:
    from collections.abc import Callable

SVG = "{http://www.w3.org/2000/svg}"
MODEL = tutti.LogGP(L="1 us", o="0.2 us", g="0.4 us", G="0.1 ns/B")
SIZES = ("8 B", "1 MiB")


def ring(ranks: int = 4) -> tutti.Schedule:
    return tutti.schedule("ring", ranks=ranks)


@cache
def machine() -> tutti.Platform:
    torus = tutti.Topology.build("torus:2x3", rate="10 GB/s", latency="50 ns")
    return tutti.Platform(name="<torus>", model=MODEL, routes=torus.routes())


@cache
def comparison() -> Any:
    return tutti.compare(
        tutti.Platform(name="demo", model=MODEL),
        collective="all_reduce",
        ranks=[4, 8],
        sizes=SIZES,
        algorithms=["ring", "recursive_doubling"],
    )


@cache
def training() -> Any:
    rings = (Ring("local", 4, TimePerByte.parse("25 GB/s"), Time.parse("400 ns")),)
    step = Step(model=build("resnet50"), batch=2, rings=rings, iterations=1)
    return step.run(configurations()["comm_opt"])


@cache
def network_runs() -> noc.Saturation:
    mesh = tutti.Topology.build("mesh:2x2", rate="16 GB/s", latency="1 ns")
    network = noc.Network(topology=mesh, routing="dimension_order")
    plan = noc.MeasurementPlan(warmup=100, measure=500)
    return noc.saturation(network, noc.Traffic(rate=0.1, packet=2), plan, tolerance=0.25)


@cache
def mesh_runs() -> smart.Saturation:
    plan = smart.ReplicationPlan(warmup=100, measure=400, seeds=2)
    mesh = smart.SmartMesh(design="sfo_greedy", columns=2, rows=2)
    return smart.saturation(mesh, smart.Traffic(kind="broadcast", rate=0.01), plan, tolerance=0.25)


SHOWN: dict[str, Callable[[], Any]] = {
    "run": lambda: tutti.simulate(ring(), machine(), size="8 B", datatype="int8"),
    "schedule": ring,
    "large schedule": lambda: ring(32),
    "platform": machine,
    "comparison": lambda: tutti.decision_map(comparison()),
    "training step": training,
    "flit-level run": lambda: network_runs().runs[0],
    "saturation": network_runs,
    "mesh run": lambda: mesh_runs().runs[0],
    "mesh saturation": mesh_runs,
    "curves": lambda: load_curves({"mesh": network_runs(), "smart": mesh_runs().runs}),
}


@pytest.mark.parametrize("name", SHOWN)
def test_html_is_well_formed_and_keeps_to_itself(name: str) -> None:
    shown = SHOWN[name]()
    page = shown._repr_html_()
    assert page == shown._repr_html_()
    root = ET.fromstring(f"<div>{page}</div>")
    tags = {element.tag.removeprefix(SVG) for element in root.iter()}
    assert not tags & {"script", "link", "iframe", "img"}
    assert not [key for element in root.iter() for key in element.attrib if key.startswith("on")]
    for style in root.iter(f"{SVG}style"):
        selectors = re.findall(r"[{}]\s*([.#a-z*][\w.-]*)[^{}]*{", style.text or "")
        assert selectors
        assert all(one.startswith(".tutti-") for one in selectors)
    assert 1 <= len(repr(shown).splitlines()) <= 10
    assert max(map(len, repr(shown).splitlines())) < 160


def test_a_schedule_moves_its_messages_round_by_round() -> None:
    page = ring()._repr_html_()
    root = ET.fromstring(f"<div>{page}</div>")
    dots = [one for one in root.iter(f"{SVG}circle") if one.get("class") == "message"]
    assert len(dots) == 4 * 6
    assert [one.text for one in root.iter(f"{SVG}text") if one.get("font-weight")] == [*"012345"]
    assert "prefers-reduced-motion:no-preference" in page
    assert "send data[3] to 1" in page
    # Two drawings of a page have separate names.
    name = re.compile(r"tutti-[0-9a-f]+")
    assert set(name.findall(page)).isdisjoint(name.findall(ring(5)._repr_html_()))


def test_a_large_schedule_is_drawn_in_part() -> None:
    page = ring(32)._repr_html_()
    assert "Drawn: ranks 0 to 11 of 32; 252 messages of the drawn rounds" in page
    assert "Drawn: the first 12 rounds; more follow." in page
    assert "and 16 more ranks and 50 more steps" in page
    assert "Not drawn: about 72,000 ops in the first 12 steps" in ring(2000)._repr_html_()


def test_rounds_follow_dependencies() -> None:
    tree = rounds(tutti.schedule("binomial", collective="broadcast", ranks=8), 12)
    ends = [(one.sent, one.source, one.destination, one.arrival) for one in tree.messages]
    assert ends == [(0, 0, 4, 0), (1, 0, 2, 1), (1, 4, 6, 1),
                    (2, 0, 1, 2), (2, 2, 3, 2), (2, 4, 5, 2), (2, 6, 7, 2)]  # fmt: skip
    assert (tree.names, tree.complete) == (
        ["to children 2", "to children 1", "to children 0"],
        True,
    )


def test_a_deadlocked_schedule_is_drawn_up_to_the_deadlock() -> None:
    builder = tutti.ScheduleBuilder("all_reduce", ranks=2)
    for rank in range(2):
        builder.rank(rank).recv(1 - rank, slot=1)
        builder.rank(rank).step("late").send(1 - rank).reduce(0, [0, 1])
    page = notebook_schedule.schedule_html(builder.build())
    assert "ranks wait for messages that are never sent" in page


def test_a_platform_shows_units_meanings_and_its_topology() -> None:
    page = machine()._repr_html_()
    assert "&lt;torus&gt;" in page
    assert "<td style='text-align:left'>1 us</td>" in page
    assert "6 NPUs" in page
    assert page.count("<circle") == 6
    assert repr(machine()) == "<Platform <torus>: loggp+flow, torus:2x3>"
    switches = tutti.Topology.build("switch:300", rate="10 GB/s", latency="50 ns")
    assert "<svg" not in switches._repr_html_()


def test_a_decision_map_names_the_fastest_and_its_lead() -> None:
    found = tutti.decision_map(comparison())
    assert repr(found).splitlines()[:2] == [
        "fastest all_reduce on demo, model loggp",
        "4 ranks, 8 B: recursive_doubling",
    ]
    assert found._repr_html_().count("<rect") == 4 + 2
    with pytest.raises(ReportError, match="lacks the columns"):
        tutti.decision_map(comparison().drop("time_ps"))


def test_parts_of_a_training_step_add_up() -> None:
    from tutti.training.view.quantities import PARTS

    run = training()
    assert sum(part.get(run) for part, _ in PARTS) == run.total.ps
    page = run._repr_html_()
    assert f"exposed communication: {format_time(run.exposed)}" in page
    assert "weight gradient" in page


def test_curves_mark_loads_that_are_not_accepted() -> None:
    found = network_runs()
    page = found._repr_html_()
    refused = sum(not run.is_stable for run in found.runs)
    assert refused
    assert page.count("not accepted</title>") == refused


def test_runs_show_their_timeline() -> None:
    plan = tutti.schedule("recursive_multiplying:a3,a2", collective="all_reduce", ranks=6)
    run = tutti.simulate(plan, tutti.Platform(name="demo", model=MODEL), size="8 B")
    shown = run._repr_html_()
    assert "<td style='text-align:left'>loggp</td>" in shown
    assert "6 ranks of demo" in shown
    assert f"<title>Timeline, complete after {format_time(run.completion_ps)}</title>" in shown
    assert shown.count("<path") == run.messages
    assert "&lt;b&gt;" in facts_html([("name", "<b>")])

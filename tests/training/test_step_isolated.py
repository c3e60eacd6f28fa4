"""Steps whose collectives take the time of their simulation alone."""

from __future__ import annotations

from typing import Any

import pytest

import tutti
from tutti.base.units import Size
from tutti.training.endpoint import configurations
from tutti.training.fabric import Dimension
from tutti.training.step import Step
from tutti.workloads import Parallelism, build
from tutti.workloads.errors import WorkloadError
from tutti.workloads.model import Model, linear

IDEAL = configurations()["ideal"]
LOGGP = tutti.LogGP(L="1 us", o="200 ns", g="300 ns", G="40 ps/B", gamma="0 ps/B")


def one_layer(**given: Any) -> Step:
    model = Model(
        name="one", source="made up", layers=(linear("l", 256, 256, first=True),), samples="rows"
    )
    defaults: dict[str, Any] = {
        "platform": tutti.Platform(name="p", model=LOGGP),
        "rings": (Dimension("data", 8),),
        "algorithms": {"all_reduce": "ring"},
        "iterations": 1,
        "detail": "isolated",
    }
    return Step(model=model, batch=8, **(defaults | given))


def test_a_collective_takes_as_long_as_alone() -> None:
    step = one_layer()
    run = step.run(IDEAL)
    schedule = tutti.schedule("ring", ranks=8)
    assert step.platform is not None
    alone = tutti.simulate(schedule, step.platform, size="128 KiB", datatype="int8")
    assert run.exposed == alone.completion_ps
    assert run.total.ps == run.compute + alone.completion_ps


def test_flits_carry_the_collectives_of_a_step() -> None:
    topology = tutti.Topology.build("mesh:4x2", rate="16 GB/s", latency="1 ns")
    routes = topology.routes("dimension_order")
    platform = tutti.Platform(name="mesh", model=LOGGP, routes=routes, contention=tutti.Flits())
    run = one_layer(platform=platform).run(IDEAL)
    assert run.exposed > 0
    assert run.bound.time <= run.total


def test_auto_takes_the_fastest_algorithm() -> None:
    fastest = one_layer(algorithms={"all_reduce": "auto"}).run(IDEAL)
    for notation in ("ring", "recursive_doubling", "swing"):
        assert fastest.total <= one_layer(algorithms={"all_reduce": notation}).run(IDEAL).total


def test_stages_send_messages_on_a_cost_model() -> None:
    parallelism = Parallelism(pipeline=4, micro_batches=4)
    step = Step(
        model=build("gpt:layers=4,hidden=64,tokens=8,vocabulary=100"),
        batch=8,
        platform=tutti.Platform(name="p", model=LOGGP),
        rings=(Dimension("pipeline", 4),),
        parallelism=parallelism,
        detail="isolated",
    )
    assert step.run(IDEAL).idle > 0


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"platform": None}, "needs a platform"),
        ({"algorithms": {}}, "no single algorithm"),
        ({"algorithms": {"all_reduce": ("ring", "ring:backward")}}, "no single algorithm"),
    ],
)
def test_what_is_not_honoured_is_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(WorkloadError, match=words):
        one_layer(**given).run(IDEAL)


def on_a_switch(detail: str, **given: Any) -> Step:
    topology = tutti.Topology.build("switch:8", rate="25 GB/s", latency="500 ns")
    model = Model(
        name="two",
        source="made up",
        layers=tuple(linear(name, 256, 256, first=name == "a") for name in ("a", "b")),
        samples="rows",
    )
    defaults: dict[str, Any] = {
        "model": model,
        "batch": 8,
        "platform": tutti.Platform(name="s", model=LOGGP, routes=topology.routes()),
        "iterations": 1,
        "detail": detail,
    }
    return Step(**(defaults | given))


@pytest.mark.parametrize("kind", ["tensor", "pipeline"])
def test_groups_of_a_topology_take_as_long_as_all_of_them_at_once(kind: str) -> None:
    degrees: dict[str, Any] = {kind: 2}
    if kind == "pipeline":
        degrees["micro_batches"] = 2
    # Stages are the outermost dimension.
    rings = (Dimension("data", 4), Dimension(kind, 2))
    given = {
        "rings": rings if kind == "pipeline" else rings[::-1],
        "parallelism": Parallelism(**degrees),
    }
    isolated, flows = (on_a_switch(name, **given).run(IDEAL) for name in ("isolated", "flows"))
    assert isolated.total.ps == pytest.approx(flows.total.ps, rel=0.02)
    assert isolated.exposed > 0


def test_groups_of_a_topology_without_flows_are_refused() -> None:
    topology = tutti.Topology.build("switch:8", rate="25 GB/s", latency="500 ns")
    platform = tutti.Platform(
        name="s", model=LOGGP, routes=topology.routes(), contention=tutti.Flits()
    )
    step = one_layer(
        platform=platform,
        rings=(Dimension("tensor", 2), Dimension("data", 4)),
        algorithms={"all_reduce": "ring"},
        chunk=Size.parse("1 MiB"),
        parallelism=Parallelism(tensor=2),
    )
    with pytest.raises(WorkloadError, match="expected groups of all"):
        step.run(IDEAL)

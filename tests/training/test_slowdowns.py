"""Slow NPUs, failed links and other jobs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

import tutti
from called import call
from tutti.topologies import cables, with_faults
from tutti.topologies.errors import TopologyError
from tutti.training.endpoint import configurations
from tutti.training.fabric import Dimension
from tutti.training.slowdowns import Disturbances, effects, summary
from tutti.training.step import Step
from tutti.workloads import Parallelism, build
from tutti.workloads.errors import WorkloadError

if TYPE_CHECKING:
    from pathlib import Path

IDEAL = configurations()["ideal"]


def pod() -> tutti.Platform:
    """Two hosts of four GPUs, with a rail per GPU."""
    links = [
        {"rate": "400 GB/s", "latency": "50 ns"},
        {"rate": "50 GB/s", "latency": "1 us"},
        {"rate": "50 GB/s", "latency": "1 us"},
    ]
    rails = tutti.Topology.build("rail_optimized:npus=4,hosts=2", links=links)
    ends = tutti.PipeliningPostal(alpha_p="0 ns", alpha_r="1 ns")
    return tutti.Platform(name="pod", model=ends, routes=rails.routes("ecmp"))


def step(**given: Any) -> Step:
    return Step(
        model=build("gpt:layers=2,hidden=512,tokens=128,vocabulary=1000"),
        batch=4,
        platform=pod(),
        rings=(Dimension("node", 4), Dimension("data", 2)),
        iterations=1,
        detail="flows",
        **given,
    )


def test_a_slow_npu_delays_the_step_by_its_computing() -> None:
    """With gradients at the end only, a slow NPU's passes are the critical path."""
    small = replace(step(), model=build("gpt:layers=1,hidden=64,tokens=8,vocabulary=100"))
    run = small.run(IDEAL)
    slow = replace(small, slowdowns=(1.0,) * 7 + (3.0,)).run(IDEAL)
    grown = slow.total.ps - run.total.ps
    assert 0 < grown <= 2 * run.compute
    assert slow.program_of(7).tasks != slow.program_of(0).tasks


def test_equal_slowdowns_scale_every_pass() -> None:
    one = step().run(IDEAL)
    twice = step(slowdowns=(2.0,) * 8).run(IDEAL)
    assert twice.compute == pytest.approx(2 * one.compute, rel=1e-6)


def test_slowdowns_with_a_pipeline_have_a_program_per_stage_and_speed() -> None:
    piped = step(
        parallelism=Parallelism(pipeline=2, micro_batches=2), slowdowns=(1.0,) * 7 + (1.5,)
    )
    assert len(piped.programs(IDEAL)) == 3
    assert piped.numbers(IDEAL) == [0, 0, 0, 0, 1, 1, 1, 2]
    assert piped.run(IDEAL).total.ps > replace(piped, slowdowns=()).run(IDEAL).total.ps


@pytest.mark.parametrize(
    ("slowdowns", "expected"),
    [((1.0,) * 3, "3 slowdowns for 8 NPUs"), ((0.5,) * 8, "not from 1 to 1000")],
)
def test_wrong_slowdowns_are_refused(slowdowns: tuple[float, ...], expected: str) -> None:
    with pytest.raises(WorkloadError, match=expected):
        step(slowdowns=slowdowns).run(IDEAL)


def test_routes_avoid_a_cable_that_is_down() -> None:
    topology = pod().routes.topology  # type: ignore[union-attr]
    name = next(one for one in cables(topology) if topology.vertices[0].name in one.split(" -- "))
    down = with_faults(topology, down=[name])
    path = down.routes("ecmp").path(0, 4)
    assert name not in {" -- ".join(sorted((link.source, link.target))) for link in path}
    assert path[0].source == topology.vertices[0].name
    assert path[-1].target == topology.vertices[4].name


def test_a_slowed_cable_has_a_lower_rate() -> None:
    topology = pod().routes.topology  # type: ignore[union-attr]
    name = cables(topology)[0]
    slower = with_faults(topology, slowed={name: 4.0})
    rates = {(one.source, one.target): one.rate.core.ps_per_byte for one in topology.links}
    for link in slower.links:
        factor = 4 if " -- ".join(sorted((link.source, link.target))) == name else 1
        before = rates[link.source, link.target]
        assert link.rate.core.ps_per_byte == pytest.approx(factor * before)


def test_unknown_cables_and_cut_networks_are_refused() -> None:
    topology = pod().routes.topology  # type: ignore[union-attr]
    with pytest.raises(TopologyError, match="unknown cable `a -- b`"):
        with_faults(topology, down=["a -- b"])
    with pytest.raises(TopologyError, match="from 1 to 1e6"):
        with_faults(topology, slowed={cables(topology)[0]: 0.5})
    with pytest.raises(TopologyError):
        with_faults(topology, down=cables(topology))


def test_effects_depend_on_the_seed_only() -> None:
    given = Disturbances(slow_share=0.3, slow_factor=1.5, spread=0.05, down=1, load=0.2)
    first, second = (
        effects(step(), IDEAL, given, draws=2, seed=3, threads=threads) for threads in (1, 2)
    )
    assert first.equals(second)
    assert not first.equals(effects(step(), IDEAL, given, draws=2, seed=7))


def test_no_disturbance_shortens_the_step() -> None:
    given = Disturbances(slow_share=0.3, slow_factor=1.5, spread=0.05, load=0.3)
    found = summary(effects(step(), IDEAL, given, draws=3))
    assert found["disturbance"].to_list() == ["none", "slow NPUs", "spread", "other jobs", "all"]
    assert (found["low_ps"] >= found["median_ps"][0]).all()


def test_links_of_a_torus_are_not_disturbed() -> None:
    from tutti.base.units import Time, TimePerByte
    from tutti.training.endpoint import Ring

    ring = Ring("local", 4, TimePerByte.parse("200 GB/s"), Time.parse("72 ns"))
    torus = Step(model=build("dlrm_small"), batch=8, rings=(ring,), iterations=1)
    with pytest.raises(WorkloadError, match="platform with a topology"):
        effects(torus, IDEAL, Disturbances(load=0.1), draws=1)
    with pytest.raises(WorkloadError, match="nothing disturbs"):
        effects(torus, IDEAL, Disturbances(), draws=1)
    with pytest.raises(WorkloadError, match="slow_share is 2"):
        Disturbances(slow_share=2)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--slow", "2:1.3"], "--slow SHARE: is out of range\ngiven: 2.0"),
        (["--down", "-1"], "--down: is out of range\ngiven: -1"),
        ([], "nothing disturbs the step\nexpected: --slow, --spread"),
    ],
)
def test_errors_name_options(words: list[str], expected: str, tmp_path: Path) -> None:
    done = call("train", "disturb", "step.toml", *words, cwd=tmp_path)
    assert expected in done.stderr


def test_routing_of_a_family_is_not_replaced() -> None:
    topology = tutti.Topology.build("torus:4x2", rate="50 GB/s", latency="1 us")
    platform = pod().model_copy(update={"routes": topology.routes("dimension_order")})
    torus = replace(step(), platform=platform)
    with pytest.raises(WorkloadError, match="dimension_order` does not route around"):
        effects(torus, IDEAL, Disturbances(load=0.1), draws=1)

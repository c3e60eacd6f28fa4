"""The launch: paid once per rank and collective, in simulations, closed forms, bounds and steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import tutti
from tutti.base.errors import ConfigError
from tutti.base.units import Size, Time
from tutti.platforms.files.builder import machine
from tutti.platforms.files.presets import load_platform
from tutti.training.collective import Alone
from tutti.training.endpoint import configurations
from tutti.training.fabric import Dimension
from tutti.training.step import Step
from tutti.workloads import build

if TYPE_CHECKING:
    from pathlib import Path

LAUNCH = Time.parse("6.6 us")
"""Of a ring in LL: NCCL, src/graph/tuning.cc, baseLatencies."""
MODELS = [
    tutti.PipeliningPostal(alpha_p="1 us", alpha_r="0.2 us", beta="0.1 ns/B", gamma="0.05 ns/B"),
    tutti.LogGP(L="1 us", o="0.2 us", g="0.1 us", G="0.1 ns/B"),
]


def pair(model: Any, **given: Any) -> tuple[tutti.Platform, tutti.Platform]:
    """Returns a platform without and with a launch."""
    launched = model.model_copy(update={"launch": LAUNCH})
    return (
        tutti.Platform(name="quiet", model=model, **given),
        tutti.Platform(name="launched", model=launched, **given),
    )


def routes() -> tutti.topologies.Routes:
    return tutti.Topology.build("switch:8", rate="25 GB/s", latency="400 ns").routes()


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("algorithm", ["ring", "binomial"])
def test_simulation_closed_form_and_bound_grow_by_the_launch(model: Any, algorithm: str) -> None:
    collective = "broadcast" if algorithm == "binomial" else "all_reduce"
    schedule = tutti.schedule(algorithm, collective=collective, ranks=8)
    for given in ({}, {"routes": routes()}, {"routes": routes(), "contention": tutti.Packets()}):
        quiet, launched = (
            tutti.simulate(schedule, where, size="1 MiB") for where in pair(model, **given)
        )
        assert launched.completion_ps == quiet.completion_ps + LAUNCH.ps
        assert launched.bound.at_least_ps == quiet.bound.at_least_ps + LAUNCH.ps
        if not given:
            assert launched.closed_form_ps == launched.completion_ps


def test_the_timeline_starts_with_the_launch_on_every_rank() -> None:
    run = tutti.simulate(tutti.schedule("ring", ranks=4), pair(MODELS[0])[1], size="8 B")
    spans = run.timeline
    first = spans.filter(spans["kind"] == "launch")
    assert first["rank"].to_list() == [0, 1, 2, 3]
    assert set(first["end_ps"] - first["start_ps"]) == {LAUNCH.ps}


def test_searches_include_the_launch() -> None:
    found = [tutti.search(ranks=12, size="8 B", platform=where) for where in pair(MODELS[0])]
    assert found[1].time_ps == found[0].time_ps + LAUNCH.ps
    assert found[1].proved


def test_collectives_of_a_step_start_after_the_launch_except_with_ace() -> None:
    size, rings = Size.parse("64 KiB"), (Dimension("all", 8),)
    algorithms = {"all_reduce": "ring"}
    for name, configuration in configurations().items():
        quiet, launched = (
            Alone(size=size, rings=rings, platform=where, algorithms=algorithms).run(configuration)
            for where in pair(MODELS[0], routes=routes())
        )
        paid = 0 if name == "ace" else LAUNCH.ps
        assert launched.time.ps == quiet.time.ps + paid
        assert launched.limit.time.ps == quiet.limit.time.ps + paid


@pytest.mark.parametrize("detail", ["packets", "flows", "isolated"])
def test_steps_pay_launches_and_respect_the_bound(detail: Any) -> None:
    def step(where: tutti.Platform) -> Step:
        algorithms = {"all_reduce": "ring"}
        rings = (Dimension("data", 8),)
        return Step(
            model=build("gpt:layers=1,hidden=256,tokens=64,vocabulary=512"), batch=8, rings=rings,
            platform=where, algorithms=algorithms, detail=detail,
        )  # fmt: skip

    ideal = configurations()["ideal"]
    quiet, launched = (step(where) for where in pair(MODELS[0], routes=routes()))
    times = [one.run(ideal).total.ps for one in (quiet, launched)]
    assert times[0] < times[1]
    assert quiet.bound(ideal).time.ps < launched.bound(ideal).time.ps <= times[1]


PLATFORM = """
name = "gpus"
default_model = "short"
[models.short]
kind = "postal"
alpha = "1 us"
{short}
[models.long]
kind = "postal"
alpha = "2 us"
[compute]
gamma = "0.1 ns/B"
{all}
"""


def test_a_model_or_the_platform_states_the_launch(tmp_path: Path) -> None:
    path = tmp_path / "gpus.toml"

    def launches(short: str, for_all: str) -> list[str]:
        path.write_text(PLATFORM.format(short=short, all=for_all))
        raw = load_platform(path)
        models = [machine(raw, name, source="gpus").model for name in ("short", "long")]
        return [str(model.launch) for model in models]

    assert launches("launch = '6.6 us'", "") == ["6.6 us", "0 ps"]
    assert launches("", "launch = '7 us'") == ["7 us", "7 us"]
    with pytest.raises(ConfigError, match=r"models\.short\.launch` and `compute\.launch"):
        launches("launch = '6.6 us'", "launch = '7 us'")


def test_models_may_have_the_cost_of_a_reduction(tmp_path: Path) -> None:
    """The libraries and memories of a machine reduce at different rates."""
    path = tmp_path / "gpus.toml"
    own = "gamma = '0.2 ns/B'\ngamma_memory = '0.4 ns/B'\ncache = '1 MiB'"
    path.write_text(PLATFORM.replace('gamma = "0.1 ns/B"', "").format(short=own, all=""))
    raw = load_platform(path)
    short, long = (machine(raw, name, source="gpus").model for name in ("short", "long"))
    assert [str(short.gamma), str(short.gamma_memory), str(long.gamma)] == [
        "0.2 ns/B",
        "0.4 ns/B",
        "0 ns/B",
    ]
    path.write_text(PLATFORM.format(short="gamma = '0.2 ns/B'", all=""))
    with pytest.raises(ConfigError, match=r"models\.short\.gamma` and `compute\.gamma"):
        load_platform(path)

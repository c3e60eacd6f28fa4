"""Reports of training steps, and their frames."""

from __future__ import annotations

import dataclasses
import json
import re
from typing import TYPE_CHECKING, Any

import pytest

import tutti
from tutti.base.units import Size, Time, TimePerByte
from tutti.training import frame
from tutti.training.endpoint import Ring, configurations
from tutti.training.fabric import Dimension
from tutti.training.parts import NO_LAYER
from tutti.training.runs import watched
from tutti.training.step import Step
from tutti.training.view.page import write_training_report
from tutti.view.errors import ReportError
from tutti.workloads import Parallelism, build

if TYPE_CHECKING:
    from pathlib import Path

    from tutti.training.results import TrainingResult

COMPUTING = ("forward_ps", "input_gradient_ps", "weight_gradient_ps", "other_ps")


def step(model: str = "dlrm_small", **changes: Any) -> Step:
    rings = tuple(
        Ring(name, nodes, TimePerByte.parse(rate), Time.parse(latency))
        for name, nodes, rate, latency in (
            ("local", 2, "200 GB/s", "72 ns"),
            ("vertical", 2, "25 GB/s", "402 ns"),
        )
    )
    return Step(model=build(model), batch=4, rings=rings, **changes)


@pytest.fixture(scope="module")
def runs() -> list[TrainingResult]:
    every = configurations()
    training = watched(step(), every["ideal"])
    return [training.run(configuration) for configuration in every.values()]


@pytest.mark.parametrize("name", configurations())
@pytest.mark.parametrize("bucket", [None, "1 MiB"])
@pytest.mark.parametrize("model", ["dlrm_small", "gnmt"])
def test_layer_times_add_up_to_the_total(model: str, bucket: str | None, name: str) -> None:
    changes = {"bucket": Size.parse(bucket)} if bucket else {}
    run = step(model, **changes).run(configurations()[name])
    layers = [layer.name for layer in run.step.model.layers]
    assert frame([run], "layers")["layer"].to_list() == [*layers, NO_LAYER]
    adds_up(run)


@pytest.mark.parametrize(
    "parallelism",
    [
        Parallelism(tensor=2),
        Parallelism(pipeline=2, micro_batches=2),
        Parallelism(zero=3),
        Parallelism(tensor=2, zero=1),
    ],
)
def test_times_of_a_partitioned_model_add_up(parallelism: Parallelism, tmp_path: Path) -> None:
    training = step("gpt:layers=4,hidden=256", parallelism=parallelism)
    run = training.run(configurations()["ace"])
    adds_up(run)
    page = write_training_report(tmp_path / "r.html", [run]).read_text("utf-8")
    name, value = next((key, one) for key, one in vars(parallelism).items() if one in {2, 3})
    assert f"{name} {value}" in page


def adds_up(run: TrainingResult) -> None:
    """Checks that computing and waiting of all layers add up to the run."""
    found = frame([run], "layers")
    computed = sum(sum(found[column]) for column in COMPUTING)
    assert computed == run.compute
    assert computed + sum(found["waited_ps"]) == run.total.ps
    tasks = run.step.programs(run.configuration)[0].tasks
    computing = {"compute", "background", "bubble"}
    handed = sum(task.amount for task in tasks if task.kind not in computing)
    assert found["bytes"].sum() == handed


def test_windows_account_for_all_link_and_processor_time(runs: list[TrainingResult]) -> None:
    for run in runs:
        found = frame([run], "windows")
        assert run.step.window is not None
        width, end = run.step.window.ps, run.total.ps
        assert found["start_ps"].to_list() == list(range(0, end, width))
        lasts = [min(width, end - start) for start in found["start_ps"]]
        computed = sum(a * b for a, b in zip(lasts, found["compute"], strict=True))
        assert computed == pytest.approx(run.compute, rel=1e-9)
        links = run.record.links()
        busy = sum(a * b for a, b in zip(lasts, found["links"], strict=True)) * len(links)
        assert busy == pytest.approx(sum(link.busy_ps for link in links), rel=1e-9)
        assert found["links"].max() <= 1  # type: ignore[operator]


def test_step_without_a_window_has_no_windows() -> None:
    run = step().run(configurations()["ideal"])
    assert frame([run], "windows").is_empty()
    training = step(window=Time.parse("5 us"))
    assert watched(training, run.configuration) is training
    once = watched(step(), run.configuration, windows=10).window
    assert once is not None
    assert run.compute // 10 == once.ps


def test_servers_and_links_have_names(runs: list[TrainingResult]) -> None:
    found = frame(runs, "servers")
    ace = found.filter(configuration="ace")
    assert {"memory", "sram_read", "alu"} <= set(ace["server"])
    links = ace.filter("is_link")["server"].to_list()
    assert links == ["local +", "local -", "vertical +", "vertical -"]
    read = ace.filter(server="memory")["bytes"].item()
    assert read == next(run.read for run in runs if run.configuration.name == "ace")
    assert found["utilisation"].is_between(0, 1).all()


def charts(page: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="figures">(.*?)</script>', page, re.S)
    assert found
    parsed: dict[str, Any] = json.loads(found.group(1))
    for name in parsed:
        assert f'<div class="chart" id="{name}"></div>' in page
    head = page.split("plotly.js v", maxsplit=1)[0]
    assert not re.findall(r'(?:src|href)="(?!data:,)', head)
    return parsed


def test_bars_add_up_to_the_run(runs: list[TrainingResult], tmp_path: Path) -> None:
    page = write_training_report(tmp_path / "r.html", runs, "A <title>").read_text("utf-8")
    assert "A &lt;title&gt;" in page
    found = charts(page)
    assert set(found) == {
        "breakdown", "exposed", "tasks", "over_time", "links", "servers", "stalls"
    }  # fmt: skip
    bars = found["breakdown"]["data"]
    names = bars[0]["y"]
    assert names == [run.configuration.name for run in reversed(runs)]
    totals = [sum(bar["x"][index] for bar in bars) for index in range(len(names))]
    longest = max(run.total.ps for run in runs)
    for ms, run in zip(totals, reversed(runs), strict=True):
        assert ms / max(totals) == pytest.approx(run.total.ps / longest)
    assert len(found["over_time"]["data"]) == 2 * len(runs)


def test_parts_of_exposed_communication_add_up(runs: list[TrainingResult], tmp_path: Path) -> None:
    page = write_training_report(tmp_path / "r.html", runs).read_text("utf-8")
    bars = charts(page)["exposed"]["data"]
    names = ("all_reduce on local x vertical", "all_to_all on local x vertical")
    assert sorted(bar["name"] for bar in bars) == list(names)
    sums = [sum(bar["x"][index] for bar in bars) for index in range(len(runs))]
    most = max(run.exposed for run in runs)
    for value, run in zip(sums, reversed(runs), strict=True):
        assert value / max(sums) == pytest.approx(run.exposed / most)


def test_endpoint_resources_are_listed(runs: list[TrainingResult], tmp_path: Path) -> None:
    page = write_training_report(tmp_path / "r.html", runs).read_text("utf-8")
    head = page.split("plotly.js v", maxsplit=1)[0]
    for text in (
        "How much of a training step of dlrm_small is exposed communication?",
        "With ideal (ideal endpoint), the 2 iterations take ",
        " (fastest non-ideal), the 2",
        "all 80, alternating",
        "2 of 80",
        "6 of 80",
        "450 GB/s",
        "772 GB/s",
        NO_LAYER,
    ):
        assert text in head, text


def test_the_same_runs_make_the_same_bytes(runs: list[TrainingResult], tmp_path: Path) -> None:
    pages = [write_training_report(tmp_path / f"{name}.html", runs) for name in "ab"]
    assert pages[0].read_bytes() == pages[1].read_bytes()


def test_a_single_run_without_windows_can_be_shown(tmp_path: Path) -> None:
    background = dataclasses.replace(configurations()["ace"], name="<mine>", background=True)
    run = step(iterations=1).run(background)
    page = write_training_report(tmp_path / "r.html", [run]).read_text("utf-8")
    assert set(charts(page)) == {
        "breakdown", "exposed", "tasks", "links", "servers", "stalls"
    }  # fmt: skip
    head = page.split("plotly.js v", maxsplit=1)[0]
    assert " with &lt;mine&gt;: " in head
    assert "128 GB/s + 80 GB/s" in head
    assert "1 of 80" in head


def test_empty_list_of_runs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ReportError, match="no run"):
        write_training_report(tmp_path / "r.html", [])


def test_steps_in_flows_have_no_endpoint(tmp_path: Path) -> None:
    topology = tutti.Topology.build("switch:8", rate="25 GB/s", latency="500 ns")
    model = tutti.PipeliningPostal(alpha_p="0 ns", alpha_r="1 ns")
    flows = Step(
        model=build("dlrm_small"),
        batch=16,
        platform=tutti.Platform(name="pod", model=model, routes=topology.routes()),
        rings=(Dimension("data", 8),),
        detail="flows",
    )
    run = flows.run(configurations()["ideal"])
    page = write_training_report(tmp_path / "r.html", [run]).read_text("utf-8")
    assert "Endpoint utilisation" not in page
    assert "Link utilisation" in page

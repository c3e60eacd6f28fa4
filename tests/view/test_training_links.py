"""Link utilisation and endpoint occupancy of training steps."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import tutti
from tutti.base.units import Time, TimePerByte
from tutti.training import frame
from tutti.training.endpoint import Ring, configurations
from tutti.training.fabric import Dimension
from tutti.training.step import Step
from tutti.training.view.page import write_training_report
from tutti.workloads import build

if TYPE_CHECKING:
    from pathlib import Path

    from tutti.training.results import TrainingResult

RINGS = tuple(
    Ring(name, 2, TimePerByte.parse(rate), Time.parse("72 ns"))
    for name, rate in (("local", "200 GB/s"), ("vertical", "25 GB/s"))
)
CASES = {
    "platform": {"algorithms": {}},
    "representative": {"rings": RINGS},
    "every": {"rings": RINGS, "every_npu": True},
}


def pod() -> tutti.Platform:
    topology = tutti.Topology.build("switch:4", rate="25 GB/s", latency="500 ns")
    ends = tutti.PipeliningPostal(alpha_p="0 ns", alpha_r="1 ns")
    return tutti.Platform(name="pod", model=ends, routes=topology.routes())


@pytest.fixture(scope="module")
def every() -> dict[str, list[TrainingResult]]:
    found = {}
    for name, changes in CASES.items():
        on = changes
        if name == "platform":
            on = {"platform": pod(), "rings": (Dimension("tensor", 2), Dimension("data", 2))}
        step = Step(model=build("dlrm_small"), batch=4, **on)  # type: ignore[arg-type]
        found[name] = [step.run(configurations()[one]) for one in ("ace", "ideal")]
    return found


def page(path: Path) -> tuple[str, dict[str, Any]]:
    """Returns the text before the script, and the charts."""
    text = path.read_text("utf-8")
    found = re.search(r'<script type="application/json" id="figures">(.*?)</script>', text, re.S)
    assert found
    return text.split("plotly.js v", maxsplit=1)[0], json.loads(found.group(1))


def test_links_of_a_platform_have_both_ends(every: dict[str, list[TrainingResult]]) -> None:
    run = every["platform"][0]
    found = frame([run], "links")
    assert run.step.platform is not None
    assert run.step.platform.routes is not None
    topology = run.step.platform.routes.topology
    assert len(found) == len(topology.links) == 8
    assert found["link"].to_list() == [f"{link.source} to {link.target}" for link in topology.links]
    assert found["npu"].null_count() == 8
    assert found["utilisation"].is_between(0, 1).all()
    # The switch forwards every byte that an NPU sends.
    names = [vertex.name for vertex in topology.vertices if vertex.kind == "npu"]
    up, down = (found.filter(pl.col(end).is_in(names))["bytes"] for end in ("source", "target"))
    assert (
        up.sum()
        == down.sum()
        == sum(sum(used.bytes for used in run.record.links(n)) for n in range(4))
    )


@pytest.mark.parametrize("name", ["representative", "every"])
def test_links_of_a_torus_have_ring_and_direction(
    name: str, every: dict[str, list[TrainingResult]]
) -> None:
    run = every[name][0]
    found = frame([run], "links")
    names = ["local +", "local -", "vertical +", "vertical -"]
    assert found["link"].to_list() == names * run.record.npus
    assert found["npu"].unique().sort().to_list() == list(range(run.record.npus))
    assert found["busy_ps"].sum() == sum(
        used.busy_ps for npu in range(run.record.npus) for used in run.record.links(npu)
    )
    assert found["source"].null_count() == len(found)


def test_a_representative_npu_has_the_links_of_every_npu(
    every: dict[str, list[TrainingResult]],
) -> None:
    one, all_npus = (frame([every[name][0]], "links") for name in ("representative", "every"))
    for npu in range(4):
        assert all_npus.filter(npu=npu).drop("npu").equals(one.drop("npu"))


@pytest.mark.parametrize("name", CASES)
def test_heat_map_and_the_busiest_links(
    name: str, every: dict[str, list[TrainingResult]], tmp_path: Path
) -> None:
    runs = every[name]
    head, figures = page(write_training_report(tmp_path / "r.html", runs))
    assert ('id="links-choice"' in head) == (name != "representative")
    section = head.split("<h2>Link utilisation</h2>")[1].split("</section>")[0]
    rows = section.count("<tr") - 1
    assert rows == sum(min(len(frame([run], "links")), 10) for run in runs)
    traces = figures["links"]["data"]
    if name == "platform":
        texts = [
            one for trace in traces if trace["meta"] == 1 for one in trace.get("customdata", [])
        ]
        assert sum("utilisation" in text for text in texts) == 8
        assert {trace["visible"] for trace in traces if trace["meta"] == 1} == {False}
        return
    cells = [value for trace in traces for row in trace["z"] for value in row]
    assert sorted(cells) == sorted(frame(runs, "links")["utilisation"])
    assert ("NPU 0, vertical +" in section) == (name == "every")


def test_large_topologies_have_only_the_table(
    every: dict[str, list[TrainingResult]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tutti.topologies.view import heat_map, pixel_map

    monkeypatch.setattr(heat_map, "MOST_DRAWN", 3)
    _, figures = page(write_training_report(tmp_path / "r.html", every["platform"]))
    assert [trace["type"] for trace in figures["links"]["data"]] == ["heatmap"] * 2
    monkeypatch.setattr(pixel_map, "MOST_PIXELS", 3)
    head, figures = page(write_training_report(tmp_path / "r.html", every["platform"]))
    assert "links" not in figures
    assert 'id="links-choice"' not in head
    assert "npu0 to " in head


def test_stalls_have_resources_and_servers(every: dict[str, list[TrainingResult]]) -> None:
    run = every["representative"][0]
    found = frame([run], "stalls")
    servers = frame([run], "servers").filter(~pl.col("is_link"))
    causes = ["entry", "fsm", "next_partition", "port"]
    assert found["cause"].to_list() == [*causes, *servers["server"]]
    assert found["waited_ps"].to_list()[4:] == servers["waited_ps"].to_list()
    waited = found["waiting"] * run.record.active_ps()
    assert waited.to_list() == pytest.approx(found["waited_ps"].to_list())


def test_servers_and_stalls_are_listed(
    every: dict[str, list[TrainingResult]], tmp_path: Path
) -> None:
    head, figures = page(write_training_report(tmp_path / "r.html", every["every"]))
    assert "send buffer" in {x for trace in figures["stalls"]["data"] for x in trace["x"]}
    for text in (
        "link vertical +",
        "SRAM read",
        "first partition",
        "The values are those of NPU 0.",
    ):
        assert text in head

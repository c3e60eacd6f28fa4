"""Reports and drawings of networks."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import tutti
from tutti.networks import flit as noc
from tutti.networks.flit.view.load import load_view
from tutti.networks.flit.view.run import run_view
from tutti.view.page import page_of

if TYPE_CHECKING:
    from pathlib import Path

PLAN = noc.MeasurementPlan(
    warmup=200, measure=1000, batches=5, drain=1000, patience=1000, sample=50
)


def network(notation: str = "torus:4x4") -> noc.Network:
    topology = tutti.Topology.build(notation, rate="16 GB/s", latency="1 ns")
    return noc.Network(topology=topology, routing="shortest_path")


@pytest.fixture(scope="module")
def runs() -> list[noc.NocRun]:
    return noc.sweep(network(), noc.Traffic(rate=0), [0.1, 0.2, 0.95], PLAN)


def charts(page: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="figures">(.*?)</script>', page, re.S)
    assert found
    parsed: dict[str, Any] = json.loads(found.group(1))
    for name in parsed:
        assert f'<div class="chart" id="{name}"></div>' in page
    head = page.split("plotly.js v", maxsplit=1)[0]
    assert not re.findall(r'(?:src|href)="(?!data:,)', head)
    return parsed


@pytest.mark.parametrize("notation", ["torus:4x4", "fat_tree:k=2,n=3", "cmesh:2x2:4", "ring:5"])
def test_a_run_is_drawn_on_its_topology(notation: str, tmp_path: Path) -> None:
    run = noc.run(network(notation), noc.Traffic(rate=0.1), PLAN)
    page = page_of(run_view(run, title="A <title>")).write(tmp_path / "r.html").read_text("utf-8")
    assert "A &lt;title&gt;" in page
    found = charts(page)
    assert set(found) == {"links", "buffered", "over-time", "vcs", "stalls"}
    marks = next(one for one in found["links"]["data"] if "colorbar" in one.get("marker", {}))
    drawn = run.channels.filter(run.channels["source"] != run.channels["target"])
    assert len(marks["customdata"]) == drawn.height


def test_run_without_buffer_samples_has_no_buffer_charts(tmp_path: Path) -> None:
    plan = noc.MeasurementPlan(warmup=0, measure=500, batches=2, sample=0)
    run = noc.run(network(), noc.Traffic(rate=0.1), plan)
    assert set(charts(page_of(run_view(run)).write(tmp_path / "r.html").read_text("utf-8"))) == {
        "links"
    }


def test_vcs_are_drawn_over_time(tmp_path: Path) -> None:
    run = noc.run(network(), noc.Traffic(rate=0.3, packet=3), replace(PLAN, keep_vcs=True))
    found = charts(page_of(run_view(run)).write(tmp_path / "r.html").read_text("utf-8"))
    lines = found["over-time"]["data"]
    assert [line["name"] for line in lines] == ["VC 0", "VC 1", "VC 2", "VC 3"]
    assert len(lines[0]["x"]) == len(run.buffered) == 20
    assert (lines[0]["x"][0], lines[0]["x"][-1]) == (250, 1200)
    (fullest,) = found["fullest"]["data"]
    assert len(fullest["y"]) == len(set(fullest["y"])) == 24
    assert fullest["zmax"] == run.network.router.buffer
    place, vc = re.fullmatch(r"(.*), VC (\d)", fullest["y"][-1]).groups()  # type: ignore[union-attr]
    source, target = place.split(" to ")
    target = source if target == "its router" else target
    one = run.vcs_over_time(source, target).filter(pl.col("vc") == int(vc))
    assert fullest["z"][-1] == one["flits"].to_list()


def test_long_windows_are_downsampled(tmp_path: Path) -> None:
    plan = replace(PLAN, sample=1, keep_vcs=True)
    run = noc.run(network(), noc.Traffic(rate=0.1), plan)
    found = charts(page_of(run_view(run)).write(tmp_path / "r.html").read_text("utf-8"))
    (fullest,) = found["fullest"]["data"]
    assert len(run.buffered) == 1000
    assert len(fullest["x"]) == len(fullest["z"][0]) == 334


def test_deadlocked_run_shows_only_the_deadlock_cycle(tmp_path: Path) -> None:
    ring = replace(network("ring:8"), router=noc.Router(vcs=1, buffer=2))
    traffic = noc.Traffic(rate=0.9, pattern="uniform_others", packet=8)
    run = noc.run(ring, traffic, replace(PLAN, patience=500, keep_vcs=True))
    page = page_of(run_view(run)).write(tmp_path / "r.html").read_text("utf-8")
    assert charts(page) == {}
    assert "throughput and latency are undefined" in page
    section = page.split("Deadlock cycle", maxsplit=1)[1]
    assert section.count("<tr>") == 1 + len(run.deadlock_cycle)
    for one in run.deadlock_cycle:
        assert section.count(one.replace(">", "&gt;")) >= 2


def test_a_saturated_run_shows_no_latency(runs: list[noc.NocRun], tmp_path: Path) -> None:
    page = page_of(run_view(runs[-1])).write(tmp_path / "r.html").read_text("utf-8")
    assert runs[-1].ending != "stable"
    assert runs[-1].ending.capitalize() in page


def test_latency_against_load_ends_where_it_saturates(
    runs: list[noc.NocRun], tmp_path: Path
) -> None:
    page = page_of(load_view(runs)).write(tmp_path / "r.html").read_text("utf-8")
    found = charts(page)
    assert found["latency"]["data"][0]["x"] == [0.1, 0.2]
    named = {one["name"]: one for one in found["throughput"]["data"]}
    accepted = named["accepted throughput"]
    assert accepted["x"] == [0.1, 0.2, 0.95]
    assert len(accepted["error_y"]["array"]) == 3


def test_report_is_deterministic(runs: list[noc.NocRun], tmp_path: Path) -> None:
    draw = load_view(runs).drawings["latency.svg"]
    first, second = (draw(tmp_path / f"{name}.svg") for name in "ab")
    assert first.read_bytes() == second.read_bytes()

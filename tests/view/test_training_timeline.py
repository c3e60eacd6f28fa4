"""Timelines and Perfetto traces of training steps."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from tutti.base.units import Time, TimePerByte
from tutti.training.endpoint import Ring, configurations
from tutti.training.spans import spans
from tutti.training.step import Step
from tutti.training.view import timeline as training_timeline
from tutti.training.view.page import write_training_report
from tutti.training.view.trace import write_training_trace
from tutti.view.errors import ReportError
from tutti.workloads import Parallelism, build

if TYPE_CHECKING:
    from pathlib import Path

    from tutti.training.results import TrainingResult

RINGS = tuple(
    Ring(name, 2, TimePerByte.parse(rate), Time.parse("72 ns"))
    for name, rate in (("local", "200 GB/s"), ("vertical", "25 GB/s"))
)


def simulated(name: str = "ace", **changes: Any) -> TrainingResult:
    model = build("gpt:layers=2,hidden=256")
    parallelism = Parallelism(tensor=2, zero=1)
    step = Step(model=model, batch=4, rings=RINGS, parallelism=parallelism, **changes)
    return step.run(configurations()[name])


@pytest.fixture(scope="module")
def runs() -> list[TrainingResult]:
    return [simulated("comp_opt"), simulated("ace")]


@pytest.fixture(scope="module")
def every() -> TrainingResult:
    return simulated(every_npu=True)


def drawn(path: Path) -> tuple[str, dict[str, Any]]:
    """Returns the text before the script, and the chart of the timeline."""
    page = path.read_text("utf-8")
    found = re.search(r'<script type="application/json" id="figures">(.*?)</script>', page, re.S)
    assert found
    return page.split("plotly.js v", maxsplit=1)[0], json.loads(found.group(1))["tasks"]


def total(chart: dict[str, Any], meta: int, names: set[str]) -> float:
    return sum(
        sum(trace["x"])
        for trace in chart["data"]
        if trace["meta"] == meta and trace["name"] in names
    )


def test_timeline_shows_every_task_of_each_configuration(
    runs: list[TrainingResult], tmp_path: Path
) -> None:
    head, chart = drawn(write_training_report(tmp_path / "r.html", runs))
    assert 'id="tasks-choice"' in head
    assert "share a bar" not in head
    for index, run in enumerate(runs):
        tasks = [one for one in spans(run) if one.duration_ps]
        traces = [trace for trace in chart["data"] if trace["meta"] == index]
        waits = next(trace for trace in traces if trace["name"] == "exposed communication")
        assert sum(len(trace["x"]) for trace in traces) == len(tasks) + len(waits["x"])
        assert {trace["visible"] for trace in traces} == {index == 0}
        computed = total(chart, index, {"forward", "input gradient", "weight gradient"})
        hidden = total(chart, index, {"exposed communication"})
        assert computed / hidden == pytest.approx(run.compute / run.exposed)
    names = {trace["name"] for trace in chart["data"]}
    assert {"all_reduce on local", "all_gather on vertical", "reduce_scatter on vertical"} <= names
    assert chart["layout"]["yaxis"]["ticktext"] == ["<b>NPU 0</b><br>compute", "local", "vertical"]


def test_bars_of_a_configuration_do_not_overlap(runs: list[TrainingResult], tmp_path: Path) -> None:
    _, chart = drawn(write_training_report(tmp_path / "r.html", runs))
    rows = defaultdict(list)
    for trace in chart["data"]:
        for start, length, row in zip(trace["base"], trace["x"], trace["y"], strict=True):
            rows[trace["meta"], row].append((start, start + length))
    for bars in rows.values():
        ordered = sorted(bars)
        for (_, end), (start, _) in pairwise(ordered):
            assert end <= start + 1e-9


def test_tooltips_name_layer_and_bytes(runs: list[TrainingResult], tmp_path: Path) -> None:
    _, chart = drawn(write_training_report(tmp_path / "r.html", runs[:1]))
    texts = [text for trace in chart["data"] for text in trace["customdata"]]
    sent = next(text for text in texts if text.startswith("<b>all_reduce on local</b>"))
    for words in ("2 MiB", "layer ", "iteration 0", "issued ", "completed "):
        assert words in sent
    assert any(re.search(r"us all_reduce on local", text) for text in texts)


def test_several_npus_have_tracks(every: TrainingResult, tmp_path: Path) -> None:
    _, chart = drawn(write_training_report(tmp_path / "r.html", [every], "", (1, 3)))
    labels = chart["layout"]["yaxis"]["ticktext"]
    assert [label for label in labels if "NPU" in label] == [
        f"<b>NPU {npu}</b><br>compute" for npu in (1, 3)
    ]
    assert len(labels) == 6


def test_many_tasks_share_bars_and_the_page_states_it(
    runs: list[TrainingResult], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, full = drawn(write_training_report(tmp_path / "full.html", runs[:1]))
    monkeypatch.setattr(training_timeline, "_MOST_BARS", 40)
    head, chart = drawn(write_training_report(tmp_path / "r.html", runs[:1]))
    assert sum(len(trace["x"]) for trace in chart["data"]) <= 40
    assert re.search(r"With comp_opt, adjacent tasks shorter than .* share a bar", head)
    assert any(
        re.search(r"<b>\d+ tasks</b>", text) for one in chart["data"] for text in one["customdata"]
    )
    ends = [
        max(base + x for one in each["data"] for base, x in zip(one["base"], one["x"], strict=True))
        for each in (full, chart)
    ]
    assert ends[0] == ends[1]


def test_many_collectives_in_flight_are_omitted_and_the_page_states_it(
    runs: list[TrainingResult], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training_timeline, "_MOST_LANES", 1)
    head, _ = drawn(write_training_report(tmp_path / "r.html", runs[:1]))
    assert re.search(r"With comp_opt, \d+ collectives beyond 1 in flight are omitted", head)


@pytest.mark.parametrize(
    ("npus", "problem"),
    [((4,), "NPU 4 was not simulated: expected an NPU from 0 to 3"), ((0, 0), "the NPUs 0, 0")],
)
@pytest.mark.parametrize("write", [write_training_report, write_training_trace])
def test_invalid_npus_are_refused(
    write: Any, npus: tuple[int, ...], problem: str, every: TrainingResult, tmp_path: Path
) -> None:
    with pytest.raises(ReportError, match=problem):
        write(tmp_path / "file", [every], npus=npus)


def test_representative_npu_is_the_only_one(runs: list[TrainingResult], tmp_path: Path) -> None:
    with pytest.raises(ReportError, match="expected NPU 0, which represents all"):
        write_training_report(tmp_path / "r.html", runs, npus=(1,))


# --- Perfetto -------------------------------------------------------------------------------------


def packets(path: Path) -> list[Any]:
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace

    trace = Trace()
    trace.ParseFromString(path.read_bytes())
    return list(trace.packet)


def test_trace_has_tracks_per_npu_and_all_tasks(every: TrainingResult, tmp_path: Path) -> None:
    found = packets(write_training_trace(tmp_path / "t.pftrace", [every], (0, 2)))
    tracks = {p.track_descriptor.uuid: p.track_descriptor for p in found if p.track_descriptor.uuid}
    roots = {uuid: one.name for uuid, one in tracks.items() if not one.HasField("parent_uuid")}
    assert list(roots.values()) == ["ace, NPU 0", "ace, NPU 2"]
    for uuid in roots:
        below = [one.name for one in tracks.values() if one.parent_uuid == uuid]
        assert below[:3] == ["compute", "exposed communication", "local"]
        assert any(name.startswith("vertical") for name in below)
    events = [p.track_event for p in found if p.HasField("track_event")]
    slices = [one for one in events if one.type == one.TYPE_SLICE_BEGIN]
    tasks = [one for one in slices if one.categories[0] != "exposed"]
    assert len(tasks) == sum(len(spans(every, npu)) for npu in (0, 2))
    waits = [one for one in slices if one.categories[0] == "exposed"]
    values = [{a.name: a.int_value for a in one.debug_annotations} for one in waits]
    assert sum(of["end_ps"] - of["start_ps"] for of in values) == sum(
        every.record.breakdown(npu).exposed_ps for npu in (0, 2)
    )


def test_slices_of_a_track_do_not_overlap(every: TrainingResult, tmp_path: Path) -> None:
    depth: dict[int, int] = defaultdict(int)
    clock = 0
    for packet in packets(write_training_trace(tmp_path / "t.pftrace", [every])):
        if not packet.HasField("track_event"):
            continue
        event = packet.track_event
        assert packet.timestamp >= clock
        clock = packet.timestamp
        depth[event.track_uuid] += 1 if event.type == event.TYPE_SLICE_BEGIN else -1
        assert depth[event.track_uuid] in {0, 1}
    assert set(depth.values()) == {0}

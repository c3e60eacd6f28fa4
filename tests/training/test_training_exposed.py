"""Exposed communication by collective and process group, and the tasks of an NPU over time."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tutti
from tutti.base.units import Time, TimePerByte
from tutti.training import frame
from tutti.training.endpoint import Ring, configurations
from tutti.training.exposed import exposed
from tutti.training.fabric import Dimension
from tutti.training.spans import Span, group_name, spans, task_frame
from tutti.training.step import Step
from tutti.workloads import Parallelism, build
from tutti.workloads.errors import WorkloadError

RINGS = tuple(
    Ring(name, 2, TimePerByte.parse(rate), Time.parse("72 ns"))
    for name, rate in (("local", "200 GB/s"), ("vertical", "25 GB/s"))
)
MODEL = "gpt:layers=4,hidden=256"


def step(model: str = MODEL, **changes: Any) -> Step:
    return Step(model=build(model), batch=4, rings=RINGS, **changes)


def on_switch() -> Step:
    topology = tutti.Topology.build("switch:4", rate="25 GB/s", latency="500 ns")
    ends = tutti.PipeliningPostal(alpha_p="0 ns", alpha_r="1 ns")
    platform = tutti.Platform(name="pod", model=ends, routes=topology.routes())
    dimensions = (Dimension("tensor", 2), Dimension("data", 2))
    training = step("dlrm_small")
    return dataclasses.replace(training, platform=platform, rings=dimensions)


STEPS = {
    "data": step(),
    "tensor": step(parallelism=Parallelism(tensor=2)),
    "zero": step(parallelism=Parallelism(zero=3)),
    "pipeline": step(parallelism=Parallelism(pipeline=2, micro_batches=2, zero=1)),
    "tables": step("dlrm_small"),
    "every": step("dlrm_small", every_npu=True),
    "platform": on_switch(),
}


@pytest.mark.parametrize("name", configurations())
@pytest.mark.parametrize("which", STEPS)
def test_parts_add_up_to_the_exposed_time(which: str, name: str) -> None:
    configuration = configurations()[name]
    if which == "tables" and name == "ace":
        configuration = dataclasses.replace(configuration, background=True)
    run = STEPS[which].run(configuration)
    found = frame([run], "exposed")
    assert found["npu"].unique().sort().to_list() == list(range(run.record.npus))
    for npu in range(run.record.npus):
        of_npu = found.filter(npu=npu)
        assert of_npu["exposed_ps"].sum() == run.record.breakdown(npu).exposed_ps
        assert (of_npu["exposed_ps"] <= of_npu["in_flight_ps"]).all()
        assert of_npu["count"].sum() == len(run.program_of(npu).issued)
    assert found["exposed_ps"].sum() > 0


@pytest.mark.parametrize("which", ["pipeline", "every", "platform"])
def test_npus_with_one_program_and_equal_times_share_their_parts(which: str) -> None:
    run = STEPS[which].run(configurations()["ideal"])
    alike = [run.record.first_alike()[npu] for npu in run.recorded]
    assert all(run.record.spans(npu) == run.record.spans(one) for npu, one in enumerate(alike))
    assert len(set(alike)) < len(alike)
    for npu in run.recorded:
        tasks, shown = run.program_of(npu).tasks, spans(run, npu)
        recorded = [(one.task, one.start_ps, one.end_ps) for one in run.record.spans(npu)]
        assert sorted((one.task, one.start_ps, one.end_ps) for one in shown) == sorted(recorded)
        assert all(one.layer == tasks[one.task].layer for one in shown)


def test_groups_have_the_names_of_their_dimensions() -> None:
    run = STEPS["tensor"].run(configurations()["ideal"])
    assert set(frame([run], "exposed")["group"]) == {"local", "vertical"}
    assert group_name(run, 3) == "local x vertical"
    alone = (RINGS[0], dataclasses.replace(RINGS[1], nodes=1))
    run = dataclasses.replace(STEPS["data"], rings=alone).run(configurations()["ideal"])
    assert group_name(run, 3) == "local"
    assert group_name(run, 2) == "vertical"


def compute(task: int, start: int, end: int, lane: str = "compute") -> Span:
    return Span(task, lane, "forward", "forward", "layer", 0, "", 0, start, end)


def sent(task: int, start: int, end: int, kind: str = "all_reduce", group: str = "x") -> Span:
    return Span(task, "", kind, "forward", "layer", 0, group, 1, start, end)


def parts(*tasks: Span) -> list[tuple[int, int, dict[int, int]]]:
    ordered = sorted(tasks, key=lambda one: one.start_ps)
    return [
        (one.start_ps, one.end_ps, {span.task: ps for span, ps in one.parts})
        for one in exposed(ordered)
    ]


def test_time_belongs_to_the_collective_that_the_next_pass_waits_for() -> None:
    first, last = compute(0, 0, 10), compute(1, 20, 30)
    assert parts(first, sent(2, 5, 20), sent(3, 5, 25), last) == [(10, 20, {2: 10})]


def test_time_before_the_issue_belongs_to_the_collective_before() -> None:
    tasks = (
        compute(0, 0, 10),
        sent(1, 0, 40),
        sent(2, 10, 16),
        sent(3, 16, 20),
        compute(4, 20, 50),
    )
    assert parts(*tasks) == [(10, 16, {2: 6}), (16, 20, {3: 4})]


def test_other_time_is_divided_equally() -> None:
    # Two collectives end when the next pass starts.
    assert parts(sent(0, 0, 7), sent(1, 0, 7), compute(2, 7, 9)) == [(0, 7, {0: 4, 1: 3})]
    # The next pass waits for a task in the background.
    behind = compute(0, 0, 6, lane="background")
    assert parts(behind, sent(1, 0, 8), sent(2, 0, 9), compute(3, 6, 9)) == [(0, 6, {1: 3, 2: 3})]
    # A collective starts the task in the background.
    behind = compute(0, 4, 6, lane="background")
    tasks = (behind, sent(1, 0, 4), sent(2, 0, 9), compute(3, 6, 9))
    assert parts(*tasks) == [(0, 4, {1: 4}), (4, 6, {2: 2})]


def test_hidden_communication_and_idle_time_are_not_exposed() -> None:
    assert parts(compute(0, 0, 10), sent(1, 2, 8)) == []
    assert parts(compute(0, 0, 2), sent(1, 4, 6), compute(2, 9, 10)) == [(4, 6, {1: 2})]


@settings(max_examples=200)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 40), st.integers(0, 20)), max_size=12))
def test_parts_cover_exactly_the_time_without_compute(rows: list[tuple[int, int, int]]) -> None:
    """The main lane computes one task after the other; other tasks are arbitrary."""
    tasks, free = [], 0
    for task, (kind, start, length) in enumerate(rows):
        if kind == 0:
            tasks.append(compute(task, free + start, free + start + length))
            free += start + length
        elif kind == 1:
            tasks.append(compute(task, start, start + length, lane="background"))
        else:
            tasks.append(sent(task, start, start + length))
    expected = sum(
        any(one.start_ps <= now < one.end_ps for one in tasks if one.is_collective)
        and not any(one.start_ps <= now < one.end_ps for one in tasks if one.lane == "compute")
        for now in range(100)
    )
    found = parts(*tasks)
    assert sum(end - start for start, end, _ in found) == expected
    assert all(sum(of.values()) == end - start for start, end, of in found)
    assert found == sorted(found, key=lambda one: one[0])


def test_tasks_have_lane_pass_and_group() -> None:
    run = STEPS["tensor"].run(configurations()["ace"])
    found = task_frame(run)
    computed = found.filter(lane="compute")
    assert (computed["end_ps"] - computed["start_ps"]).sum() == run.compute
    assert {"forward", "input_gradient", "weight_gradient"} <= set(computed["kind"])
    issued = found.filter(found["group"] != "")
    assert issued["bytes"].sum() == sum(each.size for each in run.program_of().issued)
    assert set(issued["lane"]) == {""}
    assert set(issued["during"]) <= set(computed["kind"])
    assert found["start_ps"].is_sorted()
    assert len(found) == len(run.record.spans())


def test_npu_that_was_not_simulated_is_refused() -> None:
    run = STEPS["data"].run(configurations()["ideal"])
    with pytest.raises(WorkloadError, match="NPU 1 was not simulated"):
        spans(run, 1)

"""Runs of many steps in threads, compared with runs of one step."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tutti.base.errors import TuttiError
from tutti.base.units import Time, TimePerByte
from tutti.training.endpoint import Ring, configurations
from tutti.training.runs import TOO_LATE, alike, run_all, run_each, threads_for
from tutti.training.step import Step
from tutti.workloads import build
from tutti.workloads.errors import WorkloadError

if TYPE_CHECKING:
    from tutti.training.results import TrainingResult

RING = Ring("local", 4, TimePerByte.parse("200 GB/s"), Time.parse("72 ns"))
STEP = Step(model=build("dlrm_small"), batch=8, rings=(RING,), iterations=1)
NAMES = ("ideal", "comp_opt")
PAIRS = [(STEP, configurations()[name]) for name in NAMES]


@pytest.mark.parametrize(("iterations", "threads"), [(1, 1), (1, 3), ("stable", 2)])
def test_each_step_has_its_result(iterations: int | str, threads: int) -> None:
    step = replace(STEP, iterations=iterations)  # type: ignore[arg-type]
    found: dict[int, TrainingResult] = {}
    pairs = [(step, configuration) for _, configuration in PAIRS]
    run_each(pairs, found.__setitem__, npus=STEP.npus, threads=threads)
    for index, (_, configuration) in enumerate(pairs):
        alone = step.run(configuration)
        assert found[index].total == alone.total
        assert found[index].iterations == alone.iterations
        assert found[index].configuration == configuration


@pytest.mark.parametrize("threads", [1, 2])
def test_the_first_step_that_fails_is_named(threads: int) -> None:
    wrong = [replace(STEP, slowdowns=(1.0,) * count) for count in (2, 3)]
    pairs = [PAIRS[0], *((step, PAIRS[0][1]) for step in wrong)]
    ended: list[int] = []
    with pytest.raises(WorkloadError, match="2 slowdowns for 4 NPUs"):
        run_each(pairs, lambda index, _: ended.append(index), npus=4, threads=threads)
    assert ended == [0]


def test_a_step_that_takes_too_long_ends_early() -> None:
    alone = STEP.run(PAIRS[0][1]).total.ps
    found: dict[int, object] = {}
    latest_ps = [alone, alone - 1, None]
    run_all([PAIRS[0]] * 3, found.__setitem__, npus=4, threads=1, latest_ps=latest_ps)
    late = found.pop(1)
    assert isinstance(late, TuttiError)
    assert late.kind == TOO_LATE
    assert all(run.total.ps == alone for run in found.values())  # type: ignore[attr-defined]


def test_an_interruption_keeps_what_is_finished() -> None:
    def steps() -> object:
        yield PAIRS[0]
        yield PAIRS[1]
        raise KeyboardInterrupt

    ended: list[int] = []
    with pytest.raises(KeyboardInterrupt):
        run_all(steps(), lambda index, _: ended.append(index), npus=4, threads=1)  # type: ignore[arg-type]
    assert ended == [0, 1]


def test_alike_runs_have_equal_iterations() -> None:
    runs = [replace(STEP, iterations=count).run(PAIRS[0][1]) for count in (1, 3)]
    assert [run.iterations for run in alike(runs)] == [3, 3]


def test_large_steps_run_one_at_a_time() -> None:
    assert threads_for(16_384, 8) == 1
    assert threads_for(100_000, 8) == 1
    assert threads_for(1_024, 8) == 8
    assert threads_for(4_096, 8) == 4

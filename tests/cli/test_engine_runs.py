"""Commands simulate each run once, and record it if a file or a drawing needs it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import tutti
from called import call
from tutti import _core
from tutti.collectives.candidates import try_plan
from tutti.collectives.measurement import Rows, measure
from tutti.collectives.request import ComparisonRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl

    from tutti.collectives.candidates import ComparisonPlan

ROOT = Path(__file__).parents[2]
EXPERIMENT = "examples/01_which_all_reduce/experiment.toml"
STEP = "examples/12_resnet50_on_64_npus/training.toml"


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts the runs of the core; runs with a record apart."""
    counts: Counter[str] = Counter()

    def count(name: str, of: Callable[..., int]) -> None:
        function = getattr(_core, name)

        def counted(*arguments: Any, **options: Any) -> Any:
            counts[f"{name}, recorded" if options.get("record") else name] += of(arguments)
            return function(*arguments, **options)

        monkeypatch.setattr(_core, name, counted)

    count("simulate", lambda _: 1)
    count("simulate_many", lambda arguments: len(arguments[0]))
    for name in ("simulate_training", "TrainingCase", "step_bound"):
        count(name, lambda _: 1)
    return counts


def _call(*words: str) -> None:
    done = call(*words, cwd=ROOT)
    assert done.returncode == 0, done.stderr


def test_run_simulates_once(runs: Counter[str], tmp_path: Path) -> None:
    _call("run", "ring", "--ranks", "8", "--size", "1MiB", "--out", str(tmp_path))
    assert runs == {"simulate, recorded": 1}


def test_compare_repeats_only_the_drawn_run(runs: Counter[str], tmp_path: Path) -> None:
    _call(
        *("compare", EXPERIMENT, "--ranks", "8", "-b", "8", "-e", "64", "-f", "2"),
        *("--algorithm", "ring", "--algorithm", "knomial", "--out", str(tmp_path)),
    )
    # Which run is drawn is known when all are measured; a record of all would not fit in memory.
    assert runs == {"simulate_many": 8, "simulate, recorded": 1}


def test_compare_draws_no_run_of_many_messages(tmp_path: Path) -> None:
    command = ("compare", "--algorithm", "nccl", "--ranks", "16", "--out", str(tmp_path))
    where = (
        "--platform",
        "dgx_h100_cluster",
        "--collective",
        "broadcast",
        "-b",
        "16M",
        "-e",
        "16M",
    )
    done = call(*command, *where, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert "no timeline is drawn: each winner has more than 30,000 messages" in done.stderr
    assert not (tmp_path / "winner.pftrace").exists()
    done = call("compare", "broadcast", cwd=ROOT)
    assert "broadcast is a collective: use --collective broadcast" in done.stderr


def test_a_step_is_simulated_once_and_bounded_once(runs: Counter[str], tmp_path: Path) -> None:
    _call("train", "run", STEP, "--out", str(tmp_path))
    assert runs == {"TrainingCase": 5, "step_bound": 5}


def _request(**settings: Any) -> ComparisonRequest:
    settings = {"platform": tutti.platforms.platform("cray_xc30"), **settings}
    sizes = [tutti.Size.parse(size) for size in ("1 KiB", "64 KiB", "4 MiB")]
    return ComparisonRequest(
        collective="all_reduce", ranks=[12], sizes=sizes, algorithms=None, **settings
    )


def _frame(plan: ComparisonPlan) -> pl.DataFrame:
    rows = Rows(plan)
    measure(plan, rows)
    return rows.frame()


def test_measurements_reuse_the_runs_that_chose_arguments(runs: Counter[str]) -> None:
    plan = try_plan(_request(conditions=tutti.Conditions(), seed=7)).plan
    reused = sum(plan.figures(point) is not None for point in plan.points)
    runs.clear()
    assert _frame(plan).equals(_frame(replace(plan, simulated={})))
    assert reused > 0
    assert runs == {"simulate_many": 2 * len(plan.points) - reused}


def test_random_runs_are_not_reused() -> None:
    late = tutti.Conditions(arrival=tutti.platforms.Fixed(time="1 us"))
    assert not try_plan(_request(conditions=late)).plan.simulated
    torus = tutti.Topology.build("torus:4x3", rate="50 GB/s", latency="500 ns")
    packets = tutti.Platform(
        name="torus",
        model=tutti.platforms.platform("cray_xc30").model,
        routes=torus.routes("adaptive"),
        contention=tutti.Packets(),
    )
    assert not _request(platform=packets).is_repeatable

"""`tutti train search`: algorithms by the time of the step."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

import polars as pl
import pytest
from typer.testing import CliRunner

from tutti.base.errors import ExitCode
from tutti.cli.app import app
from tutti.training.files.step_file import load_training
from tutti.training.loads import LinkLoads
from tutti.training.plan.timing import StepTiming
from tutti.training.search import DEFAULT, AlgorithmSearch
from tutti.training.step import Step
from tutti.training.view.search import left_out as left_out_of
from tutti.training.view.search import search_view

if TYPE_CHECKING:
    from pathlib import Path

    from tutti.training.endpoint import Configuration
    from tutti.training.results import TrainingResult

RUNNER = CliRunner()

FILE = """
model = "transformer:32"
batch = 4
iterations = 1
chunk = "256 KiB"
message = "256 KiB"
configurations = ["no_overlap", "comp_opt"]
{network}
[parallelism]
tensor = 2
"""
PLATFORM = """
dimensions = [{ name = "tensor", nodes = 2 }, { name = "data", nodes = 4 }]
[platform]
name = "pod"
summary = "made up"
[platform.models.unused]
kind = "pipelining_postal"
alpha_p = "0 ns"
alpha_r = "1 ns"
[platform.topology]
build = "switch:8"
links = [{ rate = "25 GB/s", latency = "500 ns" }]
"""
TORUS = """
[torus]
rings = [
  { name = "tensor", nodes = 2, rate = "100 GB/s", latency = "72 ns" },
  { name = "data", nodes = 4, rate = "25 GB/s", latency = "402 ns" },
]
"""
THREE = ["ring", "swing", "direct"]
SIX = [*THREE, "recursive_multiplying:ratio=2", "recursive_multiplying:ratio=8", "knomial"]
"""The ratios have equal steps on 4 ranks."""


@pytest.fixture(params=[PLATFORM, TORUS], ids=["platform", "torus"])
def file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "step.toml"
    path.write_text(FILE.format(network=request.param), encoding="utf-8")
    return path


def searched(file: Path, **options: object) -> AlgorithmSearch:
    read = load_training(file)
    found = AlgorithmSearch(read.step, read.configurations[1], **options)  # type: ignore[arg-type]
    found.run()
    return found


def test_the_choice_is_a_local_optimum(file: Path) -> None:
    """No change of one collective shortens the step."""
    found = searched(file, algorithms=THREE)
    assert found.is_complete
    assert {one.key for one in found.collectives} == {"all_reduce:tensor", "all_reduce:data"}
    last = max(trial.round for trial in found.trials)
    for trial in found.trials:
        if trial.round == last and trial.time_ps is not None:
            assert trial.time_ps >= found.best.total.ps
    assert found.best.bound.time.ps <= found.best.total.ps <= found.default.total.ps
    assert dict(found.best.step.algorithms) == {
        key: one for key, one in found.chosen.items() if one != DEFAULT
    }


@pytest.mark.parametrize("limit", [0, 7])
def test_threads_change_nothing(file: Path, limit: int) -> None:
    first, *others = (
        searched(file, algorithms=SIX, threads=threads, limit=limit) for threads in (1, 2, 3)
    )
    for other in others:
        assert other.trials == first.trials
        assert other.chosen == first.chosen
        assert other.best.total == first.best.total


def test_refused_algorithms_have_a_reason(file: Path) -> None:
    found = searched(file)
    for trial in found.trials:
        others = trial.refused, trial.pruned, trial.more_than_ps
        assert (trial.time_ps is None) == any(others)
    tried = {(trial.collective, trial.algorithm) for trial in found.trials}
    listed = {(one, name) for one in found.collectives for name in one.candidates}
    assert tried == listed


def test_algorithms_with_equal_steps_run_once(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On 4 ranks of a group, recursive multiplying is the same for ratios of 2 and of 8."""
    runs = []
    case = Step.case

    def counted(step: Step, configuration: Configuration) -> object:
        runs.append(step.algorithms)
        return case(step, configuration)

    names = ["recursive_multiplying:ratio=2", "recursive_multiplying:ratio=8", "ring"]
    alone = {name: searched(file, algorithms=[name], prune=False).trials for name in names}
    monkeypatch.setattr(Step, "case", counted)
    found = searched(file, algorithms=names, limit=3, prune=False)
    assert [trial.time_ps for trial in found.trials] == [alone[name][0].time_ps for name in names]
    assert len(runs) == 2  # one of each schedule


def test_the_limit_is_honoured(file: Path) -> None:
    found = searched(file, limit=3)
    assert len(found.trials) == 3
    assert not found.is_complete
    assert found.best.total <= found.default.total


def test_the_command_prints_and_writes_the_choice(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = ["train", "search", str(file), "--out", str(out)]
    arguments += [word for name in THREE for word in ("--algorithm", name)]
    result = RUNNER.invoke(app, arguments)
    assert result.exit_code == 0, result.output
    lines = [line.rstrip() for line in result.stdout.splitlines()]
    assert all(len(line) <= 80 for line in lines if not line.startswith("wrote"))
    for word in ("no_overlap", "comp_opt", "all_reduce", "of bound", "tensor 2", "data 4"):
        assert word in result.stdout
    rows = pl.read_parquet(out / "search.parquet")
    assert set(rows["algorithm"]) == set(THREE)
    texts = pl.concat_str("refused", "not_run", "more_than_ps", ignore_nulls=True)
    assert rows.filter(pl.col("time_ps").is_null() == (texts == "")).is_empty()
    best = pl.read_parquet(out / "results.parquet")
    assert best["configuration"].to_list() == ["no_overlap", "comp_opt"]
    assert (best["total_ps"] >= best["bound_ps"]).all()
    assert (out / "report.html").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--algorithm", "rign"], "rign"),
        (["--algorithm", "pairwise"], "pairwise"),
        (["--set", 'iterations="stable"'], "iterations"),
    ],
)
def test_options_that_cannot_be_honoured_are_refused(
    file: Path, tmp_path: Path, options: list[str], message: str
) -> None:
    arguments = ["train", "search", str(file), "--out", str(tmp_path / "out"), *options]
    result = RUNNER.invoke(app, arguments)
    assert result.exit_code == ExitCode.MISTAKE
    assert message in result.stderr


def test_an_interrupted_search_shows_its_results(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case, left = Step.case, iter([1] * 3)

    def stopping(step: Step, configuration: Configuration) -> object:
        if next(left, None) is None:
            raise KeyboardInterrupt
        return case(step, configuration)

    monkeypatch.setattr(Step, "case", stopping)
    words = ["train", "search", str(file), "--threads", "1", "--out", str(tmp_path / "out")]
    result = RUNNER.invoke(app, words)
    assert result.exit_code == ExitCode.INTERRUPTED
    assert "interrupted" in result.stderr
    trials = pl.read_parquet(tmp_path / "out" / "search.parquet")
    # Trials that are slower than the default end early.
    assert trials["time_ps"].count() + trials["more_than_ps"].count() >= 3


def test_names_of_groups_select_algorithms(file: Path) -> None:
    """A group's name takes precedence over the collective's; unknown groups are refused."""
    from dataclasses import replace

    from tutti.workloads.errors import WorkloadError

    read = load_training(file)
    configuration = read.configurations[1]

    def time(**algorithms: str) -> int:
        named = {key.replace("_of_", ":"): one for key, one in algorithms.items()}
        return replace(read.step, algorithms=named).run(configuration).total.ps

    for data, tensor in product(["ring", "swing"], repeat=2):
        both = {"all_reduce_of_data": data, "all_reduce_of_tensor": tensor}
        assert time(**both) == time(all_reduce=tensor, all_reduce_of_data=data)
    with pytest.raises(WorkloadError, match="all_reduce:data, all_reduce:tensor"):
        time(all_reduce_of_rows="ring")


def test_a_gain_below_a_thousandth_is_no_recommendation(tmp_path: Path) -> None:
    """A slow NPU on fast links: communication is a small share of the step."""
    path = tmp_path / "step.toml"
    network = PLATFORM.replace("25 GB/s", "2500 GB/s").replace("500 ns", "1 ns")
    text = FILE.format(network=network).replace('configurations = ["no_overlap", "comp_opt"]', "")
    path.write_text(text.replace("iterations = 1", 'iterations = 1\ndetail = "flows"'), "utf-8")
    given = ["--set", "npu.sms=1", "-a", "ring", "-a", "direct"]
    done = RUNNER.invoke(app, ["train", "search", str(path), *given])
    assert done.exit_code == 0, done.output
    assert "keep the default" in done.output
    assert "[algorithms]" not in done.output
    lines = done.output.splitlines()
    (heading,) = (at for at, line in enumerate(lines) if line.startswith("collective"))
    assert all("default" in line.split() for line in lines[heading + 1 : heading + 3])


def test_a_gain_that_the_plan_does_not_have_is_no_recommendation(tmp_path: Path) -> None:
    path = tmp_path / "step.toml"
    path.write_text(FILE.format(network=PLATFORM), encoding="utf-8")
    read = load_training(path)
    slow = replace(read.step, algorithms={"all_reduce": "knomial"})
    ideal = replace(read.configurations[1], name="ideal")
    found = AlgorithmSearch(slow, ideal, algorithms=["ring"])
    found.run()
    changes = dict(found.changes)
    assert changes

    def faster(run: TrainingResult) -> float:
        return 1.0 if run is found.default else 0.9

    found.settle(faster)
    assert "[algorithms]" in search_view([found]).below
    found.settle(lambda _: 1.0)
    assert found.declined is not None
    assert found.declined.algorithms == changes
    assert found.best is found.default
    shown = search_view([found], lambda _: StepTiming(compute=1.0))
    assert "of the simulated step, but less than 0.1 % of the step" in str(shown.below[0])
    (table,) = shown.tables
    assert {table.columns[2].text(row) for row in table.rows} == {DEFAULT}
    assert not any(shown.data[0].frame()["is_chosen"])


def test_only_named_algorithms_have_remarks_of_refusals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "step.toml"
    path.write_text(FILE.format(network=PLATFORM), encoding="utf-8")
    names = ["ring", "multi_ring:2x2"]  # the second one does not fit 2 ranks
    monkeypatch.setattr("tutti.training.searched._candidates", lambda *_: names)
    monkeypatch.setattr("tutti.training.study.search._write", lambda *_: None)
    words = ["train", "search", str(path), "--out", str(tmp_path / "out")]
    unnamed = RUNNER.invoke(app, words)
    assert unnamed.exit_code == 0, unnamed.output
    assert pl.read_parquet(tmp_path / "out" / "search.parquet")["refused"].count()
    assert "refused" not in unnamed.output
    named = RUNNER.invoke(app, [*words, *(word for name in names for word in ("-a", name))])
    assert "refused for all_reduce:tensor: multi_ring:2x2" in " ".join(named.output.split())


def test_trials_of_many_micro_batches_simulate_few(tmp_path: Path) -> None:
    """Trials have the times of all micro-batches, and the best is simulated with all."""
    path = tmp_path / "step.toml"
    text = FILE.format(network=PLATFORM).replace("batch = 4", "batch = 6")
    path.write_text(f"{text}micro_batches = 6\n", encoding="utf-8")
    read = load_training(path)
    of = read.step, read.configurations[0]
    search = AlgorithmSearch(*of, algorithms=THREE[:2], prune=False)
    assert search.micro_batches == (1, 2)
    shares = []
    search.run(lambda _: shares.append(search.progress))
    assert shares == sorted(shares)
    assert 0 < shares[0] <= shares[-1] <= 1
    assert search.best.step.parallelism == read.step.parallelism
    assert search.best.total <= search.default.total
    first = [trial for trial in search.trials if trial.round == 1]
    for trial in first[:2]:
        changed = replace(read.step, algorithms={trial.collective.key: trial.algorithm})
        assert trial.time_ps == pytest.approx(changed.run(search.configuration).total.ps, 0.01)
    shown = {fact.key: fact.value for fact in search_view([search]).facts}
    assert shown == {"simulated_micro_batches": [1, 2]}
    early = AlgorithmSearch(*of, algorithms=THREE[:2])
    early.run()
    assert early.chosen == search.chosen
    assert early.best.total == search.best.total
    for some, every in zip(early.trials, search.trials, strict=True):
        assert some == every or (every.time_ps or 0) > (some.more_than_ps or math.inf)

    def pressed(_: int) -> None:
        raise KeyboardInterrupt

    again = AlgorithmSearch(*of, algorithms=THREE[:2])
    with pytest.raises(KeyboardInterrupt):
        again.run(pressed)
    assert not again.changes
    assert again.best is again.default


def test_bounds_and_early_ends_change_no_choice(tmp_path: Path) -> None:
    """Steps that did not run take at least their bound, those that ended early at least the time of
    the best before them, and the choice is that of complete runs of all steps.
    """
    path = tmp_path / "step.toml"
    path.write_text(FILE.format(network=PLATFORM), encoding="utf-8")
    read = load_training(path)
    names = ["direct", "knomial", "swing"]
    of = read.step, read.configurations[1]
    pruned, complete = (
        AlgorithmSearch(*of, algorithms=names, prune=prune) for prune in (True, False)
    )
    pruned.run()
    complete.run()
    assert pruned.chosen == complete.chosen
    assert pruned.best.total == complete.best.total
    left_out, late = 0, 0
    loads = LinkLoads(complete.default)
    for some, every in zip(pruned.trials, complete.trials, strict=True):
        assert (some.collective, some.algorithm) == (every.collective, every.algorithm)
        if some.pruned:
            left_out += 1
            assert every.refused or (every.time_ps or 0) > complete.best.total.ps
        elif some.more_than_ps:
            late += 1
            assert every.refused or (every.time_ps or 0) > some.more_than_ps
            assert some.more_than_ps >= complete.best.total.ps
        else:
            assert some == every
        if every.time_ps and every.round == 1 and every.collective == complete.collectives[0]:
            bound = loads.bound_ps({every.collective.key: every.algorithm})
            assert 0 < bound <= every.time_ps
    assert 0 < left_out < len(names) * 4
    assert late
    frame = search_view([pruned]).data[0].frame()
    assert frame["not_run"].count() == left_out
    assert frame["more_than_ps"].count() == late
    assert "the best so far" in left_out_of([pruned])[-1]

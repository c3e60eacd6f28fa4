"""Rules of a live library: what is written, and what a repetition leaves of it."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import typer

from tutti.base.errors import ExitCode
from tutti.measured.tune import Question, confirm, live, study
from tutti.measured.tune.confirm import ROUNDS, points
from tutti.measured.tune.files import Writer
from tutti.measured.tune.forced import ChosenAlgorithm, forced
from tutti.measured.tune.live import LiveRules, Raced, raced
from tutti.measured.tune.view import live_view
from tutti.mpi.bench_job import Settings
from tutti.mpi.underneath import Mpi

SIZES = [1 << exponent for exponent in range(10, 21, 2)]
QUESTION = Question("all_reduce", 4, SIZES, targets=("openmpi",))
OPEN_MPI = Mpi("openmpi", "5.0.11", Path("mpicc"), Path("mpiexec"), Path(), starts="openmpi")
CALLS = [0]


def default_us(size: int) -> float:
    return 10 + size / 1000


def library(fast: str, gain: float = 0.5) -> Any:
    """A library in which one algorithm is faster from 4 to 64 KiB; slower at 8 KiB."""

    def measure(
        _question: Question, _mpi: Mpi, settings: Settings, chosen: Any, _done: Any
    ) -> pl.DataFrame:
        rows = []
        ruled = bool(settings.variables)
        for size, candidates in chosen.items():
            for one in candidates:
                is_fast = one.algorithm == fast or (ruled and not one.algorithm)
                factor = 1 - gain if is_fast and 4096 <= size <= 65536 else 1.0
                factor = 1.2 if is_fast and size == 8192 else factor
                slow = 1.0 if is_fast or not one.algorithm else 1.5
                time = round(1e6 * default_us(size) * factor * slow)
                rows += [{"size_bytes": size, "schedule": one.algorithm, "block": block,
                          "time_ps": time, "late_ps": 0, "crowded": False,
                          "host": "2 hosts, rank 0 on a"}
                         for block in range(settings.blocks)]  # fmt: skip
        CALLS[0] += 1
        return pl.DataFrame(rows)

    return measure


SETTINGS = Settings(blocks=20)


def race() -> Raced:
    return raced(QUESTION, OPEN_MPI, SETTINGS, None)


@pytest.fixture
def rules(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, request: Any) -> LiveRules:
    fake = library(*getattr(request, "param", ("ring",)))
    monkeypatch.setattr(live, "right_blocks", fake)
    monkeypatch.setattr(confirm, "right_blocks", fake)
    return LiveRules("openmpi", OPEN_MPI, Writer(tmp_path, {}), extend=False)


def test_rules_hold_where_the_algorithm_is_faster_and_are_bounded(rules: LiveRules) -> None:
    found = race()
    assert sorted(found.choices) == [4096, 16384, 65536]
    CALLS[0] = 0
    rules.add(found, rules.confirm(found, SETTINGS))
    assert CALLS[0] == 2 * ROUNDS
    # 128 KiB lies between tuned sizes, as does 8 KiB; there the rules do not save time.
    assert {one.size: one.holds for one in rules.compared} == {
        4096: True, 8192: False, 16384: True, 32768: True, 65536: True, 131072: False,
    }  # fmt: skip
    (files,) = rules.written
    assert files.path is not None
    text = files.path.read_text().split("4  # ranks and more")[1].split("5  # ranks")[0]
    lines = [line.split()[:2] for line in text.splitlines()[2:] if line]
    starts = [first for first, _ in groupby(lines, lambda line: line[1])]
    changes = [next(group)[0] for _, group in groupby(lines, lambda line: line[1])]
    assert list(zip(changes, starts, strict=True)) == [
        ("0", "0"), ("4096", "4"), ("8192", "0"), ("16384", "4"), ("131072", "0"),
    ]  # fmt: skip
    view = live_view(rules)
    assert view.headline is not None
    assert "4 of 6 comparisons confirm a rule" in view.headline.text
    assert rules.times["schedule"].unique().sort().to_list()[-1] == "segmented_ring segment=8192"


@pytest.mark.parametrize("rules", [("no such algorithm",)], indirect=True)
def test_a_default_that_is_best_yields_no_rule_and_no_file(rules: LiveRules) -> None:
    rules.add(found := race(), [])
    assert not found.choices
    assert rules.written == []
    assert not list(rules._writer.folder.iterdir())
    headline = live_view(rules).headline
    assert headline is not None
    assert "the default is the fastest at 6 sizes" in headline.text


def test_files_are_removed_if_no_rule_holds(rules: LiveRules) -> None:
    found = race()
    rules.add(found, [one._replace(holds=False) for one in rules.confirm(found, SETTINGS)])
    assert rules.written == []
    assert not list(rules._writer.folder.iterdir())


def test_points_lie_between_sizes() -> None:
    ring = next(one for one in forced(OPEN_MPI, "all_reduce", 4, 4096) if one.name == "ring")
    assert sorted(points(QUESTION, {1024: ring, 1 << 20: ring})) == [1024, 2048, 1 << 20]


@pytest.mark.parametrize("size", [64, 1 << 20])
def test_candidates_are_those_of_the_version(size: int) -> None:
    names = {one.name for one in forced(OPEN_MPI, "all_reduce", 4, size)}
    assert "allgather_reduce" not in names
    assert {"recursive_doubling", "ring", "rabenseifner"} <= names
    assert any(name.startswith("segmented_ring segment=") for name in names)
    assert all(isinstance(one, ChosenAlgorithm) for one in forced(OPEN_MPI, "broadcast", 4, size))


def test_an_interrupted_tuning_has_the_rules_of_finished_collectives(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fake = library("ring")

    def measure(question: Question, *given: Any) -> Any:
        if question.collective == "reduce":
            raise KeyboardInterrupt
        return fake(question, *given)

    monkeypatch.setattr(live, "right_blocks", measure)
    monkeypatch.setattr(confirm, "right_blocks", measure)
    monkeypatch.setattr(study, "built", lambda *_, **__: None)
    tuning = study.Tuning(
        questions=[QUESTION, replace(QUESTION, collective="reduce")], by="measurement",
        machine=None, mpi=OPEN_MPI, settings=SETTINGS, most=4, targets=["openmpi"], strict=True,
        base=None, second=False,
    )  # fmt: skip
    with pytest.raises(typer.Exit) as caught:
        study.tune(tuning, tmp_path)
    assert caught.value.exit_code == ExitCode.INTERRUPTED
    assert (tmp_path / "openmpi.rules").exists()
    printed = capsys.readouterr()
    assert "4 of 6 comparisons confirm a rule" in printed.out
    assert "interrupted: 1 of 2 cases finished" in printed.err

"""`tutti bypass run`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from typer.testing import CliRunner

from tutti.base.errors import ExitCode
from tutti.bypass import plans, study
from tutti.cli.app import app

if TYPE_CHECKING:
    import pytest


def test_ring_is_twice_as_fast_on_two_parallel_links() -> None:
    done = CliRunner().invoke(app, ["bypass", "run", "ring:4x4", "-s", "2 MiB", "--copies", "2"])
    assert done.exit_code == 0, done.output
    rows = [line.split() for line in done.output.splitlines() if "MiB" in line]
    assert [row[-1] for row in rows] == ["1.00", "1.99"]


def test_phases_have_separate_rows() -> None:
    trees = "double_binary_tree:nccl,phased"
    done = CliRunner().invoke(app, ["bypass", "run", trees, "-s", "64 KiB"])
    assert done.exit_code == 0, done.output
    assert "for each phase" in done.output


def test_a_missing_phase_names_the_trees_that_have_phases() -> None:
    for notation, hinted in (("nccl", True), ("nccl,phased", False)):
        command = ["bypass", "map", f"double_binary_tree:{notation}", "--phase", "5"]
        refused = CliRunner().invoke(app, command)
        assert refused.exit_code == ExitCode.MISTAKE
        assert ("nccl,phased has a phase up" in refused.output) is hinted


def test_finished_runs_are_shown_after_an_interruption(monkeypatch: pytest.MonkeyPatch) -> None:
    def run_on(schedule: Any, routes: Any, size: Any, **options: Any) -> Any:
        if size.bytes > 1024:
            raise KeyboardInterrupt
        return plans.run_on(schedule, routes, size, **options)

    monkeypatch.setattr(study, "run_on", run_on)
    arguments = ["bypass", "run", "ring:2x2", "--mesh", "2x2", "-s", "1 KiB", "-s", "2 KiB"]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == ExitCode.INTERRUPTED
    assert [line.split()[2] for line in done.stdout.splitlines() if "KiB" in line] == [
        "mesh", "bypass,"
    ]  # fmt: skip
    assert "interrupted: 2 of 4 results finished" in done.output


def test_the_best_configuration_is_shown_after_an_interruption(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    times = iter(range(3))
    improve = import_module("tutti.bypass.improve")
    completion = improve.completion

    def interrupted(*arguments: Any, **options: Any) -> Any:
        if next(times) == 2:
            raise KeyboardInterrupt
        return completion(*arguments, **options)

    monkeypatch.setattr(improve, "completion", interrupted)
    done = CliRunner().invoke(app, ["bypass", "search", "ring:2x2", "--mesh", "2x2"])
    assert done.exit_code == ExitCode.INTERRUPTED
    assert "2 configurations simulated" in " ".join(done.stdout.split())
    assert "interrupted: 2 of 200 results finished" in done.output

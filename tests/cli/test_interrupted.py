"""After Ctrl-C, searches show what is finished, and exit with code 130."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from called import call
from tutti.base.errors import ExitCode

if TYPE_CHECKING:
    import pytest

ROOT = Path(__file__).parents[2]
STEP = ROOT / "examples" / "26_stragglers" / "training.toml"
EXPERIMENT = """
platform = "cray_xc30"
collective = "all_reduce"
algorithms = ["ring", "recursive_doubling"]
ranks = 8
sizes = "8 B"
"""


class Interrupts:
    """Raises KeyboardInterrupt instead of the call with a number."""

    def __init__(self, original: Any, call: int) -> None:
        self._original, self._call, self.calls = original, call, 0

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        self.calls += 1
        if self.calls == self._call:
            raise KeyboardInterrupt
        return self._original(*arguments, **options)


def interrupted(folder: Path, *words: str | Path) -> str:
    """What a command prints that is interrupted."""
    (folder / "e.toml").write_text(EXPERIMENT)
    done = call(*words, cwd=folder)
    text = " ".join((done.stdout + done.stderr).split())
    assert done.returncode == ExitCode.INTERRUPTED, text
    return text


def test_times_of_experts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tutti.training.experts import time_experts

    monkeypatch.setattr("tutti.cli.moe.time_experts", Interrupts(time_experts, 2))
    text = interrupted(
        tmp_path, "moe", "--hidden", "64", "--experts", "16", "--top-k", "2", "--samples", "1",
        "--ranks", "8,16", "--kernel", "low_latency",
    )  # fmt: skip
    assert "low_latency" in text
    assert "interrupted: 1 of 2 results finished" in text


def test_disturbances(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tutti.training import slowdowns

    monkeypatch.setattr(slowdowns, "_disturbed", Interrupts(slowdowns._disturbed, 3))
    text = interrupted(
        tmp_path, "train", "disturb", STEP, "--slow", "0.02:1.3", "--draws", "3",
        "--threads", "1", "-o", "o",
    )  # fmt: skip
    assert "slow NPUs" in text
    assert "interrupted: 2 of 4 results finished" in text
    assert (tmp_path / "o" / "disturbances.parquet").exists()


def test_plans(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ranking of the closed form stays; a simulation in another thread is not waited for."""
    from tutti.training.plan import simulate_fastest

    ended: list[bool] = []

    def first_of(found: Any, count: int, *, done: Any, threads: int) -> None:
        for one in simulate_fastest(found, min(count, 1), done=done, threads=threads):
            assert one.simulated is not None
        raise KeyboardInterrupt

    monkeypatch.setattr("tutti.cli.train_plan.simulate_fastest", first_of)
    monkeypatch.setattr("tutti.cli.train_plan.end_soon", lambda: ended.append(True))
    text = interrupted(
        tmp_path, "train", "plan", "llama3_8b", "-p", "dgx_h100_cluster", "-g", "16",
        "--global-batch", "16", "--tensor", "8", "--simulate", "2",
    )  # fmt: skip
    assert "interrupted: 1 of 2 results finished" in text
    assert ended


def test_overlapped_all_reduces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tutti.collectives.experiment import lay_out

    monkeypatch.setattr("tutti.training.study.overlap.lay_out", Interrupts(lay_out, 2))
    text = interrupted(
        tmp_path, "train", "overlap", "e.toml", "--workload", "astrasim:dlrm_small", "-o", "o"
    )
    assert "ring" in text
    assert "recursive_doubling" not in text
    assert "interrupted: 1 of 2 algorithms finished" in text


def test_searched_schedules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tutti.collectives import schedule_search

    monkeypatch.setattr(schedule_search, "search", Interrupts(schedule_search.search, 2))
    text = interrupted(tmp_path, "search", "e.toml", "--ranks", "4,6", "-o", "o")
    assert "interrupted: 1 of 2 rank counts finished" in text
    assert (tmp_path / "o" / "search.csv").exists()

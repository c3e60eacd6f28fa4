"""Commands simulate each run once, and record it if a file or a drawing needs it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from called import call
from tutti import _core

if TYPE_CHECKING:
    from collections.abc import Callable

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
    count("simulate_training", lambda _: 1)
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


def test_a_step_is_simulated_once_and_bounded_once(runs: Counter[str], tmp_path: Path) -> None:
    _call("train", "run", STEP, "--out", str(tmp_path))
    # A bound takes a second run only where the times of the first and the last NPU differ.
    assert runs == {"simulate_training": 5 + 5}

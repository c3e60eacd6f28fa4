"""A verb that requires a missing extra is refused in one line, before it computes or writes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from called import call
from tutti.base.files.extras import EXTRAS, requires

EXAMPLES = Path(__file__).parents[2] / "examples"
OUT = ("--out", "out")
VERBS: dict[str, list[tuple[str | Path, ...]]] = {
    "reports": [
        ("compare", EXAMPLES / "01_which_all_reduce/experiment.toml", "--report"),
        ("noc", "run", EXAMPLES / "08_latency_under_load/noc.toml"),
        ("noc", "sweep", EXAMPLES / "08_latency_under_load/noc.toml"),
        ("noc", "from-booksim", EXAMPLES / "08_latency_under_load/mesh.cfg"),
        ("noc", "run", EXAMPLES / "16_single_cycle_collectives/mixed.toml"),
        ("noc", "sweep", EXAMPLES / "16_single_cycle_collectives/mixed.toml"),
        ("noc", "watch", EXAMPLES / "16_single_cycle_collectives/mixed.toml"),
        ("coherence", "run", EXAMPLES / "15_coherence/chip.toml"),
        ("train", "run", EXAMPLES / "10_training_step/training.toml"),
        ("train", "search", EXAMPLES / "20_choose_algorithms/training.toml"),
        ("schedule", "draw", "ring", "--ranks", "4"),
        ("bypass", "draw", "4x4:mesh"),
        ("bypass", "map", "ring:4x4", "--draw", "ring.svg"),
        ("paper", "ace"),
        ("calibrate", EXAMPLES / "22_advise/cluster.csv", "--joint"),
        ("advise", EXAMPLES / "22_advise/cluster.csv", *OUT),
        ("mpi", "bench", "all_reduce"),
    ],
    "calibrate": [
        ("calibrate", EXAMPLES / "22_advise/cluster.csv", "--joint"),
        ("advise", EXAMPLES / "22_advise/cluster.csv", *OUT),
    ],
    "optimise": [("bypass", "map", "double_binary_tree:nccl", "--method", "exact")],
    "traces": [("convert", "trace.0.et", "schedule.goal", "--from", "chakra")],
    "torch": [("workload", "from-torch", "net:Net", "--input", "8,3")],
    "sweep": [("sweep", EXAMPLES / "05_sweep/sweep.toml", "--executor", "dask", *OUT)],
    "explore": [("explore", "--no-browser")],
    "mpi": [("sweep", EXAMPLES / "05_sweep/sweep.toml", "--executor", "mpi", *OUT)],
}
"""Verbs that cannot work without an extra."""


def test_each_extra_has_a_verb() -> None:
    assert set(VERBS) == set(EXTRAS.values())


@pytest.mark.parametrize(
    ("extra", "arguments"),
    [pytest.param(extra, one, id=f"{extra}: {' '.join(map(str, one[:2]))}")
     for extra, every in VERBS.items() for one in every],
)  # fmt: skip
def test_missing_extra_is_named(
    extra: str, arguments: tuple[str | Path, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = {module for module, home in EXTRAS.items() if home == extra}
    for module in {*blocked, *(name for name in sys.modules if name.split(".")[0] in blocked)}:
        monkeypatch.setitem(sys.modules, module, None)
    (tmp_path / "trace.0.et").write_bytes(b"\x00")
    done = call(*arguments, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    first, *others = [line for line in done.stderr.splitlines() if "docs/reference" not in line]
    assert first.startswith("error: the Python package `")
    assert first.endswith(f"is not installed: {requires(extra)}")
    assert not others
    assert not list(tmp_path.glob("**/*.parquet"))


@pytest.mark.parametrize("verb", ["compare", "run"])
def test_reports_are_omitted_without_the_extra(
    verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    platform = ("--platform", "cray_xc30", "-a", "ring", "--ranks", "4")
    size = ("-b", "8", "-e", "8") if verb == "compare" else ("--size", "8")
    done = call(verb, *platform, *size, *OUT, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert f"it {requires('reports')}" in done.stderr
    assert list(tmp_path.glob("out/*.parquet"))

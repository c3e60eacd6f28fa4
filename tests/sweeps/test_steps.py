"""Sweeps of training steps: any key, cached and resumed, with the rows of `tutti train run`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from typer.testing import CliRunner

import tutti
from tutti.base.errors import ConfigError, ExitCode
from tutti.cli.app import app
from tutti.sweeps.files import resolve_sweep
from tutti.sweeps.plan import plan_sweep
from tutti.training import frame
from tutti.training.files.step_file import load_training

if TYPE_CHECKING:
    from collections.abc import Mapping

RUNNER = CliRunner()

STEP = """
model = "dlrm_small"
batch = 4
iterations = 1
configurations = ["comp_opt", "ideal"]
[torus]
rings = [{ name = "data", nodes = 4, rate = "100 GB/s", latency = "72 ns" }]
"""
SWEEP = """
training = "step.toml"
[sweep.grid]
batch = [4, 8]
"algorithms.all_reduce" = ["ring", "ring:bidirectional"]
"torus.rings[0].rate" = ["100 GB/s"]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "step.toml").write_text(STEP, encoding="utf-8")
    path = tmp_path / "sweep.toml"
    path.write_text(SWEEP, encoding="utf-8")
    return path


def swept(grid: Mapping[str, Any], **step: Any) -> dict[str, Any]:
    base = {
        "model": "dlrm_small",
        "configurations": ["comp_opt"],
        "torus": {"rings": [{"name": "d", "nodes": 4, "rate": "1 GB/s", "latency": "1 us"}]},
    }
    return {"training": base | step, "sweep": {"grid": dict(grid)}}


def test_rows_are_those_of_single_steps(file: Path, tmp_path: Path) -> None:
    rows = tutti.sweep(file, workers=1)
    assert rows.height == 2 * 2 * 2
    for row in rows.iter_rows(named=True):
        changes = [
            f"batch={row['sweep.batch']}",
            f'algorithms.all_reduce="{row["sweep.algorithms.all_reduce"]}"',
        ]
        read = load_training(tmp_path / "step.toml", changes)
        chosen = next(one for one in read.configurations if one.name == row["configuration"])
        expected = frame([read.step.run(chosen)])
        assert expected.row(0, named=True).items() <= row.items()


def test_the_command_writes_and_resumes(file: Path, tmp_path: Path) -> None:
    arguments = ["sweep", str(file), "--workers", "1", "--out", str(tmp_path / "out")]
    result = RUNNER.invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert "of bound" in result.stdout
    first = pl.read_parquet(tmp_path / "out" / "results.parquet")
    status = RUNNER.invoke(app, [*arguments, "--status"])
    assert "8 finished" in status.stdout
    again = RUNNER.invoke(app, arguments)
    assert "8 of them from" in again.stderr
    assert pl.read_parquet(tmp_path / "out" / "results.parquet").equals(first)


def test_verification_cannot_be_skipped(file: Path) -> None:
    result = RUNNER.invoke(app, ["sweep", str(file), "--no-verify"])
    assert result.exit_code == ExitCode.MISTAKE
    assert "cannot skip the verification" in result.stderr


def keys(grid: Mapping[str, Any], **step: Any) -> set[str]:
    plan = plan_sweep(resolve_sweep(swept(grid, **step), source="s", folder=Path()))
    return {item.key for item in plan.measurements}


@pytest.mark.parametrize(
    "grid",
    [
        {"batch": [1, 2]},
        {"iterations": [1, 2]},
        {"npu.sms": [80, 81]},
        {"npu.memory": ["900 GB/s", "901 GB/s"]},
        {"torus.rings[0].latency": ["1 us", "2 us"]},
        {"algorithms.all_reduce": ["ring", "swing"]},
        {"algorithms.all_reduce:d": ["ring", "swing"]},
        {"configurations": [["ace"], ["ideal"]]},
        {"chunk": ["64 KiB", "32 KiB"]},
        {"order": ["lifo", "fifo"]},
        {"parallelism.zero": [0, 1]},
    ],
)
def test_every_input_is_part_of_the_cache_key(grid: Mapping[str, Any]) -> None:
    assert len(keys(grid)) == 2
    assert keys(grid) == keys(grid, title="other", output="elsewhere")


def test_the_platform_is_part_of_the_cache_key() -> None:
    platform = {
        "name": "p",
        "summary": "made up",
        "models": {"m": {"kind": "pipelining_postal", "alpha_p": "0 ns", "alpha_r": "1 ns"}},
        "topology": {"build": "switch:4", "links": [{"rate": "1 GB/s", "latency": "1 us"}]},
    }
    tables = swept({"platform.topology.links[0].rate": ["1 GB/s", "2 GB/s"]})
    tables["training"] |= {"platform": platform, "dimensions": [{"name": "d", "nodes": 4}]}
    del tables["training"]["torus"]
    plan = plan_sweep(resolve_sweep(tables, source="s", folder=Path()))
    assert len({item.key for item in plan.measurements}) == 2


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ({"ranks": [4]}, "a training step has no key `ranks`"),
        ({"batch": [0]}, "point 1 of 1"),
        ({"output": ["a"]}, "cannot be swept"),
        ({"torus.rings[3].nodes": [4]}, "does not exist"),
    ],
)
def test_invalid_points_are_refused(grid: Mapping[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        keys(grid)


def test_a_sweep_has_one_kind_of_file() -> None:
    tables = swept({"batch": [1]})
    with pytest.raises(ConfigError, match="both an experiment and a training step"):
        resolve_sweep(tables | {"experiment": "e.toml"}, source="s", folder=Path())
    del tables["training"]
    with pytest.raises(ConfigError, match="one of `experiment`, `training` and `noc`"):
        resolve_sweep(tables, source="s", folder=Path())

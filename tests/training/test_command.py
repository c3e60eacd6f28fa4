"""`tutti train`: what it prints and writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest
from typer.testing import CliRunner

from tutti import _core
from tutti.cli.app import app

if TYPE_CHECKING:
    from pathlib import Path

RUNNER = CliRunner()

FILE = """
model = "dlrm_small"
batch = 16
configurations = ["comp_opt", "ace", "ideal"]
[torus]
rings = [
  { name = "local", nodes = 4, rate = "200 GB/s", latency = "72 ns" },
  { name = "vertical", nodes = 2, rate = "25 GB/s", latency = "402 ns" },
]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "step.toml"
    path.write_text(FILE, encoding="utf-8")
    return path


def test_run_prints_the_time_breakdown(file: Path, tmp_path: Path) -> None:
    result = RUNNER.invoke(app, ["train", "run", str(file), "--out", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    for word in ("dlrm_small", "4 x 2", "comp_opt", "ace", "ideal", "exposed"):
        assert word in result.stdout
    rows = pl.read_parquet(tmp_path / "out" / "results.parquet")
    assert rows["configuration"].to_list() == ["comp_opt", "ace", "ideal"]
    parts = rows["compute_ps"] + rows["overlap_ps"] + rows["exposed_ps"] + rows["idle_ps"]
    assert parts.equals(rows["total_ps"])
    assert set(rows["npus"]) == {8}


@pytest.mark.parametrize("rate", ["120 TFLOP/s", "1 MFLOP/s"])
def test_long_times_and_idle_fit_the_terminal(file: Path, tmp_path: Path, rate: str) -> None:
    from tutti.view.quantity import format_size, format_time

    arguments = ["train", "run", str(file), "-o", str(tmp_path), "--set", f"npu.arithmetic={rate}"]
    result = RUNNER.invoke(app, arguments)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    head = next(line for line in lines if line.startswith("configuration"))
    names = ["configuration", "time", "compute", "exposed", "hidden", "idle", "sent", "read"]
    assert head.split() == names
    for row in pl.read_parquet(tmp_path / "results.parquet").iter_rows(named=True):
        line = next(line for line in lines if line.startswith(row["configuration"]))
        assert len(line) <= 80
        for part in ("total_ps", "exposed_ps", "overlap_ps", "idle_ps"):
            assert format_time(row[part]) in line
        assert format_time(row["compute_ps"] + row["overlap_ps"]) in line
        assert line.rstrip().endswith(format_size(row["read_bytes"]))
        assert f"{row['configuration']} {format_time(row['period_ps'])}" in " ".join(
            result.stdout.split()
        )


def test_run_prints_exposed_communication_by_collective(file: Path, tmp_path: Path) -> None:
    result = RUNNER.invoke(app, ["train", "run", str(file), "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    rows = pl.read_parquet(tmp_path / "results.parquet")
    parts = pl.read_parquet(tmp_path / "exposed.parquet")
    assert {"all_reduce", "all_to_all"} <= set(parts["collective"])
    assert set(parts["group"]) == {"local x vertical"}
    sums = parts.group_by("configuration", maintain_order=True).agg(pl.col("exposed_ps").sum())
    assert sums["exposed_ps"].to_list() == rows["exposed_ps"].to_list()
    lines = result.stdout.splitlines()
    head = next(line for line in lines if line.startswith("configuration collective"))
    assert head.split()[2:] == ["process", "group", "exposed", "share", "in", "flight"]
    shown = [line for line in lines if "local x vertical" in line]
    assert len(shown) == len(parts.filter(pl.col("exposed_ps") > 0))
    assert all(len(line) <= 80 for line in shown)


def test_timelines_are_of_simulated_npus(file: Path, tmp_path: Path) -> None:
    run = ["train", "run", str(file), "--set", 'configurations=["ideal"]', "-o", str(tmp_path)]
    result = RUNNER.invoke(app, [*run, "--npu", "0"])
    assert result.exit_code == 0, result.output
    assert (tmp_path / "trace.pftrace").stat().st_size > 1000
    result = RUNNER.invoke(app, [*run, "--npu", "5"])
    assert result.exit_code == 2
    assert "NPU 5 was not simulated: expected NPU 0" in result.output


def test_keys_can_be_set_for_a_run(file: Path, tmp_path: Path) -> None:
    arguments = ["train", "run", str(file), "--out", str(tmp_path / "out")]
    arguments += ["--set", "batch=32", "--set", "torus.rings[0].nodes=2"]
    arguments += ["--set", 'configurations=["ace"]']
    result = RUNNER.invoke(app, arguments)
    assert result.exit_code == 0, result.output
    rows = pl.read_parquet(tmp_path / "out" / "results.parquet")
    assert rows.select("batch", "npus", "configuration").rows() == [(32, 4, "ace")]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("bach=8", "did you mean `batch`?"),
        ("batch", "KEY=VALUE, such as batch=64"),
        ("batch.size=8", "does not exist"),
        ("batch=many", "step.toml with --set: batch"),
        ("compute.file=x", "compute: `model` is missing"),
        ("compute.file=x", "expected: one of roofline, systolic, measured"),
        ("compute.model=sistolic", "compute.model: unknown model `sistolic`"),
        ("model=scalesim:none.csv", "paths are relative to the file of the training step"),
        ("model=chakra:none", "paths are relative to the file of the training step"),
        ('compute={ model = "measured", file = "none.csv" }', "paths are relative to the file"),
    ],
)
def test_invalid_change_is_refused(file: Path, change: str, words: str) -> None:
    result = RUNNER.invoke(app, ["train", "run", str(file), "--set", change])
    assert result.exit_code == 2
    assert words in result.output


def test_list_names_every_model() -> None:
    from tutti.workloads import models

    result = RUNNER.invoke(app, ["train", "list"])
    assert result.exit_code == 0
    for entry in models():
        assert entry.name in result.stdout
    for read in ("scalesim:FILE", "chakra:PREFIX", "measured", "from-astrasim"):
        assert read in result.stdout


def test_invalid_endpoint_gives_one_error(file: Path) -> None:
    text = FILE.replace('"ace", "ideal"]', '{ name = "b", kind = "baseline" }]')
    file.write_text(text, encoding="utf-8")
    result = RUNNER.invoke(app, ["train", "run", str(file)])
    assert result.exit_code == 2
    assert "no SM" in result.output


def test_traces_run_behind_endpoints(file: Path, tmp_path: Path) -> None:
    from tutti.formats.chakra.reader import Attribute, ChakraTrace, Node, write

    size = {"comm_type": Attribute("int64", 0), "comm_size": Attribute("int64", 1 << 20)}
    for rank in range(8):
        work = Node(id=1, name="work", duration_us=100 + 10 * (rank == 3))
        sent = Node(id=2, name="sum", type="COMM_COLL", data_deps=(1,), attributes=size)
        write(tmp_path / f"t.{rank}.et", ChakraTrace(nodes=(work, sent)))
    text = FILE.replace('"dlrm_small"', '"chakra:t"').replace("batch = 16\n", "")
    file.write_text(text, encoding="utf-8")
    run = ["train", "run", str(file), "--out", str(tmp_path / "out"), "--npu", "3", "--npu", "0"]
    result = RUNNER.invoke(app, run)
    assert result.exit_code == 0, result.output
    assert "chakra:t, 8 traces on 4 x 2" in result.stdout
    exposed = pl.read_parquet(tmp_path / "out" / "exposed.parquet").filter(configuration="ideal")
    assert exposed["npu"].to_list() == list(range(8))
    assert exposed["collective"].unique().to_list() == ["all_reduce"]
    waits = exposed["exposed_ps"].to_list()
    assert waits[0] - waits[3] == pytest.approx(10_000_000, rel=0.1)  # NPU 3 computes 10 us longer.
    rows = pl.read_parquet(tmp_path / "out" / "results.parquet")
    assert all(total > 110_000_000 for total in rows["total_ps"].to_list())
    assert rows["compute_ps"].to_list() == [100_000_000] * 3
    (tmp_path / "t.5.et").unlink()
    result = RUNNER.invoke(app, ["train", "run", str(file)])
    assert result.exit_code == 2
    assert "missing file of rank 5" in result.output


def test_groups_of_traces_come_from_a_table_next_to_them(file: Path, tmp_path: Path) -> None:
    """As in `convert`, `trace run` and `train from-astrasim`; all NPUs of a ring of 4 x 2."""
    from tutti.formats.chakra.reader import Attribute, ChakraTrace, Node, write
    from tutti.training.files.step_file import load_training

    size = {"comm_type": Attribute("int64", 0), "comm_size": Attribute("int64", 1 << 20)}
    for rank in range(8):
        group = {"comm_group": Attribute("int32", 1 + rank // 4)}
        node = Node(id=1, type="COMM_COLL", attributes=size | group)
        write(tmp_path / f"t.{rank}.et", ChakraTrace(nodes=(node,)))
    text = FILE.replace('"dlrm_small"', '"chakra:t"').replace("batch = 16\n", "")
    file.write_text(text, encoding="utf-8")
    result = RUNNER.invoke(app, ["train", "run", str(file), "--out", str(tmp_path / "out")])
    assert result.exit_code == 2
    assert "unknown group `1`: expected a table of groups" in result.output
    (tmp_path / "t.json").write_text('{"1": [0, 1, 2, 3], "2": [4, 5, 6, 7]}', "utf-8")
    training = load_training(file)
    (program,) = training.step.programs(training.configurations[0])
    assert program.transfers == [_core.Transfer("all_reduce", 1, 1 << 20)]

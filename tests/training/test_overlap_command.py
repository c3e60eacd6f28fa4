"""`tutti train overlap`: what it prints, writes and refuses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest
from typer.testing import CliRunner

from tutti.cli.app import app

if TYPE_CHECKING:
    from pathlib import Path

RUNNER = CliRunner()

FILE = """
collective = "all_reduce"
algorithms = ["ring", "recursive_doubling"]
ranks = 16
sizes = "8 B"
output = "out"
[platform]
name = "p"
[platform.models.ends]
kind = "postal"
alpha = "12 ns"
beta = "68 GB/s"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "e.toml"
    path.write_text(FILE, encoding="utf-8")
    return path


def test_exposed_communication_is_printed(file: Path, tmp_path: Path) -> None:
    to = ["--out", str(tmp_path / "out")]
    result = RUNNER.invoke(app, ["train", "overlap", str(file), "--batch", "1", *to])
    assert result.exit_code == 0, result.output
    assert "resnet50 on 16 chiplets, 1 sample each, split by samples: 102.0 MB" in result.stdout
    rows = [line.split() for line in result.stdout.splitlines()]
    assert [row[0] for row in rows[1:4]] == ["algorithm", "ring", "recursive_doubling"]
    layers = pl.read_parquet(tmp_path / "out" / "layers.parquet")
    assert layers.height == 2 * 54
    ring = layers.filter(algorithm="ring")
    # 30 steps of 12 ns and a sixteenth of 37,632 B each: 2352 B at 68 GB/s.
    first = ring.row(0, named=True)
    assert first["end_ps"] - first["start_ps"] == 30 * (12_000 + -(-2352 * 1000 // 68))


def test_recorded_cycles_need_no_batch(file: Path, tmp_path: Path) -> None:
    arguments = ["train", "overlap", str(file), "--workload", "astrasim:dlrm_small"]
    arguments += ["--algorithm", "ring", "--waits", "own", "--order", "lifo"]
    result = RUNNER.invoke(app, [*arguments, "--out", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    assert "astrasim:dlrm_small on 16 chiplets: 3.2 MB of gradients" in result.stdout
    assert "51.68 us" in result.stdout
    assert max(len(line) for line in result.stdout.splitlines() if "wrote" not in line) <= 80


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--workload", "vgg61"], ("unknown model `vgg61`",)),
        (["--workload", "astrasim:vgg16"], ("no recorded cycles of `vgg16`",)),
        (["--workload", "scalesim:none.csv"], ("none.csv: there is no such file",)),
        (["--workload", "file:none.json"], ("none.json",)),
        (["--ranks", "4,8"], ("ranks", "has 2 values", "--ranks 4")),
        (["--batch", "0"], ("--batch",)),
    ],
)
def test_mistakes_are_reported(
    file: Path, tmp_path: Path, arguments: list[str], words: tuple[str, ...]
) -> None:
    result = RUNNER.invoke(app, ["train", "overlap", str(file), "-o", str(tmp_path), *arguments])
    assert result.exit_code == 2, result.output
    for word in words:
        assert word in " ".join(result.stderr.split())


def test_other_collectives_are_refused(file: Path, tmp_path: Path) -> None:
    for old, new, word in (
        ('"all_reduce"', '"all_gather"', "expected: all_reduce"),
        ('algorithms = ["ring", "recursive_doubling"]\n', "", "names no algorithm"),
    ):
        file.write_text(FILE.replace(old, new), encoding="utf-8")
        result = RUNNER.invoke(app, ["train", "overlap", str(file), "-o", str(tmp_path)])
        assert result.exit_code == 2, result.output
        assert word in " ".join(result.stderr.split())


def test_a_file_that_cannot_be_written_is_refused(file: Path, tmp_path: Path) -> None:
    (tmp_path / "out" / "layers.parquet").mkdir(parents=True)
    arguments = ["train", "overlap", str(file), "--workload", "astrasim:dlrm_small"]
    result = RUNNER.invoke(app, [*arguments, "--out", str(tmp_path / "out")])
    assert result.exit_code == 2
    assert "layers.parquet" in result.stderr

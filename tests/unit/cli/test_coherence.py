"""`tutti coherence` from the command line: what it shows, writes and refuses."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

pytestmark = pytest.mark.timeout(600)
"""A busy machine takes long to start as many programs."""

TUTTI = Path(sys.executable).with_name("tutti")

CHIP = """
kernel = ["radix_like", "swaptions_like"]
scale = "tiny"
designs = ["baseline_collective", "sfo_complete"]
[mesh]
columns = 4
rows = 4
[chip]
protocol = "ht"
"""


def tutti(*arguments: str | Path, cwd: Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [TUTTI, "coherence", *arguments], cwd=cwd, capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done


def test_a_file_is_run_and_what_was_found_written(tmp_path: Path) -> None:
    (tmp_path / "chip.toml").write_text(CHIP, encoding="utf-8")
    done = tutti("run", "chip.toml", "-o", "found", cwd=tmp_path)
    assert "radix_like" in done.stdout
    assert "sfo_complete" in done.stdout
    rows = pl.read_parquet(tmp_path / "found" / "results.parquet")
    assert rows["design"].to_list() == ["baseline_collective", "sfo_complete"] * 2
    assert pl.read_parquet(tmp_path / "found" / "misses.parquet").height == 12
    flows = pl.read_parquet(tmp_path / "found" / "flows.parquet")
    assert flows.filter(pl.col("cast") == "answers").height == 4
    page = (tmp_path / "found" / "report.html").read_text("utf-8")
    assert "What a miss is spent on" in page
    assert "are none of them" in page


def test_options_do_without_a_file_and_go_before_one(tmp_path: Path) -> None:
    size = ("--set", "mesh.columns=4", "--set", "mesh.rows=4", "--scale", "tiny")
    done = tutti(
        "run", "-k", "water_like", "-p", "tc", "--design", "sfo_greedy", *size, cwd=tmp_path
    )
    assert "that of the serial program" in done.stdout
    assert "persistent" in done.stdout
    (tmp_path / "chip.toml").write_text(CHIP, encoding="utf-8")
    tutti("run", "chip.toml", "-k", "fft_like", "-p", "tc", "-o", "found", cwd=tmp_path)
    rows = pl.read_parquet(tmp_path / "found" / "results.parquet")
    assert set(rows["kernel"]) == {"fft_like"}
    assert set(rows["protocol"]) == {"tc"}


def test_everything_is_listed(tmp_path: Path) -> None:
    done = tutti("list", cwd=tmp_path)
    for name in ("canneal_like", "ht", "tc", "baseline_collective"):
        assert name in done.stdout


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], "nothing to run"),
        (["-k", "watr_like"], "did you mean `water_like`?"),
        (["-k", "fft_like", "--scale", "tiny"], "expected 1 to 16, one per row of its matrix"),
        (["-k", "fft_like", "--scale", "huge"], "scale"),
        (["-k", "fft_like", "-p", "mesi"], "protocol"),
        (["-k", "fft_like", "--design", "sfo_gredy"], "did you mean `sfo_greedy`?"),
        (["-k", "fft_like", "--set", "chip.l1_bytes=100"], "chip.l1_bytes"),
        (["-k", "fft_like", "--set", "chip.homes=[0, 99]"], "chip.homes"),
        (["-k", "fft_like", "--set", "chip.l3_bytes=100"], "l3_bytes"),
        (["missing.toml"], "missing.toml"),
    ],
)
def test_mistakes_are_told_where_they_are(
    arguments: list[str], expected: str, tmp_path: Path
) -> None:
    done = tutti("run", *arguments, cwd=tmp_path, code=2)
    assert expected in done.stderr
    assert "Traceback" not in done.stderr


def test_a_file_of_another_kind_is_known(tmp_path: Path) -> None:
    text = '[mesh]\ndesign = "sfo_greedy"\n[traffic]\nkind = "broadcast"\nrate = 0.004\n'
    (tmp_path / "mesh.toml").write_text(text, encoding="utf-8")
    done = tutti("run", "mesh.toml", cwd=tmp_path, code=2)
    assert "tutti noc run mesh.toml" in done.stderr

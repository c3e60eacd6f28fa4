"""`tutti compare` and `tutti run` without an experiment file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from called import call

if TYPE_CHECKING:
    from pathlib import Path


def test_options_alone_define_a_comparison(tmp_path: Path) -> None:
    done = call(
        *("compare", "--platform", "dgx_h100", "--ranks", "8", "-b", "8", "-e", "1KiB"),
        *("--collective", "all_gather", "--no-report", "--out", tmp_path),
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert "defaults: algorithms all; datatype float32; factor 2" in " ".join(done.stderr.split())
    frame = pl.read_parquet(tmp_path / "results.parquet")
    assert set(frame["ranks"]) == {8}


def test_run_takes_an_algorithm_in_place_of_a_file(tmp_path: Path) -> None:
    done = call("run", "ring", "--ranks", "4", "--size", "1KiB", "--out", tmp_path, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "platform loggp_cluster" in " ".join(done.stderr.split())
    assert "all_reduce of 1 KiB on 4 ranks" in done.stdout


def test_unknown_algorithm_is_refused(tmp_path: Path) -> None:
    done = call("run", "rings", "--ranks", "4", "--size", "1KiB", cwd=tmp_path)
    assert done.returncode == 2
    assert "an experiment file (TOML), or an algorithm" in done.stderr

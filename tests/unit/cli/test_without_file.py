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


def test_a_topology_is_a_platform_with_a_rank_on_every_npu(tmp_path: Path) -> None:
    done = call("platforms", "torus:4x3,rate=25GB/s", "--toml", cwd=tmp_path)
    (tmp_path / "torus.toml").write_text(done.stdout)
    times = []
    for platform in ("torus:4x3,rate=25GB/s", "torus.toml"):
        sizes = ("-b", "64KiB", "-e", "1MiB", "-f", "16", "--ranks", "12")
        given = sizes if platform == "torus.toml" else sizes[:-2]
        done = call("compare", "-p", platform, "-a", "ring", *given, "--no-report", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        times.append(pl.read_parquet(tmp_path / "out/tutti/results.parquet")["time_ps"].to_list())
        shown = " ".join(done.stderr.split())
        assert ("ranks 12; datatype" in shown) == (platform != "torus.toml")
        defaults = "rate=25GB/s: alpha_p 400 ns; alpha_r 100 ns; latency 500 ns"
        assert defaults in shown
    assert times[0] == times[1]


def test_rank_counts_that_exceed_the_platform_name_a_larger_one(tmp_path: Path) -> None:
    done = call("compare", "--platform", "dgx_h100", "--ranks", "64", cwd=tmp_path)
    assert done.returncode == 2
    assert "hint: --platform dgx_h100_cluster has 1,024 NPUs" in done.stderr


def test_unknown_algorithm_is_refused(tmp_path: Path) -> None:
    done = call("run", "rings", "--ranks", "4", "--size", "1KiB", cwd=tmp_path)
    assert done.returncode == 2
    assert "an experiment file (TOML), or an algorithm" in done.stderr

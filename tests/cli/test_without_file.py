"""`tutti compare` and `tutti run` without an experiment file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

import tutti
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


@pytest.fixture(scope="module")
def schedules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with schedule files of an all_reduce and a broadcast."""
    folder = tmp_path_factory.mktemp("schedules")
    rooted = tutti.schedule("binomial", ranks=4, collective="broadcast", root=3)
    (folder / "a.schedule").write_text(tutti.schedule("ring", ranks=8).to_text())
    (folder / "b.schedule").write_text(rooted.to_text())
    return folder


@pytest.mark.parametrize("given", [("b.schedule",), ("-a", "b.schedule")])
def test_a_schedule_file_states_its_collective_and_ranks(
    schedules: Path, tmp_path: Path, given: tuple[str, ...]
) -> None:
    done = call("run", *given, "--size", "1KiB", "--out", tmp_path, cwd=schedules)
    assert done.returncode == 0, done.stderr
    assert "of b.schedule: collective broadcast with root 3; ranks 4" in done.stderr
    assert "defaults: platform loggp_cluster; datatype float32" in done.stderr
    assert "broadcast of 1 KiB on 4 ranks" in done.stdout


def test_algorithms_are_added_to_that_of_the_argument(schedules: Path, tmp_path: Path) -> None:
    options = ("-e", "1KiB", "--no-report", "--out", tmp_path)
    done = call("compare", "a.schedule", "-a", "ring", *options, cwd=schedules)
    assert done.returncode == 0, done.stderr
    frame = pl.read_parquet(tmp_path / "results.parquet")
    assert set(frame["schedule"]) == {"a.schedule", "ring"}
    assert set(frame["ranks"]) == {8}


CONTRADICTIONS = {
    "-a a.schedule --ranks 4": "does not fit: it is all_reduce on 8 ranks",
    "a.schedule -c broadcast": "does not fit: it is all_reduce on 8 ranks",
    "-a a.schedule -a b.schedule": "broadcast with root 3, but a.schedule is all_reduce",
    "c.schedule": "did you mean `",
}


@pytest.mark.parametrize("options", CONTRADICTIONS)
def test_options_that_contradict_a_schedule_file_are_refused(schedules: Path, options: str) -> None:
    done = call("compare", *options.split(), cwd=schedules)
    assert done.returncode == 2
    assert CONTRADICTIONS[options] in done.stderr


def test_options_that_replace_a_key_and_its_table_conflict(tmp_path: Path) -> None:
    done = call("search", "--size", "8", "-b", "8", cwd=tmp_path)
    assert done.returncode == 2
    assert "-b: conflicts with --size" in done.stderr

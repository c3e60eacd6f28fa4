"""`tutti calibrate --joint` on files of PICO."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from called import call

if TYPE_CHECKING:
    from pathlib import Path

HEAD = "system,collective,algorithm,nodes,ranks_per_node,vector_bytes,median_us\n"
ALGORITHMS = {"recursive_doubling_ompi": 1.0, "ring_ompi": 4.0, "magic_ompi": 1.0}


def run(cwd: Path, *arguments: str, code: int = 0) -> str:
    """Calls `tutti calibrate`, and returns what it prints, as one line."""
    done = call("calibrate", *arguments, cwd=cwd)
    assert done.returncode == code, done.stdout + done.stderr
    return " ".join((done.stdout + done.stderr).split())


def written(folder: Path, nodes: tuple[int, ...]) -> Path:
    """Writes times of machines of these node counts."""
    rows = [
        f"m,all_reduce,{name},{count},1,{size},{scale * (5 + count + size / 1000)}"
        for name, scale in ALGORITHMS.items()
        for count in nodes
        for size in (64, 4096, 262144)
    ]
    path = folder / "times.csv"
    path.write_text(HEAD + "\n".join(rows) + "\n")
    return path


def test_a_joint_fit_is_cross_validated_and_written(tmp_path: Path) -> None:
    path = written(tmp_path, (4, 8, 16))
    shown = run(tmp_path, str(path), "--joint", "--out", "out")
    assert "18 of 27 measured collectives used" in shown
    assert "unknown algorithm magic_ompi of all_reduce: left out 9 rows" in shown
    assert "m, 16 nodes" in shown
    assert "time of a message of 2 KiB" in shown
    assert "not determined" in shown
    parameters = pl.read_csv(tmp_path / "out" / "parameters.csv")
    assert {"environment", "parameter", "value", "low", "high", "determined"} <= set(
        parameters.columns
    )
    predicted = pl.read_csv(tmp_path / "out" / "collectives.csv")
    assert predicted.height == 18
    assert (predicted["predicted_us"] > 0).all()


def test_out_may_name_the_platform_file(tmp_path: Path) -> None:
    path = written(tmp_path, (4, 8))
    shown = run(tmp_path, str(path), "--joint", "--out", "out/mine.toml")
    assert "wrote out/mine.toml: --platform out/mine.toml, model protocols" in shown
    assert 'name = "mine"' in (tmp_path / "out" / "mine.toml").read_text()
    refused = run(tmp_path, str(path), "--joint", "-o", "out/mine.toml", "--name", "b", code=2)
    assert "--out: differs from --name" in refused


def test_one_node_count_is_not_cross_validated(tmp_path: Path) -> None:
    path = written(tmp_path, (4,))
    shown = run(tmp_path, str(path), "--joint", "--out", "out")
    assert "one node count: no cross-validation" in shown
    assert not (tmp_path / "out" / "folds.csv").exists()


def test_options_that_do_not_apply_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path, (4,))
    shown = run(tmp_path, str(path), "--joint", "--model", "postal", code=2)
    assert "--model does not apply to --joint" in shown


def test_files_without_algorithms_cannot_be_fitted(tmp_path: Path) -> None:
    path = tmp_path / "osu.log"
    path.write_text("# OSU MPI Allreduce Latency Test v7.4\n# Size  Avg Latency(us)\n8  4.5\n")
    shown = run(tmp_path, str(path), "--joint", "--ranks", "4", code=2)
    assert "no measured collective can be used" in shown

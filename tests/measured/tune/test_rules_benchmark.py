"""`benchmarks/rules.py` on runs of a library that is not started."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from script_modules import load
from tutti.measured.tune import Question, confirm
from tutti.mpi.underneath import Mpi

if TYPE_CHECKING:
    from tutti.mpi.bench_job import Settings

ROOT = Path(__file__).parents[3]
OPEN_MPI = Mpi("openmpi", "5.0.11", Path("mpicc"), Path("mpiexec"), Path(), starts="openmpi")
FACTORS = {1024: 0.5, 2048: 1.0, 4096: 1.08}
"""The time with the rules over that of the default."""


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    module = load(ROOT / "benchmarks" / "rules.py")
    monkeypatch.setattr(module, "find_mpi", lambda _: OPEN_MPI)
    monkeypatch.setattr(module, "built", lambda _: None)
    (tmp_path / "openmpi.rules").touch()
    (tmp_path / "openmpi.env").write_text(
        "# a comment\nexport OMPI_MCA_coll_tuned_use_dynamic_rules='1'\n"
        "export OMPI_MCA_coll_tuned_dynamic_rules_filename='/elsewhere/openmpi.rules'\n"
    )
    case = {"collective": "broadcast", "ranks": 4}
    times = pl.DataFrame([case | {"size_bytes": size, "datatype": "float32"} for size in FACTORS])
    times.write_parquet(tmp_path / "times_openmpi.parquet")
    written = {1024: "chain", 4096: "binomial"}
    pl.DataFrame([
        case | {"size_bytes": size, "algorithm": name, "rule": "written"}
        for size, name in written.items()
    ]).write_csv(tmp_path / "comparisons_openmpi.csv")  # fmt: skip
    return module


def options(folder: Path, **given: Any) -> argparse.Namespace:
    named = {"folder": folder, "target": "openmpi", "mpicc": None, "launcher_option": [],
             "collectives": None, "ranks": None, "between": False, "rounds": 12, "blocks": 3,
             "each": 10, "out": folder / "pairs.csv"}  # fmt: skip
    return argparse.Namespace(**named | given)


def test_runs_alternate_and_slower_sizes_are_listed(
    bench: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    started: list[bool] = []

    def measured(question: Question, _mpi: Mpi, how: Settings, chosen: Any, _done: Any) -> Any:
        assert (question.collective, how.each) == ("broadcast", 10)
        ruled = bool(how.variables)
        started.append(ruled)
        if ruled:
            file = how.variables["OMPI_MCA_coll_tuned_dynamic_rules_filename"]
            assert file == str(tmp_path / "openmpi.rules")
        # The last two pairs show the reverse.
        late = len(started) > 20
        return pl.DataFrame([
            {"size_bytes": size, "schedule": "", "block": block, "late_ps": 0, "crowded": False,
             "time_ps": round(1e6 * (FACTORS[size] if ruled and not late else 1))}
            for size in chosen for block in range(how.blocks)
        ])  # fmt: skip

    monkeypatch.setattr(confirm, "right_blocks", measured)
    bench.run(options(tmp_path))
    assert started[:4] == [False, True, True, False]
    assert len(started) == 24
    printed = capsys.readouterr()
    lines = printed.out.splitlines()
    assert lines[0] == "broadcast on 4 ranks, Open MPI 5.0.11, 12 pairs"
    assert [line.split() for line in lines[2:5]] == [
        ["1", "KiB", "1", "us", "500", "ns", "0.500", "0", "0", "chain"],
        ["2", "KiB", "1", "us", "1", "us", "1.000", "0", "0"],
        ["4", "KiB", "1", "us", "1.08", "us", "1.080", "10", "10", "binomial"],
    ]
    assert "geometric mean of the ratios: 0.814 over 3 sizes; with a rule: 0.735" in printed.out
    assert lines[-2:] == [
        "sizes slower by more than 3 % in at least 10 of 12 pairs: 1",
        "  broadcast on 4 ranks, 4 KiB: ratio 1.080",
    ]
    assert pl.read_csv(tmp_path / "pairs.csv").height == 36
    assert "pair 12 of 12" in printed.err


def test_sizes_between_are_added(bench: Any, tmp_path: Path) -> None:
    (requested,) = bench.questions(tmp_path, "openmpi", options(tmp_path, between=True))
    assert requested.sizes == [1024, 1448, 2048, 2896, 4096]
    assert bench.questions(tmp_path, "openmpi", options(tmp_path, ranks=[2])) == []


def test_without_rules_nothing_runs(
    bench: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "openmpi.env").unlink()
    bench.run(options(tmp_path))
    assert "has no rules for openmpi" in capsys.readouterr().out


def test_active_rules_and_other_libraries_are_refused(
    bench: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMPI_MCA_coll_tuned_use_dynamic_rules", "1")
    with pytest.raises(SystemExit, match="set in this shell"):
        bench.run(options(tmp_path))
    (tmp_path / "mpich.env").touch()
    with pytest.raises(SystemExit, match="does not read rules for mpich"):
        bench.run(options(tmp_path, target="mpich"))

"""Programs in Fortran. The library has functions for Open MPI's, which call PMPI functions."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from runs import SOURCES, Bench, bench_of

from tutti.mpi import find_mpi
from tutti.mpi.library import built
from tutti.mpi.plan import CollectivePlan, Rule
from tutti.schedules.ir import schedule

if TYPE_CHECKING:
    from collections.abc import Sequence

RANKS = 3
ALGORITHMS = {"all_reduce": "recursive_doubling", "all_gather": "ring", "broadcast": "binomial"}
HERE = Path(__file__).parent
FLAGS = ["-Wall", "-Wextra", "-Werror"]
SHARED = [*FLAGS, "-shared", "-fPIC"]
MPIFORT = "TUTTI_MPIFORT"
"""Names a compiler wrapper for Fortran, with `mpicc` in the same folder: the MPI libraries of the
Makefile have none."""


def run(bench: Bench, argv: Sequence[object], folder: Path) -> dict[str, Any]:
    """Runs a program with a plan for three of its collectives; returns the report."""
    rules = [Rule(name, RANKS, schedule(by, ranks=RANKS, collective=name))
             for name, by in ALGORITHMS.items()]  # fmt: skip
    env = {
        "TUTTI_MPI_PLAN": str(CollectivePlan(rules).write(folder / "plan.tutti")),
        "TUTTI_MPI_REPORT": str(folder / "report"),
    }
    done = bench.run(RANKS, argv, env=env)
    assert done.code == 0, f"{done.stdout}\n{done.stderr}"
    report: dict[str, Any] = json.loads((folder / "report.json").read_text())
    return report


def covered(report: dict[str, Any]) -> dict[str, int]:
    return {row["collective"]: row["calls"] for row in report["covered"]}


def passed(report: dict[str, Any]) -> dict[str, str]:
    return {row["call"]: row["reason"] for row in report["passed"]}


def compiled(command: Sequence[object]) -> None:
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("module", [False, True])
def test_functions_of_open_mpi(module: bool, tmp_path: Path) -> None:
    """By all names of a function, also from a Python module that no other may link to."""
    bench = bench_of("openmpi")
    mpicc = bench.mpi.mpicc
    compiled([mpicc, *SHARED, SOURCES / "fortran_binding.c", "-o", tmp_path / "libmpi_mpifh.so"])
    link = [f"-L{tmp_path}", "-lmpi_mpifh", f"-Wl,-rpath,{tmp_path}"]
    options = [*SHARED, "-DMODULE"] if module else FLAGS
    compiled([mpicc, *options, SOURCES / "fortran.c", "-o", tmp_path / "app", *link])
    script = f"import ctypes, sys; sys.exit(ctypes.CDLL('{tmp_path / 'app'}').run())"
    argv = [sys.executable, "-c", script] if module else [tmp_path / "app"]
    report = run(bench, argv, tmp_path)
    assert covered(report) == {"all_reduce": 5, "all_gather": 1}
    assert passed(report) == {
        "MPI_Reduce_scatter": "no rule for this collective",
        "MPI_Iallreduce": "a non-blocking collective",
    }


def test_functions_of_mpich_without_a_buffer(tmp_path: Path) -> None:
    """The module mpi_f08 of MPICH calls the C functions for data, but PMPI functions otherwise."""
    bench = bench_of("mpich")
    source, library = SOURCES / "fortran_mpich.c", tmp_path / "libf08.so"
    compiled([bench.mpi.mpicc, *SHARED, "-DBINDING", source, "-o", library])
    compiled([bench.mpi.mpicc, *FLAGS, source, "-o", tmp_path / "app", library])
    report = run(bench, [tmp_path / "app"], tmp_path)
    assert covered(report) == {"all_reduce": 1}
    assert passed(report) == {
        "MPI_Barrier": "no rule for this collective",
        "MPI_Ibarrier": "a non-blocking collective",
    }


@pytest.mark.skipif(MPIFORT not in os.environ, reason=f"{MPIFORT} names no Fortran compiler")
@pytest.mark.parametrize("interface", ["F08", "MODULE", "HEADER"])
def test_programs_of_a_fortran_compiler(interface: str, tmp_path: Path) -> None:
    mpifort = Path(os.environ[MPIFORT])
    mpi = find_mpi(mpifort.with_name("mpicc"))
    flags = ["-cpp", "-w", f"-D{interface}", "-fallow-argument-mismatch"]  # of gfortran
    compiled([mpifort, *flags, HERE / "fortran_app.F90", "-o", tmp_path / "app"])
    report = run(Bench(mpi, built(mpi).library), [tmp_path / "app"], tmp_path)
    assert covered(report) == {"all_reduce": 4 - (interface == "F08"), "all_gather": 1,
                               "broadcast": 1}  # fmt: skip
    assert passed(report) == {"MPI_Iallreduce": "a non-blocking collective"}

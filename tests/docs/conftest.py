"""A folder in which the commands and code of the pages run."""

from __future__ import annotations

import functools
import os
import sys
from pathlib import Path

import pytest

from tutti import schedule
from tutti.mpi import CollectivePlan, Rule

ROOT = Path(__file__).parents[2]

EXPERIMENT = """
platform = "cray_xc30"
collective = "all_reduce"
algorithms = ["ring"]
ranks = 32
sizes = "8 B"
datatype = "float64"
output = "out/demo"
"""

SWEEP = """
experiment = "experiment.toml"
[sweep.grid]
ranks = [4, 8]
"""

NOC = """
[topology]
build = "mesh:3x3"
links = [{ rate = "16 GB/s", latency = "1 ns" }]
routing = "dimension_order"
[traffic]
rate = 0.1
[measure]
warmup = 500
measure = 2000
drain = 2000
"""

MESH = """
[mesh]
design = "sfo_greedy"
columns = 4
rows = 4
[traffic]
kind = "broadcast"
rate = 0.01
[measure]
warmup = 100
measure = 500
seeds = 2
"""

RANKS = 4
"""Ranks of the MPI plan and program in the examples of the reference."""

# Containers run as root and have few cores.
MPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}


@functools.cache
def plan() -> bytes:
    """A plan for an MPI job."""
    return CollectivePlan([Rule("all_reduce", RANKS, schedule("ring", ranks=RANKS))]).to_bytes()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with the examples, an experiment, a sweep, networks, and an MPI job."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / "experiment.toml").write_text(EXPERIMENT)
    (tmp_path / "sweep.toml").write_text(SWEEP)
    (tmp_path / "noc.toml").write_text(NOC)
    (tmp_path / "mesh.toml").write_text(MESH)
    (tmp_path / "plan.tutti").write_bytes(plan())
    (tmp_path / "app.py").symlink_to(ROOT / "examples" / "18_mpi_job" / "app.py")
    for variable, value in MPI.items():
        monkeypatch.setenv(variable, value)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    return tmp_path

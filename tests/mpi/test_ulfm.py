"""Programs that continue after a rank has failed, on Open MPI with ULFM."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING

import pytest
from runs import bench_of

from tutti import schedule
from tutti.mpi.launch import preloaded, rank_options, session_folder
from tutti.mpi.plan import CollectivePlan, Rule

if TYPE_CHECKING:
    from pathlib import Path

RANKS = 4
AROUND = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}


@pytest.mark.parametrize("library", [False, True])
def test_ranks_recover_from_a_killed_rank(library: bool, tmp_path: Path) -> None:
    bench = bench_of("openmpi")
    rules = [Rule("all_reduce", n, schedule("ring", ranks=n)) for n in (RANKS - 1, RANKS)]
    env = {"TUTTI_MPI_PLAN": str(CollectivePlan(rules).write(tmp_path / "plan")),
           "TUTTI_MPI_REPORT": str(tmp_path / "report")}  # fmt: skip
    env |= preloaded(bench.library) if library else {}
    command = [str(bench.mpi.mpiexec), "--with-ft", "ulfm", "-n", str(RANKS)]
    command += [*rank_options("openmpi", env), str(bench.program("ulfm"))]
    # When all others have ended, the launcher of Open MPI 5.0 may wait on for the killed rank. It
    # is killed, and leaves its files behind: session_folder() states what that causes.
    with session_folder() as folder, subprocess.Popen(
        command, env=os.environ | AROUND | folder, stdout=subprocess.PIPE, text=True,
        start_new_session=True,
    ) as job:  # fmt: skip
        assert job.stdout is not None
        output = job.stdout.readline()
        os.killpg(job.pid, 9)
    assert output == "3 ranks, sum 3, error 0\n"
    if library:
        report = json.loads((tmp_path / "report.json").read_text())
        assert "--with-ft ulfm" in report["off"]
        assert report["covered"] == []

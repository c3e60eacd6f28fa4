"""Reused handles denote other objects: cached state of a call must not be used for them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from runs import mixture

from tutti.mpi.plan import CollectivePlan, Rule

if TYPE_CHECKING:
    from pathlib import Path

    from runs import Bench

ROUNDS = 60


@pytest.mark.timeout(300)
def test_reused_handles_denote_new_objects(bench: Bench, tmp_path: Path) -> None:
    plan = CollectivePlan([Rule(s.collective, s.ranks, s) for s in mixture(4)]).write(
        tmp_path / "plan.tutti"
    )
    env = {"TUTTI_MPI_PLAN": str(plan), "TUTTI_MPI_REPORT": str(tmp_path / "report")}
    done = bench.run(4, [bench.program("handles"), ROUNDS], env=env, timeout=280)
    assert done.code == 0, f"{done.stdout}\n{done.stderr}"
    counts = json.loads(done.stdout.strip().splitlines()[-1])
    assert counts["failures"] == 0
    assert counts["again"] > ROUNDS  # otherwise no handle was reused
    report = json.loads((tmp_path / "report.json").read_text())
    assert sum(call["calls"] for call in report["covered"]) == counts["cases"]

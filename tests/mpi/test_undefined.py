"""Reductions that the standard does not define are left to the MPI library, including errors."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from runs import mixture

from tutti.mpi.plan import CollectivePlan, Rule

if TYPE_CHECKING:
    from pathlib import Path

    from runs import Bench


def test_undefined_reductions_are_left_to_the_mpi(bench: Bench, tmp_path: Path) -> None:
    rules = [Rule(s.collective, s.ranks, s) for s in mixture(2)]
    plan = CollectivePlan(rules).write(tmp_path / "plan.tutti")
    env = {"TUTTI_MPI_PLAN": str(plan), "TUTTI_MPI_REPORT": str(tmp_path / "report")}
    done = bench.run(2, [bench.program("undefined")], env=env)
    assert done.code == 0, done.stderr
    report = json.loads((tmp_path / "report.json").read_text())
    assert {p["reason"] for p in report["passed"]} == {
        "an operation that the MPI standard does not define on this datatype"
    }
    calls = {c["collective"]: c["calls"] for c in report["covered"]}
    assert calls["all_reduce"] > 100
    assert calls["all_gather"] == calls["broadcast"] == 3  # of types without a name

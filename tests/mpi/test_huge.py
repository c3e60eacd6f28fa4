"""Payloads of more bytes and more elements than an int can count."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from runs import mixture

from tutti.mpi.plan import CollectivePlan, Rule

if TYPE_CHECKING:
    from runs import Bench

HUGE = 2**31
NEEDED_GIB = 16
"""For two ranks with data, result and scratch, or with strided elements that are packed."""


def available_gib() -> float:
    found = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    return int(found["MemAvailable"].split()[0]) / 2**20


def run_huge(bench: Bench, folder: Path, size: int, *, timeout: float) -> dict[str, Any]:
    """Runs mpi/tests/huge.c; a schedule performs every call, and every byte is correct."""
    plan = CollectivePlan([Rule(s.collective, s.ranks, s) for s in mixture(2)]).write(
        folder / "plan.tutti"
    )
    env = {"TUTTI_MPI_PLAN": str(plan), "TUTTI_MPI_REPORT": str(folder / "report")}
    done = bench.run(2, [bench.program("huge"), size], env=env, timeout=timeout)
    assert done.code == 0, f"{done.stdout}\n{done.stderr}"
    output: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    report = json.loads((folder / "report.json").read_text())
    assert not report["passed"]
    assert sum(call["calls"] for call in report["covered"]) == output["cases"]
    assert output["failures"] == 0
    return output


@pytest.mark.timeout(300)
def test_the_same_calls_with_little_data(bench: Bench, tmp_path: Path) -> None:
    assert run_huge(bench, tmp_path, 2**18, timeout=280)["cases"] >= 17


@pytest.mark.skipif("TUTTI_MPI_LONG" not in os.environ, reason="minutes; `make test-mpi` runs it")
@pytest.mark.timeout(3600)
def test_more_than_an_int_can_count(bench: Bench, tmp_path: Path) -> None:
    if available_gib() < NEEDED_GIB:
        pytest.skip(f"needs {NEEDED_GIB} GiB of memory")
    print(bench.mpi, run_huge(bench, tmp_path, HUGE, timeout=3000))

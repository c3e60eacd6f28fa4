"""Library and checker with AddressSanitizer, UBSan and LeakSanitizer, on both MPI libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from runs import check, mixture, rows, run_program

from tutti import schedule
from tutti.mpi.plan import CollectivePlan, Rule

if TYPE_CHECKING:
    from pathlib import Path

    from runs import Bench

RANKS = (2, 3, 4)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("number", [0, 3, 9])
def test_schedules(sanitized: Bench, number: int, tmp_path: Path) -> None:
    check(sanitized, rows(RANKS)[number], tmp_path, ranks=4, cases=8, seed=11, timeout=280)


@pytest.mark.timeout(300)
def test_threads(sanitized: Bench, tmp_path: Path) -> None:
    run_program(sanitized, "concurrent", mixture(2, 4), tmp_path, 30, 5, 3,
                ranks=4, timeout=280)  # fmt: skip


@pytest.mark.timeout(300)
def test_communicators_created_and_freed(sanitized: Bench, tmp_path: Path) -> None:
    run_program(sanitized, "soak", mixture(2, 4), tmp_path, 400, 6, ranks=4, timeout=280)


@pytest.mark.timeout(300)
def test_larger_messages(sanitized: Bench, tmp_path: Path) -> None:
    options = ["world", str(2**20 + 12)]
    check(sanitized, mixture(3), tmp_path, ranks=3, cases=0, options=options, timeout=280)


@pytest.mark.timeout(300)
def test_errors_and_freed_communicators(sanitized: Bench, tmp_path: Path) -> None:
    direct = CollectivePlan([Rule("all_reduce", 3, schedule("direct", ranks=3))]).write(
        tmp_path / "plan"
    )
    env = {"TUTTI_MPI_PLAN": str(direct)}
    for argv in (["errors", "abandoned-far", direct], ["communicators", "freed"]):
        program = sanitized.program(str(argv[0]))
        done = sanitized.run(3, [program, *argv[1:]], env=env, timeout=140)
        assert done.code == 0, done.stderr

"""All ranks have the same settings, or the job ends before its first collective with an error.

The programs record in a file that they passed a collective.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest
from runs import LONGEST_SECONDS

from tutti import schedule
from tutti.mpi.plan import CollectivePlan, Rule

if TYPE_CHECKING:
    from pathlib import Path

    from runs import Bench

RANKS = 3
RUNS = int(os.environ.get("TUTTI_MPI_RUNS", "3"))
"""Runs of each program whose threads race. Test changes of agreements with TUTTI_MPI_RUNS=200."""
RACES = pytest.mark.timeout(LONGEST_SECONDS + 50 + 10 * RUNS)
POSTAL = "pipelining_postal:alpha_p=1e-4,alpha_r=1e-5,beta=0"
FARTHER = POSTAL.replace("1e-4", "2e-4")


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    return CollectivePlan([Rule("all_reduce", RANKS, schedule("ring", ranks=RANKS))]).write(
        tmp_path / "plan"
    )


@pytest.fixture
def verdict(tmp_path: Path) -> Path:
    return tmp_path / "verdict"


DIFFERENT = {
    "no plan": (["TUTTI_MPI_PLAN"], "TUTTI_MPI_PLAN is set on rank 0 but not on rank 1"),
    "counts": (["TUTTI_MPI_COUNTS", "1"], "TUTTI_MPI_COUNTS differs between ranks 0 and 1"),
    "a report": (["TUTTI_MPI_REPORT", "-"], "TUTTI_MPI_REPORT differs between ranks 0 and 1"),
    "distance": (["TUTTI_MPI_EMULATE", POSTAL], "TUTTI_MPI_EMULATE differs between ranks 0"),
    "any ranks": (["TUTTI_MPI_RANKS", "any"], "TUTTI_MPI_RANKS differs between ranks 0 and 1"),
    "nonsense": (["TUTTI_MPI_RANKS", "all"], "TUTTI_MPI_RANKS: `all`: expected `any`"),
    "a mistake": (["TUTTI_MPI_EMULATE", "postal"], "TUTTI_MPI_EMULATE: invalid model"),
}


@pytest.mark.parametrize("first", ["init", "session"])
@pytest.mark.parametrize("name", DIFFERENT)
def test_another_environment_on_one_rank_is_refused(
    bench: Bench, name: str, first: str, plan: Path, verdict: Path
) -> None:
    changed, output = DIFFERENT[name]
    argv = [bench.program("environment"), verdict, first, 1, *changed]
    done = bench.run(RANKS, argv, env={"TUTTI_MPI_PLAN": str(plan)})
    assert done.code != 0
    assert not verdict.exists()
    assert done.stderr.count("tutti: ") == 1, done.stderr
    assert output in done.stderr


def test_different_environment_on_rank_0_is_refused(
    bench: Bench, plan: Path, verdict: Path
) -> None:
    argv = [bench.program("environment"), verdict, "init", 0, "TUTTI_MPI_PLAN"]
    done = bench.run(RANKS, argv, env={"TUTTI_MPI_PLAN": str(plan)})
    assert done.code != 0
    assert "TUTTI_MPI_PLAN is set on rank 1 but not on rank 0" in done.stderr


def test_another_plan_or_distance_on_one_rank_is_refused(
    bench: Bench, plan: Path, verdict: Path, tmp_path: Path
) -> None:
    rule = Rule("all_reduce", RANKS, schedule("recursive_doubling", ranks=RANKS))
    other = CollectivePlan([rule]).write(tmp_path / "other")
    env = {"TUTTI_MPI_PLAN": str(plan), "TUTTI_MPI_EMULATE": POSTAL}
    argv = [bench.program("environment"), verdict, "init", 2]
    done = bench.run(RANKS, [*argv, "TUTTI_MPI_PLAN", other], env=env)
    assert done.code != 0
    assert f"{plan}: ranks 0 and 2 have read different plans" in done.stderr
    done = bench.run(RANKS, [*argv, "TUTTI_MPI_EMULATE", FARTHER], env=env)
    assert done.code != 0
    assert "TUTTI_MPI_EMULATE differs between ranks 0 and 2" in done.stderr
    assert not verdict.exists()


@pytest.mark.parametrize("first", ["init", "session"])
def test_the_environment_is_read_once(
    bench: Bench, first: str, plan: Path, verdict: Path, tmp_path: Path
) -> None:
    """The program clears its environment before MPI_Finalize, which writes the report."""
    env = {"TUTTI_MPI_PLAN": str(plan), "TUTTI_MPI_REPORT": str(tmp_path / "report"),
           "TUTTI_MPI_COUNTS": "1", "TUTTI_MPI_EMULATE": POSTAL}  # fmt: skip
    done = bench.run(RANKS, [bench.program("environment"), verdict, first], env=env)
    assert done.code == 0, done.stderr
    assert verdict.read_text() == "right\n"
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["plan"] == str(plan)
    assert report["emulation"]["model"] == "pipelining_postal"
    assert [row["calls"] for row in report["covered"]] == [1]
    assert sum(map(sum, report["messages"])) > 0


def test_plan_for_other_rank_counts_is_refused_unless_allowed(
    bench: Bench, verdict: Path, tmp_path: Path
) -> None:
    rules = [Rule("all_reduce", ranks, schedule("ring", ranks=ranks)) for ranks in (5, 2)]
    plan = CollectivePlan(rules).write(tmp_path / "plan")
    argv = [bench.program("environment"), verdict, "init"]
    done = bench.run(RANKS, argv, env={"TUTTI_MPI_PLAN": str(plan)})
    assert done.code != 0
    assert not verdict.exists()
    output = f"{plan}: has rules for 2, 5 ranks, but this job has {RANKS}"
    assert done.stderr.count(output) == 1, done.stderr
    assert "TUTTI_MPI_RANKS=any" in done.stderr
    done = bench.run(RANKS, argv, env={"TUTTI_MPI_PLAN": str(plan), "TUTTI_MPI_RANKS": "any"})
    assert done.code == 0, done.stderr
    assert verdict.read_text() == "right\n"


@pytest.fixture
def plan_of_sessions(tmp_path: Path) -> Path:
    ring = [Rule("all_reduce", ranks, schedule("ring", ranks=ranks)) for ranks in (2, 3, 4)]
    direct = Rule("broadcast", 4, schedule("direct", ranks=4, collective="broadcast"))
    return CollectivePlan([*ring, direct]).write(tmp_path / "plan")


def _threads(bench: Bench) -> int:
    """Returns how many threads create communicators concurrently.

    Open MPI 5.0.11 hangs without the library, too, where two threads create communicators from
    groups.
    """
    return 4 if bench.mpi.kind == "mpich" else 1


@RACES
def test_sessions_without_mpi_init(bench: Bench, verdict: Path, plan_of_sessions: Path) -> None:
    argv = [bench.program("sessions"), verdict, _threads(bench)]
    for _ in range(RUNS):
        done = bench.run(4, argv, env={"TUTTI_MPI_PLAN": str(plan_of_sessions)})
        assert done.code == 0, done.stderr
        assert verdict.read_text() == "right\n"
        verdict.unlink()


def test_another_environment_in_a_session_of_one_rank_is_refused(
    bench: Bench, verdict: Path, plan_of_sessions: Path
) -> None:
    argv = [bench.program("sessions"), verdict, 1, 3, "TUTTI_MPI_PLAN"]
    done = bench.run(4, argv, env={"TUTTI_MPI_PLAN": str(plan_of_sessions)})
    assert done.code != 0
    assert not verdict.exists()
    assert "TUTTI_MPI_PLAN is set on rank 0 but not on rank 3" in done.stderr


@RACES
def test_the_library_creates_one_communicator_at_a_time(
    bench: Bench, plan_of_sessions: Path
) -> None:
    """Threads create communicators from overlapping groups, in a different order on each rank."""
    argv = [bench.program("creations"), _threads(bench), 5]
    for _ in range(RUNS):
        done = bench.run(4, argv, env={"TUTTI_MPI_PLAN": str(plan_of_sessions)})
        assert done.code == 0, done.stderr
        counts = json.loads(done.stdout)
        assert counts["creations"] > 0
        assert counts["most"] == 1


def test_ranks_close_sessions_in_another_order(
    bench: Bench, verdict: Path, plan_of_sessions: Path
) -> None:
    """One rank no longer has the agreement that the others would reuse."""
    argv = [bench.program("sessions"), verdict, 0]
    done = bench.run(4, argv, env={"TUTTI_MPI_PLAN": str(plan_of_sessions)})
    assert done.code == 0, done.stderr
    assert verdict.read_text() == "right\n"


def test_a_report_is_written_to_its_path_or_not_at_all(
    bench: Bench, plan: Path, verdict: Path, tmp_path: Path
) -> None:
    """Linux opens no path of 4,096 characters; a shorter one would be another file."""
    folder = tmp_path / "reports"
    folder.mkdir()
    where = f"{folder}/".ljust(4085, "/") + "report"
    env = {"TUTTI_MPI_PLAN": str(plan), "TUTTI_MPI_REPORT": where}
    done = bench.run(RANKS, [bench.program("environment"), verdict, "init"], env=env)
    assert done.code == 0, done.stderr
    assert list(folder.iterdir()) == []
    assert "cannot be written (File name too long)" in done.stderr

"""Schedules whose sends complete in later steps, over MPI libraries that do not buffer sends."""

from __future__ import annotations

import json
import subprocess
from random import Random
from typing import TYPE_CHECKING

import pytest
from random_timing import badly_timed
from runs import UNBUFFERED, check

from tutti import schedule
from tutti.mpi.plan import CollectivePlan, PlannedSchedule, Rule

if TYPE_CHECKING:
    from pathlib import Path

    from runs import Bench

    from tutti.schedules.ir import Schedule

COLLECTIVES = ("all_reduce", "reduce_scatter", "all_gather")
"""Collectives that a forest performs."""
RANKS = tuple(range(2, 9))


def forests(pieces: int, ranks: tuple[int, ...] = RANKS) -> list[Schedule]:
    return [
        schedule(f"forest:pieces={pieces}", collective=collective, ranks=count)
        for count in ranks
        for collective in COLLECTIVES
    ]


@pytest.mark.parametrize(
    ("size", "env", "buffered"),
    [(64, {}, True), (512, UNBUFFERED, False), (2**16, {}, False)],
)
def test_mpis_buffer_small_messages_by_default(
    bench: Bench, size: int, env: dict[str, str], buffered: bool
) -> None:
    """The tests below rely on this."""
    done = bench.run(2, [bench.program("rendezvous"), size], env=env, library=False)
    assert json.loads(done.stdout) == {"buffered": buffered}, done.stderr


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("pieces", "env"), [(2, UNBUFFERED), (3, {})])
def test_forests_of_pieces(bench: Bench, pieces: int, env: dict[str, str], tmp_path: Path) -> None:
    """On up to 8 ranks; 600 kB in addition to small sizes, so that every piece is large."""
    schedules = forests(pieces)
    planned = [PlannedSchedule.of(s) for s in schedules if s.collective == "all_reduce"]
    assert all(one.pending_sends for one in planned)
    checked = check(bench, schedules, tmp_path, ranks=8, cases=1, seed=pieces, env=env,
                    options=["600000"], timeout=280)  # fmt: skip
    assert checked.covered > len(schedules)


def test_forests_of_pieces_at_a_distance(bench: Bench, tmp_path: Path) -> None:
    env = UNBUFFERED | {"TUTTI_MPI_EMULATE": "pipelining_postal:alpha_p=2e-5,alpha_r=1e-5,beta=0"}
    checked = check(bench, forests(2, (4,)), tmp_path, ranks=4, cases=4, env=env,
                    options=["world", "65536"])  # fmt: skip
    assert checked.covered > 12


@pytest.mark.timeout(300)
def test_forests_of_pieces_with_sanitizers(sanitized: Bench, tmp_path: Path) -> None:
    check(sanitized, forests(3, (2, 3, 4)), tmp_path, ranks=4, cases=8, seed=3, env=UNBUFFERED,
          options=["300000"], timeout=280)  # fmt: skip


def areas_for_copies(bench: Bench, schedules: list[Schedule], folder: Path) -> int:
    """Counts the areas of all ranks for copies of data overwritten while it is sent."""
    rules = [Rule(s.collective, s.ranks, s) for s in schedules]
    plan = CollectivePlan(rules).write(folder / "copies.tutti")
    program: list[str | Path] = [bench.program("fuzz_plan"), plan, "0", "1"]
    done = subprocess.run(program, capture_output=True, text=True, check=True)
    return int(json.loads(done.stdout)["copies"])


def test_a_forest_sends_without_copies(bench: Bench, tmp_path: Path) -> None:
    """A contribution is overwritten only by the sum that includes it."""
    assert areas_for_copies(bench, forests(2), tmp_path) == 0


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", [1, 2])
def test_messages_that_wait_for_their_receivers(bench: Bench, seed: int, tmp_path: Path) -> None:
    """Random schedules; some overwrite sent data long before it is received."""
    random = Random(seed)
    collectives = ("all_reduce", "reduce_scatter", "reduce", "broadcast", "all_gather")
    schedules = [badly_timed(c, ranks, random) for ranks in (2, 3, 4, 5) for c in collectives]
    assert sum(PlannedSchedule.of(s).pending_sends for s in schedules) > 8
    assert areas_for_copies(bench, schedules, tmp_path) > 8
    checked = check(bench, schedules, tmp_path, ranks=5, cases=6, seed=seed, env=UNBUFFERED,
                    options=["20000"], timeout=250)  # fmt: skip
    assert checked.covered > 8

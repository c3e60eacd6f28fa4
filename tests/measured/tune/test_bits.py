"""Tuned rules never give ranks different bits of a floating-point all_reduce."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

from tutti.measured.errors import TuningError
from tutti.measured.tune import Question, by_model, decide, write_all
from tutti.measured.tune.files import Writer
from tutti.measured.tune.measure import notations
from tutti.measured.tune.targets import TARGETS, counterparts
from tutti.measured.tune.times import OWN
from tutti.mpi.plan import CollectivePlan
from tutti.mpi.usual import to_beat
from tutti.platforms import platform
from tutti.schedules.bits import bits_differ, is_exact
from tutti.schedules.ir import schedule

if TYPE_CHECKING:
    from pathlib import Path

MACHINE = platform("cray_xc30")


@pytest.mark.parametrize("ranks", [4, 8, 16, 32])
def test_tuned_plans_give_all_ranks_the_same_bits(ranks: int, tmp_path: Path) -> None:
    question = Question("all_reduce", ranks, [4096, 8192], targets=TARGETS)
    times = by_model(question, MACHINE)
    assert times["same_on_all"].all()
    for target in TARGETS:
        for one in decide(times, target):
            assert not one.is_rule or not bits_differ(schedule(str(one.schedule), ranks=ranks))
    faster = times.filter(pl.col("schedule") != OWN)
    (written,), _ = write_all(faster, ["plan"], Writer(tmp_path, {}))
    assert written.path is not None
    assert not any(one.bits_differ for one in CollectivePlan.read(written.path).schedules)


def test_named_non_reproducible_schedules_are_refused() -> None:
    named = ["dissemination", "ring"]
    with pytest.raises(
        TuningError, match="dissemination: sums on 4 ranks differ in bits"
    ) as caught:
        by_model(Question("all_reduce", 4, [8]), MACHINE, named)
    assert caught.value.kind == "bits"
    assert notations(Question("all_reduce", 4, [8], "int32"), named) == named
    assert notations(Question("all_reduce", 2, [8]), named) == named
    assert notations(Question("barrier", 4, [0]), ["dissemination"]) == ["dissemination"]


def test_integers_may_use_them_with_a_fallback_for_other_types(tmp_path: Path) -> None:
    question = Question("all_reduce", 4, [4096], "int32", targets=TARGETS)
    times = by_model(question, MACHINE, ["dissemination", "ring", "recursive_doubling"])
    times = times.filter(pl.col("schedule") != OWN).with_columns(
        time_ps=pl.when(pl.col("schedule") == "dissemination").then(1).otherwise("time_ps")
    )
    (found,) = decide(times, "plan")
    assert found.schedule == "dissemination"
    assert found.fallback is not None
    assert not bits_differ(schedule(found.fallback, ranks=4))
    for target in ("openmpi", "mpich", "ucc"):
        # Their rules hold for every type.
        ruled = {one.schedule for one in decide(times, target)}
        assert ruled <= {"ring", "recursive_doubling", OWN}
    (written,), _ = write_all(times, ["plan"], Writer(tmp_path, {}))
    assert written.path is not None
    names = [rule.schedule.name for rule in CollectivePlan.read(written.path).rules]
    assert names == ["dissemination", found.fallback]


@pytest.mark.parametrize("target", [one for one in TARGETS if one != "plan"])
def test_selections_of_other_libraries_give_the_same_bits(target: str) -> None:
    for ranks in range(2, 17):
        for one in counterparts(target, "all_reduce", ranks):
            assert not bits_differ(schedule(one.schedule, ranks=ranks)), (one.name, ranks)


def test_which_types_are_exact() -> None:
    assert all(map(is_exact, ["int8", "uint8", "int64", "uint64"]))
    assert not any(map(is_exact, ["float16", "bfloat16", "float32", "float64", "float8_e5m2"]))


# --- sizes that a plan leaves to the MPI library --------------------------------------------------


def test_schedule_must_beat_the_untuned_mpi() -> None:
    question = Question("all_reduce", 4, [8], targets=("plan", "openmpi"))
    times = by_model(question, MACHINE, ["recursive_doubling"])
    of_plan = times.filter(pl.col("method") != "default")
    by_name = {row["schedule"]: row["time_ps"] for row in of_plan.to_dicts()}
    assert by_name[OWN] == to_beat(by_name["recursive_doubling"])
    (found,) = decide(times, "plan")
    assert found.schedule == OWN
    # Open MPI selects the algorithm by itself.
    (found,) = decide(times, "openmpi")
    assert (found.schedule, found.stays) == (OWN, "gain")


def test_other_libraries_do_not_compete_with_an_estimate() -> None:
    question = Question("all_reduce", 4, [8], targets=("openmpi",))
    times = by_model(question, MACHINE)
    assert times.filter(pl.col("method") == "estimate").is_empty()
    (default,) = times.filter(pl.col("schedule") == OWN).to_dicts()
    assert (default["method"], default["mpi"]) == ("default", "openmpi 5.0")


def test_a_composed_default_takes_the_time_of_its_parts() -> None:
    # Open MPI 5 reduces, then broadcasts, 8 B on 128 ranks.
    times = by_model(Question("all_reduce", 128, [8], targets=("openmpi",)), MACHINE, ["ring"])
    (default,) = times.filter(pl.col("method") == "default")["time_ps"].to_list()
    parts = [("reduce", "binomial"), ("broadcast", "binary_tree")]
    expected = [by_model(Question(name, 128, [8]), MACHINE, [only])["time_ps"][0]
                for name, only in parts]  # fmt: skip
    assert default == sum(expected)


@pytest.mark.parametrize(
    ("untuned_ps", "expected"),
    [(0, 0), (400_000, 0), (1_100_000, 600_000), (22_000_000, 20_000_000)],
)
def test_the_gain_that_a_schedule_needs(untuned_ps: int, expected: int) -> None:
    assert to_beat(untuned_ps) == expected

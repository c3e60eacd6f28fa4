"""Plans: measured schedules and omitted ones, each reported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tutti.base.errors import ConfigError
from tutti.collectives.experiment import (
    ExperimentPlan,
    Rows,
    TimedSchedule,
    measure,
    parts,
    plan,
    prove,
)
from tutti.collectives.files.resolve import Experiment, resolve
from tutti.schedules.errors import LayoutError
from tutti.schedules.ir import candidates
from tutti.schedules.proving import remarks


def requested(**changes: Any) -> Experiment:
    tables = {
        "platform": "cray_xc30",
        "collective": "all_reduce",
        "algorithms": ["ring"],
        "ranks": [4, 8],
        "sizes": ["8 B", "1 KiB"],
    }
    return resolve(tables | changes, source="e.toml", folder=Path())


def planned(**changes: Any) -> ExperimentPlan:
    return plan(requested(**changes))


def test_every_combination_is_measured_once() -> None:
    laid_out = planned(repetitions=3)
    assert len(laid_out.points) == 2 * 2 * 3
    assert laid_out.left_out == ()
    rows = Rows(laid_out)
    measure(laid_out, rows)
    frame = rows.frame()
    assert frame.height == 12
    keys = frame.select("ranks", "size_bytes", "repetition")
    assert keys.n_unique() == 12
    assert keys.rows() == sorted(keys.rows())


@pytest.mark.parametrize("collective", ["all_reduce", "all_gather"])
@pytest.mark.parametrize("algorithms", ["all", ["ring"]])
def test_progress_of_a_plan_matches_its_parts(collective: str, algorithms: str | list[str]) -> None:
    experiment = requested(collective=collective, algorithms=algorithms, sizes=["32 B", "1 KiB"])
    received: list[int] = []
    laid_out = plan(experiment, done=received.append)
    assert sum(received) == parts(experiment)
    proved: list[TimedSchedule] = []
    prove(laid_out, done=proved.append)
    assert proved == list(laid_out.cases)


def test_unsupported_rank_counts_are_listed() -> None:
    laid_out = planned(algorithms=["recursive_multiplying:a4"])
    assert [case.schedule.ranks for case in laid_out.cases] == [4]
    assert [(one.notation, one.ranks) for one in laid_out.left_out] == [
        ("recursive_multiplying:a4", 8)
    ]


def test_algorithm_without_a_supported_rank_count_is_refused() -> None:
    with pytest.raises(ConfigError) as caught:
        planned(algorithms=["ring", "recursive_multiplying:a5"])
    assert caught.value.key == "algorithms[1]"


def test_too_expensive_schedules_are_listed() -> None:
    # A ring of n ranks sends 2 n (n - 1) messages: 24 on 4 ranks, 112 on 8.
    laid_out = planned(limits={"messages": 24})
    assert [case.schedule.ranks for case in laid_out.cases] == [4]
    (left_out,) = laid_out.left_out
    assert "about 112 messages" in left_out.reason


def test_predicted_message_counts_are_exact() -> None:
    laid_out = planned(algorithms=["ring", "recursive_doubling", "recursive_multiplying:a2,a2"])
    rows = Rows(laid_out)
    measure(laid_out, rows)
    found = rows.frame().filter(size_bytes=8).select("schedule", "ranks", "messages")
    counted = {(c.schedule.name, c.schedule.ranks): c.messages for c in laid_out.cases}
    assert {(name, ranks): messages for name, ranks, messages in found.rows()} == counted


def test_all_takes_every_supporting_algorithm_once() -> None:
    laid_out = planned(algorithms="all", ranks=12)
    names = [case.schedule.name for case in laid_out.cases]
    assert len(names) == len(set(names))
    assert {"ring", "recursive_multiplying:a4,a3"} <= set(names)
    # On 12 ranks it packs blocks, which 8 B do not divide into.
    assert [left.notation for left in laid_out.left_out] == ["swing"]
    assert set(candidates("broadcast", 12)) & {"binomial", "knomial"}


def test_all_leaves_out_algorithms_that_need_equal_parts() -> None:
    laid_out = planned(algorithms="all", collective="all_gather", ranks=5, sizes=["40 B", "1 KiB"])
    left_out = [(one.notation, one.where) for one in laid_out.left_out]
    assert left_out == [("bruck", "5 ranks at 1 KiB"), ("pat", "5 ranks at 1 KiB")]
    assert "needs equal parts: 1 KiB" in laid_out.left_out[0].reason
    assert {"ring", "dissemination"} <= {case.algorithm for case in laid_out.cases}
    assert [size.bytes for case, size, _ in laid_out.points if case.name == "pat"] == [40]
    for algorithms in ("all", ["direct", "pairwise"]):
        with pytest.raises(LayoutError, match="needs equal parts"):
            planned(algorithms=algorithms, collective="all_to_all", ranks=5, sizes=["1 KiB"])


def test_a_named_algorithm_has_rows_at_the_sizes_that_divide() -> None:
    sizes = ["8 B", "40 B", "1 KiB", "4 KiB", "40 KiB"]
    laid_out = planned(algorithms=["direct"], collective="all_to_all", ranks=[4, 5], sizes=sizes)
    points = [(case.schedule.ranks, size.bytes) for case, size, _ in laid_out.points]
    assert points == [(4, 1 << 10), (4, 4 << 10), (4, 40 << 10), (5, 40), (5, 40 << 10)]
    lines = remarks(laid_out, [])
    assert lines[0].startswith("left out: direct on 4 ranks at 8 B and 40 B: this schedule of")
    assert lines[1].startswith("left out: direct on 5 ranks at 3 sizes from 8 B to 4 KiB: this")


def test_the_same_seed_gives_the_same_bits_and_another_seed_others() -> None:
    noise = {"step": {"kind": "exponential", "mean": "1 us"}}
    frames = []
    for seed in (1, 1, 2):
        laid_out = planned(noise=noise, seed=seed, repetitions=2)
        rows = Rows(laid_out)
        measure(laid_out, rows)
        frames.append(rows.frame())
    assert frames[0].equals(frames[1])
    assert frames[0]["time_ps"].to_list() != frames[2]["time_ps"].to_list()
    first, second = (frames[0].filter(repetition=k)["time_ps"].to_list() for k in (0, 1))
    assert first != second

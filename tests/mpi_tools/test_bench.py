"""Parameters of a measurement, and statistics of its samples; nothing runs here."""

from __future__ import annotations

import polars as pl
import pytest

import tutti
from tutti.mpi.bench import BLOCKS, BenchCandidate, Benchmark, predict, summarise
from tutti.mpi.bench_candidates import candidates_of, every_schedule
from tutti.mpi.bench_job import Group, Settings
from tutti.mpi.bench_multicast import MULTICASTS, fit
from tutti.mpi.distance import Distance
from tutti.mpi.errors import BenchError

DISTANCE = Distance.parse("pipelining_postal:alpha_p=4 ms,alpha_r=1 ms")


def names(*measurement: str, ranks: int = 8) -> list[str]:
    found = candidates_of(measurement, collective="all_reduce", ranks=ranks, size=8)
    return [one.name.removeprefix("recursive_multiplying:") for one in found]


# --- parameters -----------------------------------------------------------------------------------


def test_every_schedule_appears_once_fastest_first() -> None:
    # On 4 ranks: a4 takes alpha_p + 3 alpha_r = 7, a2,a2 takes 10; the other four split.
    found = names("every", ranks=4)
    assert found[:2] == ["a4", "a2,a2"]
    assert len(found) == len(set(found)) == 6


def test_budget_takes_the_fastest_and_a_sample_of_the_rest() -> None:
    every, some = every_schedule(16, 8), every_schedule(16, 8, most=10)
    assert len(some) == len(set(some)) == 10
    assert some[:5] == every[:5]
    places = [every.index(name) for name in some[5:]]
    assert places == sorted(places)
    assert places[-1] > len(every) // 2, "the sample reaches the second half of the list"


def test_the_mpi_and_a_call_are_candidates_next_to_schedules() -> None:
    found = candidates_of(
        ["own", "recursive_doubling", "call:recursive_doubling", "own"],
        collective="all_reduce", ranks=2, size=8,
    )  # fmt: skip
    assert [one.implementation for one in found] == ["own", "schedule", "call"]
    assert found[0].name == "own"
    assert found[2].schedule is not None


@pytest.mark.parametrize("name", ["every:0", "every:x"])
def test_invalid_budget_is_refused(name: str) -> None:
    with pytest.raises(BenchError, match="every:40"):
        names(name)


def test_every_schedule_is_of_all_reduce() -> None:
    with pytest.raises(BenchError, match="expected all_reduce"):
        candidates_of(["every"], collective="broadcast", ranks=4, size=8)


@pytest.mark.parametrize(
    ("measurement", "output"),
    [
        ({"collective": "all_reduce", "sizes": [6]}, "multiple of 4 bytes"),
        ({"collective": "all_gather", "sizes": [8]}, "multiple of 16 bytes"),
        ({"collective": "all_reduse", "sizes": [8]}, "unknown collective"),
        ({"collective": "reduce", "sizes": [8], "root": 4}, "one of the 4 ranks"),
        ({"collective": "reduce", "sizes": [8], "operation": "avg"}, "unknown operation"),
        ({"collective": "reduce", "sizes": [8], "datatype": "float16"}, "unknown datatype"),
    ],
)
def test_invalid_measurements_are_refused(measurement: dict[str, object], output: str) -> None:
    with pytest.raises(BenchError, match=output):
        Benchmark(ranks=4, **measurement)  # type: ignore[arg-type]


def test_distance_is_refused_for_the_code_of_the_mpi() -> None:
    from tutti.mpi.bench import measure

    with pytest.raises(BenchError, match="which alone can be emulated"):
        measure(
            None,  # type: ignore[arg-type]
            Benchmark("all_reduce", 4, [8]), [BenchCandidate("own")], Settings(distance=DISTANCE),
        )  # fmt: skip


def test_job_lines_match_the_settings() -> None:
    lines = Settings(blocks=3, each=2, warmup=1, distance=DISTANCE).lines(64)
    assert {"blocks 3", "each 2", "warmup 1", "quiet 1", "flight_ns 4000000"} <= set(lines)
    assert DISTANCE.job_line in lines
    assert "quiet 0" in Settings(quiet=False).lines(64)
    assert "quiet -1" in Settings().lines(64), "ranks detect whether they outnumber cores"
    group = Group("reduce", 4, "int64", "max", 1, [("schedule", 0), ("own", 0)])
    assert group.lines() == ["group 4 4 4 3 1", "case 0 0", "case 1 0"]


def test_prediction_is_per_call_in_a_burst() -> None:
    laid_out = tutti.schedule("recursive_multiplying:a2,a4", ranks=8)
    assert predict(DISTANCE.platform, laid_out, 8, "int64", 1) == 12 * 10**9
    assert predict(DISTANCE.platform, laid_out, 8, "int64", 10) == 12 * 10**9


# --- statistics of samples ------------------------------------------------------------------------


def blocks(times: list[int]) -> pl.DataFrame:
    row = dict.fromkeys(BLOCKS) | {
        "collective": "all_reduce",
        "schedule": "ring",
        "implementation": "schedule",
        "ranks": 4,
        "size_bytes": 1000,
        "wrong": 1,
    }
    rows = [row | {"block": block, "time_ps": time} for block, time in enumerate(times)]
    return pl.DataFrame(rows, schema=BLOCKS, orient="row")


def test_a_summary_has_quartiles_notches_and_rates() -> None:
    # 1, 2, 3, 4 us: quartiles 1.75 and 3.25 by interpolation, median 2.5.
    found = summarise(blocks([10**6, 2 * 10**6, 3 * 10**6, 4 * 10**6])).row(0, named=True)
    assert (found["least_ps"], found["median_ps"], found["most_ps"]) == (10**6, 2500000, 4 * 10**6)
    assert (found["lower_quartile_ps"], found["upper_quartile_ps"]) == (1750000, 3250000)
    assert found["notch_ps"] == round(1.57 * 1500000 / 2)
    assert found["wrong"] == 4
    assert found["algbw_bytes_per_s"] == pytest.approx(1000 / 2.5e-6)
    assert found["busbw_bytes_per_s"] == pytest.approx(1000 / 2.5e-6 * 2 * 3 / 4)


def multicasts(alpha_p: int, alpha_r: int, noise: list[int], peers: int = 10) -> pl.DataFrame:
    row = dict.fromkeys(MULTICASTS) | {"blocking": False}
    rows = [
        row | {"peers": b, "sample": i, "received_ps": alpha_p + b * alpha_r + late + (b > 8) * 999}
        for b in range(1, peers + 1)
        for i, late in enumerate(noise)
    ]
    return pl.DataFrame(rows, schema=MULTICASTS, orient="row")


def test_a_line_through_exact_times_has_alpha_p_and_alpha_r() -> None:
    # Points of more than 8 peers are off the line and excluded.
    found = fit(multicasts(4000, 1000, [0, 500, 1000]))
    least, median = found.rows(named=True)
    assert (least["statistic"], median["statistic"]) == ("minimum", "median")
    assert least["alpha_p_ps"] == pytest.approx(4000)
    assert least["alpha_r_ps"] == pytest.approx(1000)
    assert median["alpha_p_ps"] == pytest.approx(4500), "the median is 500 later everywhere"
    assert least["residual_ps"] == pytest.approx(0, abs=1e-6)
    assert least["alpha_p_low_ps"] <= 4000 + 1e-6
    assert median["alpha_p_low_ps"] < 4500 < median["alpha_p_high_ps"]


def test_a_line_needs_two_numbers_of_peers() -> None:
    with pytest.raises(BenchError, match="at least two"):
        fit(multicasts(4000, 1000, [0], peers=1))


def test_a_table_fits_into_a_narrow_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    from rich.console import Console

    from tutti.mpi.view.bench import statistics_view
    from tutti.view import terminal

    row = {"datatype": "float32", "operation": "sum", "root": 0, "count": 250, "model_ps": 10**6}
    measured = blocks([10**6, 2 * 10**6]).with_columns(
        *(pl.lit(value).alias(name) for name, value in row.items())
    )
    settings = Settings(blocks=2, each=1)
    measured = measured.with_columns(crowded=False, clock_error_ps=0)
    view = statistics_view(measured, summarise(measured), settings)
    for width, is_terminal in ((80, True), (200, True), (80, False)):
        terminal.show(view, Console(width=width, force_terminal=is_terminal, highlight=False))
    narrow, wide, piped = (
        output for output in capsys.readouterr().out.split("# 4 ranks") if output
    )
    assert max(map(len, narrow.splitlines())) <= 80
    assert "float32 elements, sum" in narrow
    assert wide == piped
    assert "quartiles" in wide.splitlines()[1]

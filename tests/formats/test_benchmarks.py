"""The readers of OSU, IMB and nccl-tests: every layout, units, the meaning of sizes, mistakes."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from tutti.base.errors import ConfigError
from tutti.formats.benchmarks import BENCHMARKS, parse, read, read_all

OUTPUTS = {
    path.stem.upper(): path.read_text() for path in Path(__file__).with_name("outputs").iterdir()
}
"""Output of the tools in every supported layout, by name."""
texts = SimpleNamespace(**OUTPUTS)


def rows(text: str, *columns: str, ranks: int | None = None) -> list[tuple[Any, ...]]:
    return parse(text, source="x.txt", ranks=ranks).select(*columns).rows()


@pytest.mark.parametrize("name", sorted(OUTPUTS))
def test_every_layout_has_the_columns(name: str) -> None:
    source = "all_reduce_perf.txt" if name == "NCCL_OLD" else "x.txt"
    frame = parse(OUTPUTS[name], source=source, ranks=4)
    assert frame.schema == pl.Schema(BENCHMARKS)
    assert frame.height > 0
    has_value = frame.select("time_us", "bytes_per_s").select(
        pl.any_horizontal(pl.all().is_not_null()).all()
    )
    assert has_value.item()


def test_osu_ping_pong_has_two_ranks_and_microseconds() -> None:
    expected = [("ping_pong", 2, 1, "MPI_CHAR", 0.34, 5), ("ping_pong", 2, 2, "MPI_CHAR", 0.35, 6)]
    found = rows(
        texts.OSU_LATENCY, "operation", "ranks", "size_bytes", "datatype", "time_us", "line"
    )
    assert found[:2] == expected
    assert rows(texts.OSU_OLD_LATENCY, "size_bytes", "time_us") == [(0, 1.10), (8, 1.25)]


def test_osu_bandwidth_is_in_bytes_per_second() -> None:
    found = rows(texts.OSU_BANDWIDTH, "operation", "time_us", "bytes_per_s")
    assert found == [("window", None, 8.81e6), ("window", None, 8719.42e6)]


def test_osu_full_output() -> None:
    found = rows(texts.OSU_FULL, "time_us", "min_us", "max_us", "iterations", ranks=4)
    assert found[0] == (40.75, 34.98, 45.62, 200)


def test_osu_percentiles_are_ignored() -> None:
    assert rows(texts.OSU_TAIL, "size_bytes", "time_us") == [(8, 65.83)]


def test_osu_shard_sizes_become_total_sizes() -> None:
    found = rows(texts.OSU_ALL_GATHER, "operation", "size_bytes", ranks=4)
    assert found == [("all_gather", 4), ("all_gather", 4096)]
    with pytest.raises(ConfigError, match=r"x.txt, line 5: sizes of all_gather") as caught:
        parse(texts.OSU_ALL_GATHER, source="x.txt")
    assert "--ranks" in caught.value.hint


def test_osu_barrier_and_non_blocking() -> None:
    assert rows(texts.OSU_BARRIER, "operation", "size_bytes", "time_us") == [
        ("barrier", 0, 8457.21)
    ]
    found = rows(texts.OSU_NON_BLOCKING, "operation", "blocking", "time_us")
    assert found == [("all_reduce", False, 0.92)]


def test_osu_log_of_several_runs_is_read() -> None:
    job = "Mon Nov 23 2026\n+ srun {}\n3 nodes, 12 ranks\n"
    log = "".join(
        job.format(name) + text
        for name, text in (
            ("a", texts.OSU_LATENCY),
            ("b", texts.OSU_FULL),
            ("c", texts.OSU_LATENCY),
        )
    )
    found = rows(log + "slurmstepd: done\n", "operation", "size_bytes", ranks=4)
    latency = [("ping_pong", 1), ("ping_pong", 2), ("ping_pong", 65536)]
    assert found == [*latency, ("all_reduce", 4), ("all_reduce", 16384), *latency]


def test_osu_rows_without_a_heading_are_refused() -> None:
    text = texts.OSU_LATENCY.replace("\n2   ", "\nwarning: late\n2   ")
    with pytest.raises(ConfigError, match="line 7: has a row after other output of the job"):
        parse(text, source="x.txt")


def test_lines_without_end_are_refused_before_they_are_searched() -> None:
    title = "# OSU MPI Latency Test" + " " * 300_000 + "x\n"
    with pytest.raises(ConfigError, match="line 1: a line of 300,023 characters"):
        parse(title + texts.OSU_LATENCY, source="x.txt")
    heading = "# " + "A " * 1500 + "\n"
    with pytest.raises(ConfigError, match="no results"):
        parse("# OSU MPI Latency Test v7.4\n" + heading * 300, source="x.txt")


def test_osu_verdicts() -> None:
    assert rows(texts.OSU_VALIDATED, "wrong") == [(0,), (1,)]


def test_imb_sections() -> None:
    found = rows(texts.IMB, "operation", "ranks", "size_bytes", "datatype", "time_us", "min_us")
    assert found == [
        ("ping_pong", 2, 0, "MPI_BYTE", 1.72, None),
        ("ping_pong", 2, 256, "MPI_BYTE", 1.89, None),
        ("all_reduce", 4, 16, "MPI_FLOAT", 59.08, 36.91),
        ("barrier", 4, 0, "MPI_BYTE", 70.60, 70.60),
        ("all_gather", 4, 128, "MPI_BYTE", 126.20, 44.82),
        ("window", 2, 64, "MPI_BYTE", None, None),
        (None, 2, 64, "MPI_BYTE", 2.05, 2.00),
    ]
    assert rows(texts.IMB, "bytes_per_s")[5] == (128.06e6,)


def test_imb_defects_are_read() -> None:
    text = texts.IMB.replace("t[usec]   Mbytes/sec", "t[usec]   Mbytes/sec      defects")
    text = text.replace("         0.00", "         0.00         0.00")
    text = text.replace("       135.57", "       135.57         3.00")
    assert rows(text, "wrong")[:2] == [(0,), (1,)]


def test_damaged_imb_headings_are_refused() -> None:
    with pytest.raises(ConfigError, match="invalid heading"):
        parse(texts.IMB.replace("#repetitions", "0#repetitions"), source="x.txt")


def test_imb_groups_and_non_blocking() -> None:
    found = rows(texts.IMB_GROUPS, "operation", "ranks", "time_us")
    assert found == [("all_reduce", 2, 1.5), ("all_reduce", 2, 1.6)]
    assert rows(texts.IMB_NBC, "operation", "blocking", "time_us") == [("all_reduce", False, 20.0)]


def test_nccl_tests_text() -> None:
    found = rows(texts.NCCL, "operation", "ranks", "size_bytes", "in_place", "time_us", "wrong")
    assert found == [
        ("all_reduce", 2, 1048576, False, 21.03, 0),
        ("all_reduce", 2, 1048576, True, 20.88, 0),
        ("all_reduce", 2, 2097152, False, 31.5, None),
        ("all_reduce", 2, 2097152, True, 120.0, 2),
    ]
    assert rows(texts.NCCL, "bytes_per_s")[0] == (pytest.approx(49.86e9),)


def test_nccl_tests_of_other_versions() -> None:
    frame = parse(texts.NCCL_OLD, source="runs/all_reduce_perf.txt")
    assert frame.select("operation", "ranks", "wrong").row(0) == ("all_reduce", 1, None)
    with pytest.raises(ConfigError, match="does not state the collective"):
        parse(texts.NCCL_OLD, source="x.txt")
    frame = parse(texts.NCCL_OLD, source="x.txt", operation="reduce")
    assert frame["operation"][0] == "reduce"
    found = rows(texts.NCCL_PER_ITERATION, "operation", "time_us", "in_place")
    assert found == [("all_to_all", 7.0, False), ("all_to_all", 6.9, True)]


def test_nccl_tests_json() -> None:
    frame = parse(texts.NCCL_JSON, source="x.json")
    assert frame.select("operation", "ranks", "size_bytes", "in_place", "time_us").rows() == [
        ("all_gather", 2, 1024, False, 7.0),
        ("all_gather", 2, 1024, True, 6.5),
        ("all_gather", 2, 2048, True, 8.5),
    ]
    assert "hunter2" not in frame.write_csv()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nothing\n", "unknown benchmark output"),
        ("", "unknown benchmark output"),
        (texts.OSU_LATENCY.replace("0.34", "fast"), r"line 5: Avg Latency\(us\) is not a number"),
        (texts.OSU_LATENCY.replace("0.34", "-0.34"), "is not a number"),
        (texts.OSU_LATENCY.replace("0.34", "nan"), "is not a number"),
        (texts.OSU_LATENCY.replace("\n2   ", "\n2.5 "), "line 6: Size is not an integer"),
        (texts.OSU_LATENCY.replace("0.35", "0.35 1"), "line 6: has 3 numbers"),
        (texts.OSU_LATENCY[: texts.OSU_LATENCY.index("\n1 ")], "no results"),
        (texts.IMB.replace("1.89", "x"), "is not a number"),
        (texts.IMB.replace("1.89       135.57", "1.89"), "has 3 numbers"),
        (texts.NCCL.replace("49.86   49.86      0", "49.86"), "has 11 columns"),
        (texts.NCCL.replace("time", "cputime"), "has CPU times"),
        (texts.NCCL_JSON[:-40], "not JSON"),
        (texts.NCCL_JSON.replace('"time":7.0', '"cpu_time":7.0'), "is missing"),
        (texts.NCCL_JSON.replace('"time":7.0', '"time":"nan"'), r"results\[0\].out_of_place.time"),
        (texts.NCCL_JSON.replace('"size":1024', '"size":-1'), r"results\[0\].size"),
        ('{"results": 3, "nccl_version": 1}', "results: is not a list"),
    ],
)
def test_mistakes_state_line_and_problem(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        parse(text, source="x.txt")
    assert str(caught.value).startswith("x.txt")
    assert "expected: " in str(caught.value) or "should be" in str(caught.value)


def test_files(tmp_path: Path) -> None:
    one, two = tmp_path / "one.txt", tmp_path / "two.txt"
    one.write_text(texts.OSU_LATENCY)
    two.write_text(texts.IMB)
    assert read(one)["file"].unique().to_list() == [str(one)]
    assert read_all([one, two]).height == 10
    with pytest.raises(ConfigError, match="no such file"):
        read(tmp_path / "three.txt")

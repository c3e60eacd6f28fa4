"""The layouts of OSU, IMB and nccl-tests: units, the meaning of sizes, mistakes."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from tutti.base.errors import ConfigError
from tutti.formats.measurements import MEASUREMENTS, parse_log, read_measurements

OUTPUTS = {
    path.stem.upper(): path.read_text() for path in Path(__file__).with_name("outputs").iterdir()
}
"""Output of the tools in every supported layout, by name."""
texts = SimpleNamespace(**OUTPUTS)


def rows(text: str, *columns: str, ranks: int | None = None) -> list[tuple[Any, ...]]:
    return parse_log(text, source="x.txt", ranks=ranks).rows.select(*columns).rows()


def reasons(text: str, ranks: int | None = None) -> list[tuple[int, str]]:
    return parse_log(text, source="x.txt", ranks=ranks).omitted.select("line", "reason").rows()


@pytest.mark.parametrize("name", sorted(set(OUTPUTS) - {"NCCL_OLD"}))
def test_every_layout_has_rows_or_reasons(name: str) -> None:
    found = parse_log(OUTPUTS[name], source="x.txt", ranks=2 if "NCCL" in name else None)
    assert found.rows.schema == pl.Schema(MEASUREMENTS)
    assert found.rows.height + found.omitted.height > 0
    values = pl.any_horizontal(pl.col("time_us", "bytes_per_s").is_not_null())
    assert found.rows.select(values.all()).item()


def test_osu_ping_pong_has_two_ranks_and_microseconds() -> None:
    expected = [("ping_pong", 2, 1, "MPI_CHAR", 0.34, 5), ("ping_pong", 2, 2, "MPI_CHAR", 0.35, 6)]
    found = rows(
        texts.OSU_LATENCY, "collective", "ranks", "size_bytes", "datatype", "time_us", "line"
    )
    assert found[:2] == expected
    assert rows(texts.OSU_OLD_LATENCY, "size_bytes", "time_us") == [(0, 1.10), (8, 1.25)]


def test_osu_bandwidth_is_in_bytes_per_second() -> None:
    found = rows(texts.OSU_BANDWIDTH, "collective", "time_us", "bytes_per_s")
    assert found == [("window", None, 8.81e6), ("window", None, 8719.42e6)]


def test_osu_full_output() -> None:
    found = rows(texts.OSU_FULL, "time_us", "repetitions", ranks=4)
    assert found[0] == (40.75, 200)


def test_osu_percentiles_are_ignored() -> None:
    assert rows(texts.OSU_TAIL, "size_bytes", "time_us", ranks=4) == [(8, 65.83)]


def test_osu_shard_sizes_become_total_sizes() -> None:
    found = rows(texts.OSU_ALL_GATHER, "collective", "size_bytes", ranks=4)
    assert found == [("all_gather", 4), ("all_gather", 4096)]
    line, reason = reasons(texts.OSU_ALL_GATHER)[0]
    assert line == 5
    assert reason.startswith("sizes of all_gather are shards of one rank")
    assert reason.endswith("use --ranks N")


def test_osu_barrier_and_non_blocking() -> None:
    found = rows(texts.OSU_BARRIER, "collective", "size_bytes", "time_us", ranks=4)
    assert found == [("barrier", 0, 8457.21)]
    (_, reason), *_ = reasons(texts.OSU_NON_BLOCKING, ranks=4)
    assert reason.endswith("measures overlap with computation: run osu_allreduce")


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
    found = rows(log + "slurmstepd: done\n", "collective", "size_bytes", ranks=4)
    latency = [("ping_pong", 1), ("ping_pong", 2), ("ping_pong", 65536)]
    # Both runs of osu_latency have the same configuration: their median.
    assert found == [*latency, ("all_reduce", 4), ("all_reduce", 16384)]


def test_osu_verdicts() -> None:
    assert reasons(texts.OSU_VALIDATED) == [(6, "wrong results")]


@pytest.mark.parametrize(
    ("title", "words", "serves"),
    [
        ("OSU MPI Multiple Bandwidth / Message Rate Test", "several pairs", "osu_bw"),
        ("OSU MPI Multi Latency Test", "several pairs", "osu_latency"),
        ("OSU MPI Multi-threaded Latency Test", "several pairs or threads", "osu_latency"),
        ("OSU MPI Non-blocking Allreduce Latency Test", "overlap", "osu_allreduce"),
        ("OSU MPI Non-Blocking All-to-All Latency Test", "overlap", "osu_alltoall"),
        ("OSU MPI_Put Latency Test", "one-sided", "osu_latency"),
        ("OSU MPI_Get_accumulate latency Test", "one-sided", "osu_latency"),
        ("OSU MPI All-to-Allv Personalized Exchange Latency Test", "unequal", "osu_alltoall"),
        ("OSU MPI Allgatherv Latency Test", "unequal", "osu_allgather"),
        ("OSU MPI Neighborhood Allgather Latency Test", "neighbours", "osu_allgather"),
        ("OSU MPI Init Test", "start of MPI", "osu_latency"),
        ("OSU MPI Frobnication Test", "unknown", "osu_latency"),
    ],
)
def test_osu_benchmarks_that_cannot_serve(title: str, words: str, serves: str) -> None:
    table = "# [ pairs: 2 ] [ window size: 64 ]\n# Size      MB/s     Messages/s\n1  5.1  5100.0\n"
    found = parse_log(f"# {title} v7.4\n{table}", source="x.txt", ranks=4)
    assert found.rows.is_empty()
    assert words in found.why()
    assert serves in found.why().rpartition("run ")[2]
    with pytest.raises(ConfigError, match=f"no row can be used: .*{words}"):
        found.require_rows("x.txt", "a benchmark")


def test_osu_in_python_is_read() -> None:
    """Title and columns of OMB-Py, which has spaces in front of units."""
    text = "# OMB-Py MPI Allreduce Latency Test\n# Size (B)     Latency (us)\n4    1.50\n"
    assert rows(text, "collective", "size_bytes", "time_us", ranks=4) == [("all_reduce", 4, 1.5)]


def test_imb_sections() -> None:
    found = rows(texts.IMB, "collective", "ranks", "size_bytes", "datatype", "time_us")
    assert found == [
        ("ping_pong", 2, 0, "MPI_BYTE", 1.72),
        ("ping_pong", 2, 256, "MPI_BYTE", 1.89),
        ("all_reduce", 4, 16, "MPI_FLOAT", 59.08),
        ("barrier", 4, 0, "MPI_BYTE", 70.60),
        ("all_gather", 4, 128, "MPI_BYTE", 126.20),
        ("window", 2, 64, "MPI_BYTE", None),
    ]
    assert reasons(texts.IMB)[0][1].startswith("Exchange of IMB is neither")
    assert rows(texts.IMB, "bytes_per_s")[5] == (128.06e6,)


@pytest.mark.parametrize(
    ("benchmark", "total"), [("Reduce_scatter", 64), ("Reduce_scatter_block", 256)]
)
def test_imb_states_the_shard_of_reduce_scatter_block(benchmark: str, total: int) -> None:
    """IMB_reduce_scatter_block.c passes the size as `recvcount`."""
    text = f"# Benchmarking {benchmark}\n# #processes = 4\n"
    text += " #bytes #repetitions t_min[usec] t_max[usec] t_avg[usec]\n 64 9 1.0 1.2 1.1\n"
    assert rows(text, "collective", "size_bytes") == [("reduce_scatter", total)]


def test_osu_has_a_table_per_datatype() -> None:
    """Output of `osu_allreduce -T all`."""
    text = "# OSU MPI Allreduce Latency Test v7.4\n"
    for datatype, time in (("MPI_CHAR", 1.5), ("MPI_FLOAT", 2.5)):
        text += f"# Datatype: {datatype}.\n# Size       Avg Latency(us)\n4 {time:.2f}\n8 9.00\n"
    found = rows(text, "datatype", "size_bytes", "time_us", ranks=4)
    assert found == [("MPI_CHAR", 4, 1.5), ("MPI_CHAR", 8, 9.0), ("MPI_FLOAT", 4, 2.5),
                     ("MPI_FLOAT", 8, 9.0)]  # fmt: skip
    assert reasons(text, ranks=4) == []
    twice = text.replace("\n8 9.00\n", "\n8 9.00\n4 1.00\n", 1)
    assert len(rows(twice, "time_us", ranks=4)) == 2  # the rows of the other table


def test_programs_of_nccl_tests_without_a_collective_are_named() -> None:
    text = texts.NCCL.replace("all_reduce_perf", "hypercube_perf")
    assert "hypercube_perf measures none of tutti's collectives" in {
        reason for _, reason in reasons(text, ranks=2)
    }


def test_imb_defects_are_read() -> None:
    text = texts.IMB.replace("t[usec]   Mbytes/sec", "t[usec]   Mbytes/sec      defects")
    text = text.replace("         0.00", "         0.00         0.00")
    text = text.replace("       135.57", "       135.57         3.00")
    assert reasons(text)[0] == (14, "wrong results")


def test_imb_groups_and_non_blocking() -> None:
    found = rows(texts.IMB_GROUPS, "collective", "ranks", "time_us", "series")
    assert found == [("all_reduce", 2, 1.55, 2)]
    assert reasons(texts.IMB_NBC)[0][1].startswith("Iallreduce is a non-blocking collective")


def test_nccl_tests_text() -> None:
    found = rows(texts.NCCL, "collective", "ranks", "size_bytes", "in_place", "time_us")
    assert found == [
        ("all_reduce", 2, 1048576, False, 21.03),
        ("all_reduce", 2, 1048576, True, 20.88),
        ("all_reduce", 2, 2097152, False, 31.5),
    ]
    assert reasons(texts.NCCL) == [(13, "wrong results")]
    assert rows(texts.NCCL, "bytes_per_s")[0] == (pytest.approx(49.86e9),)


def test_nccl_tests_of_other_versions() -> None:
    # The collective is in the name of the file, in a command, or an option.
    text = texts.NCCL_OLD.replace("0.15    0.00", "0.15    0.15")
    second = "#   Rank  1 Pid 101 on host device 1 [0x08] Tesla V100\n"
    two = text.replace("# nThread", f"{second}# nThread")
    found = parse_log(two, source="runs/all_reduce_perf.txt").rows
    assert found.select("collective", "ranks").row(0) == ("all_reduce", 2)
    assert "set --collective" in reasons(two)[0][1]
    assert parse_log(two, source="x", collective="reduce").rows["collective"][0] == "reduce"
    found = parse_log(texts.NCCL_PER_ITERATION, source="x.txt", ranks=2).rows
    assert found.is_empty()  # busbw 0: one rank


def test_nccl_tests_json() -> None:
    frame = parse_log(texts.NCCL_JSON, source="x.json").rows
    assert frame.select("collective", "ranks", "size_bytes", "in_place", "time_us").rows() == [
        ("all_gather", 2, 1024, False, 7.0),
        ("all_gather", 2, 1024, True, 6.5),
        ("all_gather", 2, 2048, True, 8.5),
    ]
    assert "hunter2" not in frame.write_csv()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (texts.OSU_LATENCY.replace("0.34", "fast"), (5, "Avg Latency(us) is not a number")),
        (texts.OSU_LATENCY.replace("0.34", "-0.34"), (5, "Avg Latency(us) is not a number")),
        (texts.OSU_LATENCY.replace("0.34", "nan"), (5, "Avg Latency(us) is not a number")),
        (texts.OSU_LATENCY.replace("\n2   ", "\n2.5 "), (6, "Size is not an integer")),
        (texts.OSU_LATENCY.replace("0.35", "0.35 1"), (6, "has 3 numbers")),
        (texts.OSU_LATENCY[: texts.OSU_LATENCY.index("\n1 ") + 1], (2, "the run has no results")),
        (texts.IMB.replace("1.89", "x"), (14, "t[usec] is not a number")),
        (texts.NCCL.replace("49.86   49.86      0", "49.86"), (12, "has 11 columns")),
        (texts.NCCL.replace("time", "cputime"), (12, "has CPU times: run")),
    ],
)  # fmt: skip
def test_damaged_rows_are_left_out_with_line_and_reason(text: str, reason: tuple[int, str]) -> None:
    line, start = reason
    assert any(place == line and why.startswith(start) for place, why in reasons(text))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nothing\n", "unknown benchmark output"),
        ("", "unknown benchmark output"),
        (texts.NCCL_JSON[:-40], "not JSON"),
        (texts.NCCL_JSON.replace('"time":7.0', '"cpu_time":7.0'), "is missing"),
        (texts.NCCL_JSON.replace('"time":7.0', '"time":"nan"'), r"results\[0\].out_of_place.time"),
        (texts.NCCL_JSON.replace('"size":1024', '"size":-1'), r"results\[0\].size"),
        ('{"results": 3, "nccl_version": 1}', "results: is not a list"),
    ],
)
def test_mistakes_of_files(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        parse_log(text, source="x.txt")
    assert str(caught.value).startswith("x.txt")
    assert "expected: " in str(caught.value) or "should be" in str(caught.value)


def test_files(tmp_path: Path) -> None:
    one, two = tmp_path / "one.txt", tmp_path / "two.txt"
    one.write_text(texts.OSU_LATENCY)
    two.write_text(texts.IMB)
    assert read_measurements(one).rows["file"].unique().to_list() == [str(one)]
    assert read_measurements([one, two]).rows.height == 9
    with pytest.raises(ConfigError, match="no such file"):
        read_measurements(tmp_path / "three.txt")

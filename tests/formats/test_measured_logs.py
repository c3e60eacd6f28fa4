"""Job logs as measurements: which rows are attributed to which run, and which are left out."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tutti.base.errors import ConfigError
from tutti.formats.measurements import Measurements, parse_log, read_measurements

OUTPUTS = Path(__file__).with_name("outputs")
LOG = (Path(__file__).with_name("logs") / "job.log").read_text()
"""Runs of OSU, IMB and nccl-tests in one log, with other output between and in them."""

ALL_REDUCE = """# OSU MPI Allreduce Latency Test v7.5
# Datatype: MPI_INT.
# Size       Avg Latency(us)
4                       1.25
8                       1.50
16                      1.75
"""
ALL_GATHER = ALL_REDUCE.replace("Allreduce", "Allgather")


def parse(text: str, **options: Any) -> Measurements:
    return parse_log(text, source="job.log", **options)


def reasons(found: Measurements) -> list[tuple[int, str]]:
    return found.omitted.select("line", "reason").rows()


def sizes(found: Measurements) -> list[tuple[int | None, int | None, int]]:
    return found.rows.select("nodes", "ranks", "size_bytes").rows()


def test_a_log_of_several_tools() -> None:
    found = parse(LOG)
    counts = found.rows.group_by("tool", "collective", "ranks", maintain_order=True).len().rows()
    assert counts == [
        ("osu", "all_reduce", 144, 5),
        ("osu", "all_gather", 32, 2),
        ("osu", "window", 2, 2),
        ("osu", "reduce", 512, 1),
        ("imb", "all_reduce", 4, 3),
        ("nccl-tests", "all_reduce", 2, 4),
        ("osu", "ping_pong", 2, 2),
    ]
    assert [(line, why.split(":")[0]) for line, why in reasons(found)] == [
        (13, "has 1 numbers, but the heading has 2 columns"),
        (25, "is below column names without a time in us or a bandwidth in MB/s"),
        (26, "is below column names without a time in us or a bandwidth in MB/s"),
        (36, "the lines before the run state several numbers of ranks"),
        (37, "the lines before the run state several numbers of ranks"),
        (38, "Avg Latency(us) is not a number"),
        (39, "Avg Latency(us) is not a number"),
        (40, "has 3 numbers, but the heading has 2 columns"),
        (67, "the last line has no line ending"),
    ]
    assert found.omitted["text"][0] == '"1724890271"'


def test_every_number_is_a_row_or_reported() -> None:
    found = parse(LOG)
    rows = {
        number
        for number, line in enumerate(LOG.split("\n"), start=1)
        if re.match(r"\s*\d+\s+[\d.+-]|\s*\d+$", line)
    }
    taken = set(found.rows["line"]) | set(found.omitted["line"])
    # IMB's second table line is a rule, and a bare number is reported, too.
    assert rows <= taken


@pytest.mark.parametrize(
    ("command", "nodes", "ranks"),
    [
        ("mpirun -n 144 -N 36 osu_allreduce", 4, 144),
        ("+ mpirun -np 8 --map-by ppr:2:node -x A=1 /opt/omb/osu_allreduce -i 10 -n 3", 4, 8),
        ("$ time mpiexec -ppn 4 -n 8 ./osu_allreduce", 2, 8),
        ("mpirun -np 4 -pernode osu/bin/osu_allreduce", 4, 4),
        ("srun -N 256 -n 512 osu_allreduce", 256, 512),
        ("srun --nodes=2 --ntasks-per-node=4 ./osu_allreduce > x", 2, 8),
        ("flux run -N2 --tasks-per-node=96 singularity exec o.sif /opt/osu_allreduce", 2, 192),
        ("aprun -n 32 -N 16 osu_allreduce", 2, 32),
        ("ibrun -n 32 osu_allreduce", None, 32),
        ("time jsrun -n 16 -a 2 -c 1 -r 4 -l cpu-cpu omb/osu_allreduce", 4, 32),
        ("jsrun -p 8 osu_allreduce", None, 8),
        ("mpirun_rsh -np 4 -hostfile hosts MV2_USE_CUDA=1 ./osu_allreduce", None, 4),
        ("mpirun -n 8 \\\n  osu_allreduce", None, None),
        ("srun osu_allreduce", None, None),
        ("mpirun -n $N osu_allreduce", None, None),
        ("mpirun -n 4 osu_allreduce : -n 4 osu_allreduce", None, None),
        ("mpirun -n 4 ./a.out : -n 4 osu_allreduce", None, None),
        ("mpirun -n 4 -n 8 osu_allreduce", None, None),
        ("srun -n 4 mpirun -n 2 osu_allreduce", None, None),
        ("mpirun -n 4 osu_bcast", None, None),
        ("mpirun -n 4 osu_iallreduce", None, None),
        ("mpirun -n 4 hostname", None, None),
        ("# Number of processes 512\n# Number of nodes: 4", 4, 512),
        ("nodes: 4, ranks: 16", None, None),
        ("ranks = 16", None, 16),
    ],
)
def test_ranks_of_commands_and_headings(command: str, nodes: int | None, ranks: int | None) -> None:
    found = parse(f"{command}\n{ALL_REDUCE}")
    if ranks is None:
        assert found.rows.is_empty()
        assert found.omitted.height == 3
        assert set(found.omitted["reason"]) == {
            "neither the number of nodes nor that of ranks is known: use --ranks N"
        }
    else:
        assert sizes(found) == [(nodes, ranks, 4), (nodes, ranks, 8), (nodes, ranks, 16)]
        source = "launcher" if "osu" in command else "file"
        assert set(found.rows["ranks_source"]) == {source}


def test_a_command_applies_to_the_next_run_of_its_benchmark_only() -> None:
    found = parse(f"mpirun -n 4 osu_allreduce\n{ALL_REDUCE}{ALL_REDUCE}")
    assert found.rows["line"].to_list() == [5, 6, 7]
    assert found.omitted["line"].to_list() == [11, 12, 13]
    found = parse(f"mpirun -n 4 osu_allreduce\nmpirun -n 8 osu_allgather\n{ALL_GATHER}")
    assert sizes(found)[0] == (None, 8, 32)


def test_contradictory_commands_need_the_argument() -> None:
    text = f"mpirun -n 4 osu_allreduce\nmpirun -n 8 osu_allreduce\n{ALL_REDUCE}"
    assert "several numbers of ranks" in reasons(parse(text))[0][1]
    found = parse(text, ranks=8)
    assert set(found.rows["ranks_source"]) == {"argument"}
    assert "several numbers of ranks" in reasons(parse(text, ranks=16))[0][1]


def test_an_argument_that_contradicts_the_log_is_refused(tmp_path: Path) -> None:
    found = parse(f"mpirun -n 4 osu_allreduce\n{ALL_REDUCE}", ranks=8)
    assert sizes(found)[0] == (None, 4, 4)
    with pytest.raises(ConfigError, match="states another number of ranks") as caught:
        found.require_agreement()
    assert "expected: 4 ranks" in str(caught.value)
    # With another file that needs the argument, it is read with a remark.
    stating, silent = tmp_path / "stating.log", tmp_path / "silent.log"
    stating.write_text(f"mpirun -n 4 osu_allreduce\n{ALL_REDUCE}")
    silent.write_text(ALL_REDUCE)
    both = read_measurements([stating, silent], ranks=8)
    assert both.rows["ranks"].to_list() == [4, 4, 4, 8, 8, 8]
    assert both.remarks()[-1].endswith("states another number of ranks: 8 ranks is not used")


def test_a_collective_that_the_log_contradicts_is_not_used() -> None:
    found = parse(ALL_REDUCE, ranks=4, collective="broadcast")
    assert found.without("broadcast") == "broadcast is not used: the files state all_reduce"
    assert found.without("all_reduce") == found.without(None) == ""


def test_rows_after_other_output() -> None:
    warned = ALL_REDUCE.replace("\n8 ", "\nmodule load late\n8 ")
    assert parse(warned, ranks=4).rows.height == 3
    jumped = warned.replace("\n8 ", "\n12 ")
    found = parse(jumped, ranks=4)
    assert found.rows["line"].to_list() == [4]
    assert reasons(found) == [
        (line, "follows other output of the job, and its size is not the next one")
        for line in (6, 7)
    ]


def test_runs_that_wrote_at_the_same_time_are_left_out() -> None:
    mixed = ALL_REDUCE.replace("\n8 ", "\n4                       9.25\n8 ")
    found = parse(mixed, ranks=4)
    assert found.rows.is_empty()
    assert found.omitted.height == 4
    assert "several runs wrote at the same time" in reasons(found)[0][1]


def test_damaged_lines() -> None:
    cut = ALL_REDUCE.replace("1.75\n", "1.7srun: error: killed\n")
    assert [line for line, _ in reasons(parse(cut, ranks=4))] == [6]
    short = ALL_REDUCE.replace("1.75", "1.7") + "srun: error: killed\n"
    assert reasons(parse(short, ranks=4)) == [
        (6, "has fewer decimals than the row before: truncated")
    ]
    assert reasons(parse(ALL_REDUCE.rstrip()[:-1], ranks=4)) == [
        (6, "the last line has no line ending: it may be truncated")
    ]
    # The decimals of the row before: complete.
    assert reasons(parse(ALL_REDUCE.rstrip(), ranks=4)) == []
    no_rows = ALL_REDUCE[: ALL_REDUCE.index("4  ")]
    assert reasons(parse(no_rows, ranks=4)) == [(1, "the run has no results")]
    tail = "32                      1.25\n" + ALL_REDUCE
    assert reasons(parse(tail, ranks=4)) == [(1, "has no heading above it")]


def test_sizes_that_are_too_large_are_left_out() -> None:
    text = ALL_GATHER.replace("16      ", f"{2**53 - 1} ")
    assert [line for line, _ in reasons(parse(text, ranks=4096))] == [6]


def test_other_units_are_left_out() -> None:
    found = parse(ALL_REDUCE.replace("(us)", "(ms)"), ranks=4)
    assert found.rows.is_empty()
    assert "without a time in us" in reasons(found)[0][1]


def test_repeated_runs_become_their_median() -> None:
    run = f"mpirun -n 4 osu_allreduce\n{ALL_REDUCE}"
    found = parse(run + run.replace("1.25", "3.25") + run.replace("1.25", "2.00"))
    assert found.rows.select("size_bytes", "time_us", "series").rows() == [
        (4, 2.0, 3),
        (8, 1.5, 3),
        (16, 1.75, 3),
    ]


def test_wrong_results_and_non_blocking_collectives_are_left_out() -> None:
    for name, reason in (
        ("osu_validated.txt", "wrong results"),
        ("osu_non_blocking.txt", "overlap with computation: run osu_allreduce"),
    ):
        found = read_measurements(OUTPUTS / name, ranks=4)
        assert reason in found.why()


def test_gpu_and_nodes_of_nccl_tests() -> None:
    found = parse(LOG).rows.filter(tool="nccl-tests")
    assert found.select("library", "gpu", "nodes", "ranks_per_node").rows()[0] == (
        "NCCL", True, 2, 1
    )  # fmt: skip
    cuda = ALL_REDUCE.replace("OSU MPI", "OSU MPI-CUDA")
    assert set(parse(cuda, ranks=4).rows["gpu"]) == {True}


def test_the_collective_of_nccl_tests_from_its_command() -> None:
    start = LOG.index("# nThread")
    text = LOG[start : LOG.index("# Collective test")].replace("nGpus 8", "nGpus 1")
    assert reasons(parse(text))[0][1].startswith("does not state the collective: set")
    found = parse(f"mpirun -n 2 ./all_reduce_perf_mpi -b 8 -g 1\n{text}")
    assert set(found.rows["collective"]) == {"all_reduce"}
    found = parse(f"$ ./build/all_reduce_perf -b 8 -e 128M -f 2 -g 2\n{text}")
    assert set(found.rows["collective"]) == {"all_reduce"}
    assert set(parse(text, collective="reduce").rows["collective"]) == {"reduce"}


def test_json_of_nccl_tests() -> None:
    found = read_measurements(OUTPUTS / "nccl_json.json")
    assert found.rows.height == 3
    with pytest.raises(ConfigError, match="not JSON"):
        parse('{"results": 3, "nccl_version": ')
    with pytest.raises(ConfigError, match="unknown benchmark output"):
        parse('{"a": 1}')


def test_logs_without_a_heading_are_refused(tmp_path: Path) -> None:
    for text in ("", "nothing\n", "4 1.25\n8 1.50\n"):
        with pytest.raises(ConfigError, match="unknown benchmark output"):
            parse(text)
    path = tmp_path / "job.log"
    path.write_bytes(b"\xff\xfe caf\xe9\n" + ALL_REDUCE.encode())
    assert read_measurements(path, ranks=4).rows.height == 3


def test_strict_reading() -> None:
    found = parse(LOG)
    with pytest.raises(ConfigError, match=r"job\.log, line 13: has 1 numbers"):
        found.require_complete()
    parse(ALL_REDUCE, ranks=4).require_complete()


def test_long_lines_are_skipped() -> None:
    long = "# OSU MPI Latency Test" + " " * 300_000 + "x\n" + "A " * 200_000 + "\n"
    found = parse(long + ALL_REDUCE.replace("\n8 ", f"\n{long}8 "), ranks=4)
    assert found.rows.height == 3


def test_a_missing_line_never_moves_rows_to_another_run() -> None:
    columns = ("collective", "size_bytes", "time_us", "bytes_per_s")
    original = set(parse(LOG).rows.select(columns).rows())
    lines = LOG.split("\n")
    for place, line in enumerate(lines):
        # Without one of the contradictory commands, the other one applies.
        if re.match(r"mpirun -n \d\d osu_reduce", line):
            continue
        found = parse("\n".join(lines[:place] + lines[place + 1 :]))
        assert set(found.rows.select(columns).rows()) <= original, line


@given(seed=st.integers(0, 2**32), changes=st.integers(1, 8))
def test_damaged_logs_never_gain_rows(seed: int, changes: int) -> None:
    """Lines removed, repeated, cut, joined or swapped: each row left is one of the original."""
    rng = random.Random(seed)
    lines = LOG.split("\n")
    for _ in range(changes):
        place = rng.randrange(len(lines) - 1)
        change = rng.randrange(5)
        if change == 0:
            del lines[place]
        elif change == 1:
            lines.insert(place, lines[place])
        elif change == 2:
            lines[place] = lines[place][: rng.randrange(len(lines[place]) + 1)]
        elif change == 3:
            lines[place : place + 2] = ["".join(lines[place : place + 2])]
        else:
            lines.insert(place, lines.pop(rng.randrange(len(lines))))
    try:
        found = parse("\n".join(lines))
    except ConfigError:
        return
    for row in found.rows.iter_rows(named=True):
        value = row["time_us"] or row["bytes_per_s"]
        assert value > 0
        assert row["ranks"] or row["nodes"]
        assert row["size_bytes"] >= 0
    assert (found.omitted["line"] >= 1).all()
    assert found.omitted["reason"].null_count() == 0

"""Every verb reads the same rows of a log, with any prefix of its lines."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tutti.base.errors import ConfigError
from tutti.formats.benchmarks.prefixes import without_prefixes
from tutti.formats.measurements import parse_log
from tutti.formats.nccl import parse_debug_log
from tutti.measured.advise.study import read_named
from tutti.measured.calibrate.library import compare_library
from tutti.measured.calibrate.sources import Sources
from tutti.nccl.evidence import Given, read_evidence
from tutti.platforms import platform

if TYPE_CHECKING:
    from pathlib import Path

DEVICES = "".join(
    f"#  Rank {rank:2} Group  0 Pid 1 on  node{rank // 4} device  {rank % 4} [0x10] NVIDIA H100\n"
    for rank in range(8)
)
NCCL = f"""# nThread 1 nGpus 1 minBytes 1048576 maxBytes 4194304 step: 2(factor) iters: 20
#
# Using devices
{DEVICES}#
#                                                     out-of-place               in-place
#     size     count   type  redop  root    time  algbw  busbw #wrong    time  algbw  busbw #wrong
#      (B)  (elements)                      (us) (GB/s) (GB/s)           (us) (GB/s) (GB/s)
   1048576    262144  float    sum    -1   354.9   2.95   5.17      0   345.7   3.03   5.31      0
node0:1:2 [0] NCCL INFO AllReduce: opCount 0 sendbuff 0x7f recvbuff 0x7f
   4194304   1048576  float    sum    -1   905.0   4.63   8.11      0   915.0   4.58   8.02      0
# Out of bounds values : 0 OK
#
# Collective test concluded: all_reduce_perf
"""
OSU = """+ srun -n 8 osu_allreduce -m 4:64

# OSU MPI-CUDA Allreduce Latency Test v7.0
# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations
[1678200000.80] [nodeA:903  :0]   ucc_coll.c:255  UCC_COLL INFO  coll_init: Allreduce sum
4                       5.10              4.10              6.10        1000
[dreg_register] Warning: the number of registered pages is large
64                      9.10              8.10             10.10        1000
WARNING: no InfiniBand device
1024                   20.10             18.10             22.10         100
"""
IMB = """# MPI_Datatype for reductions    :   MPI_FLOAT
# Benchmarking Allreduce
# #processes = 8
       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]
            0         1000         0.04         0.05         0.04
            4         1000         5.10         5.30         5.20
mlx5: node0: got completion with error
         1024         1000         8.10         8.40         8.20
"""
SAMPLES = {
    "nccl": (
        NCCL,
        [(8, 1 << 20, 354.9), (8, 1 << 20, 345.7), (8, 1 << 22, 905.0), (8, 1 << 22, 915.0)],
    ),
    "osu": (OSU, [(8, 4, 5.1), (8, 64, 9.1), (8, 1024, 20.1)]),
    "imb": (IMB, [(8, 4, 5.2), (8, 1024, 8.2)]),
}
"""Logs, and ranks, size in bytes and time in us of their rows above 0 B."""

PREFIXES = (
    "",
    "[1,0]<stdout>:",
    "[1,0]<stdout>: ",
    "Thu Apr 25 08:40:10 2024<stdout>:",
    "Thu Apr  5 08:40:10 2024[1,0]<stdout>:",
    "[prterun-node-1-123@1,0]<stdout>: ",
    "[node1][1,0][node1:12]<stdout>: ",
    "[1,mpirank:0,algo-1]<stdout>:",
    "0: ",
    " 12: ",
    "[0] ",
    "[ 0] ",
    "[default0]:",
    "node-17.cluster: ",
    "2024-05-01T12:34:56.123456789Z ",
    "2024-05-01T12:34:56+02:00 ",
    "2024-05-01T12:34:56.1Z stdout F ",
    "2024-05-01T12:34:56.123456Z 00O ",
    "2024-05-01T12:34:56.123456Z 00O+",
    "[2024-05-01T12:34:56.123Z] ",
    "2024-05-01 12:34:56,123 ",
    "12:34:56 ",
    "May  1 12:34:56 node1 bench[123]: ",
    "[pod/nccl-tests-launcher-x7k2p/launcher] ",
    "bench-1  | ",
    "\x1b[36mbench-1  |\x1b[0m ",
    "test\tRun the benchmark\t2024-05-01T12:34:56.1234567Z ",
    "(pid=123, ip=10.0.0.1) ",
    "    ",
    "   [1,0]<stdout>:",
    "> ",
    "2024-05-01T12:34:56.123Z [pod/launcher] 0: [1,0]<stdout>:",
    # No rule has these two: the text in front of the headings is the prefix.
    "launcher-x7k2p mpi 2024-05-01T12:34:56Z ",
    "INFO 12 worker/3 >> ",
)
"""Prefixes of launchers, containers and CI."""


def prefixed(prefix: str, text: str) -> str:
    return "".join(f"{prefix}{line}\n" for line in text.splitlines())


def written(folder: Path, text: str) -> Path:
    path = folder / "job.log"
    path.write_text(text)
    return path


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("sample", SAMPLES)
def test_every_verb_reads_the_same_rows(sample: str, prefix: str, tmp_path: Path) -> None:
    text, expected = SAMPLES[sample]
    path = written(tmp_path, prefixed(prefix, text))
    rows = {}

    sources = Sources()
    sources.add_files([path], ranks=None, collective=None, algorithm="ring", window=64)
    points = sources.sets["mean"]
    rows["calibrate"] = [(p.schedule and p.schedule.ranks, p.size, p.time_us) for p in points]

    measured = read_named([path], [], ranks=None, ranks_per_node=None, collective=None).rows
    used = measured.filter(measured["size_bytes"] > 0)
    rows["advise"] = used.select("ranks", "size_bytes", "time_us").rows()

    if sample == "nccl":
        evidence = read_evidence([path], Given())
        assert evidence.gpus == {"NVIDIA H100"}
        rows["nccl doctor"] = [(one.ranks, one.size_bytes, one.time_us) for one in evidence.rows]
    assert rows == dict.fromkeys(rows, expected)


@pytest.mark.parametrize("sample", ["osu", "imb"])
def test_a_library_is_compared_on_the_same_rows(sample: str, tmp_path: Path) -> None:
    text, expected = SAMPLES[sample]
    path = written(tmp_path, prefixed("[1,0]<stdout>:", text))
    found = compare_library(path, platform("cray_xc30"), ranks=None, collective=None)
    assert found.select("ranks", "size_bytes", "library_us").rows() == expected


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "latin-1"])
def test_logs_of_other_encodings_are_read(encoding: str, tmp_path: Path) -> None:
    """Redirections of Windows PowerShell write UTF-16."""
    text, expected = SAMPLES["nccl"]
    path = tmp_path / "job.log"
    path.write_bytes(f"# Größe\n{text}".replace("\n", "\r\n").encode(encoding))
    measured = read_named([path], [], ranks=None, ranks_per_node=None, collective=None).rows
    assert measured.select("ranks", "size_bytes", "time_us").rows() == expected
    evidence = read_evidence([path], Given())
    assert [(row.ranks, row.size_bytes, row.time_us) for row in evidence.rows] == expected


FIRST = NCCL.index("   1048576 ")
ROW = NCCL[FIRST:].splitlines()[0]


def test_rows_of_nccl_tests_that_records_of_nccl_divide() -> None:
    """nccl-tests prints the size, then each half when it is measured."""
    record = "node0-h100:1:2 [0] NCCL INFO 1048576 Bytes -> Algo 0 proto 0 time 25.874907"
    complete = ROW + "\n" + ROW.replace("1048576 ", "2097152 ").replace("262144", "524288") + "\n"
    parts = complete
    for half in ("-1", "5.17      0"):
        parts = parts.replace(half, f"{half}{record}\n{record}\n")
    heading = NCCL[:FIRST]
    for prefix in ("", "[0] ", "[1,0]<stdout>:"):
        found = parse_log(prefixed(prefix, heading + parts), source="all_reduce_perf.log")
        plain = parse_log(heading + complete, source="all_reduce_perf.log")
        columns = ("collective", "ranks", "size_bytes", "in_place", "time_us")
        assert found.rows.select(columns).rows() == plain.rows.select(columns).rows()
        assert found.rows.height == 4
        assert found.omitted.is_empty()


def test_a_part_of_a_row_is_left_out() -> None:
    heading = NCCL[:FIRST]
    found = parse_log(heading + ROW[:50] + "\n" + ROW + "\n", source="all_reduce_perf.log")
    assert found.rows.height == 2
    assert found.omitted["line"].to_list() == [heading.count("\n") + 1]


@pytest.mark.parametrize("sample", ["nccl", "osu"])
def test_headings_without_their_sign_are_read(sample: str) -> None:
    """Markdown takes `#` for a heading."""
    text, _ = SAMPLES[sample]
    bare = "".join(f"{line.lstrip('#')}\n" for line in text.splitlines())
    columns = ("collective", "ranks", "size_bytes", "time_us")
    (found, plain) = (parse_log(one, source="job.log").rows for one in (bare, text))
    assert found.select(columns).rows() == plain.select(columns).rows()


@pytest.mark.parametrize("sample", SAMPLES)
def test_columns_with_single_spaces_are_read(sample: str) -> None:
    """HTML and Markdown join spaces."""
    text, _ = SAMPLES[sample]
    joined = "".join(f"{' '.join(line.split())}\n" for line in text.splitlines())
    columns = ("collective", "ranks", "size_bytes", "time_us")
    rows = [parse_log(log, source="job.log").rows.select(columns).rows() for log in (joined, text)]
    assert rows[0] == rows[1]


def test_version_1_of_nccl_tests_has_times_in_ms() -> None:
    text = """nThread: 1 nGpus: 2 minBytes: 4194304 maxBytes: 4194304
# Using devices
#   Rank  0 on   node0 device  0 [0x06] Tesla P100-SXM2-16GB
#   Rank  1 on   node0 device  1 [0x07] Tesla P100-SXM2-16GB

#                                          out-of-place                  in-place
#    bytes        N    type   op    time  algbw  busbw    res    time  algbw  busbw    res
   4194304  1048576   float  sum   0.402  10.44  10.44  0e+00   0.401  10.46  10.46  0e+00
"""
    found = parse_log(text, source="all_reduce_perf.txt").rows
    assert found.select("ranks", "nodes", "time_us").rows() == [(2, 1, 402.0), (2, 1, 401.0)]


def test_logs_of_docker_in_json() -> None:
    text, _ = SAMPLES["nccl"]
    lines = [
        json.dumps({"log": f"{line}\n", "stream": "stdout", "time": "2024-05-01T12:34:56.123Z"})
        for line in text.splitlines()
    ]
    wrapped = "\n".join(line.replace('{"log": ', '{"log":') for line in lines) + "\n"
    columns = ("collective", "ranks", "size_bytes", "time_us")
    (found, plain) = (parse_log(one, source="job.log").rows for one in (wrapped, text))
    assert found.select(columns).rows() == plain.select(columns).rows()


def test_lines_of_other_programs_are_unchanged() -> None:
    for line in (
        "node0:1:2 [0] NCCL INFO Using network IB",
        "[dreg_register] Warning: the number of registered pages is large",
        "nodes: 4",
        "ranks = 16",
        "     1048576        262144     float     sum      -1    354.9",
        "1048576\t262144\t1.5",
        "+ srun -n 4 osu_allreduce",
    ):
        assert without_prefixes(line) == [line]


def test_commands_that_name_a_heading_are_no_prefixes() -> None:
    text = 'echo "# OSU MPI Latency Test v7.4"\n8   1.5\n'
    with pytest.raises(ConfigError, match="unknown benchmark output"):
        parse_log(text, source="job.log")


def test_debug_records_have_prefixes() -> None:
    record = "NCCL version 2.19.3+cuda12.2\nnode0:1:2 [0] NCCL INFO Using network IB\n"
    for prefix in PREFIXES[:-2]:
        found = parse_debug_log(prefixed(prefix, record), source="job.log")
        assert (found.version, dict(found.networks)) == ("NCCL 2.19.3+cuda12.2", {"IB": 1})

"""The rank count of nccl-tests: all statements of a log are compared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tutti import _core
from tutti.base.errors import ConfigError
from tutti.formats.benchmarks.nccl_tests import quotient
from tutti.formats.measurements import Measurements, parse_log

if TYPE_CHECKING:
    from collections.abc import Iterable

COLUMNS = (
    "#  size  count  type  redop  root  time  algbw  busbw #wrong  time  algbw  busbw #wrong\n"
)
HEADING = "# nThread 1 nGpus 1 minBytes 8 maxBytes 8\n"
CONCLUDED = "# Out of bounds values : 0 OK\n# Collective test concluded: {}_perf\n"


def device(rank: int, host: str = "n0", group: int = 0) -> str:
    return f"#  Rank {rank:2} Group {group:2} Pid 1 on {host} device 0 [0x01] NVIDIA H100\n"


def row(algbw: float, ranks: int, collective: str = "all_reduce", wrong: str = "0") -> str:
    busbw = algbw * _core.busbw_factor(collective, ranks)
    size = 1 << 29
    half = f"{size / algbw / 1e3:.1f} {algbw:.2f} {busbw:.2f} {wrong}"
    return f"{size} {size // 4} float sum -1 {half} {half}\n"


def log(
    devices: Iterable[str], *rows: str, collective: str = "all_reduce", before: str = HEADING
) -> str:
    return before + "".join(devices) + COLUMNS + "".join(rows) + CONCLUDED.format(collective)


def parse(text: str, **options: Any) -> Measurements:
    return parse_log(text, source="job.log", **options)


def ranks(text: str, **options: Any) -> set[int]:
    return set(parse(text, **options).rows["ranks"])


RECORD = "NCCL's record `Init COMPLETE`"
SEVERAL = "the run states several numbers of ranks"
ALL_72 = [device(rank) for rank in range(72)]
ENDS = [device(0), device(71)]


@pytest.mark.parametrize("devices", [ALL_72, ENDS, [device(71)], []])
def test_rates_complete_a_list_of_devices(devices: list[str]) -> None:
    """586.06 / 297.16 = 1.9722 = 2 x 71 / 72."""
    assert ranks(log(devices, row(297.16, 72), row(423.16, 72))) == {72}


def test_the_nodes_of_a_shortened_list_are_unknown() -> None:
    full = [device(rank, f"n{rank // 8}") for rank in range(16)]
    assert set(parse(log(full, row(300.0, 16))).rows["nodes"]) == {2}
    short = [full[0], full[-1]]
    assert set(parse(log(short, row(300.0, 16))).rows["nodes"]) == {None}


def test_a_list_that_lacks_ranks_needs_another_source() -> None:
    """busbw / algbw of broadcast is 1 on any number of ranks."""
    text = log(ENDS, row(297.16, 72, "broadcast"), collective="broadcast")
    assert parse(text).why() == "the list of devices lacks ranks 1 to 70: use --ranks N"
    assert ranks(text, ranks=72) == {72}
    assert "there is a rank 71" in parse(text, ranks=16).why()
    command = "$ mpirun -np 72 ./broadcast_perf -b 8\n"
    assert ranks(command + text) == {72}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        # The middle of the list is missing, its end too: 4 ranks by the list.
        (
            log([device(rank) for rank in range(4)], row(297.16, 72)),
            "the list of devices states 4 ranks, but busbw / algbw = 1.972 is that of 72 ranks",
        ),
        (
            "$ mpirun -np 8 ./all_reduce_perf\n" + log(ENDS, row(0.001, 8)),
            "the command states 8 ranks, but a line of a device states rank 71",
        ),
        (
            log([device(71)], row(297.16, 16)),
            "a line of a device states rank 71, but busbw / algbw = 1.875 is that of 16 ranks",
        ),
        (
            log([], row(297.16, 72, "all_reduce"), collective="all_gather"),
            "busbw / algbw = 1.972 is that of no number of ranks of all_gather",
        ),
        (
            "$ mpirun -np 8 ./all_reduce_perf\n" + log(ALL_72, row(297.16, 72)),
            f"{SEVERAL}: 72 by the list of devices and 8 by the command: use --ranks N",
        ),
        (
            log(
                [
                    *ALL_72,
                    "n0:1:2 [0] NCCL INFO comm 0x1 rank 0 nranks 8 cudaDev 0 - Init COMPLETE\n",
                ],
                row(297.16, 72),
            ),
            f"{SEVERAL}: 72 by the list of devices and 8 by {RECORD}: use --ranks N",
        ),
    ],
)
def test_statements_that_differ_are_reported(text: str, why: str) -> None:
    found = parse(text)
    assert found.rows.is_empty()
    assert found.why() == why


def test_the_user_settles_a_contradiction_that_the_rates_allow() -> None:
    cut = log([device(rank) for rank in range(4)], row(297.16, 72))
    assert ranks(cut, ranks=72) == {72}
    assert parse(cut, ranks=16).rows.is_empty()
    differing = "$ mpirun -np 8 ./all_reduce_perf\n" + log(ALL_72, row(297.16, 72))
    assert ranks(differing, ranks=72) == {72}
    assert parse(differing, ranks=8).rows.is_empty()


@pytest.mark.parametrize("devices", [ALL_72, ENDS, [device(71)], []])
def test_an_argument_that_the_file_contradicts_is_refused(devices: list[str]) -> None:
    found = parse(log(devices, row(297.16, 72)), ranks=16)
    with pytest.raises(ConfigError, match="another number of ranks") as caught:
        found.require_agreement()
    assert "given: 16 ranks" in str(caught.value)
    assert "expected: 72 ranks" in str(caught.value)


def test_processes_of_a_command_have_several_gpus() -> None:
    heading = "# nThread 1 nGpus 8 minBytes 8 maxBytes 8\n"
    text = "+ srun -N 2 -n 2 all_reduce_perf_mpi -g 8\n" + log([], row(2.5, 16), before=heading)
    found = parse(text).rows
    assert set(found.select("ranks", "nodes", "ranks_source").rows()) == {(16, 2, "launcher")}


def test_a_program_with_the_suffix_of_mpi_is_that_of_its_command() -> None:
    text = "mpirun -np 72 all_reduce_perf_mpi\n# Collective test starting: all_reduce_perf_mpi\n"
    assert ranks(text + log([], row(0.001, 72))) == {72}


def test_columns_of_rccl_after_both_halves() -> None:
    """RCCL-tests prints the algorithm, the protocol and the number of channels."""
    text = log([device(0), device(1)], row(297.16, 2))
    wide = text.replace("#wrong\n", "#wrong algo proto nchannels\n")
    wide = wide.replace(" 0\n#", " 0 Direct SIMPLE 32\n#")
    assert parse(wide).rows.equals(parse(text).rows)


def test_groups_of_a_split_communicator() -> None:
    """NCCL_TESTS_SPLIT: each group is a communicator."""
    devices = [device(rank, f"n{rank // 4}", rank % 4) for rank in range(8)]
    assert ranks(log(devices, row(297.16, 2))) == {2}


@pytest.mark.parametrize("lines", [1, 2])
def test_processes_without_mpi_run_alone(lines: int) -> None:
    """The second process writes its heading before the first has a row, or not at all."""
    devices = "".join(device(0, f"n{place}") for place in range(lines))
    text = (HEADING + "# Using devices\n") * lines + devices + (COLUMNS + "#\n") * lines
    text += (row(376.81, 1) + CONCLUDED.format("all_reduce")) * lines
    for given in (None, 2):
        found = parse(text, ranks=given)
        assert found.rows.is_empty()
        assert "without MPI=1" in found.why()
    if lines == 2:
        assert found.why().startswith("every process ran alone (2 lines `Rank 0`, busbw 0)")


def test_processes_without_mpi_that_have_several_gpus_each_fill_a_node() -> None:
    devices = [device(rank, host) for host in ("n0", "n1") for rank in range(8)]
    found = parse(log(devices, row(297.16, 8))).rows
    assert set(found.select("ranks", "nodes").rows()) == {(8, 1)}


@pytest.mark.parametrize(
    ("first", "second", "nodes"), [("0000", "1111", 1), ("0011", "0011", 2), ("0000", "0000", 1)]
)
def test_nodes_of_lists_that_appear_twice(first: str, second: str, nodes: int) -> None:
    """Processes without MPI have all their GPUs on one host; jobs on several hosts do not."""
    devices = [device(rank, host) for hosts in (first, second) for rank, host in enumerate(hosts)]
    assert set(parse(log(devices, row(100.0, 4))).rows["nodes"]) == {nodes}


def test_one_damaged_row_is_left_out_alone() -> None:
    damaged = row(297.16, 72).replace("586.07", "186.07", 1)
    found = parse(log(ALL_72, row(423.16, 72), damaged))
    assert found.rows["series"].sum() == 3
    assert found.why().endswith("and the run has 72")


def test_small_rates_state_nothing() -> None:
    """nccl-tests rounds small rates to 0.00: any number of ranks fits."""
    assert quotient("0.00", "0.00") is None
    assert quotient("0e999", "1.00") is None
    assert ranks(log([device(0), device(1)], row(0.001, 2))) == {2}
    assert "neither the number of nodes nor that of ranks" in parse(log([], row(0.001, 2))).why()


@pytest.mark.parametrize("count", [2, 3, 4, 7, 8, 16, 40, 72, 128, 512])
@pytest.mark.parametrize("collective", ["all_reduce", "all_gather", "all_to_all", "gather"])
def test_factors_are_those_of_bus_bandwidth(collective: str, count: int) -> None:
    devices = [device(rank) for rank in range(count)]
    rows = [row(rate, count, collective) for rate in (0.5, 12.34, 456.78)]
    program = collective.replace("all_to_all", "alltoall")
    assert ranks(log(devices, *rows, collective=program)) == {count}


def test_failed_validation_is_never_lost() -> None:
    failed = "# Out of bounds values : 3 FAILED\n"
    devices = [device(rank) for rank in range(8)]
    unknown = log(devices, row(300.0, 8, wrong="N/A"), row(301.0, 8, wrong="0e+00"))
    unknown = unknown.replace("# Out of bounds values : 0 OK\n", failed)
    assert parse(unknown).rows.is_empty()
    assert "wrong results" in parse(unknown).why()
    counted = log(devices, row(300.0, 8), row(301.0, 8, wrong="3"))
    counted = counted.replace("# Out of bounds values : 0 OK\n", failed)
    assert parse(counted).rows.height == 2
    assert parse(counted).why() == "wrong results"

"""Profiles of PyTorch (Kineto): dependencies, collectives, messages, remarks and errors.

End times are computed by hand on a LogGP platform without overheads. There, a message of k bytes
takes L + (k - 1) G = 1 us + (k - 1) ns. A ring all-reduce on two ranks takes two messages of half
the bytes.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import polars as pl
import pytest

import tutti
from called import call
from profiles import RankProfile, communication, overlapped, written
from tutti.base.units import Time, TimePerByte
from tutti.collectives.lowering import expand
from tutti.formats.formats import Options
from tutti.formats.kineto.trace import read_all, read_trace
from tutti.platforms.machine import LogGP
from tutti.workloads.operations import CollectiveCall, Kind, Trace

if TYPE_CHECKING:
    from pathlib import Path

PAIR = (0, 1)
US = 1_000_000
"""Picoseconds in a microsecond."""


def network(gap: str = "1 ns/B") -> tutti.Platform:
    nothing = Time.parse("0 ns")
    model = LogGP(L=Time.parse("1 us"), o=nothing, g=nothing, G=TimePerByte.parse(gap))
    return tutti.Platform(name="hand", model=model)


def loaded(path: Path) -> tuple[Trace, str]:
    trace, lines = read_trace(path, Options())
    return trace, "\n".join(lines)


def finish(trace: Trace, platform: tutti.Platform | None = None) -> list[float]:
    """Returns when the ranks finish, in microseconds."""
    run = tutti.simulate_trace(expand(trace, "ring"), platform or network())
    return [each / US for each in run.finish_ps]


# --- all-reduce overlapped with computation ---


@pytest.mark.parametrize("events", [True, False])
def test_an_all_reduce_overlaps_computation(tmp_path: Path, *, events: bool) -> None:
    """Without events, the order of calls and recorded times give the same dependencies."""
    trace, lines = loaded(written(tmp_path, lambda each: overlapped(each, events=events)))
    assert trace.collectives == (CollectiveCall("all_reduce", PAIR),)
    # A ends at 30. B ends at 60, the all-reduce at 30 + 2 (1 + 7.999) < 60. C starts 1 us after
    # the last of them in the profile, and takes 10 us.
    assert finish(trace) == pytest.approx([71, 71])
    # On a slow network, C waits for the all-reduce, which ends at 30 + 2 (1 + 79.99).
    assert finish(trace, network("10 ns/B")) == pytest.approx([30 + 161.98 + 11] * 2)
    assert ("2 waits of streams" in lines) is False
    assert ("inferred: 4 waits of streams" in lines) is not events


def test_recorded_times_are_reproduced(tmp_path: Path) -> None:
    """Without communication, the time of a run is that of the profile, gaps of the GPU included."""

    def build(profile: RankProfile) -> None:
        for step in range(3):
            profile.kernel("short", 7, (10 + 100 * step, 5), launch=100 * step)
        # The CPU waits for the last kernel, then launches another one.
        profile.call("cudaDeviceSynchronize", 203, 15)
        profile.kernel("last", 7, (230, 4), launch=220)

    path = written(tmp_path, build, ranks=1)
    trace, lines = loaded(path)
    assert finish(trace) == pytest.approx([234])
    # 0.008 ms before each of three kernels and the last are too short for a remark.
    assert lines == ""


def test_the_cpu_waits_for_communication(tmp_path: Path) -> None:
    """`.item()` after an all-reduce: what the CPU launches next starts after the copy."""

    def build(profile: RankProfile) -> None:
        arguments = communication("allreduce", 4000, PAIR)
        profile.kernel("ncclDevKernel_AllReduce", 7, (10, 30), launch=0, **arguments)
        copy = profile.call("cudaMemcpyAsync", 3)
        profile.activity("Memcpy DtoH (Device -> Pinned)", 7, (40, 2), copy, category="gpu_memcpy")
        profile.call("cudaStreamSynchronize", 6, 37)
        profile.kernel("next", 7, (50, 5), launch=46)

    trace, lines = loaded(written(tmp_path, build))
    # The all-reduce takes 2 to 19.998, the copy until 21.998. The CPU returns 1 us later (43 - 42),
    # reaches the end of the launch 5 us later, and the kernel starts 2 us after that.
    assert finish(trace) == pytest.approx([21.998 + 1 + 5 + 2 + 5] * 2)
    assert "inferred: 2 waits of the CPU" in lines


def test_the_optimizer_waits_for_what_the_backward_pass_waits_for(tmp_path: Path) -> None:
    """DDP issues and awaits all-reduces on the thread of the backward pass."""

    def build(profile: RankProfile) -> None:
        profile.thread = 77
        profile.kernel("backward", 7, (2, 20), launch=0)
        arguments = communication("allreduce", 4000, PAIR)
        profile.record((3, 4), 9, arguments)
        profile.call("cudaStreamWaitEvent", 4, 0.5)
        profile.kernel("ncclDevKernel", 20, (23, 40), 5, **{"External id": 9}, **arguments)
        profile.record((8, 2), 10, {"Collective name": "wait"})
        profile.call("cudaStreamWaitEvent", 9, 0.5)
        profile.thread = 42
        profile.kernel("optimizer", 7, (63, 5), launch=12)

    trace, _ = loaded(written(tmp_path, build))
    # The backward pass ends at 22, the all-reduce at 39.998.
    assert finish(trace) == pytest.approx([39.998 + 5] * 2)


@pytest.mark.parametrize(("number", "end"), [(1, 50.998), (2, 58.996), (None, 58.996)])
def test_waits_name_their_communication(tmp_path: Path, number: int | None, end: float) -> None:
    """`wait` has the `Seq` of its communication; without it, the last one that ended counts."""

    def build(profile: RankProfile) -> None:
        for at in (1, 2):
            arguments = communication("allreduce", 4000, PAIR, Seq=at)
            place = (10.0 * at, 10.0)
            profile.kernel("ncclDevKernel_AllReduce", 20, place, launch=3 * at - 3, **arguments)
        waited = {"Collective name": "wait", "Process Group Name": "0"}
        profile.record((6, 3), 10, waited | ({} if number is None else {"Seq": number}))
        profile.call("cudaStreamWaitEvent", 7, 1)
        profile.kernel("C", 7, (31, 20), launch=9)

    trace, _ = loaded(written(tmp_path, build))
    # All-reduces end at 2 + 17.998 and 2 + 35.996. C starts 11 us after the first, or 1 us after
    # the second.
    assert finish(trace) == pytest.approx([end, end])


# --- other communication ---


def test_parts_of_an_uneven_all_to_all_are_messages(tmp_path: Path) -> None:
    splits = {0: ("[1, 3]", "[1, 2]"), 1: ("[2, 2]", "[3, 2]")}

    def build(profile: RankProfile) -> None:
        sent, received = splits[profile.rank]
        rows = [sum(json.loads(each)) for each in (sent, received)]
        arguments = communication(
            "all_to_allv",
            1000 * rows[0],
            PAIR,
            **{"Out msg nelems": 1000 * rows[1], "In split size": sent, "Out split size": received},
        )
        profile.kernel("ncclDevKernel_SendRecv", 7, (2, 30), launch=0, **arguments)

    trace, _ = loaded(written(tmp_path, build))
    sizes = [of.sizes[of.kinds != Kind.COMPUTE].tolist() for of in trace.ranks]
    assert sizes == [[12_000, 8_000], [8_000, 12_000]]
    # Launched at 2: rank 0 receives 8,000 B, rank 1 12,000 B.
    assert finish(trace) == pytest.approx([2 + 8.999, 2 + 12.999])


def test_a_pipeline_sends_activations(tmp_path: Path) -> None:
    def build(profile: RankProfile) -> None:
        name, peer = ("send", "Dst Rank") if profile.rank == 0 else ("recv", "Src Rank")
        arguments = communication(name, 1000, PAIR, **{peer: 1 - profile.rank})
        if profile.rank == 0:
            profile.kernel("forward", 7, (2, 20), launch=0)
        profile.kernel("ncclDevKernel_SendRecv", 7, (22, 8), launch=4, **arguments)
        if profile.rank == 1:
            profile.kernel("forward", 7, (30, 10), launch=8)

    trace, _ = loaded(written(tmp_path, build))
    # Rank 0 sends at 22; 4,000 B take 1 + 3.999.
    assert finish(trace) == pytest.approx([22, 22 + 4.999 + 10])


def test_messages_without_a_peer_take_their_recorded_time(tmp_path: Path) -> None:
    def build(profile: RankProfile) -> None:
        arguments = communication("recv" if profile.rank else "send", 1000, PAIR)
        profile.kernel("ncclDevKernel_SendRecv", 7, (2, 8), launch=0, **arguments)

    trace, lines = loaded(written(tmp_path, build))
    assert finish(trace) == pytest.approx([10, 10])
    assert lines == "2 messages without a peer take their recorded time"


def test_a_batch_of_messages_is_one_kernel(tmp_path: Path) -> None:
    """PyTorch describes the messages of `batch_isend_irecv` before the kernel, which lacks them."""

    def build(profile: RankProfile) -> None:
        for number, (name, peer) in enumerate((("send", "Dst Rank"), ("recv", "Src Rank"))):
            described = communication(name, 1000, PAIR, **{peer: 1 - profile.rank})
            profile.record((2 * number, 1), 50 + number, described)
        profile.kernel("ncclDevKernel_SendRecv", 7, (10, 8), launch=6)

    trace, lines = loaded(written(tmp_path, build))
    # The start of the call is time 0 of a rank, so that it is launched at 2.
    assert finish(trace) == pytest.approx([2 + 4.999] * 2)
    assert lines == ""


@pytest.mark.parametrize(
    ("name", "sizes", "expected"),
    [
        ("_allgather_base", (100, 200), ("all_gather", 800)),
        ("_reduce_scatter_base", (200, 100), ("reduce_scatter", 800)),
        ("reduce_scatter_tensor_coalesced", (200, 100), ("reduce_scatter", 800)),
        ("all_gather_into_tensor_coalesced", (100, 200), ("all_gather", 800)),
        ("all_to_all", (200, 200), ("all_to_all", 800)),
        ("broadcast", (100, 100), ("broadcast", 400)),
        ("_broadcast_oop", (100, 100), ("broadcast", 400)),
        ("allreduce_coalesced", (100, 100), ("all_reduce", 400)),
        ("barrier", (1, 1), ("barrier", 0)),
    ],
)
def test_names_and_payloads_of_collectives(
    tmp_path: Path, name: str, sizes: tuple[int, int], expected: tuple[str, int]
) -> None:
    """All-gathers and reduce-scatters have totals over ranks, as in nccl-tests."""

    def build(profile: RankProfile) -> None:
        arguments = communication(name, sizes[0], PAIR, **{"Out msg nelems": sizes[1]})
        profile.kernel("ncclDevKernel", 7, (2, 30), launch=0, **arguments)

    trace, _ = loaded(written(tmp_path, build))
    collective, size = expected
    assert [call.collective for call in trace.collectives] == [collective]
    assert [of.sizes.max() for of in trace.ranks] == [size, size]


def test_the_root_is_that_of_the_cpu_operation(tmp_path: Path) -> None:
    """Kernels have no root: `record_param_comms` has it as `Rank`."""

    def build(profile: RankProfile) -> None:
        arguments = communication("broadcast", 100, PAIR)
        profile.record((0, 1), 5, {**arguments, "Rank": 1})
        profile.kernel("ncclDevKernel", 7, (5, 9), 1, **{"External id": 5}, **arguments)

    trace, lines = loaded(written(tmp_path, build))
    assert trace.collectives == (CollectiveCall("broadcast", PAIR, root=1),)
    assert "roots" not in lines


def test_groups_of_more_than_30_ranks_come_from_the_job(tmp_path: Path) -> None:
    """PyTorch abbreviates lists of ranks in events, and not in `distributedInfo`."""
    text = f"[{', '.join(map(str, range(29)))}, ..., 31]"
    for rank in range(32):
        profile = RankProfile(rank, 32)
        group = tuple(range(32))
        arguments = communication("allreduce", 100, group, **{"Process Group Ranks": text})
        profile.kernel("ncclDevKernel", 7, (2, 30), launch=0, **arguments)
        profile.write(tmp_path)
    trace, _ = loaded(tmp_path)
    assert trace.collectives == (CollectiveCall("all_reduce", tuple(range(32))),)


# --- what is missing ---


def test_kernels_without_a_description_take_their_recorded_time(tmp_path: Path) -> None:
    def build(profile: RankProfile) -> None:
        profile.kernel("ncclKernel_AllReduce_RING_LL_Sum_float", 7, (2, 30), launch=0)

    trace, lines = loaded(written(tmp_path, build))
    assert finish(trace) == pytest.approx([32, 32])
    assert "2 communication kernels without a description take their recorded time" in lines
    assert "`record_param_comms`" in lines


def test_collectives_that_a_profile_cuts_off_are_computations(tmp_path: Path) -> None:
    """A profile of steps starts and ends on each rank at another collective."""

    def build(profile: RankProfile) -> None:
        for number in range(2 if profile.rank else 1):
            arguments = communication("allreduce", 100, PAIR, Seq=7 + number)
            at = 20 * number
            profile.kernel("ncclDevKernel_AllReduce", 7, (2 + at, 5), launch=at, **arguments)

    trace, lines = loaded(written(tmp_path, build))
    assert "1 collectives that other ranks have not recorded are computations" in lines
    assert finish(trace) == pytest.approx([2 + 2.398, 27])


def test_overlapping_kernels_of_a_stream_have_streams_of_their_own(tmp_path: Path) -> None:
    """Kernels of a CUDA graph share a stream and a launch, and run at the same time."""

    def build(profile: RankProfile) -> None:
        launch = profile.call("cudaGraphLaunch", 0)
        for start in (10, 15):
            profile.activity("node", 7, (start, 20), launch)

    trace, lines = loaded(written(tmp_path, build, ranks=1))
    assert finish(trace) == pytest.approx([35])
    assert "1 activities overlap others of their stream" in lines


def test_starts_of_ranks_are_lost(tmp_path: Path) -> None:
    def build(profile: RankProfile) -> None:
        at = 3000 * profile.rank
        profile.kernel("A", 7, (at + 2, 5), launch=at)

    _, lines = loaded(written(tmp_path, build))
    assert lines == "starts of ranks, which differ by up to 3.000 ms: all start at 0"


def test_clocks_of_cpu_and_gpu_that_differ(tmp_path: Path) -> None:
    """A kernel that starts before its launch starts when it did."""
    path = written(tmp_path, lambda each: each.kernel("A", 7, (2, 5), launch=20), ranks=1)
    trace, lines = loaded(path)
    assert "1 activities start before their launch: the clocks of CPU and GPU differ" in lines
    assert finish(trace) == pytest.approx([5])


def test_kernels_from_before_the_profile(tmp_path: Path) -> None:
    """Kernels without a recorded launch start when they did."""

    def build(profile: RankProfile) -> None:
        profile.activity("early", 7, (3, 5), 1)
        profile.kernel("A", 7, (12, 5), launch=5)
        profile.activity("late", 8, (20, 5), 2)

    trace, lines = loaded(written(tmp_path, build, ranks=1))
    assert "2 activities have no recorded launch" in lines
    # Time 0 is the start of the first kernel.
    assert finish(trace) == pytest.approx([22])


# --- training steps ---


def test_profiles_run_as_training_steps(tmp_path: Path) -> None:
    """CPU operations run at the same time as those of the GPU."""
    first, second = read_all(written(tmp_path, overlapped))
    on_cpu = [node.attributes["is_cpu_op"].value for node in first.nodes]
    assert on_cpu.count(True) == 4
    assert len(second.nodes) == len(first.nodes) == 8


TRAINING = """
model = "kineto:profiles"
configurations = ["ideal"]
[torus]
rings = [{ name = "local", nodes = 2, rate = "1 GB/s", latency = "1 us" }]
"""


@pytest.mark.parametrize("model", ["kineto:profiles", "chakra:p"])
def test_train_run_takes_profiles(tmp_path: Path, model: str) -> None:
    """The all-reduce overlaps B, so that the step takes the time of the computations."""
    path = written(tmp_path / "profiles", lambda each: overlapped(each, events=False))
    done = call("convert", path, "p.0.et", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (tmp_path / "step.toml").write_text(TRAINING.replace("kineto:profiles", model))
    done = call("train", "run", "step.toml", "--out", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert pl.read_parquet(tmp_path / "out" / "results.parquet")["total_ps"].to_list() == [71 * US]
    has_remark = "4 waits of streams, from recorded times" in " ".join(done.stderr.split())
    assert has_remark == model.startswith("kineto")

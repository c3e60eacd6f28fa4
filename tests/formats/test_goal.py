"""GOAL files: text, binary form, losses, damage, and execution."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING

import numpy as np
import pytest

import tutti
from called import call
from goal_binary import trace_of, write_ranks
from tutti import platforms
from tutti.base.errors import ConfigError, DeadlockError, TuttiError
from tutti.base.units import Size
from tutti.collectives.lowering import expand, lower
from tutti.formats.formats import Options
from tutti.formats.goal.text import read_goal, read_goal_binary, write_goal, write_goal_binary
from tutti.workloads.errors import WorkloadError
from tutti.workloads.operations import CollectiveCall, Kind, Operations, Trace

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TEXT = """num_ranks 3
/* the order of blocks
   is free */
rank 1 {
r: recv 100b from 0 tag 7 cpu 1
any: recv 1 b from -1 tag -1
c: calc 250 // ns
c irequires r
c requires any
}
rank 0 {
send 100b to 1 tag 7 nic 3
}
rank 2 {
send 1b to 1 tag 4000000000 cpu 255
}
"""


def made(path: Path, text: str = TEXT) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def same(first: Trace, second: Trace) -> bool:
    pairs = zip(first.ranks, second.ranks, strict=True)
    return all(one.columns() == other.columns() for one, other in pairs)


def cluster() -> tutti.Platform:
    return platforms.platform("loggp_cluster")


def test_text_becomes_columns(tmp_path: Path) -> None:
    trace, losses = read_goal(made(tmp_path / "a.goal"), Options())
    assert losses == ("network interfaces of 1 operations: a rank has one port",)
    rank = trace.ranks[1]
    assert rank.kinds.tolist() == [Kind.RECEIVE, Kind.RECEIVE, Kind.COMPUTE]
    assert rank.peers.tolist() == [0, -1, -1]
    assert rank.tags.tolist() == [7, -1, 0]
    assert rank.durations.tolist() == [0, 0, 250_000]
    assert rank.streams.tolist() == [1, 0, 0]
    assert rank.first_dependency.tolist() == [0, 0, 0, 2]
    assert rank.dependencies.tolist() == [0, 1]
    assert rank.on_start.tolist() == [True, False]
    assert trace.ranks[2].tags.tolist() == [4_000_000_000]


def test_both_forms_keep_everything(tmp_path: Path) -> None:
    trace, _ = read_goal(made(tmp_path / "a.goal"), Options())
    assert write_goal_binary(trace, tmp_path / "a.bin", Options()) == ()
    again, losses = read_goal_binary(tmp_path / "a.bin", Options())
    assert losses == ()
    assert same(again, trace)
    assert write_goal(again, tmp_path / "b.goal", Options()) == ()
    assert same(read_goal(tmp_path / "b.goal", Options())[0], trace)


def test_binary_form_is_that_of_txt2bin(tmp_path: Path) -> None:
    """Bytes of `txt2bin` of LogGOPSim (commit 76451de) for a receive and a computation."""
    text = "num_ranks 1\nrank 0 {\na: recv 8b from 0 tag 5\nb: calc 9 cpu 2\nb requires a\n}\n"
    trace, _ = read_goal(made(tmp_path / "a.goal", text), Options())
    write_goal_binary(trace, tmp_path / "a.bin", Options())
    expected = (
        "7f10000000000000010000000200160000000000000074000000000000000200"
        "0000010000000000000000000000020000000008000000000000000500000000"
        "0001000000000000000000000001000000010000000300000000090000000000"
        "00000000000002000000000001000000000000000100000001000000"
    )
    assert (tmp_path / "a.bin").read_bytes().hex() == expected


def test_fractions_of_a_nanosecond_are_a_loss(tmp_path: Path) -> None:
    trace, _ = read_goal(made(tmp_path / "a.goal"), Options())
    ranks = tuple(of.replaced(durations=of.durations + (of.durations > 0)) for of in trace.ranks)
    lost = write_goal(Trace(name="t", ranks=ranks), tmp_path / "b.goal", Options())
    assert lost == ("fractions of a nanosecond of 1 durations: rounded to 1 ns",)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("num_ranks 1\nrank 0 {\nsend 1b to 0 tag -1\n}\n", "a send to any tag"),
        ("num_ranks 4294967295\n", "expected the number of ranks, at most"),
        ("num_ranks 2000000000\nrank 0 {\n}\n", "first missing block is of rank 1"),
        ("rank 0 {\ncalc 1 cpu 256\n}\n", "line 2: `256`: expected a number from 0 to 255"),
    ],
)
def test_errors_name_file_and_line(tmp_path: Path, text: str, expected: str) -> None:
    path = made(tmp_path / "a.goal", text)
    with pytest.raises(ConfigError) as raised:
        read_goal(path, Options())
    assert expected in str(raised.value)
    assert str(path) in str(raised.value)


@pytest.mark.parametrize("seed", range(2))
def test_damaged_files_are_errors(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    trace, _ = read_goal(made(tmp_path / "a.goal"), Options())
    write_goal_binary(trace, tmp_path / "a.bin", Options())
    for name, read in (("a.goal", read_goal), ("a.bin", read_goal_binary)):
        data = (tmp_path / name).read_bytes()
        for _ in range(75):
            damaged = bytearray(data)
            for _ in range(rng.randint(1, 3)):
                damaged[rng.randrange(len(damaged))] = rng.randrange(256)
            (tmp_path / name).write_bytes(bytes(damaged[: rng.choice((None, rng.randrange(99)))]))
            try:
                found, _ = read(tmp_path / name, Options())
                tutti.simulate_trace(found, cluster())
            except TuttiError:
                continue


def outcome(read: Callable[[], object]) -> object:
    """Returns columns and the count of other network interfaces, or the complete error."""
    try:
        return read()
    except ConfigError as error:
        return str(error), error.hint


def random_text(rng: random.Random) -> str:
    ranks = rng.randint(1, 4)
    text = f"num_ranks {ranks}\n"
    for rank in range(ranks):
        text += f"rank {rank} {{\n"
        for at in range(rng.randint(0, 6)):
            peer, tag = rng.randrange(ranks), rng.choice((0, 3, 2**32 - 2))
            text += f"l{at}: " + rng.choice(
                (
                    f"calc {rng.randrange(2000)} cpu {rng.randrange(3)}\n",
                    f"send {rng.randrange(9000)}b to {peer} tag {tag}\n",
                    f"recv 8b from {rng.choice((peer, -1))} tag {rng.choice((tag, -1))} cpu 9\n",
                )
            )
            for _ in range(rng.randint(0, 2)):
                text += f"l{at} {rng.choice(('requires', 'irequires'))} l{rng.randint(0, at)}\n"
        text += "}\n"
    return text


@pytest.mark.parametrize("seed", range(3))
def test_the_binary_form_is_read_and_written_as_by_the_simple_code(
    tmp_path: Path, seed: int
) -> None:
    rng = random.Random(seed)
    path, plain = tmp_path / "a.bin", tmp_path / "plain.bin"
    for _ in range(60):
        trace, _ = read_goal(made(tmp_path / "a.goal", random_text(rng)), Options())
        write_goal_binary(trace, path, Options())
        with plain.open("wb") as file:
            write_ranks(file, trace.ranks, [of.durations // 1000 for of in trace.ranks])
        assert path.read_bytes() == plain.read_bytes()
        for count in (0, 1, 1, 1, 2, 3):
            data = bytearray(plain.read_bytes())
            for _ in range(count):
                data[rng.randrange(len(data))] = rng.choice((0, 1, 3, 255, rng.randrange(256)))
            path.write_bytes(data[: rng.choice((None, None, rng.randrange(len(data))))])

            def simple() -> object:
                ranks, other_nics = trace_of(path.read_bytes(), source=str(path))
                return [of.columns() for of in ranks], other_nics

            def core() -> object:
                found, losses = read_goal_binary(path, Options())
                counts = [int(line.split(" operations")[0].split()[-1]) for line in losses]
                return [of.columns() for of in found.ranks], sum(counts)

            assert outcome(core) == outcome(simple)


@pytest.mark.parametrize(
    ("algorithm", "collective", "ranks"),
    [("ring", "all_reduce", 6), ("binomial", "broadcast", 7), ("direct", "all_to_all", 5)],
)
def test_traces_take_the_time_of_the_schedule(algorithm: str, collective: str, ranks: int) -> None:
    schedule = tutti.schedule(algorithm, collective=collective, ranks=ranks)
    size = Size.of_any("105 KiB")
    trace = lower(schedule, size)
    for name in ("loggp_cluster", "cray_xc30"):
        platform = platforms.platform(name)
        expected = tutti.simulate(schedule, platform, size=size)
        if platform.model.kind == "loggp":
            assert list(tutti.simulate_trace(trace, platform).finish_ps) == expected.finish_ps
        found = tutti.simulate_trace(lower(schedule, size, platform=platform), platform)
        assert found.completion_ps == expected.completion_ps
        assert found.messages == expected.messages


def collective_trace(counts: tuple[int, ...] = (2, 2, 2)) -> Trace:
    """Returns ranks that call an all_reduce of 48 B again and again, each after a computation."""

    def rank(count: int) -> Operations:
        kinds = np.array([Kind.COMPUTE, Kind.COLLECTIVE] * count, np.uint8)
        n = len(kinds)
        called = kinds == Kind.COLLECTIVE
        return Operations(
            kinds=kinds,
            sizes=np.where(called, 48, 0),
            durations=np.where(called, 0, 7000),
            peers=np.where(called, 0, -1).astype(np.int32),
            tags=np.zeros(n, np.int64),
            streams=np.zeros(n, np.int32),
            first_dependency=np.maximum(np.arange(n + 1) - 1, 0),
            dependencies=np.arange(max(n - 1, 0)),
            on_start=np.zeros(max(n - 1, 0), np.bool_),
        )

    call_ = CollectiveCall("all_reduce", (2, 0, 1))
    return Trace(name="calls", ranks=tuple(rank(each) for each in counts), collectives=(call_,))


def test_collectives_become_messages_with_a_tag_per_call(tmp_path: Path) -> None:
    trace = expand(collective_trace(), "ring")
    sends = [of.tags[of.kinds == Kind.SEND].tolist() for of in trace.ranks]
    assert sends == [[1] * 4 + [2] * 4] * 3
    alone = tutti.schedule("ring", collective="all_reduce", ranks=3)
    once = tutti.simulate(alone, cluster(), size="48 B").completion_ps
    assert tutti.simulate_trace(trace, cluster()).completion_ps == 2 * (once + 7000)
    lost = write_goal(collective_trace(), tmp_path / "a.goal", Options(algorithm="ring"))
    assert lost[0] == "collectives: replaced by messages of ring"
    assert same(read_goal(tmp_path / "a.goal", Options())[0], trace)


def test_collectives_that_do_not_match_are_errors(tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match="call 1 of all_reduce with 48 B, rank 1 does not"):
        expand(collective_trace((2, 1, 2)), "ring")
    with pytest.raises(WorkloadError, match="has collectives"):
        tutti.simulate_trace(collective_trace(), cluster())
    with pytest.raises(ConfigError, match="GOAL has no collectives"):
        write_goal(collective_trace(), tmp_path / "a.goal", Options())


def test_deadlocks_name_the_ranks(tmp_path: Path) -> None:
    text = "num_ranks 2\nrank 0 {\nrecv 1b from 1\n}\nrank 1 {\nrecv 1b from 0 tag 3\n}\n"
    trace, _ = read_goal(made(tmp_path / "a.goal", text), Options())
    with pytest.raises(
        DeadlockError, match=r"a.goal: .* rank 1 in operation 0 \(line 6\) waits for"
    ):
        tutti.simulate_trace(trace, cluster())


ERRORS = {
    "recv 1b from 1": (
        r"rank 0 in operation 0 \(line 4\) waits for rank 1 \(tag 0\)",
        "compare the sources and tags",
    ),
    "a: calc 5\n// send 1\nb: calc 6\na requires b\nb requires a": (
        r"rank 0 in operation 0 \(line 4\) has dependencies that never complete",
        "form a cycle",
    ),
    "/* calc 1\n*/ recv 1b from 1 tag 3\nsend 8b to 1\nsend 8b to 1": (
        r"2 messages are never received; for one of them, rank 0 in operation 1 \(line 6\) sends",
        "add a receive",
    ),
    "recv 1b from 1\nsend 8b to 7": (
        r"operation 1 of rank 0 \(line 5\) has peer 7: expected a rank of the trace",
        "",
    ),
}


@pytest.mark.parametrize("operations", ERRORS)
def test_errors_of_a_run_name_the_line(tmp_path: Path, operations: str) -> None:
    text = f"num_ranks 2\n\nrank 0 {{\n{operations}\n}}\nrank 1 {{\nsend 1b to 0 tag 3\n}}\n"
    trace, _ = read_goal(made(tmp_path / "a.goal", text), Options())
    problem, hint = ERRORS[operations]
    with pytest.raises(TuttiError, match=problem) as raised:
        tutti.simulate_trace(trace, cluster())
    assert hint in raised.value.hint


@pytest.mark.parametrize("packets", [None, tutti.Packets()])
def test_traces_run_on_flows_and_packets(packets: tutti.Packets | None) -> None:
    topology = tutti.Topology.build("switch:5", rate="100 MB/s", latency="0 ns")
    platform = tutti.Platform(
        name="t", model=cluster().model, routes=topology.routes(), contention=packets
    )
    for algorithm, collective in (("ring", "all_reduce"), ("direct", "gather")):
        schedule = tutti.schedule(algorithm, collective=collective, ranks=5)
        expected = tutti.simulate(schedule, platform, size="500 KB")
        found = tutti.simulate_trace(lower(schedule, Size.of_any("500 KB")), platform)
        assert found.finish_ps == tuple(expected.finish_ps)
        # Four parts of 100 KB at 100 MB/s.
        assert found.completion_ps > 4_000_000_000


def test_command_converts_and_runs(tmp_path: Path) -> None:
    done = call("convert", "ring", "r.goal", "--ranks", "4", "--size", "64KiB", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "lost: reductions and copies: they take no time" in " ".join(done.stderr.split())
    assert call("convert", "r.goal", "r.bin", cwd=tmp_path).returncode == 0
    done = call("trace", "run", "r.bin", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    ring = tutti.schedule("ring", ranks=4)
    expected = tutti.simulate(ring, cluster(), size="64 KiB").completion_ps
    assert json.loads(done.stdout)["result"]["time_ps"] == expected
    assert "4 ranks, 48 operations" in call("trace", "run", "r.goal", cwd=tmp_path).stdout

"""`tutti trace run` of Chakra traces: collectives by an algorithm or by a library."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

import tutti
from tutti.base.units import Size
from tutti.cli.app import app
from tutti.collectives.library import LibraryPlan
from tutti.collectives.lowering import expand, timed
from tutti.collectives.request import ComparisonRequest
from tutti.collectives.trace_run import simulate_trace
from tutti.formats.astrasim.networks import AstraSimNetwork, Dimension
from tutti.formats.astrasim.reader import load_workload, simulate
from tutti.formats.astrasim.systems import System
from tutti.formats.chakra import reader as chakra
from tutti.formats.chakra.reader import Attribute, ChakraTrace, Node
from tutti.formats.chakra.schema import COLLECTIVES
from tutti.formats.chakra.trace import read_trace
from tutti.formats.chakra.writer import write_trace
from tutti.formats.formats import Options
from tutti.formats.goal.text import write_goal, write_goal_binary
from tutti.nccl.of_platform import LibraryChoice, LibraryTimes, parts_of
from tutti.platforms import PipeliningPostal, platform
from tutti.workloads.operations import CollectiveCall

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tutti.workloads.operations import Trace


def call(number: int, collective: str, size: int, *after: int) -> Node:
    attributes = {
        "comm_type": Attribute("int64", COLLECTIVES.index(collective)),
        "comm_size": Attribute("int64", size),
    }
    return Node(id=number, type="COMM_COLL", data_deps=after, attributes=attributes)


def written(folder: Path, ranks: int, *nodes: Node) -> Path:
    for rank in range(ranks):
        chakra.write(folder / f"t.{rank}.et", ChakraTrace(nodes=nodes))
    return folder / "t.0.et"


def run(path: Path, *words: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["trace", "run", str(path), *words])
    return result.exit_code, " ".join(result.output.split())


STEP = (
    Node(id=1, duration_us=5),
    call(2, "all_reduce", 1 << 20, 1),
    Node(id=3, duration_us=7, data_deps=(2,)),
    call(4, "reduce_scatter", 1 << 20, 3),
    call(5, "all_gather", 1 << 17, 4),
)


def test_a_platform_takes_the_time_of_the_same_network_of_astrasim(tmp_path: Path) -> None:
    """Rings of 8 NPUs, 50 GiB/s and 500 ns per hop, without delays and reductions."""
    path = written(tmp_path, 8, *STEP)
    ring = Dimension(block="Ring", npus=8, bandwidth=50, latency=500)
    network, system = AstraSimNetwork(dimensions=(ring,)), System(delay=0)
    workload = load_workload(tmp_path / "t", network, system)
    expected = simulate(network, system, workload.programs).total.ps
    torus = platform(f"torus:8,rate={50 << 30}B/s,latency=500ns")
    free = PipeliningPostal(alpha_p="1 ps", alpha_r="0 s")
    trace = expand(read_trace(path, Options())[0], "ring")
    found = simulate_trace(trace, torus.model_copy(update={"model": free}))
    assert found.completion_ps == expected + 28  # 1 ps per message of the model


@pytest.mark.parametrize("name", ["dgx_h100", "cray_xc30", "torus:2x4,rate=25GB/s"])
@pytest.mark.parametrize("algorithm", ["ring", "recursive_halving_doubling"])
def test_a_collective_takes_the_time_of_its_simulation(
    tmp_path: Path, name: str, algorithm: str
) -> None:
    """Launch, reductions and copies included."""
    path = written(tmp_path, 8, call(1, "all_reduce", 1 << 20))
    machine = platform(name)
    trace = expand(read_trace(path, Options())[0], algorithm, machine)
    schedule = tutti.schedule(algorithm, ranks=8)
    alone = tutti.simulate(schedule, machine, size="1 MiB")
    assert simulate_trace(trace, machine).completion_ps == alone.completion_ps


def test_collectives_take_the_time_of_the_library_of_a_platform(tmp_path: Path) -> None:
    """By default, and with the option."""
    sizes = (1 << 13, 1 << 30)
    path = written(tmp_path, 16, call(1, "all_reduce", sizes[0]), call(2, "barrier", 0, 1),
                   call(3, "all_reduce", sizes[1], 2))  # fmt: skip
    machine = platform("dgx_h100_cluster")
    predicted = LibraryTimes.of(machine)
    assert predicted is not None
    model = predicted.model
    times = [model.default("all_reduce", 16, size).time_ps for size in (sizes[0], 4, sizes[1])]
    trace = read_trace(path, Options())[0]
    found = simulate_trace(timed(trace, predicted), machine)
    assert set(found.finish_ps) == {sum(times)}
    for words in ((), ("--library", "platform")):
        code, output = run(path, "-p", "dgx_h100_cluster", *words)
        assert code == 0, output
        assert "NCCL 2.28.9 selects for all_reduce on 16 ranks: NVLSTree Simple" in output
        assert "they share no links" in output


def test_algorithms_of_the_library_become_messages(tmp_path: Path) -> None:
    path = written(tmp_path, 16, call(1, "all_reduce", 1 << 20))
    code, output = run(path, "-p", "dgx_h100_cluster", "-a", "nccl:ring")
    assert code == 0, output
    for notation, machine, problem in (
        ("nccl:nvls_tree", "dgx_h100_cluster", "multicasts and reduces in switches"),
        ("nccl:pat", "dgx_h100_cluster", "is not implemented with PAT"),
        ("nccl:ring", "loggp_cluster", "a library that loggp_cluster does not have"),
    ):
        code, output = run(path, "-p", machine, "-a", notation)
        assert code == 2
        assert problem in output


def test_ranks_that_never_start_a_collective_are_named(tmp_path: Path) -> None:
    path = written(tmp_path, 2, call(1, "all_reduce", 1 << 20), call(2, "all_gather", 1 << 20, 1))
    nodes = (call(1, "all_gather", 1 << 20), call(2, "all_reduce", 1 << 20, 1))
    chakra.write(tmp_path / "t.1.et", ChakraTrace(nodes=nodes))
    code, output = run(path, "-p", "dgx_h100")
    assert code != 0
    assert "waits for other ranks of its collective" in output


def test_nccl_selects_messages_by_size(tmp_path: Path) -> None:
    """Two nodes of NCCL: a tree for the short all_reduce, a ring for the long one."""
    nodes = (call(1, "all_reduce", 1 << 13), call(2, "all_reduce", 1 << 30, 1))
    path = written(tmp_path, 16, *nodes)
    code, output = run(path, "-p", "dgx_h100_cluster", "--library", "nccl")
    assert code == 0, output
    tree = "nccl:tree,ll (double_binary_tree:nccl,node=8,channels=8,1)"
    assert f"NCCL selects for all_reduce on 16 ranks: {tree}" in output
    ring = "nccl:ring,simple (ring:node=8,channels=8)"
    assert f"NCCL selects for all_reduce on 16 ranks: {ring}" in output
    assert "NCCL selects NVLSTree, which messages cannot represent: Ring instead" in output


def test_nccl_on_a_part_of_a_node_and_without_its_own_collective(tmp_path: Path) -> None:
    path = written(tmp_path, 4, call(1, "all_to_all", 1 << 20), call(2, "barrier", 0, 1),
                   call(3, "broadcast", 1 << 20, 2))  # fmt: skip
    code, output = run(path, "-p", "dgx_h100", "--library", "nccl")
    assert code == 0, output
    for words in (
        "all_to_all on 4 ranks: nccl:p2p,simple (direct)",
        "barrier on 4 ranks: dissemination",
        "broadcast on 4 ranks: nccl:ring,ll (chain:segments=128)",
        "inferred: the graphs of NCCL 2.28.9 for 4 GPUs of a node are those of the complete node",
    ):
        assert words in output


@pytest.mark.parametrize(
    ("name", "ranks", "collective", "size"),
    [
        ("dgx_h100", 8, "broadcast", 1 << 20),
        ("dgx_h100_cluster", 16, "reduce", 1 << 16),
        ("dgx_h100_cluster", 16, "all_reduce", 1 << 18),
        ("dgx_h100_cluster", 16, "all_to_all", 16 * 4 * 100_003),
    ],
)
def test_a_library_has_the_schedules_of_run(
    name: str, ranks: int, collective: str, size: int
) -> None:
    """One question, one answer: `trace run --library nccl`, `-a nccl:...` and `run nccl:...`."""
    machine = platform(name)
    choice = LibraryChoice.of("nccl", machine)
    call = CollectiveCall(collective, tuple(range(ranks)), root=ranks - 3)
    ((_, chosen),) = choice(call, size)
    (line,) = choice.selected
    label = line.partition(": ")[2].partition(" ")[0]
    ((_, named),) = parts_of(machine, label)(call, size)
    request = ComparisonRequest(
        platform=machine,
        collective=collective,
        ranks=[ranks],
        sizes=[Size(bytes=size)],
        algorithms=[label],
        root=ranks - 3,
    )
    library = LibraryPlan.of(machine)
    assert library is not None
    (case,) = library.schedules(label, request, ranks)
    if isinstance(chosen, str):
        assert chosen == named == case.schedule.name
    else:
        assert not isinstance(named, str)
        assert chosen.to_text() == named.to_text() == case.schedule.to_text()
        assert chosen.root == (ranks - 3 if collective == "reduce" else None)


def test_a_version_and_a_system_may_follow(tmp_path: Path) -> None:
    """For platforms of users, whose nodes are like those of a known system."""
    path = written(tmp_path, 8, call(1, "all_reduce", 1 << 20))
    machine = "torus:8,rate=25GB/s"
    code, output = run(path, "-p", machine, "--library", "nccl:dgx_h100")
    assert code == 0, output
    assert "NCCL selects for all_reduce on 8 ranks" in output
    code, output = run(path, "-p", machine, "--library", "openmpi:4.1.6")
    assert code == 0, output
    assert "Open MPI 4.1 selects for all_reduce on 8 ranks: recursive_halving_doubling" in output


def test_a_library_may_compose_a_collective(tmp_path: Path) -> None:
    """Open MPI reduces 8 B on 128 ranks, then broadcasts them from the same root."""
    path = written(tmp_path, 128, call(1, "all_reduce", 8))
    code, output = run(path, "--library", "openmpi", "-p", "loggp_cluster")
    assert code == 0, output
    assert "Open MPI 5.0 selects for all_reduce on 128 ranks: binomial, then binary_tree" in output
    machine = platform("loggp_cluster")
    trace = read_trace(path, Options())[0]
    parts = [("reduce", "binomial"), ("broadcast", "binary_tree")]
    found = simulate_trace(expand(trace, lambda *_: parts, machine), machine)
    alone = [
        tutti.simulate(tutti.schedule(name, collective=each, ranks=128), machine, size="8 B")
        for each, name in parts
    ]
    # The root is the last of the reduction, and the other ranks wait for it.
    assert found.completion_ps == pytest.approx(sum(one.completion_ps for one in alone), rel=0.01)
    assert found.messages == 2 * 127


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "has collectives expected: --algorithm NAME, or --library NAME"),
        (("-a", "ring", "--library", "nccl"), "--library: excludes --algorithm"),
        (("--library", "nccl"), "NCCL's graphs on loggp_cluster are not known"),
        (("--library", "platform"), "the library of loggp_cluster is not known"),
        (("--library", "mvapich"), "--library"),
        (("--library", "platform:2.27"), "--library: has no version"),
        (("--library", "nccl:dgx_h1000"), "did you mean `dgx_h100`"),
        (("--library", "openmpi:1.2"), "its algorithms are unknown: expected 4.1 or newer"),
    ],
)
def test_libraries_that_do_not_fit_are_refused(
    tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    code, output = run(written(tmp_path, 2, *STEP), *words)
    assert code == 2
    assert message in output


def test_options_without_effect_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path, 2, Node(id=1, duration_us=5))
    for option in ("--algorithm", "--library"):
        code, output = run(path, option, "ring" if option == "--algorithm" else "openmpi")
        assert code == 2
        assert f"{option}: has no effect" in output
    (tmp_path / "a.goal").write_text("num_ranks 1\nrank 0 {\nl1: calc 5\n}\n", "utf-8")
    code, output = run(tmp_path / "a.goal", "--groups", "g.json")
    assert code == 2
    assert "--groups: has no effect from goal" in output


def test_uneven_nodes_are_refused(tmp_path: Path) -> None:
    code, output = run(
        written(tmp_path, 9, *STEP[:2]), "-p", "dgx_h100_cluster", "--library", "nccl"
    )
    assert code == 2
    assert "--library: 9 ranks do not fill nodes of 8 GPUs equally" in output


@pytest.mark.parametrize("write", [write_trace, write_goal, write_goal_binary])
def test_collectives_that_have_only_a_time_are_not_written(
    tmp_path: Path, write: Callable[[Trace, Path, Options], object]
) -> None:
    trace, _ = read_trace(written(tmp_path, 4, *STEP), Options())
    with_times = timed(trace, lambda *_: 1000)
    out = tmp_path / "out" / "t.et"
    out.parent.mkdir()
    with pytest.raises(tutti.errors.ConfigError, match="rank 0, operation 1 is a collective that"):
        write(with_times, out, Options())
    assert not list(out.parent.iterdir())

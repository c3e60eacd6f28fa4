"""Chakra traces as programs: tasks of each rank, and errors with file, rank and node."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tutti import _core
from tutti.base.errors import SimulationError
from tutti.base.units import TimePerByte
from tutti.formats.chakra import reader as chakra
from tutti.formats.chakra.groups import load_groups
from tutti.formats.chakra.reader import Attribute, ChakraTrace, Node
from tutti.workloads.errors import TraceError
from tutti.workloads.trace import NodeRates, programs

if TYPE_CHECKING:
    from pathlib import Path

    from tutti._core import TrainingProgram, TrainingRecord


def compute(number: int, us: int = 0, *after: int, **attributes: int) -> Node:
    given = {name: Attribute("int64", value) for name, value in attributes.items()}
    return Node(id=number, name=f"n{number}", data_deps=after, duration_us=us, attributes=given)


def moved(number: int, kind: int, size: int, *after: int, **more: Attribute) -> Node:
    given = {"comm_type": Attribute("int64", kind), "comm_size": Attribute("int64", size), **more}
    return Node(id=number, name=f"c{number}", type="COMM_COLL", data_deps=after, attributes=given)


def trace(*nodes: Node) -> ChakraTrace:
    return ChakraTrace(nodes=nodes, source="t.0.et")


STEP = (
    compute(1, 5),
    moved(2, 0, 4000, 1),
    compute(3, 7, 1),
    Node(id=4, type="METADATA", data_deps=(2, 3)),
    compute(5, 1, 4),
)


def run(found: list[TrainingProgram], sizes: tuple[int, ...]) -> TrainingRecord:
    rate = TimePerByte.parse("1 GB/s").core
    torus = _core.StepFabric.torus([_core.TorusRing(nodes, rate, 1000) for nodes in sizes])
    endpoint = _core.Endpoint.ideal(packet=1 << 30, cycle_ps=0, chunks_at_once=(64, 16))
    settings = _core.FabricSettings(
        chunk=1 << 30, message=1 << 30, order="fifo", every_npu=len(found) > 1
    )
    of = list(range(len(found))) if len(found) > 1 else []
    return _core.simulate_training(found, torus, endpoint, settings, of)


def test_nodes_wait_for_their_dependencies() -> None:
    """5 us, then 7 us during 6 messages of 1 us and 1 ns, then 1 us; metadata are no task."""
    (found,) = programs([trace(*STEP)] * 4, (4,))
    assert [(task.kind, task.layer) for task in found.tasks] == [
        ("compute", "n1"),
        ("all_reduce", "c2"),
        ("compute", "n3"),
        ("compute", "n5"),
    ]
    record = run([found], (4,))
    assert record.end_ps == (5 + 7 + 1) * 1_000_000
    assert record.breakdown().overlap_ps == 6 * 1_001_000


def test_ranks_that_compute_longer_are_waited_for() -> None:
    slow = (compute(1, 50), *STEP[1:])
    found = programs([trace(*STEP)] * 3 + [trace(*slow)], (4,))
    assert len(found) == 4
    record = run(found, (4,))
    assert record.npus == 4
    # The slow rank decides: 50 us, six messages, and 1 us; the others' 7 us are hidden.
    assert record.end_ps == 50_000_000 + max(7_000_000, 6 * 1_001_000) + 1_000_000
    assert record.breakdown(0).exposed_ps > record.breakdown(3).exposed_ps


def test_times_come_from_operations_where_none_was_recorded() -> None:
    memory = TimePerByte.parse("1 GB/s")
    (found,) = programs(
        [trace(compute(1, 0, num_ops=4000, tensor_size=2000))] * 2,
        (2,),
        timing=NodeRates(10**9, memory),
    )
    assert found.tasks[0].amount == 4_000_000


def test_cpu_work_runs_in_the_background() -> None:
    cpu = Node(id=1, duration_us=5, attributes={"is_cpu_op": Attribute("bool", value=True)})
    (found,) = programs([trace(cpu, compute(2, 5))] * 2, (2,))
    assert [task.kind for task in found.tasks] == ["background", "compute"]


def test_collectives_use_the_npus_of_their_group(tmp_path: Path) -> None:
    """By dimension or by group: 1, 3, 5, 7 are one apart on the second ring of 2 x 4."""
    dims = Attribute("bool_list", [False, True])
    file = tmp_path / "groups.json"
    file.write_text(
        '{"0": [0, 2, 4, 6], "1": [1, 3, 5, 7], "2": [0, 1], "3": [0, 5], "4": [1, 0]}', "utf-8"
    )
    groups = load_groups(file)
    variants: list[ChakraTrace | list[ChakraTrace]] = [
        trace(moved(1, 0, 4000, involved_dim=dims)),
        [trace(moved(1, 0, 4000, pg_name=Attribute("string", str(r % 2)))) for r in range(8)],
    ]
    for variant in variants:
        traces = variant if isinstance(variant, list) else [variant] * 8
        (found,) = programs([replace(each, groups=groups) for each in traces], (2, 4))
        assert run([found], (2, 4)).end_ps == 6 * 1_001_000
    for name, words in (
        ("3", "complete rings of 2 x 4"),
        ("1", "does not have rank 0"),
        ("9", "unknown group"),
        ("4", "`involved_dim` selects other NPUs than group `4`"),
    ):
        more = {"involved_dim": dims} if name == "4" else {}
        bad = trace(moved(1, 0, 4000, pg_name=Attribute("string", name), **more))
        with pytest.raises(TraceError, match=words):
            programs([replace(bad, groups=groups)] * 8, (2, 4))


def test_the_size_of_an_all_gather_is_that_of_a_part() -> None:
    (found,) = programs([trace(moved(1, 2, 1000), moved(2, 7, 4000, 1))] * 4, (4,))
    assert [task.amount for task in found.tasks] == [4000, 4000]


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        ([moved(1, 0, 0)], ("all_reduce of 0 B",)),
        ([moved(1, 5, 8)], ("broadcast is not supported",)),
        ([moved(1, 0, 8, comm_type=Attribute("string", "x"))], ("`comm_type` is a string",)),
        ([moved(1, 0, 8, involved_dim=Attribute("int64", 1))], ("`involved_dim` is a int64",)),
        (
            [moved(1, 0, 8, involved_dim=Attribute("bool_list", [False]))],
            ("all_reduce on one NPU",),
        ),
        ([compute(1, 5, 2), compute(2, 5, 1)], ("dependencies form a cycle",)),
        ([compute(1, 5, 9)], ("depends on node 9",)),
        ([compute(1)], ("has no duration",)),
        ([Node(id=1, type="COMM_SEND", duration_us=1)], ("COMM_SEND",)),
        ([Node(id=1, type="METADATA")], ("rank 0 has no tasks",)),
    ],
)
def test_unsupported_nodes_are_refused(nodes: list[Any], words: tuple[str, ...]) -> None:
    with pytest.raises(TraceError) as refused:
        programs([trace(*nodes)] * 2, (2,))
    for word in words:
        assert word in str(refused.value)


def test_messages_name_file_rank_and_node(tmp_path: Path) -> None:
    for rank, size in enumerate((8, 0)):
        chakra.write(tmp_path / f"t.{rank}.et", ChakraTrace(nodes=(moved(4, 0, size),)))
    with pytest.raises(TraceError) as refused:
        programs(chakra.read_all(tmp_path / "t"), (2,))
    for word in ("t.1.et", "node 4", "0 B"):
        assert word in str(refused.value)


def test_equal_ranks_that_exchange_messages_are_all_simulated() -> None:
    """A ring of messages, such as ASTRA-sim's custom all_reduce, has one program per rank."""

    def exchange(number: int, kind: str, peer: int, *after: int) -> Node:
        key = "comm_dst" if kind == "COMM_SEND" else "comm_src"
        attributes = {key: Attribute("int32", peer), "comm_size": Attribute("int64", 1000)}
        return Node(id=number, type=kind, data_deps=after, attributes=attributes)

    traces = [
        trace(exchange(1, "COMM_SEND", (r + 1) % 4), exchange(2, "COMM_RECV", (r - 1) % 4))
        for r in range(4)
    ]
    found = programs(traces, (4,))
    assert len(found) == 4
    assert run(found, (4,)).end_ps == 1_001_000


def test_other_ranks_than_npus_are_refused() -> None:
    with pytest.raises(TraceError, match="traces of 3 ranks: expected 8 for 2 x 4 NPUs"):
        programs([trace(*STEP)] * 3, (2, 4))


def test_ranks_that_communicate_differently_are_refused() -> None:
    traces = [trace(moved(1, 0, 8)), trace(moved(1, 0, 16))]
    with pytest.raises(
        SimulationError, match="collective 0 of NPU 1 in its group is all_reduce of 16 B"
    ):
        run(programs(traces, (2,)), (2,))
    with pytest.raises(
        SimulationError, match="of NPU 1 in its group is missing: expected all_reduce of 8 B"
    ):
        run(programs([trace(moved(1, 0, 8)), trace(compute(1, 5))], (2,)), (2,))

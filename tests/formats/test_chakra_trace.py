"""Chakra traces of all ranks as traces of `tutti convert`, and back."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tutti.base.errors import ConfigError
from tutti.formats.chakra import reader as chakra
from tutti.formats.chakra.reader import Attribute, ChakraTrace, Node
from tutti.formats.chakra.schema import COLLECTIVES
from tutti.formats.chakra.trace import read_trace
from tutti.formats.chakra.writer import write_trace
from tutti.formats.formats import Options, recognised
from tutti.workloads.errors import TraceError
from tutti.workloads.operations import CollectiveCall, Kind, Operations, Trace

if TYPE_CHECKING:
    from pathlib import Path

IDLE = Node(id=0, name="no operations", type="METADATA")
CPU = Attribute("bool", True)
ALL_REDUCE = {"comm_type": Attribute("int64", 0), "comm_size": Attribute("int64", 64)}


def integer(value: int) -> Attribute:
    return Attribute("int64", value)


def written(folder: Path, *ranks: list[Node], prefix: str = "t") -> Path:
    for rank, nodes in enumerate(ranks):
        chakra.write(folder / f"{prefix}.{rank}.et", ChakraTrace(nodes=tuple(nodes)))
    return folder / f"{prefix}.0.et"


def loaded(path: Path, *, repair: bool = False) -> tuple[Trace, str]:
    trace, lines = read_trace(path, Options(repair=repair))
    return trace, "\n".join(lines)


def assert_equal(one: Trace, other: Trace) -> None:
    assert (one.name, one.collectives) == (other.name, other.collectives)
    for left, right in zip(one.ranks, other.ranks, strict=True):
        for column in fields(Operations):
            a, b = getattr(left, column.name), getattr(right, column.name)
            assert np.array_equal(a, b), column.name
            assert column.name == "names" or a.dtype == b.dtype, column.name


# --- round trips ---------------------------------------------------------------------------------

_CALLS = st.builds(
    CollectiveCall,
    collective=st.sampled_from([name for name in COLLECTIVES if "block" not in name]),
    group=st.permutations(range(3)).flatmap(
        lambda ranks: st.integers(1, 3).map(lambda count: tuple(ranks[:count]))
    ),
)


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    calls = tuple(dict.fromkeys(draw(st.lists(_CALLS, max_size=3))))
    ranks = [_operations(draw, rank, calls) for rank in range(3)]
    used = sorted({int(i) for one in ranks for i in one.peers[one.kinds == Kind.COLLECTIVE]})
    # The reader numbers collectives in the order of their use.
    order = dict.fromkeys(int(i) for one in ranks for i in one.peers[one.kinds == Kind.COLLECTIVE])
    assert sorted(order) == used
    numbers = {call: number for number, call in enumerate(order)}
    for one in ranks:
        chosen = one.kinds == Kind.COLLECTIVE
        one.peers[chosen] = [numbers[int(i)] for i in one.peers[chosen]]
    return Trace(name="t", ranks=tuple(ranks), collectives=tuple(calls[i] for i in order))


def _operations(draw: st.DrawFn, rank: int, calls: tuple[CollectiveCall, ...]) -> Operations:
    own = [number for number, call in enumerate(calls) if rank in call.group]
    rows: list[tuple[int, int, int, int, int]] = []
    after: list[list[int]] = []
    for index in range(draw(st.integers(0 if rank else 1, 5))):
        kind = draw(st.sampled_from(list(Kind)[: 4 if own else 3]))
        size, duration, peer, tag = draw(st.integers(0, 2**40)), 0, -1, 0
        if kind == Kind.COMPUTE:
            size, duration = 0, draw(st.integers(0, 10**13))
        elif kind == Kind.COLLECTIVE:
            peer = draw(st.sampled_from(own))
            size = 6 * (size + 1) * (calls[peer].collective != "barrier")
        else:
            peer = draw(st.sampled_from([one for one in range(3) if one != rank]))
            tag = draw(st.integers(-(2**62), 2**62))
        rows.append((kind, size, duration, peer, tag))
        after.append(draw(st.lists(st.integers(0, index - 1), unique=True)) if index else [])
    columns = np.array(rows, np.int64).reshape(-1, 5).T
    dependencies = [parent for one in after for parent in one]
    return Operations(
        kinds=columns[0].astype(np.uint8),
        sizes=columns[1],
        durations=columns[2],
        peers=columns[3].astype(np.int32),
        tags=columns[4],
        streams=np.array(draw(_lists(rows, st.integers(0, 2**31 - 2))), np.int32),
        first_dependency=np.cumsum([0, *map(len, after)]).astype(np.int64),
        dependencies=np.array(dependencies, np.int64),
        on_start=np.array(draw(_lists(dependencies, st.booleans())), bool),
        names=tuple(f"op {rank} {index}" for index in range(len(rows))),
    )


def _lists(like: list[Any], values: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    return st.lists(values, min_size=len(like), max_size=len(like))


@settings(max_examples=25)
@given(trace=traces())
def test_a_written_trace_is_read_unchanged(
    tmp_path_factory: pytest.TempPathFactory, trace: Trace
) -> None:
    folder = tmp_path_factory.mktemp("trace")
    write_trace(trace, folder / "out.0.et", Options())
    again, _ = read_trace(folder, Options())
    assert_equal(trace, again)
    assert [path.name for path in folder.iterdir() if path.suffix == ".et"]


def test_written_files_have_the_attributes_that_astrasim_reads(tmp_path: Path) -> None:
    nodes = [
        Node(id=4, name="a", duration_us=3),
        Node(
            id=9,
            type="COMM_SEND",
            data_deps=(4,),
            attributes={"comm_dst": integer(1), "comm_size": integer(8), "comm_tag": integer(5)},
        ),
        Node(
            id=2,
            type="COMM_COLL",
            ctrl_deps=(9,),
            attributes=ALL_REDUCE | {"pg_name": Attribute("string", "x")},
        ),
    ]
    (tmp_path / "comm_group.json").write_text('{"x": [1, 0]}', "utf-8")
    trace, losses = loaded(written(tmp_path, nodes, [IDLE]))
    assert trace.collectives == (CollectiveCall("all_reduce", (1, 0)),)
    assert losses == "1 METADATA nodes are not operations"
    lines = write_trace(trace, tmp_path / "out.0.et", Options())
    compute, send, call = chakra.read(tmp_path / "out.0.et").nodes
    assert (lines, compute.duration_us, send.data_deps, call.data_deps) == ((), 3, (0,), (1,))
    assert {name: (one.kind, one.value) for name, one in send.attributes.items()} == {
        "is_cpu_op": ("bool", False),
        "stream": ("int64", 1),
        "comm_src": ("int32", 0),
        "comm_dst": ("int32", 1),
        "comm_size": ("int64", 8),
        "comm_tag": ("int32", 5),
    }
    assert call.attributes["pg_name"] == Attribute("string", "1")
    assert json.loads((tmp_path / "out.comm_group.json").read_text("utf-8")) == {"1": [1, 0]}
    (idle,) = chakra.read(tmp_path / "out.1.et").nodes
    assert idle.type == "METADATA"


def test_losses_of_other_readers_are_reported(tmp_path: Path) -> None:
    one = Operations(
        kinds=np.array([0, 0, 3], np.uint8),
        sizes=np.array([0, 0, 7], np.int64),
        durations=np.array([1_500_000, 2_000_000, 0], np.int64),
        peers=np.array([-1, -1, 0], np.int32),
        tags=np.zeros(3, np.int64),
        streams=np.zeros(3, np.int32),
        first_dependency=np.array([0, 0, 1, 1], np.int64),
        dependencies=np.array([0], np.int64),
        on_start=np.array([True]),
    )
    calls = (CollectiveCall("broadcast", (0, 1), root=1),)
    trace = Trace(name="x", ranks=(one, one), collectives=calls)
    lines = write_trace(trace, tmp_path / "o", Options())
    assert [line.split()[1] for line in lines] == ["collectives", "durations", "operations"]
    assert_equal(trace, loaded(tmp_path / "o")[0])
    other = Trace(name="x", ranks=(one,), collectives=calls)
    with pytest.raises(ConfigError, match=r"o\.1\.et.*1 ranks"):
        write_trace(other, tmp_path / "o", Options())
    anyone = replace(one, kinds=np.array([0, 2, 3], np.uint8))
    with pytest.raises(TraceError, match=r"rank 0, operation 1: .*from any rank"):
        write_trace(Trace(name="x", ranks=(anyone,), collectives=calls), tmp_path / "q", Options())
    calls = (CollectiveCall("all_to_all_v", (0, 1)),)
    with pytest.raises(TraceError, match="no Chakra equivalent"):
        write_trace(Trace(name="x", ranks=(one, one), collectives=calls), tmp_path / "p", Options())


# --- PyTorch traces ------------------------------------------------------------------------------


def kernels(*gaps: int, linked: bool = False, stream: int = 7) -> list[Node]:
    """Kernels on a stream with a launcher each, which run sequentially."""
    nodes, start = [], 10
    for index, gap in enumerate(gaps):
        cpu = {"is_cpu_op": CPU, "tid": integer(99)}
        launcher = (4 * index - 3,) if index else ()
        nodes.append(
            Node(id=4 * index + 1, ctrl_deps=launcher, start_us=start - 5, duration_us=1,
                 attributes=cpu)
        )  # fmt: skip
        before = (4 * index - 2,) if linked and index else ()
        attributes = {"stream": integer(stream), "is_cpu_op": Attribute("bool", False)}
        nodes.append(
            Node(id=4 * index + 2, data_deps=(4 * index + 1, *before), start_us=start,
                 duration_us=10, attributes=attributes)
        )  # fmt: skip
        start += 10 + gap
    return nodes


def test_missing_stream_order_is_counted_and_repaired(tmp_path: Path) -> None:
    path = written(tmp_path, kernels(0, 5, -3, 0))
    trace, lines = loaded(path)
    assert "2 operations lack the recorded order of their stream (mlcommons/chakra#215)" in lines
    assert "1 neighbours of a stream overlap" in lines
    assert trace.ranks[0].streams.tolist() == [8, 7] * 4
    repaired, lines = loaded(path, repair=True)
    assert "2 dependencies were added in the recorded order of streams" in lines
    first, after = repaired.ranks[0].first_dependency, repaired.ranks[0].dependencies
    assert [after[first[i] : first[i + 1]].tolist() for i in (3, 5, 7)] == [[2, 1], [4, 3], [6]]


def test_paths_through_other_nodes_order_a_stream(tmp_path: Path) -> None:
    nodes = kernels(1, 1, 1)
    wait = Node(id=50, data_deps=(2,), start_us=22, attributes={"is_cpu_op": CPU})
    nodes[2] = Node(**{**vars(nodes[2]), "ctrl_deps": (1, 50)})
    _, lines = loaded(written(tmp_path, [*nodes, wait]))
    assert "1 operations lack the recorded order" in lines
    _, lines = loaded(written(tmp_path, kernels(1, 1, 1, linked=True), prefix="u"))
    assert "lack the recorded order" not in lines


def test_start_times_that_contradict_dependencies_are_an_error(tmp_path: Path) -> None:
    early = Node(
        id=1, data_deps=(2,), start_us=10, duration_us=1, attributes={"stream": integer(3)}
    )
    late = Node(id=2, start_us=50, duration_us=1, attributes={"stream": integer(3)})
    path = written(tmp_path, [early, late])
    assert loaded(path)[0].ranks[0].dependencies.tolist() == [1]
    with pytest.raises(TraceError, match=r"rank 0, node \d.*form a cycle.*contradict"):
        loaded(path, repair=True)


def test_traces_without_start_times_state_the_unordered_kernels(tmp_path: Path) -> None:
    nodes = [Node(**{**vars(node), "start_us": 0}) for node in kernels(0, 0)]
    assert "2 operations of GPU streams have no successor" in loaded(written(tmp_path, nodes))[1]


def test_process_groups_come_from_metadata_nodes(tmp_path: Path) -> None:
    text = '[\'[{"pg_name": "0", "ranks": [], "group_size": 2}, {"pg_name": "b", "ranks": [1]}]\']'
    groups = Node(id=1, name="process_group:init", type="METADATA", inputs=(text, "", ""))
    named = [
        Node(id=index + 2, type="COMM_COLL", ctrl_deps=(1,), attributes=ALL_REDUCE | {
            "pg_name": Attribute("string", name)})
        for index, name in enumerate(("0", "b"))
    ]  # fmt: skip
    trace, _ = loaded(written(tmp_path, [groups, named[0]], [groups, *named]))
    assert [call.group for call in trace.collectives] == [(0, 1), (1,)]
    assert trace.ranks[1].kinds.tolist() == [0, 3, 3]
    with pytest.raises(TraceError, match=r"rank 0, node 3: group `b` does not have rank 0"):
        loaded(written(tmp_path, [groups, named[1]], [groups]))


# --- errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([Node(id=1, data_deps=(3,))], "node 1: depends on node 3, which is missing"),
        ([Node(id=1, data_deps=(2,)), Node(id=2, data_deps=(1,))], "cycle: 1 -> 2 -> 1"),
        ([Node(id=1, ctrl_deps=(2,)), Node(id=2, data_deps=(1,))], "control dependencies close"),
        ([Node(id=1, data_deps=(1,))], "cycle: 1 -> 1"),
        ([Node(id=1), Node(id=1)], "node 1: another node has the same number"),
        ([Node(id=1, type="COMM_COLL")], "COMM_COLL node has no attribute `comm_type`"),
        ([Node(id=1, type="COMM_SEND")], "COMM_SEND node has no attribute `comm_dst`"),
        ([Node(id=1, type="COMM_RECV", attributes={"comm_src": integer(9)})], "expected another"),
        ([Node(id=1, type="COMM_COLL", attributes=ALL_REDUCE | {"comm_size": integer(0)})], "0 B"),
        ([Node(id=1, type="COMM_COLL", attributes={"comm_type": integer(77)})], "unknown coll"),
        (
            [Node(id=1, type="COMM_COLL",
                  attributes=ALL_REDUCE | {"pg_name": Attribute("string", "7")})],
            "unknown group `7`",
        ),
        (
            [Node(id=1, type="COMM_COLL",
                  attributes=ALL_REDUCE | {"involved_dim": Attribute("bool_list", (True, False))})],
            "selects dimensions",
        ),
        ([Node(id=1, attributes={"stream": Attribute("string", "x")})], "`stream` is a string"),
        ([Node(id=1, duration_us=2**62)], "is too long"),
    ],
)  # fmt: skip
def test_errors_have_file_rank_and_node(tmp_path: Path, nodes: list[Node], message: str) -> None:
    with pytest.raises(TraceError) as caught:
        loaded(written(tmp_path, nodes, [IDLE]))
    assert message in str(caught.value)
    assert "t.0.et, rank 0, node 1" in str(caught.value)


def test_repair_removes_missing_parents_and_control_cycles(tmp_path: Path) -> None:
    nodes = [Node(id=1, ctrl_deps=(2,)), Node(id=2, data_deps=(1, 44))]
    trace, lines = loaded(written(tmp_path, nodes), repair=True)
    assert trace.ranks[0].dependencies.tolist() == [0]
    assert lines.splitlines() == [
        "1 dependencies of control were removed",
        "1 dependencies on missing nodes were removed",
    ]


def test_folders_prefixes_and_missing_ranks(tmp_path: Path) -> None:
    path = written(tmp_path, [Node(id=1)], [Node(id=1)])
    for one in (path, tmp_path, tmp_path / "t", tmp_path / "t.1.et"):
        assert len(loaded(one)[0].ranks) == 2
    assert recognised(path, b"", option="--from").name == "chakra"
    written(tmp_path, [Node(id=1)], prefix="u")
    with pytest.raises(TraceError, match=r"traces of 2 prefixes \(t, u\)"):
        loaded(tmp_path)
    (tmp_path / "t.0.et").unlink()
    with pytest.raises(TraceError, match="missing file of rank 0"):
        loaded(tmp_path / "t")

"""Chakra traces: bytes by hand, round trips and errors."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tutti.formats.chakra.reader import Attribute, ChakraTrace, Node, read, read_all, write
from tutti.formats.chakra.schema import NODE_TYPES
from tutti.workloads.errors import TraceError

if TYPE_CHECKING:
    from pathlib import Path

SAMPLE = bytes.fromhex(
    "070a05302e302e34"  # 7 bytes: version (1) "0.0.4"
    "39"  # 57 bytes, a node:
    "0803"  # id (1) 3
    "12026172"  # name (2) "ar"
    "1807"  # type (3) COMM_COLL
    "520e0a0969735f6370755f6f70d80100"  # is_cpu_op, bool (27) false
    "520d0a09636f6d6d5f747970654800"  # comm_type, int64 (9) 0
    "52100a09636f6d6d5f73697a654880808002"  # comm_size, int64 (9) 4 MiB
)  # fmt: skip


def test_bytes_by_hand(tmp_path: Path) -> None:
    file = tmp_path / "x.3.et"
    file.write_bytes(SAMPLE)
    trace = read(file)
    assert trace.version == "0.0.4"
    (node,) = trace.nodes
    assert (node.id, node.name, node.type) == (3, "ar", "COMM_COLL")
    assert node.attributes["is_cpu_op"] == Attribute("bool", False)
    assert node.collective == ("all_reduce", 4 << 20)
    assert write(tmp_path / "y.3.et", trace).read_bytes() == SAMPLE


_INTS = st.integers(0, 2**31 - 1)
_VALUES = st.one_of(
    st.tuples(st.sampled_from(["int32", "int64", "uint64", "sint64", "fixed32"]), _INTS),
    st.tuples(st.just("double"), st.floats(allow_nan=False)),
    st.tuples(st.just("bool"), st.booleans()),
    st.tuples(st.just("string"), st.text(max_size=5)),
    st.tuples(st.just("int64_list"), st.lists(_INTS, max_size=4).map(tuple)),
    st.tuples(st.just("bool_list"), st.lists(st.booleans(), max_size=4).map(tuple)),
).map(lambda pair: Attribute(*pair))
_NODES = st.builds(
    Node,
    id=st.integers(0, 2**64 - 1),
    name=st.text(max_size=8),
    type=st.sampled_from(NODE_TYPES[1:]),
    data_deps=st.lists(_INTS, max_size=3).map(tuple),
    ctrl_deps=st.lists(_INTS, max_size=3).map(tuple),
    duration_us=_INTS,
    attributes=st.dictionaries(st.text(min_size=1, max_size=5), _VALUES, max_size=4),
    inputs=st.none() | st.tuples(st.text(max_size=4), st.text(max_size=4), st.just("")),
)


@given(nodes=st.lists(_NODES, min_size=1, max_size=4).map(tuple))
def test_written_traces_are_read_back(
    tmp_path_factory: pytest.TempPathFactory, nodes: tuple[Node, ...]
) -> None:
    trace = ChakraTrace(
        nodes=nodes, attributes={"schema": Attribute("string", "1.0.2-chakra.1.0.0")}
    )
    file = write(tmp_path_factory.mktemp("et") / "t.0.et", trace)
    back = read(file)
    assert back.nodes == nodes
    assert back.attributes == trace.attributes
    assert write(file.with_name("u.0.et"), back).read_bytes() == file.read_bytes()


def test_gzipped_files_are_read(tmp_path: Path) -> None:
    file = tmp_path / "z.0.et"
    file.write_bytes(gzip.compress(SAMPLE))
    assert len(read(file).nodes) == 1


def collective(**attributes: Attribute) -> Node:
    return Node(id=4, type="COMM_COLL", attributes=attributes, place="f.et, rank 1, node 4")


@pytest.mark.parametrize("kind", ["int32", "int64", "uint64", "sint32", "double"])
def test_numbers_may_be_of_any_numeric_type(kind: str) -> None:
    node = collective(comm_type=Attribute(kind, 7), comm_size=Attribute(kind, 64))
    assert node.collective == ("reduce_scatter", 64)


@pytest.mark.parametrize(
    ("attributes", "problem"),
    [
        ({}, "has no attribute `comm_type`"),
        ({"comm_type": ("int64", 0)}, "has no attribute `comm_size`"),
        ({"comm_type": ("int64", 0), "comm_size": ("int64", 0)}, "all_reduce of 0 B"),
        (
            {"comm_type": ("int64", 12), "comm_size": ("int64", 8)},
            "unknown collective `comm_type` 12",
        ),
        ({"comm_type": ("string", "0")}, "`comm_type` is a string"),
        ({"comm_type": ("int64", 0), "comm_size": ("double", 0.5)}, "`comm_size` is a double"),
        ({"comm_type": ("int64_list", (0,))}, "`comm_type` is a int64_list"),
    ],
)
def test_nodes_without_a_collective_are_refused(
    attributes: dict[str, tuple[str, object]], problem: str
) -> None:
    node = collective(**{name: Attribute(*value) for name, value in attributes.items()})
    with pytest.raises(TraceError, match=problem) as refused:
        _ = node.collective
    assert "f.et, rank 1, node 4" in str(refused.value)


def test_a_file_that_is_cut_short_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "x.0.et"
    for length in range(1, len(SAMPLE)):
        if length == 8:
            continue  # the complete metadata
        file.write_bytes(SAMPLE[:length])
        with pytest.raises(TraceError, match="truncated"):
            read(file)


def nodes(*waits: tuple[int, ...]) -> ChakraTrace:
    made = tuple(Node(id=i, data_deps=wait) for i, wait in enumerate(waits))
    return ChakraTrace(nodes=made, source="f.et")


def test_nodes_follow_their_dependencies() -> None:
    assert [node.id for node in nodes((2,), (), (1,), ()).ordered()] == [1, 3, 2, 0]
    with pytest.raises(TraceError, match=r"f\.et: dependencies form a cycle"):
        nodes((1,), (0,)).ordered()
    with pytest.raises(TraceError, match="depends on node 9"):
        nodes((9,)).ordered()
    twice = ChakraTrace(nodes=(Node(id=1), Node(id=1, place="f.et, rank 0, node 1")))
    with pytest.raises(TraceError, match="another node has the same number"):
        twice.ordered()


def test_missing_ranks_are_refused(tmp_path: Path) -> None:
    for rank in (0, 1, 3):
        write(tmp_path / f"job.{rank}.et", nodes(()))
    with pytest.raises(TraceError, match="missing file of rank 2"):
        read_all(tmp_path / "job")
    write(tmp_path / "job.2.et", nodes(()))
    assert len(read_all(tmp_path / "job")) == 4
    with pytest.raises(TraceError, match=r"missing file .*other\.0\.et"):
        read_all(tmp_path / "other")

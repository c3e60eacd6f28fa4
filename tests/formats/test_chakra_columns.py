"""The reader of all nodes in one pass against the reader node by node."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tutti import _core
from tutti.formats.chakra import reader as chakra
from tutti.formats.chakra.columns import load_nodes
from tutti.formats.chakra.nodes import KNOWN, METADATA, Nodes, read_nodes
from tutti.formats.chakra.reader import Attribute, ChakraTrace, Node
from tutti.formats.chakra.schema import NODE_TYPES
from tutti.workloads.errors import TraceError

if TYPE_CHECKING:
    from pathlib import Path

_NUMBERS = st.integers(0, (1 << 53) - 1)
_VALUES = {
    "bool": st.booleans(),
    "int64": _NUMBERS,
    "uint64": _NUMBERS,
    "double": st.floats(0, 1e9).map(float),
    "string": st.text(max_size=12),
    "uint64_list": st.lists(_NUMBERS, max_size=3).map(tuple),
    "bool_list": st.lists(st.booleans(), max_size=3).map(tuple),
}
_ATTRIBUTES = st.sampled_from(sorted(_VALUES)).flatmap(
    lambda kind: _VALUES[kind].map(lambda value: Attribute(kind, value))
)
# Others share six letters with known names, are shorter than these, or have no ASCII letters.
_NAMES = st.sampled_from([*KNOWN, "op_schema", "rf_id", "comm_sizes", "id", "comm_x", "größe", ""])
_TIMES = st.integers(0, 1 << 40)
_NODES = st.builds(
    Node,
    id=st.integers(0, (1 << 64) - 1),
    name=st.sampled_from(["", "mm", "größe", "x" * 300]),
    type=st.sampled_from(NODE_TYPES[1:]),
    data_deps=st.lists(_NUMBERS, max_size=3).map(tuple),
    ctrl_deps=st.lists(_NUMBERS, max_size=3).map(tuple),
    duration_us=_TIMES,
    start_us=_TIMES,
    attributes=st.dictionaries(_NAMES, _ATTRIBUTES, max_size=6),
    inputs=st.none() | st.just(("[1]", "[[]]", "['Int']")),
)


def outcome(read: Any, path: Path) -> Nodes | str:
    try:
        found: Nodes = read(path, 3)
    except TraceError as error:
        return f"{error.kind}: {error} {error.fields}"
    return found


def assert_equal(left: Any, right: Any, where: str = "") -> None:
    assert type(left) is type(right), where
    if isinstance(left, Nodes):
        for column in fields(Nodes):
            assert_equal(getattr(left, column.name), getattr(right, column.name), column.name)
    elif isinstance(left, np.ndarray):
        assert left.dtype == right.dtype, where
        assert np.array_equal(left, right), where
    elif where == "integers":
        assert left.keys() == right.keys()
        for name, columns in left.items():
            for one, other in zip(columns, right[name], strict=True):
                assert_equal(one, other, name)
    else:
        assert left == right, where


def accepted(path: Path) -> bool:
    return _core.read_chakra(chakra.load_bytes(path), KNOWN, METADATA) is not None


@settings(max_examples=150)
@given(nodes=st.lists(_NODES, min_size=1, max_size=6))
def test_both_readers_return_the_same_nodes(
    nodes: list[Node], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("chakra") / "t.3.et"
    chakra.write(
        path, ChakraTrace(nodes=tuple(nodes), attributes={"name": Attribute("string", "t")})
    )
    assert_equal(outcome(load_nodes, path), outcome(read_nodes, path))


@settings(max_examples=400)
@given(data=st.data())
def test_both_readers_refuse_damaged_files_with_the_same_words(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("chakra") / "t.3.et"
    nodes = [
        Node(id=1, name="mm", attributes={"stream": Attribute("int64", 7)}, data_deps=(0,)),
        Node(id=2, type="METADATA", inputs=("[1]", "[[]]", "['Int']"), ctrl_deps=(1, 300)),
        Node(id=3, type="COMM_COLL", attributes={"pg_name": Attribute("string", "0"),
             "op_schema": Attribute("string", "x"), "comm_size": Attribute("double", 8.0)}),
    ]  # fmt: skip
    chakra.write(path, ChakraTrace(nodes=tuple(nodes)))
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(content) - 1))
        change = data.draw(st.sampled_from(["set", "cut", "insert"]))
        if change == "set":
            content[at] = data.draw(st.integers(0, 255))
        elif change == "insert":
            content.insert(at, data.draw(st.integers(0, 255)))
        elif at:
            del content[at:]
    path.write_bytes(content)
    assert_equal(outcome(load_nodes, path), outcome(read_nodes, path))


def test_attributes_with_two_names_have_the_second(tmp_path: Path) -> None:
    path = tmp_path / "t.0.et"
    for first, second in (("stream", "x"), ("x", "stream"), ("stream", "tid"), ("x", "y")):
        names = b"".join(bytes((0x0A, len(one))) + one.encode() for one in (first, second))
        attribute = names + b"\x48\x05"  # an int64 of 5
        node = b"\x18\x04\x52" + bytes([len(attribute)]) + attribute
        path.write_bytes(b"\x00" + bytes([len(node)]) + node)
        assert_equal(outcome(load_nodes, path), outcome(read_nodes, path))
        assert isinstance(outcome(load_nodes, path), Nodes)


def test_every_kind_of_skipped_attribute_is_checked(tmp_path: Path) -> None:
    path = tmp_path / "t.0.et"
    valid, cut = b"\x0a\x05rf_id\x48\x05", b"\x0a\x05rf_id\x62\x05"
    node = b"\x18\x04" + b"".join(b"\x52" + bytes([len(one)]) + one for one in (valid, cut))
    path.write_bytes(b"\x00" + bytes([len(node)]) + node)
    found = outcome(load_nodes, path)
    assert isinstance(found, str)
    assert "an attribute of node 0 is not a message of a Chakra trace" in found
    assert_equal(found, outcome(read_nodes, path))


def test_files_of_writers_are_read_in_one_pass(tmp_path: Path) -> None:
    attributes = {name: Attribute("int64", 5) for name in ("stream", "comm_size", "rf_id")}
    node = Node(id=7, name="mm", attributes=attributes, data_deps=(1, 2), ctrl_deps=(3,))
    path = chakra.write(tmp_path / "t.0.et", ChakraTrace(nodes=(node,) * 3))
    assert accepted(path)
    nodes = load_nodes(path, 0)
    assert nodes.parents.tolist() == [1, 2, 3] * 3
    assert nodes.column("stream", -1).tolist() == [5] * 3
    assert nodes.dropped == {"rf_id"}
    assert not accepted(chakra.write(tmp_path / "e.0.et", ChakraTrace(nodes=())))


@pytest.mark.parametrize(
    "message",
    [
        b"\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x02\x18\x04",  # a number above 64 bits
        b"\x0a\x01\x01\x18\x04",  # the number as bytes
        b"\x63\x64\x18\x04",  # a group
    ],
)
def test_unusual_encodings_are_left_to_the_other_reader(message: bytes, tmp_path: Path) -> None:
    path = tmp_path / "t.0.et"
    path.write_bytes(b"\x00" + bytes([len(message)]) + message)
    assert not accepted(path)
    assert_equal(outcome(load_nodes, path), outcome(read_nodes, path))

"""Reads the nodes of a Chakra file into columns, node by node.

Attributes remain bytes until they are needed. Equal bytes are decoded once, so that a node costs a
few lookups, and not an object per attribute. `tutti.formats.chakra.reader` reads all of a node
instead; `tutti.formats.chakra.columns` reads well-formed files five times faster.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tutti.formats.chakra.groups import NAMES as GROUP_NAMES
from tutti.formats.chakra.groups import group_name
from tutti.formats.chakra.reader import (
    MOST_US,
    Attribute,
    attributes_of,
    load_messages,
    parsed,
)
from tutti.formats.chakra.schema import NODE_TYPES, schema
from tutti.workloads.errors import TraceError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

_UNSIGNED = ("comm_type", "comm_size", "comm_src", "comm_dst", "comm_root", "duration_ps")
_SIGNED = ("comm_tag", "stream", "tid")
METADATA = NODE_TYPES.index("METADATA")
INTEGERS = (*_UNSIGNED, *_SIGNED, "is_cpu_op", "num_ops", "tensor_size")
"""Attributes whose values become columns."""
ON_START = "start_deps"
_DIMENSIONS = "involved_dim"
KNOWN = (*INTEGERS, *GROUP_NAMES, ON_START, _DIMENSIONS)
"""The names of attributes that are read."""
_MOST_CACHED = 1 << 16
"""The largest number of cached attributes; most attributes of a trace repeat."""
_PREFIX = 8


def _prefix(name: str) -> bytes:
    """Returns the first bytes of attributes of a name, which writers place first."""
    text = name.encode()
    return bytes((0x0A, min(len(text), 0x7F))) + text[: _PREFIX - 2]


@dataclass(kw_only=True)
class Nodes:
    """The nodes of a file. Node i has element i of each column, in file order.

    Attributes:
        source: The file.
        attributes: The attributes of the file.
        ids: Numbers, uint64.
        types: Indices into `NODE_TYPES`, uint8.
        names: Names.
        starts: Recorded start times in microseconds, int64.
        durations: Recorded durations in microseconds, int64.
        counts: Dependencies per node, int64.
        data: Data dependencies per node, int64.
        parents: The numbers of the nodes depended on, uint64: first those of data.
        integers: Attributes of `INTEGERS`: node indices and values, int64 each.
        groups: Names of process groups, by node index.
        on_start: Numbers of the nodes whose start suffices, by node index.
        inputs: The inputs of METADATA nodes, by node index.
        dropped: Names of other attributes.
        tensors: The number of nodes with recorded inputs.
    """

    source: Path
    attributes: dict[str, Attribute] = field(default_factory=dict)
    ids: NDArray[np.uint64]
    types: NDArray[np.uint8]
    names: list[str]
    starts: NDArray[np.int64]
    durations: NDArray[np.int64]
    counts: NDArray[np.int64]
    data: NDArray[np.int64]
    parents: NDArray[np.uint64]
    integers: dict[str, tuple[NDArray[np.int64], NDArray[np.int64]]]
    groups: dict[int, str]
    on_start: dict[int, tuple[int, ...]]
    inputs: dict[int, str]
    dropped: set[str]
    tensors: int

    def __len__(self) -> int:
        """Returns the number of nodes."""
        return len(self.ids)

    def place(self, index: int, rank: int) -> str:
        """Returns file, rank and node, for errors."""
        return f"{self.source}, rank {rank}, node {self.ids[index]}"

    def column(self, name: str, default: int) -> NDArray[np.int64]:
        """Returns an attribute of all nodes, with a value for nodes without it."""
        found = np.full(len(self), default, np.int64)
        nodes, values = self.integers[name]
        found[nodes] = values
        return found


class _Decoder:
    """Decodes attributes, each distinct sequence of bytes once.

    Attributes of other names are skipped by their first `_PREFIX` bytes: tag, length, and at least
    six letters or the complete name.
    """

    def __init__(self, source: Path, rank: int) -> None:
        self._source, self._rank = source, rank
        self._cached: dict[bytes, tuple[Callable[[int], None], Callable[[Any], None], Any]] = {}
        self._prefixes = {_prefix(name) for name in KNOWN}
        self._skipped: set[bytes] = set()
        self.dropped: set[str] = set()
        self.columns: dict[str, tuple[Any, Any]] = {
            **{name: (array("q"), array("q")) for name in INTEGERS},
            **{name: (list[int](), list[Any]()) for name in (*GROUP_NAMES, ON_START)},
        }

    def add(self, index: int, node: Any) -> None:  # noqa: ANN401 - generated at run time
        """Adds the attributes of the node with this index."""
        cached, skipped = self._cached, self._skipped
        for raw in node.attr[:]:
            if raw[:_PREFIX] in skipped:
                continue
            found = cached.get(raw)
            if found is None:
                name, value = decoded(raw, self._source, self._rank, node.id)
                if name not in self.columns:
                    self._skip(raw, name)
                    continue
                nodes, values = self.columns[name]
                found = (nodes.append, values.append, value)
                if len(cached) < _MOST_CACHED:
                    cached[raw] = found
            add_node, add_value, value = found
            add_node(index)
            add_value(value)

    def _skip(self, raw: bytes, name: str) -> None:
        if name:
            self.dropped.add(name)
        start = _prefix(name)
        space = len(self._skipped) < _MOST_CACHED
        if space and raw.startswith(start) and start not in self._prefixes:
            self._skipped.add(raw[:_PREFIX])


def decoded(raw: bytes, path: Path, rank: int, number: int) -> tuple[str, Any]:
    """Returns name and value of an attribute of node `number`; no name without a value.

    Raises:
        TraceError: The bytes are not an attribute, or the value is invalid.
    """
    place = f"{path}, rank {rank}, node {number}"
    message = parsed(schema()["AttributeProto"], raw, path, f"an attribute of node {number}")
    for name, attribute in attributes_of([message]).items():
        if name in INTEGERS:
            return name, _integer(name, attribute, place)
        if name == _DIMENSIONS:
            return _all_dimensions(attribute, place)
        if name == ON_START and attribute.kind != "uint64_list":
            return name, ()
        if name in GROUP_NAMES:
            return name, group_name({name: (attribute.kind, attribute.value)}, place)
        return name, attribute.value
    return "", None


def _integer(name: str, attribute: Attribute, place: str) -> int:
    if name == "is_cpu_op" and attribute.kind == "bool":
        return int(attribute.value)
    return attribute.integer(name, place, signed=name in _SIGNED)


def _all_dimensions(attribute: Attribute, place: str) -> tuple[str, None]:
    """Returns no attribute if a collective spans all dimensions of a network.

    Raises:
        TraceError: It spans some: traces have no dimensions.
    """
    if attribute.kind == "bool_list" and all(attribute.value):
        return "", None
    message = f"{place}: attribute `{_DIMENSIONS}` selects dimensions of a network: expected "
    message += "`pg_name`, or all dimensions"
    raise TraceError(message, kind="attribute_type", fields={"attribute": _DIMENSIONS})


class _Collector:
    """Collects the nodes of a file in columns."""

    def __init__(self, path: Path, rank: int) -> None:
        self._path, self._rank = path, rank
        self._decoder = _Decoder(path, rank)
        self._texts: dict[bytes, str] = {}
        self._names: list[str] = []
        self._ids, self._starts, self._durations = array("Q"), array("Q"), array("Q")
        self._types, self._data, self._ends = array("q"), array("q"), array("q", [0])
        self._parents = array("Q")
        self._inputs: dict[int, str] = {}
        self._tensors = 0

    def add(self, index: int, node: Any) -> None:  # noqa: ANN401 - generated at run time
        """Adds the node with this index in the file.

        Raises:
            TraceError: Its name is not UTF-8, or an attribute is invalid.
        """
        name = self._texts.get(node.name)
        if name is None:
            name = self._texts[node.name] = _text(node.name, self._path, index)
        self._names.append(name)
        self._ids.append(node.id)
        self._types.append(node.type)
        self._starts.append(node.start_time_micros)
        self._durations.append(node.duration_micros)
        after = node.data_deps[:]
        self._data.append(len(after))
        if node.ctrl_deps:
            after += node.ctrl_deps[:]
        self._parents.extend(after)
        self._ends.append(len(self._parents))
        recorded = node.inputs
        if recorded:
            self._tensors += 1
            if node.type == METADATA:
                place = f"node {index} of the file"
                info = parsed(schema()["IOInfo"], recorded, self._path, place)
                self._inputs[index] = info.values
        self._decoder.add(index, node)

    def columns(self) -> Columns:
        """Returns what was collected."""
        attributes = self._decoder.columns
        return Columns(
            ids=np.frombuffer(self._ids, np.uint64),
            types=np.frombuffer(self._types, np.int64),
            names=self._names,
            starts=np.frombuffer(self._starts, np.uint64),
            durations=np.frombuffer(self._durations, np.uint64),
            data=np.frombuffer(self._data, np.int64),
            ends=np.frombuffer(self._ends, np.int64),
            parents=np.frombuffer(self._parents, np.uint64),
            inputs=self._inputs,
            attributes=attributes | {name: _integers(*attributes[name]) for name in INTEGERS},
            dropped=self._decoder.dropped,
            tensors=self._tensors,
        )


def _integers(nodes: array[int], values: array[int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    return np.frombuffer(nodes, np.int64), np.frombuffer(values, np.int64)


@dataclass(frozen=True, kw_only=True)
class Columns:
    """The nodes of a file before they are checked; names are those of `Nodes`.

    Attributes:
        ends: The end of the dependencies of each node in `parents`, after a 0.
        attributes: The node indices and values of each attribute.
    """

    ids: NDArray[np.uint64]
    types: NDArray[np.int64]
    names: list[str]
    starts: NDArray[np.uint64]
    durations: NDArray[np.uint64]
    data: NDArray[np.int64]
    ends: NDArray[np.int64]
    parents: NDArray[np.uint64]
    inputs: dict[int, str]
    attributes: dict[str, tuple[Any, Any]]
    dropped: set[str]
    tensors: int


def nodes_of(columns: Columns, attributes: dict[str, Attribute], path: Path, rank: int) -> Nodes:
    """Returns the nodes of a file; `attributes` are those of the file.

    Raises:
        TraceError: A type is unknown, a time exceeds the range of picoseconds, or two attributes
            of a node name different groups.
    """
    nodes = Nodes(
        source=path,
        attributes=attributes,
        ids=columns.ids,
        types=_types(columns.types, columns.ids, path, rank),
        names=columns.names,
        starts=_times(columns.starts),
        durations=_times(columns.durations),
        counts=columns.ends[1:] - columns.ends[:-1],
        data=columns.data,
        parents=columns.parents,
        integers={name: columns.attributes[name] for name in INTEGERS},
        groups={},
        on_start=dict(zip(*columns.attributes[ON_START], strict=True)),
        inputs=columns.inputs,
        dropped=columns.dropped,
        tensors=columns.tensors,
    )
    nodes.groups = _groups(columns, nodes, rank)
    return _checked(nodes, rank)


def _groups(columns: Columns, nodes: Nodes, rank: int) -> dict[int, str]:
    """Returns the name of the process group of each node that has one.

    Raises:
        TraceError: Two attributes of a node name different groups.
    """
    first, *others = (dict(zip(*columns.attributes[name], strict=True)) for name in GROUP_NAMES)
    for attribute, named in zip(GROUP_NAMES[1:], others, strict=True):
        for node in first.keys() & named.keys():
            both = {GROUP_NAMES[0]: ("string", first[node]), attribute: ("string", named[node])}
            group_name(both, nodes.place(node, rank))
        first |= named
    return first


def read_nodes(path: Path, rank: int) -> Nodes:
    """Reads the nodes of a rank, one by one.

    Raises:
        ConfigError: The file cannot be read.
        TraceError: The file is truncated, is not a trace, has no nodes, or an attribute is invalid.
    """
    from google.protobuf.message import DecodeError

    head, parts = load_messages(path)
    collector = _Collector(path, rank)
    add, parse = collector.add, schema()["NodeBytes"].FromString
    for index, part in enumerate(parts):
        try:
            node = parse(part)
        except DecodeError:
            raise _malformed(path, index) from None
        add(index, node)
    return nodes_of(collector.columns(), attributes_of(head.attr), path, rank)


def _text(raw: bytes, path: Path, index: int) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        raise _malformed(path, index) from None


def _malformed(path: Path, index: int) -> TraceError:
    problem = f"{path}: node {index} of the file is not a message of a Chakra trace"
    return TraceError(problem, kind="malformed")


def _times(given: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Returns times; those beyond the range of signed integers become negative."""
    return given.view(np.int64)


def _types(
    given: NDArray[np.int64], ids: NDArray[np.uint64], path: Path, rank: int
) -> NDArray[np.uint8]:
    """Returns the types of nodes.

    Raises:
        TraceError: A type is unknown.
    """
    wrong = np.flatnonzero((given < 1) | (given >= len(NODE_TYPES)))
    if len(wrong):
        at = int(wrong[0])
        problem = f"{path}, rank {rank}, node {ids[at]}: unknown type {given[at]}"
        problem += f": expected 1 to {len(NODE_TYPES) - 1}"
        raise TraceError(problem, kind="unknown_type", fields={"type": int(given[at])})
    return given.astype(np.uint8)


def _checked(nodes: Nodes, rank: int) -> Nodes:
    """Returns the nodes.

    Raises:
        TraceError: A time exceeds the range of picoseconds.
    """
    for name, times in (("duration", nodes.durations), ("start", nodes.starts)):
        wrong = np.flatnonzero((times < 0) | (times > MOST_US))
        if len(wrong):
            at = int(wrong[0])
            problem = (
                f"{nodes.place(at, rank)}: {name} of {times[at : at + 1].view(np.uint64)[0]} us"
            )
            problem += f" is too long: expected at most {MOST_US}"
            attribute = "duration_micros" if name == "duration" else "start_time_micros"
            raise TraceError(problem, kind="attribute_type", fields={"attribute": attribute})
    return nodes

"""Reads the nodes of a Chakra file into columns: a million nodes in seconds.

Attributes remain bytes until they are needed. Equal bytes are decoded once, so that a node costs a
few lookups, and not an object per attribute. `tutti.interop.chakra` reads all of a node instead.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tutti.errors import TraceError
from tutti.interop.chakra import (
    MOST_US,
    NODE_TYPES,
    Attribute,
    attributes_of,
    load_bytes,
    messages,
    parsed,
)
from tutti.interop.chakra_schema import schema

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

__all__ = ["INTEGERS", "Nodes", "load_nodes"]

_UNSIGNED = ("comm_type", "comm_size", "comm_src", "comm_dst", "comm_root", "duration_ps")
_SIGNED = ("comm_tag", "stream", "tid")
METADATA = NODE_TYPES.index("METADATA")
INTEGERS = (*_UNSIGNED, *_SIGNED, "is_cpu_op", "num_ops", "tensor_size")
"""Attributes whose values become columns."""
_GROUP, _ON_START = "pg_name", "start_deps"
_DIMENSIONS = "involved_dim"
_KNOWN = (*INTEGERS, _GROUP, _ON_START, _DIMENSIONS)
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
        self._attribute = schema()["AttributeProto"]
        self._cached: dict[bytes, tuple[Callable[[int], None], Callable[[Any], None], Any]] = {}
        self._prefixes = {_prefix(name) for name in _KNOWN}
        self._skipped: set[bytes] = set()
        self.dropped: set[str] = set()
        self.columns: dict[str, tuple[Any, Any]] = {
            **{name: (array("q"), array("q")) for name in INTEGERS},
            **{name: (list[int](), list[Any]()) for name in (_GROUP, _ON_START)},
        }

    def add(self, index: int, node: Any) -> None:  # noqa: ANN401 - generated at run time
        """Adds the attributes of the node with this index."""
        cached, skipped = self._cached, self._skipped
        for raw in node.attr[:]:
            if raw[:_PREFIX] in skipped:
                continue
            found = cached.get(raw)
            if found is None:
                name, value = self._decoded(raw, node.id)
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

    def _decoded(self, raw: bytes, number: int) -> tuple[str, Any]:
        place = f"{self._source}, rank {self._rank}, node {number}"
        message = parsed(self._attribute, raw, self._source, f"an attribute of node {number}")
        for name, attribute in attributes_of([message]).items():
            if name in INTEGERS:
                if name == "is_cpu_op" and attribute.kind == "bool":
                    return name, int(attribute.value)
                return name, attribute.integer(name, place, signed=name in _SIGNED)
            if name == _DIMENSIONS:
                return _all_dimensions(attribute, place)
            if name == _ON_START and attribute.kind != "uint64_list":
                return name, ()
            return name, str(attribute.value) if name == _GROUP else attribute.value
        return "", None


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


def load_nodes(path: Path, rank: int) -> Nodes:
    """Reads the nodes of a rank.

    Raises:
        ConfigError: The file cannot be read.
        TraceError: The file is truncated, is not a trace, or an attribute is invalid.
    """
    from google.protobuf.message import DecodeError

    parts = messages(load_bytes(path), path)
    head = parsed(schema()["GlobalMetadata"], next(parts, b""), path, "the metadata")
    decoder = _Decoder(path, rank)
    texts: dict[bytes, str] = {}
    ids, starts, durations, parents = array("Q"), array("Q"), array("Q"), array("Q")
    types, ends, names, tensors = array("q"), array("q", [0]), list[str](), 0
    data = array("q")
    inputs: dict[int, str] = {}
    parse = schema()["NodeBytes"].FromString
    for index, part in enumerate(parts):
        try:
            node = parse(part)
        except DecodeError:
            raise _malformed(path, index) from None
        raw = node.name
        name = texts.get(raw)
        if name is None:
            name = texts[raw] = _text(raw, path, index)
        names.append(name)
        ids.append(node.id)
        types.append(node.type)
        starts.append(node.start_time_micros)
        durations.append(node.duration_micros)
        after = node.data_deps[:]
        data.append(len(after))
        control = node.ctrl_deps
        if control:
            after += control[:]
        parents.extend(after)
        ends.append(len(parents))
        recorded = node.inputs
        if recorded:
            tensors += 1
            if node.type == METADATA:
                info = parsed(schema()["IOInfo"], recorded, path, f"node {index} of the file")
                inputs[index] = info.values
        decoder.add(index, node)
    bounds = np.frombuffer(ends, np.int64)
    return _checked(
        Nodes(
            source=path,
            attributes=attributes_of(head.attr),
            ids=np.frombuffer(ids, np.uint64),
            types=_types(np.frombuffer(types, np.int64), ids, path, rank),
            names=names,
            starts=_times(np.frombuffer(starts, np.uint64)),
            durations=_times(np.frombuffer(durations, np.uint64)),
            counts=bounds[1:] - bounds[:-1],
            data=np.frombuffer(data, np.int64),
            parents=np.frombuffer(parents, np.uint64),
            integers={
                name: (np.frombuffer(nodes, np.int64), np.frombuffer(values, np.int64))
                for name, (nodes, values) in decoder.columns.items()
                if name in INTEGERS
            },
            groups=dict(zip(*decoder.columns[_GROUP], strict=True)),
            on_start=dict(zip(*decoder.columns[_ON_START], strict=True)),
            inputs=inputs,
            dropped=decoder.dropped,
            tensors=tensors,
        ),
        rank,
    )


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


def _types(given: NDArray[np.int64], ids: array[int], path: Path, rank: int) -> NDArray[np.uint8]:
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

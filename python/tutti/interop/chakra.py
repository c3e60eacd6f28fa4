"""Chakra execution traces (MLCommons): one file of nodes per rank, ``<prefix>.<rank>.et``.

A file is a stream of length-prefixed protobuf messages: metadata, then nodes. Attributes describe
the operation and the bytes of a node; their values may have any type. Other readers accept
different types and read an unknown type as 0. This reader accepts all numeric types, and refuses
other types and collectives of 0 bytes. Order and types of attributes are preserved, so that a
written trace equals the trace read.

Source: the schema of mlcommons/chakra 1.0.0 (``et_def.proto``). Files may be gzipped.
"""

from __future__ import annotations

import gzip
import math
import zlib
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tutti.errors import TraceError
from tutti.files.limits import MOST, Bytes
from tutti.files.reader import read_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Attribute", "ChakraTrace", "Node", "read", "read_all", "write"]

NODE_TYPES = (
    "INVALID",
    "METADATA",
    "MEM_LOAD",
    "MEM_STORE",
    "COMP",
    "COMM_SEND",
    "COMM_RECV",
    "COMM_COLL",
)
COLLECTIVES = (
    "all_reduce",
    "reduce",
    "all_gather",
    "gather",
    "scatter",
    "broadcast",
    "all_to_all",
    "reduce_scatter",
    "reduce_scatter_block",
    "barrier",
)
"""Names by the number of `comm_type`."""

_SCALARS = (
    ("double", 1),
    ("float", 2),
    ("int32", 5),
    ("int64", 3),
    ("uint32", 13),
    ("uint64", 4),
    ("sint32", 17),
    ("sint64", 18),
    ("fixed32", 7),
    ("fixed64", 6),
    ("sfixed32", 15),
    ("sfixed64", 16),
    ("bool", 8),
    ("string", 9),
    ("bytes", 12),
)
"""The types of attributes, with their numbers in descriptors."""

_NOT_NUMBERS = {"bool", "string", "bytes"}
_MOST_NUMBER = (1 << 53) - 1
_MOST_US = MOST // 10**6
"""Maximum duration that picoseconds can represent."""


@dataclass(frozen=True)
class Attribute:
    """A value with its type, such as ``("int64", 5)``; types of lists end in ``_list``."""

    kind: str
    value: Any


@dataclass(frozen=True, kw_only=True)
class Node:
    """A node of a trace.

    Attributes:
        id: The number of the node, unique in its file.
        name: The name.
        type: One of `NODE_TYPES`.
        data_deps: The nodes of data dependencies.
        ctrl_deps: The nodes of control dependencies.
        duration_us: The recorded duration, or 0.

        start_us: The recorded start time.
        attributes: Attributes by name.
        inputs: Values, shapes and types of the inputs, as text.
        outputs: The same of the outputs.
        place: File, rank and node, for errors.
    """

    id: int
    name: str = ""
    type: str = "COMP"
    data_deps: tuple[int, ...] = ()
    ctrl_deps: tuple[int, ...] = ()
    duration_us: int = 0
    start_us: int = 0
    attributes: dict[str, Attribute] = field(default_factory=dict)
    inputs: tuple[str, str, str] | None = None
    outputs: tuple[str, str, str] | None = None
    place: str = field(default="", compare=False)

    def number(self, name: str) -> int | None:
        """Returns an attribute as an integer from 0 to 2^53 - 1; None if it is missing.

        Raises:
            TraceError: The value is not such an integer.
        """
        found = self.attributes.get(name)
        if found is None:
            return None
        value, problem = found.value, ""
        if found.kind in _NOT_NUMBERS or found.kind.endswith("_list"):
            problem = f"is a {found.kind}"
        elif not math.isfinite(value) or value != int(value):
            problem = f"is a {found.kind} of {value:g}"
        elif not 0 <= value <= _MOST_NUMBER:
            problem = f"is {value}"
        if problem:
            message = f"{self.place}: attribute `{name}` {problem}: expected an integer"
            message += " from 0 to 2^53 - 1"
            raise TraceError(message, kind="attribute_type", fields={"attribute": name})
        return int(value)

    def needed(self, name: str) -> int:
        """Returns a required attribute as an integer.

        Raises:
            TraceError: The attribute is missing, or not an integer in range.
        """
        value = self.number(name)
        if value is None:
            message = f"{self.place}: the {self.type} node has no attribute `{name}`"
            raise TraceError(message, kind="missing_attribute", fields={"attribute": name})
        return value

    @property
    def collective(self) -> tuple[str, int]:
        """The collective of a COMM_COLL node, and its bytes.

        Raises:
            TraceError: The collective is missing or unknown, or has no bytes.
        """
        which = self.needed("comm_type")
        if not 0 <= which < len(COLLECTIVES):
            known = ", ".join(f"{i} {name}" for i, name in enumerate(COLLECTIVES))
            message = f"{self.place}: unknown collective `comm_type` {which}: expected {known}"
            raise TraceError(message, kind="unknown_collective", fields={"comm_type": which})
        name = COLLECTIVES[which]
        size = self.needed("comm_size") if name != "barrier" else 0
        if size <= 0 and name != "barrier":
            message = f"{self.place}: {name} of {size} B: expected at least 1 B"
            raise TraceError(message, kind="no_bytes", fields={"comm_size": size})
        return name, size


@dataclass(frozen=True, kw_only=True)
class ChakraTrace:
    """The trace of a rank.

    Attributes:
        nodes: The nodes, in file order.
        version: The version of the schema.
        attributes: The attributes of the file.
        source: The file.
    """

    nodes: tuple[Node, ...]
    version: str = "1.0.0"
    attributes: dict[str, Attribute] = field(default_factory=dict)
    source: str = ""

    def ordered(self) -> list[Node]:
        """Returns the nodes in topological order, else in file order.

        Raises:
            TraceError: Two nodes have the same number, a dependency is missing, or dependencies
                form a cycle.
        """
        by_id = {node.id: node for node in self.nodes}
        if len(by_id) < len(self.nodes):
            counts = Counter(node.id for node in self.nodes)
            twice = next(node for node in self.nodes if counts[node.id] > 1)
            message = f"{twice.place}: another node has the same number"
            raise TraceError(message, kind="same_number", fields={"node": twice.id})
        waits = {}
        for node in self.nodes:
            waits[node.id] = [*node.data_deps, *node.ctrl_deps]
            missing = next((one for one in waits[node.id] if one not in by_id), None)
            if missing is not None:
                message = f"{node.place}: depends on node {missing}, which is missing"
                raise TraceError(message, kind="missing_node", fields={"node": missing})
        sorter = TopologicalSorter(waits)
        try:
            sorter.prepare()
        except CycleError as error:
            cycle = " -> ".join(str(one) for one in error.args[1][:9])
            message = f"{self.source}: dependencies form a cycle: {cycle}"
            raise TraceError(message, kind="cyclic_dependency") from None
        position = {node.id: index for index, node in enumerate(self.nodes)}
        found: list[Node] = []
        while sorter.is_active():
            for one in sorted(sorter.get_ready(), key=position.__getitem__):
                found.append(by_id[one])
                sorter.done(one)
        return found


def read(path: str | Path) -> ChakraTrace:
    """Reads the trace of a rank.

    Raises:
        TraceError: The file cannot be read, is truncated, or is not a trace.
    """
    source = Path(path)
    stream = _bytes(source)
    messages = _messages(stream, source)
    schema = _schema()
    head = _parsed(schema["GlobalMetadata"], next(messages, b""), source, "the metadata")
    nodes = [
        _node(_parsed(schema["Node"], part, source, f"node {index} of the file"), source)
        for index, part in enumerate(messages)
    ]
    return ChakraTrace(
        nodes=tuple(nodes),
        version=head.version,
        attributes=_attributes(head.attr),
        source=str(source),
    )


def read_all(prefix: str | Path) -> list[ChakraTrace]:
    """Reads the traces of all ranks: ``<prefix>.0.et``, ``<prefix>.1.et`` and so on.

    Raises:
        TraceError: The file of a rank is missing.
    """
    folder, stem = Path(prefix).parent, Path(prefix).name
    ranks = {}
    for file in folder.glob(f"{stem}.*.et"):
        rank = file.name[len(stem) + 1 : -len(".et")]
        if rank.isdecimal():
            ranks[int(rank)] = file
    if not ranks:
        message = f"{prefix}: missing file {prefix}.0.et"
        raise TraceError(message, kind="missing_rank", fields={"rank": 0})
    for number in range(max(ranks) + 1):
        if number not in ranks:
            message = f"{prefix}: missing file of rank {number}: expected ranks 0 to {max(ranks)}"
            raise TraceError(message, kind="missing_rank", fields={"rank": number})
    return [read(ranks[number]) for number in range(len(ranks))]


def write(path: str | Path, trace: ChakraTrace) -> Path:
    """Writes the trace of a rank; ``.gz`` files are compressed.

    Returns:
        The path written.
    """
    schema = _schema()
    head = schema["GlobalMetadata"](version=trace.version)
    _put_attributes(head.attr, trace.attributes)
    parts = [head.SerializeToString(deterministic=True)]
    for node in trace.nodes:
        message = schema["Node"](
            id=node.id,
            name=node.name,
            type=NODE_TYPES.index(node.type),
            ctrl_deps=node.ctrl_deps,
            data_deps=node.data_deps,
            start_time_micros=node.start_us,
            duration_micros=node.duration_us,
        )
        for name in ("inputs", "outputs"):
            text = getattr(node, name)
            if text is not None:
                values, shapes, types = text
                getattr(message, name).CopyFrom(
                    schema["IOInfo"](values=values, shapes=shapes, types=types)
                )
        _put_attributes(message.attr, node.attributes)
        parts.append(message.SerializeToString(deterministic=True))
    stream = b"".join(_length(len(part)) + part for part in parts)
    target = Path(path)
    target.write_bytes(gzip.compress(stream, mtime=0) if target.suffix == ".gz" else stream)
    return target


def _bytes(source: Path) -> bytes:
    stream = read_bytes(source, Bytes.TRACE, "a Chakra trace")
    if stream[:2] != b"\x1f\x8b":
        return stream
    try:
        unpacked = zlib.decompressobj(wbits=31).decompress(stream, Bytes.TRACE + 1)
    except zlib.error as error:
        message = f"{source}: cannot be decompressed: {error}"
        raise TraceError(message, kind="unreadable") from None
    if len(unpacked) > Bytes.TRACE:
        message = f"{source}: larger than {Bytes.TRACE >> 20} MiB when decompressed"
        raise TraceError(message, kind="too_large")
    return unpacked


def _messages(stream: bytes, source: Path) -> Iterator[bytes]:
    """Yields the length-prefixed messages of a stream."""
    at = 0
    while at < len(stream):
        start, length, shift = at, 0, 0
        while True:
            if at == len(stream) or shift > 63:
                raise _cut(source, start)
            byte = stream[at]
            at += 1
            length |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        if at + length > len(stream):
            raise _cut(source, start)
        yield stream[at : at + length]
        at += length


def _cut(source: Path, start: int) -> TraceError:
    message = f"{source}: the message at byte {start} is truncated"
    return TraceError(message, kind="truncated", fields={"byte": start})


def _length(value: int) -> bytes:
    parts = []
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*parts, value])


def _parsed(kind: Any, part: bytes, source: Path, what: str) -> Any:  # noqa: ANN401 - generated at run time
    from google.protobuf.message import DecodeError

    message = kind()
    try:
        message.ParseFromString(part)
    except DecodeError:
        problem = f"{source}: {what} is not a message of a Chakra trace"
        raise TraceError(problem, kind="malformed") from None
    return message


def _node(message: Any, source: Path) -> Node:  # noqa: ANN401 - generated at run time
    rank = source.name.split(".")[-2] if source.name.count(".") > 1 else "?"
    place = f"{source}, rank {rank}, node {message.id}"
    if not 0 < message.type < len(NODE_TYPES):
        problem = f"{place}: unknown type {message.type}: expected 1 to {len(NODE_TYPES) - 1}"
        raise TraceError(problem, kind="unknown_type", fields={"type": message.type})
    if message.duration_micros > _MOST_US:
        problem = (
            f"{place}: duration of {message.duration_micros} us is too long: expected at most "
            f"{_MOST_US}"
        )
        raise TraceError(problem, kind="attribute_type", fields={"attribute": "duration_micros"})

    def tensors(name: str) -> tuple[str, str, str] | None:
        if not message.HasField(name):
            return None
        info = getattr(message, name)
        return (info.values, info.shapes, info.types)

    return Node(
        id=message.id,
        name=message.name,
        type=NODE_TYPES[message.type],
        data_deps=tuple(message.data_deps),
        ctrl_deps=tuple(message.ctrl_deps),
        duration_us=message.duration_micros,
        start_us=message.start_time_micros,
        attributes=_attributes(message.attr),
        inputs=tensors("inputs"),
        outputs=tensors("outputs"),
        place=place,
    )


def _attributes(given: Any) -> dict[str, Attribute]:  # noqa: ANN401 - generated at run time
    found = {}
    for one in given:
        kind = one.WhichOneof("value")
        if kind is None:
            continue
        value = getattr(one, kind)
        if kind.endswith("_list"):
            value = tuple(value.values)
        found[one.name] = Attribute(kind.removesuffix("_val"), value)
    return found


def _put_attributes(into: Any, attributes: dict[str, Attribute]) -> None:  # noqa: ANN401
    for name, attribute in attributes.items():
        one = into.add(name=name)
        if attribute.kind.endswith("_list"):
            listed = getattr(one, attribute.kind)
            listed.SetInParent()
            listed.values.extend(attribute.value)
        else:
            setattr(one, f"{attribute.kind}_val", attribute.value)


@cache
def _schema() -> dict[str, Any]:
    """Returns the message classes of the schema, by name."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(
        name="chakra/et_def.proto", package="ChakraProtoMsg", syntax="proto3"
    )
    text, count, many = 9, 4, 3

    def message(name: str, *fields: tuple[str, int, int | str, bool]) -> None:
        described = file.message_type.add(name=name)
        for label, number, kind, repeated in fields:
            one = described.field.add(name=label, number=number, label=many if repeated else 1)
            if isinstance(kind, str):
                one.type, one.type_name = 11, f".ChakraProtoMsg.{kind}"
            else:
                one.type = kind

    for name, kind in _SCALARS:
        message(f"{name.capitalize()}List", ("values", 1, kind, True))
    message("AttributeProto", ("name", 1, text, False), ("doc_string", 2, text, False))
    attribute = file.message_type[-1]
    attribute.oneof_decl.add(name="value")
    for index, (name, kind) in enumerate(_SCALARS):
        number = 3 + 2 * index
        attribute.field.add(name=f"{name}_val", number=number, label=1, type=kind, oneof_index=0)
        attribute.field.add(
            name=f"{name}_list",
            number=number + 1,
            label=1,
            type=11,
            type_name=f".ChakraProtoMsg.{name.capitalize()}List",
            oneof_index=0,
        )
    message(
        "IOInfo", *((n, i, text, False) for i, n in enumerate(("values", "shapes", "types"), 1))
    )
    message("GlobalMetadata", ("version", 1, text, False), ("attr", 2, "AttributeProto", True))
    message(
        "Node",
        ("id", 1, count, False),
        ("name", 2, text, False),
        ("type", 3, 5, False),
        ("ctrl_deps", 4, count, True),
        ("data_deps", 5, count, True),
        ("start_time_micros", 6, count, False),
        ("duration_micros", 7, count, False),
        ("inputs", 8, "IOInfo", False),
        ("outputs", 9, "IOInfo", False),
        ("attr", 10, "AttributeProto", True),
    )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"ChakraProtoMsg.{name}"))
        for name in ("GlobalMetadata", "Node", "IOInfo")
    }

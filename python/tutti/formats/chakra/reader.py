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
import io
import math
import re
import zlib
from collections import Counter
from dataclasses import dataclass, field, replace
from graphlib import CycleError, TopologicalSorter
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tutti.base.files.limits import MOST, Bytes
from tutti.base.files.reader import read_bytes
from tutti.formats.chakra.groups import NAMES as GROUP_NAMES
from tutti.formats.chakra.groups import Groups, find_groups, group_name
from tutti.formats.chakra.schema import COLLECTIVES, NODE_TYPES, schema
from tutti.workloads.errors import TraceError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_NOT_NUMBERS = {"bool", "string", "bytes"}
_MOST_NUMBER = (1 << 53) - 1
MOST_US = MOST // 10**6
"""Maximum duration that picoseconds can represent."""


@dataclass(frozen=True)
class Attribute:
    """A value with its type, such as ``("int64", 5)``; types of lists end in ``_list``."""

    kind: str
    value: Any

    def integer(self, name: str, place: str, *, signed: bool = False) -> int:
        """Returns the value as an integer from 0 to 2^53 - 1.

        Args:
            name: The name of the attribute, for errors.
            place: File, rank and node, for errors.
            signed: Whether the value may be any signed 64-bit integer.

        Raises:
            TraceError: The value is not such an integer.
        """
        value, problem = self.value, ""
        low, high = (-MOST, MOST) if signed else (0, _MOST_NUMBER)
        if self.kind in _NOT_NUMBERS or self.kind.endswith("_list"):
            problem = f"is a {self.kind}"
        elif not math.isfinite(value) or value != int(value):
            problem = f"is a {self.kind} of {value:g}"
        elif not low <= value <= high:
            problem = f"is {value}"
        if problem:
            limits = "of 64 bits" if signed else "from 0 to 2^53 - 1"
            message = f"{place}: attribute `{name}` {problem}: expected an integer {limits}"
            raise TraceError(message, kind="attribute_type", fields={"attribute": name})
        return int(value)


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
        return None if found is None else found.integer(name, self.place)

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
    def group(self) -> str:
        """The name of the process group of a collective, or "".

        Raises:
            TraceError: The name is invalid, or two attributes name different groups.
        """
        given = [(name, self.attributes.get(name)) for name in GROUP_NAMES]
        return group_name({n: (a.kind, a.value) for n, a in given if a is not None}, self.place)

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
        groups: The process groups of a table.
        remarks: What the trace does not represent of the file, a line each.
    """

    nodes: tuple[Node, ...]
    version: str = "1.0.0"
    attributes: dict[str, Attribute] = field(default_factory=dict)
    source: str = ""
    groups: Groups = field(default_factory=Groups, compare=False, repr=False)
    remarks: tuple[str, ...] = field(default=(), compare=False, repr=False)

    @property
    def metadata(self) -> tuple[str, ...]:
        """The inputs of METADATA nodes, which may define process groups."""
        recorded = (node.inputs for node in self.nodes if node.type == "METADATA")
        return tuple(inputs[0] for inputs in recorded if inputs is not None)

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
        TraceError: The file cannot be read, is truncated, is not a trace, or has no nodes.
    """
    source = Path(path)
    head, parts = load_messages(source)
    node_class = schema()["Node"]
    nodes = [
        _node(parsed(node_class, part, source, f"node {index} of the file"), source)
        for index, part in enumerate(parts)
    ]
    return ChakraTrace(
        nodes=tuple(nodes),
        version=head.version,
        attributes=attributes_of(head.attr),
        source=str(source),
    )


def read_all(prefix: str | Path, groups: Path | None = None) -> list[ChakraTrace]:
    """Reads the traces of all ranks: ``<prefix>.0.et``, ``<prefix>.1.et`` and so on.

    Args:
        prefix: The prefix of the files, or an archive of them.
        groups: A table of process groups; by default that next to the traces, if there is one.

    Raises:
        ConfigError: The table of groups is invalid.
        TraceError: The file of a rank is missing or invalid, or the archive is invalid.
    """
    from tutti.formats.chakra import archive  # it reads the unpacked files with this function

    if archive.is_archive(Path(prefix)):
        return archive.read_all(Path(prefix), groups)
    files, known = rank_files(prefix), find_groups(Path(prefix), groups)
    return [replace(read(file), groups=known) for file in files]


def rank_files(prefix: str | Path) -> list[Path]:
    """Returns the files of all ranks: ``<prefix>.0.et``, ``<prefix>.1.et`` and so on.

    Raises:
        TraceError: The file of a rank is missing, or there are two.
    """
    folder, stem = Path(prefix).parent, Path(prefix).name
    pattern = re.compile(re.escape(stem) + r"\.([0-9]{1,9})\.et(?:\.gz)?")
    ranks: dict[int, Path] = {}
    for file in sorted(folder.iterdir()) if folder.is_dir() else ():
        if named := pattern.fullmatch(file.name):
            other = ranks.setdefault(int(named[1]), file)
            if other != file:
                message = f"{prefix}: two files of rank {int(named[1])}: {other.name}, {file.name}"
                raise TraceError(message, kind="missing_rank", fields={"rank": int(named[1])})
    if not ranks:
        message = f"{prefix}: missing file {prefix}.0.et"
        raise TraceError(message, kind="missing_rank", fields={"rank": 0})
    for number in range(len(ranks)):
        if number not in ranks:
            message = f"{prefix}: missing file of rank {number}: expected ranks 0 to {max(ranks)}"
            raise TraceError(message, kind="missing_rank", fields={"rank": number})
    return [ranks[number] for number in range(len(ranks))]


def write(path: str | Path, trace: ChakraTrace) -> Path:
    """Writes the trace of a rank; ``.gz`` files are compressed.

    Returns:
        The path written.
    """
    return write_nodes(path, trace.nodes, version=trace.version, attributes=trace.attributes)


def write_nodes(
    path: str | Path,
    nodes: Iterable[Node],
    *,
    version: str = "1.0.0",
    attributes: dict[str, Attribute] | None = None,
) -> Path:
    """Writes the nodes of a rank, as `write` does."""
    from google.protobuf.proto import serialize_length_prefixed

    head = schema()["GlobalMetadata"](version=version)
    _put_attributes(head.attr, attributes or {})
    stream = io.BytesIO()
    for message in chain((head,), map(_message, nodes)):
        serialize_length_prefixed(message, stream)
    target, content = Path(path), stream.getvalue()
    target.write_bytes(gzip.compress(content, mtime=0) if target.suffix == ".gz" else content)
    return target


def _message(node: Node) -> Any:  # noqa: ANN401 - generated at run time
    classes = schema()
    message = classes["Node"](
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
            info = classes["IOInfo"](values=values, shapes=shapes, types=types)
            getattr(message, name).CopyFrom(info)
    _put_attributes(message.attr, node.attributes)
    return message


def load_messages(source: Path) -> tuple[Any, Iterator[bytes]]:
    """Returns the metadata of a file, and the messages of its nodes.

    Raises:
        ConfigError: The file cannot be read.
        TraceError: The file cannot be decompressed, is not a trace, or has no nodes.
    """
    parts = messages(load_bytes(source), source)
    head = parsed(schema()["GlobalMetadata"], next(parts, b""), source, "the metadata")
    first = next(parts, None)
    if first is None:
        message = f"{source}: the trace has no nodes: expected those of a rank"
        raise TraceError(message, kind="empty_trace")
    return head, chain((first,), parts)


def load_bytes(source: Path) -> bytes:
    """Returns the bytes of a file, decompressed.

    Raises:
        ConfigError: The file cannot be read.
        TraceError: The file cannot be decompressed.
    """
    stream = read_bytes(source, Bytes.TRACE, "a Chakra trace")
    if stream[:2] != b"\x1f\x8b":
        return stream
    try:
        # Of all members: `gzip` and `cat` append to a file.
        unpacked = gzip.GzipFile(fileobj=io.BytesIO(stream)).read(Bytes.TRACE + 1)
    except (EOFError, OSError, zlib.error) as error:
        message = f"{source}: cannot be decompressed: {error}"
        hint = "was it copied completely?"
        raise TraceError(message, kind="unreadable", hint=hint) from None
    if len(unpacked) > Bytes.TRACE:
        message = f"{source}: larger than {Bytes.TRACE >> 20} MiB when decompressed"
        raise TraceError(message, kind="too_large")
    return unpacked


def messages(stream: bytes, source: Path) -> Iterator[bytes]:
    """Yields the length-prefixed messages of a stream.

    Raises:
        TraceError: A message is truncated.
    """
    at, end = 0, len(stream)
    while at < end:
        start, length, shift = at, stream[at], 7
        at += 1
        if length > 0x7F:
            length &= 0x7F
            while True:
                if at == end or shift > 63:
                    raise _cut(source, start)
                byte = stream[at]
                at += 1
                length |= (byte & 0x7F) << shift
                shift += 7
                if byte < 0x80:
                    break
        first, at = at, at + length
        if at > end:
            raise _cut(source, start)
        yield stream[first:at]


def _cut(source: Path, start: int) -> TraceError:
    message = f"{source}: the message at byte {start} is truncated"
    return TraceError(message, kind="truncated", fields={"byte": start})


def parsed(kind: Any, part: bytes, source: Path, what: str) -> Any:  # noqa: ANN401 - generated at run time
    """Returns a message; `what` names it in errors.

    Raises:
        TraceError: The bytes are not such a message.
    """
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
    if message.duration_micros > MOST_US:
        problem = (
            f"{place}: duration of {message.duration_micros} us is too long: expected at most "
            f"{MOST_US}"
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
        attributes=attributes_of(message.attr),
        inputs=tensors("inputs"),
        outputs=tensors("outputs"),
        place=place,
    )


def attributes_of(given: Any) -> dict[str, Attribute]:  # noqa: ANN401 - generated at run time
    """Returns the attributes of a message, by name."""
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

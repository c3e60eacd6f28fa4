"""Reads the nodes of a Chakra file in one pass: the core decodes nodes, this module attributes.

The core returns each distinct attribute once, so that few are decoded. It leaves any file in an
unusual encoding, and any fault, to `tutti.formats.chakra.nodes`, which reads node by node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tutti import _core
from tutti.formats.chakra.groups import NAMES as GROUP_NAMES
from tutti.formats.chakra.nodes import (
    INTEGERS,
    KNOWN,
    METADATA,
    ON_START,
    Columns,
    decoded,
    nodes_of,
    read_nodes,
)
from tutti.formats.chakra.reader import attributes_of, load_bytes, parsed
from tutti.formats.chakra.schema import schema
from tutti.workloads.errors import TraceError

if TYPE_CHECKING:
    from pathlib import Path

    from tutti.formats.chakra.nodes import Nodes


def load_nodes(path: Path, rank: int) -> Nodes:
    """Reads the nodes of a rank.

    Raises:
        ConfigError: The file cannot be read.
        TraceError: The file is truncated, is not a trace, has no nodes, or an attribute is invalid.
    """
    found = _core.read_chakra(load_bytes(path), KNOWN, METADATA)
    if found is not None:
        try:
            return _nodes(found, path, rank)
        except TraceError:
            pass  # The other reader reports the first fault of the file.
    return read_nodes(path, rank)


def _nodes(found: _core.ChakraNodes, path: Path, rank: int) -> Nodes:
    """Returns the nodes.

    Raises:
        TraceError: There is a fault, not necessarily the first, or an unusual encoding.
    """
    head = parsed(schema()["GlobalMetadata"], found.metadata, path, "the metadata")
    info = schema()["IOInfo"]
    names = np.array(found.distinct_names, object)
    columns = Columns(
        ids=np.frombuffer(found.ids, np.uint64),
        types=np.frombuffer(found.types, np.int64),
        names=names[np.frombuffer(found.names, np.uint32)].tolist(),
        starts=np.frombuffer(found.starts, np.uint64),
        durations=np.frombuffer(found.durations, np.uint64),
        data=np.frombuffer(found.data, np.int64),
        ends=np.frombuffer(found.ends, np.int64),
        parents=np.frombuffer(found.parents, np.uint64),
        inputs={node: parsed(info, raw, path, "inputs").values for node, raw in found.inputs},
        attributes=_attributes(found, path, rank),
        dropped=_dropped(found, path, rank),
        tensors=found.tensors,
    )
    return nodes_of(columns, attributes_of(head.attr), path, rank)


def _attributes(found: _core.ChakraNodes, path: Path, rank: int) -> dict[str, tuple[Any, Any]]:
    """Returns the nodes and the values of each attribute.

    Raises:
        TraceError: An attribute is invalid, or is not encoded as writers do.
    """
    names = (*INTEGERS, *GROUP_NAMES, ON_START)
    numbers = {name: number for number, name in enumerate(names)}
    which = np.full(len(found.distinct_attributes), len(names), np.uint8)
    integers = np.zeros(len(which), np.int64)
    others: dict[int, Any] = {}
    for index, raw in enumerate(found.distinct_attributes):
        name, value = decoded(raw, path, rank, 0)
        if name in INTEGERS:
            integers[index] = value
        elif name in numbers:
            others[index] = value
        elif name:
            raise _unusual("an attribute has two names")
        which[index] = numbers.get(name, len(names))
    nodes = np.frombuffer(found.attribute_nodes, np.uint32)
    given = np.frombuffer(found.attributes, np.uint32)
    of = which[given]
    columns: dict[str, tuple[Any, Any]] = {}
    for name, number in numbers.items():
        chosen = np.flatnonzero(of == number)
        values = given[chosen]
        if name in INTEGERS:
            columns[name] = nodes[chosen].astype(np.int64), integers[values]
        else:
            columns[name] = nodes[chosen].tolist(), [others[one] for one in values.tolist()]
    return columns


def _dropped(found: _core.ChakraNodes, path: Path, rank: int) -> set[str]:
    """Returns the names of other attributes.

    Raises:
        TraceError: One is not a message, or is not encoded as writers do.
    """
    names = set()
    for raw in found.dropped:
        name, _ = decoded(raw, path, rank, 0)
        if name in {"", *KNOWN}:
            raise _unusual("an attribute has two names, or no value")
        names.add(name)
    return names


def _unusual(encoding: str) -> TraceError:
    """Returns the error after which the other reader reads the file."""
    return TraceError(encoding, kind="malformed")

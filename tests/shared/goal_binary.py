"""The simple reader and writer of the binary form of GOAL, which tests compare the core with.

A file has a header, a table of the ranks, and per rank nodes and an appendix.

All integers are little-endian. The header has the magic number, the number of ranks, the largest
CPU and the largest network interface. The table has the start and the end of each rank, counted
from byte 8. A rank has its number of nodes, its number of nodes without dependencies, the latter's
indices, the nodes, and the appendix: the nodes that await each node. Source: `Parser.hpp` of
spcl/LogGOPSim (commit 76451de).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from tutti.base.files.mistakes import mistake
from tutti.workloads.operations import Kind, Operations

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tutti.base.errors import ConfigError

MAGIC = 4223
_INVALIDATED = 2342
_COOKIE = 8
_HEADER = np.dtype([("ranks", "<u4"), ("cpu", "u1"), ("nic", "u1")])
_NODE = np.dtype(
    [
        ("needs", "<u4"),
        ("type", "u1"),
        ("peer", "<u4"),
        ("size", "<u8"),
        ("tag", "<u4"),
        ("cpu", "u1"),
        ("nic", "u1"),
        ("done", "<u4"),
        ("first_done", "<u4"),
        ("started", "<u4"),
        ("first_started", "<u4"),
    ]
)
_TYPES = {1: Kind.SEND, 2: Kind.RECEIVE, 3: Kind.COMPUTE}
_ANY = 2**32 - 1
_UNIT = 1000


def trace_of(data: bytes, *, source: str) -> tuple[tuple[Operations, ...], int]:
    """Returns the operations of each rank, and how many use another network interface than 0.

    Raises:
        ConfigError: The data is damaged; `source` names it.
    """
    table = _table(data, source)
    ranks, other_nics, reached = [], 0, len(table) * 16 + _HEADER.itemsize
    for rank, (start, end) in enumerate(table.tolist()):
        if not reached <= start <= end <= len(data) - _COOKIE:
            raise _damaged(f"rank {rank} is at bytes {start} to {end} of the file", source)
        reached = end
        of, nics = _rank(
            data[_COOKIE + start : _COOKIE + end], f"{source}: rank {rank}", len(table)
        )
        ranks.append(of)
        other_nics += nics
    return tuple(ranks), other_nics


def _table(data: bytes, source: str) -> NDArray[np.uint64]:
    """Returns the start and the end of each rank."""
    cookie = int.from_bytes(data[:_COOKIE], "little")
    if cookie == _INVALIDATED:
        raise mistake(
            "LogGOPSim has overwritten the file",
            source=source,
            hint="write it again with txt2bin, and run LogGOPSim without --save-mem",
        )
    if cookie != MAGIC or len(data) < _COOKIE + _HEADER.itemsize:
        raise _damaged(f"starts with {cookie}", source)
    ranks = int(np.frombuffer(data, _HEADER, 1, _COOKIE)["ranks"][0])
    start = _COOKIE + _HEADER.itemsize
    if ranks == 0 or len(data) - start < ranks * 16:
        raise _damaged(f"{ranks} ranks in {len(data)} bytes", source)
    return np.frombuffer(data, "<u8", ranks * 2, start).reshape(ranks, 2)


def _rank(data: bytes, source: str, ranks: int) -> tuple[Operations, int]:
    counts = np.frombuffer(data, "<u4", min(2, len(data) // 4))
    nodes, roots = (int(count) for count in counts) if len(counts) == 2 else (0, -1)
    start = 8 + 4 * roots
    appendix = len(data) - start - _NODE.itemsize * nodes
    if roots < 0 or appendix < 0 or appendix % 4:
        raise _damaged(f"{nodes} operations in {len(data)} bytes", source)
    node = np.frombuffer(data, _NODE, nodes, start)
    after = np.frombuffer(data, "<u4", appendix // 4, len(data) - appendix).astype(np.int64)
    kinds = _kinds(node, source)
    computes, receives = kinds == Kind.COMPUTE, kinds == Kind.RECEIVE
    _check(node, computes, receives, ranks, source)
    owner, on, on_start = _dependencies(node, after, source)
    sizes = node["size"].astype(np.int64)
    peers = node["peer"].astype(np.int64)
    tags = node["tag"].astype(np.int64)
    operations = Operations(
        kinds=kinds,
        sizes=np.where(computes, 0, sizes),
        durations=np.where(computes, sizes * _UNIT, 0),
        peers=np.where(computes | (peers == _ANY), -1, peers).astype(np.int32),
        tags=np.where(computes, 0, np.where(tags == _ANY, -1, tags)),
        streams=node["cpu"].astype(np.int32),
        first_dependency=np.concatenate(([0], np.cumsum(np.bincount(owner, minlength=nodes)))),
        dependencies=on,
        on_start=on_start,
    )
    return operations, int(np.count_nonzero(node["nic"]))


def _kinds(node: NDArray[Any], source: str) -> NDArray[np.uint8]:
    kinds = np.full(256, 255, np.uint8)
    kinds[list(_TYPES)] = list(_TYPES.values())
    found: NDArray[np.uint8] = kinds[node["type"]]
    if np.any(found == 255):
        at = int(np.argmax(found == 255))
        raise _damaged(f"operation {at} has type {int(node['type'][at])}", source)
    return found


def _check(
    node: NDArray[Any],
    computes: NDArray[np.bool_],
    receives: NDArray[np.bool_],
    ranks: int,
    source: str,
) -> None:
    any_peer = receives & (node["peer"] == _ANY)
    limit = np.where(computes, (2**63 - 1) // _UNIT, 2**63 - 1).astype(np.uint64)
    for what, wrong in (
        ("peer", ~computes & ~any_peer & (node["peer"] >= ranks)),
        ("size", node["size"] > limit),
        ("tag", ~computes & ~receives & (node["tag"] == _ANY)),
    ):
        if np.any(wrong):
            at = int(np.argmax(wrong))
            raise _damaged(f"operation {at} has {what} {int(node[what][at])}", source)


def _dependencies(
    node: NDArray[Any], after: NDArray[np.int64], source: str
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """Returns the dependencies, by the operation that has them: operation, other, on start."""
    nodes = len(node)
    done, started = (node[name].astype(np.int64) for name in ("done", "started"))
    if int(done.sum() + started.sum()) != len(after):
        raise _damaged(f"{len(after)} dependencies in the appendix", source)
    parts = []
    for counts, first in ((done, node["first_done"]), (started, node["first_started"])):
        start = np.repeat(first.astype(np.int64) - (np.cumsum(counts) - counts), counts)
        at = start + np.arange(len(start))
        if np.any(at >= len(after)):
            raise _damaged("an operation's dependencies lie beyond the appendix", source)
        parts.append((after[at], np.repeat(np.arange(nodes), counts)))
    owner = np.concatenate([part[0] for part in parts])
    on = np.concatenate([part[1] for part in parts])
    if np.any(owner >= nodes) or np.any(np.bincount(owner, minlength=nodes) != node["needs"]):
        raise _damaged("the numbers of dependencies contradict the appendix", source)
    on_start = np.arange(len(on)) >= len(parts[0][0])
    order = np.lexsort((on, owner))
    return owner[order], on[order], on_start[order]


def _damaged(what: str, source: str) -> ConfigError:
    return mistake(
        f"not GOAL in binary form, or damaged: {what}",
        source=source,
        expected="a file of txt2bin",
        hint="GOAL in text form has the format `goal`",
    )


def write_ranks(
    file: BinaryIO, ranks: Sequence[Operations], durations: Sequence[NDArray[np.int64]]
) -> None:
    """Writes a trace.

    Args:
        file: The file.
        ranks: Operations without collectives, with streams up to 255.
        durations: The durations of each rank's computations in ns.
    """
    start = _HEADER.itemsize + 16 * len(ranks)
    bodies, table = [], []
    for of, calc in zip(ranks, durations, strict=True):
        bodies.append(_body(of, calc))
        table += [start, start + len(bodies[-1])]
        start = table[-1]
    cpu = max((int(of.streams.max()) for of in ranks if len(of)), default=0)
    file.write(MAGIC.to_bytes(_COOKIE, "little"))
    file.write(np.array([(len(ranks), cpu, 0)], _HEADER).tobytes())
    file.write(np.array(table, "<u8").tobytes())
    file.writelines(bodies)


def _body(of: Operations, durations: NDArray[np.int64]) -> bytes:
    nodes = len(of)
    computes = of.kinds == Kind.COMPUTE
    needs = np.diff(of.first_dependency)
    owner = np.repeat(np.arange(nodes), needs)
    order = np.argsort(of.dependencies * 2 + of.on_start, kind="stable")
    done = np.bincount(of.dependencies[~of.on_start], minlength=nodes)
    started = np.bincount(of.dependencies[of.on_start], minlength=nodes)
    first = np.cumsum(done + started) - done - started
    types = np.zeros(3, np.uint8)
    types[list(_TYPES.values())] = list(_TYPES)
    node = np.zeros(nodes, _NODE)
    node["needs"] = needs
    node["type"] = types[of.kinds]
    node["peer"] = np.where(computes, 0, of.peers).astype(np.uint32)
    node["size"] = np.where(computes, durations, of.sizes)
    node["tag"] = np.where(computes, 0, of.tags).astype(np.uint32)
    node["cpu"] = of.streams
    node["done"], node["first_done"] = done, first
    node["started"], node["first_started"] = started, first + done
    roots = np.flatnonzero(needs == 0).astype("<u4")
    counts = np.array([nodes, len(roots)], "<u4")
    appendix = owner[order].astype("<u4")
    return b"".join(part.tobytes() for part in (counts, roots, node, appendix))

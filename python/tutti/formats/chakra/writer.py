"""Writes traces as Chakra execution traces that ASTRA-sim 2 reads.

Source: the attributes and types that ``et_feeder_node.cpp`` of mlcommons/chakra 1.0.0 (21585d8) and
``feeder_v3`` of astra-sim/chakra (fece597) read, and ``Workload.cc`` of astra-sim/astra-sim
518bd51: names of groups are integers, and the group 0 is all ranks.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from tutti.base.files.mistakes import mistake
from tutti.formats.chakra.groups import GROUPS, Groups
from tutti.formats.chakra.reader import MOST_US, Attribute, ChakraTrace, Node, write_nodes
from tutti.formats.chakra.schema import COLLECTIVES
from tutti.formats.messages import refuse_timed
from tutti.workloads.errors import TraceError
from tutti.workloads.operations import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tutti.formats.formats import Options
    from tutti.workloads.operations import CollectiveCall, Operations, Trace

PICOSECONDS = 10**6
"""Picoseconds in a microsecond."""
SUMMED = ("all_gather", "gather")
"""Collectives whose `comm_size` is the part of a rank; payloads in tutti are totals."""
_MOST_TAG = 2**31 - 1
_ON_GPU = Attribute("bool", False)


def prefix_of(path: Path) -> Path:
    """Returns the prefix of the files of all ranks: ``run`` of ``run.0.et`` and ``run.et.gz``."""
    return path.with_name(re.sub(r"(?:\.\d+)?\.et(?:\.gz)?$", "", path.name) or path.name)


def write_trace(trace: Trace, path: Path, options: Options) -> tuple[str, ...]:  # noqa: ARG001 - of all formats
    """Writes ``<prefix>.<rank>.et`` of each rank, or ``.et.gz``, and ``<prefix>.comm_group.json``.

    Args:
        trace: The trace.
        path: The prefix, or the file of a rank.
        options: No option has an effect.

    Returns:
        A line per loss: other readers ignore the attributes `duration_ps`, `start_deps` and
        `comm_root`, which `tutti.formats.chakra.trace` reads.

    Raises:
        ConfigError: A file of a further rank exists, or a collective has only a time.
        TraceError: A collective, or a receive from any rank, has no equivalent.
    """
    prefix = prefix_of(path)
    files = _rank_files(len(trace.ranks), path)
    # A former trace may have more ranks.
    further = _rank_files(len(trace.ranks) + 1, path)[-1]
    if further.exists():
        problem = f"exists, and the trace has {len(trace.ranks)} ranks"
        hint = "remove the files of the former trace, or choose another name"
        raise mistake(problem, source=str(further), expected="no file of another rank", hint=hint)
    writer = _Writer(trace)
    for rank, (operations, file) in enumerate(zip(trace.ranks, files, strict=True)):
        attributes = {"name": Attribute("string", trace.name)}
        write_nodes(file, writer.nodes(operations, rank), attributes=attributes)
    table = {str(number): list(group) for group, number in writer.groups.items()}
    groups = prefix.with_name(f"{prefix.name}{GROUPS}")
    if table:
        groups.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
    else:
        groups.unlink(missing_ok=True)
    return tuple(f"{count:,} {text}" for text, count in sorted(writer.losses.items()))


def traces_of(trace: Trace) -> tuple[ChakraTrace, ...]:
    """Returns what `write_trace` would write, as a trace of each rank.

    Raises:
        ConfigError: A collective has only a time.
        TraceError: A collective, or a receive from any rank, has no equivalent.
    """
    writer = _Writer(trace)
    groups = Groups({str(number): group for group, number in writer.groups.items()})
    source = trace.file or trace.name
    return tuple(
        ChakraTrace(
            nodes=tuple(
                replace(node, place=f"{source}, rank {rank}, operation {node.id}")
                for node in writer.nodes(operations, rank)
            ),
            source=source,
            groups=groups,
        )
        for rank, operations in enumerate(trace.ranks)
    )


def written_files(trace: Trace, path: Path) -> list[Path]:
    """Returns the files that `write_trace` has written."""
    prefix = prefix_of(path)
    groups = prefix.with_name(f"{prefix.name}{GROUPS}")
    return _rank_files(len(trace.ranks), path) + [groups] * groups.exists()


def _rank_files(ranks: int, path: Path) -> list[Path]:
    prefix, ending = prefix_of(path), ".et.gz" if path.name.endswith(".et.gz") else ".et"
    return [prefix.with_name(f"{prefix.name}.{rank}{ending}") for rank in range(ranks)]


class _Writer:
    """Converts operations to nodes.

    Attributes:
        groups: The number of each group; all ranks in order need none.
        losses: Numbers of operations by loss.
    """

    def __init__(self, trace: Trace) -> None:
        refuse_timed(trace)
        self._ranks, self._cpu = len(trace.ranks), trace.cpu
        everyone = tuple(range(self._ranks))
        distinct = dict.fromkeys(call.group for call in trace.collectives if call.group != everyone)
        self.groups = {group: number for number, group in enumerate(distinct, start=1)}
        self.losses: Counter[str] = Counter()
        self._calls = [self._call(call) for call in trace.collectives]
        self._scales = [
            len(call.group) if call.collective in SUMMED else 1 for call in trace.collectives
        ]

    def nodes(self, given: Operations, rank: int) -> Iterator[Node]:
        """Yields the nodes of a rank: a METADATA node for a rank without operations."""
        cpu = self._cpu[rank] if self._cpu else None
        if not len(given):
            yield Node(id=0, name="no operations", type="METADATA")
        columns = (given.kinds, given.sizes, given.durations, given.peers, given.tags)
        streams, first = given.streams.tolist(), given.first_dependency.tolist()
        names = given.names or ("",) * len(given)
        values = zip(*(column.tolist() for column in columns), strict=True)
        for index, (kind, size, duration, peer, tag) in enumerate(values):
            edges = slice(first[index], first[index + 1])
            parents = tuple(given.dependencies[edges].tolist())
            early = given.on_start[edges]
            is_cpu = Attribute("bool", value=True) if streams[index] == cpu else _ON_GPU
            attributes = {"is_cpu_op": is_cpu, "stream": Attribute("int64", streams[index])}
            node_type = "COMP"
            if kind == Kind.COMPUTE:
                attributes |= self._computation(duration)
            elif kind == Kind.COLLECTIVE:
                node_type = "COMM_COLL"
                attributes |= self._calls[peer]
                attributes["comm_size"] = Attribute("int64", self._part(size, peer))
            else:
                node_type = "COMM_SEND" if kind == Kind.SEND else "COMM_RECV"
                if peer < 0:
                    raise _from_any(rank, index)
                ends = (rank, peer) if kind == Kind.SEND else (peer, rank)
                attributes |= self._message(size, tag, ends)
            if early.any():
                self.losses["operations wait for the start of others; others wait for the end"] += 1
                numbers = tuple(given.dependencies[edges][early].tolist())
                attributes["start_deps"] = Attribute("uint64_list", numbers)
            yield Node(
                id=index,
                name=names[index],
                type=node_type,
                data_deps=parents,
                duration_us=min((duration + PICOSECONDS // 2) // PICOSECONDS, MOST_US),
                attributes=attributes,
            )

    def _computation(self, duration: int) -> dict[str, Attribute]:
        if not duration:
            return {"duration_ps": Attribute("int64", 0)}
        if not duration % PICOSECONDS:
            return {}
        self.losses["durations are rounded to 1 us for other readers"] += 1
        return {"duration_ps": Attribute("int64", duration)}

    def _message(self, size: int, tag: int, ends: tuple[int, int]) -> dict[str, Attribute]:
        fits = 0 <= tag <= _MOST_TAG
        if not fits:
            self.losses["tags are negative or exceed 31 bits: other readers cut them off"] += 1
        return {
            "comm_src": Attribute("int32", ends[0]),
            "comm_dst": Attribute("int32", ends[1]),
            "comm_size": Attribute("int64", size),
            "comm_tag": Attribute("int32" if fits else "int64", tag),
        }

    def _part(self, size: int, which: int) -> int:
        """Returns `comm_size` of a payload: the part of a rank for all_gather and gather."""
        scale = self._scales[which]
        if size % scale:
            self.losses["payloads are rounded up to a multiple of the ranks"] += 1
        return -(-size // scale)

    def _call(self, call: CollectiveCall) -> dict[str, Attribute]:
        if call.collective not in COLLECTIVES:
            message = f"{call.collective} has no Chakra equivalent: expected one of "
            message += ", ".join(COLLECTIVES)
            fields = {"collective": call.collective}
            raise TraceError(message, kind="unknown_collective", fields=fields)
        found = {"comm_type": Attribute("int64", COLLECTIVES.index(call.collective))}
        if call.root:
            self.losses["collectives have a root that other readers ignore"] += 1
            found["comm_root"] = Attribute("int32", call.root)
        if call.group in self.groups:
            found["pg_name"] = Attribute("string", str(self.groups[call.group]))
        return found


def _from_any(rank: int, index: int) -> TraceError:
    message = f"rank {rank}, operation {index}: a receive from any rank has no Chakra equivalent"
    message += ": expected its source"
    return TraceError(message, kind="other_ranks", fields={"rank": rank})

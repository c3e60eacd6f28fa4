"""Chakra execution traces as traces of `tutti convert`: ``<prefix>.<rank>.et`` of all ranks.

Dependencies of data and of control become dependencies. `stream` attributes of GPU operations and
`tid` attributes of CPU operations become streams. :mod:`tutti.formats.chakra.groups` describes the
process groups.

Source: ``et_def.proto`` and ``pytorch_converter.py`` of mlcommons/chakra 1.0.0 (21585d8);
``Workload.cc`` and ``HardwareResource.cc`` of astra-sim/astra-sim 518bd51.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from tutti.base.files.limits import MOST
from tutti.formats.chakra.columns import load_nodes
from tutti.formats.chakra.groups import find_groups
from tutti.formats.chakra.nodes import METADATA
from tutti.formats.chakra.order import acyclic, positions, stream_order
from tutti.formats.chakra.reader import rank_files
from tutti.formats.chakra.schema import COLLECTIVES, NODE_TYPES
from tutti.formats.chakra.writer import PICOSECONDS, SUMMED, prefix_of
from tutti.workloads.errors import TraceError
from tutti.workloads.operations import CollectiveCall, Kind, Operations, Trace

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from tutti.formats.chakra.groups import Groups, GroupsOfRank
    from tutti.formats.chakra.nodes import Nodes
    from tutti.formats.chakra.order import Graph
    from tutti.formats.formats import Options

_ROOTED = ("reduce", "gather", "scatter", "broadcast")
_RENAMED = {"reduce_scatter_block": "reduce_scatter"}
_OF_RANK = re.compile(r"\.\d+\.et(?:\.gz)?$")
_MOST_STREAM = 2**31 - 1
_KINDS = np.zeros(len(NODE_TYPES), np.uint8)
for _name, _kind in (("SEND", Kind.SEND), ("RECV", Kind.RECEIVE), ("COLL", Kind.COLLECTIVE)):
    _KINDS[NODE_TYPES.index(f"COMM_{_name}")] = _kind


def read_trace(path: Path, options: Options) -> tuple[Trace, tuple[str, ...]]:
    """Reads the traces of all ranks.

    Args:
        path: The file of a rank, the prefix of the files, or a folder with the files of a prefix.
        options: With `repair`, adds missing dependencies between operations of a stream, removes
            dependencies on missing nodes, and removes control dependencies that form cycles.
            `groups` is a table of process groups; by default that next to the traces.

    Returns:
        The trace, and a line per loss or repair.

    Raises:
        ConfigError: A file cannot be read, or the table of groups is invalid.
        TraceError: A file is not a trace or has no nodes, the file of a rank is missing, no rank
            has operations, or a node is invalid. The message has file, rank and node.
    """
    prefix, files = _files(path)
    groups = find_groups(prefix, options.groups)
    reader = _Reader(len(files), groups, repair=options.repair)
    ranks = []
    for rank, file in enumerate(files):
        ranks.append(reader.operations(load_nodes(file, rank), rank))
    if not any(map(len, ranks)):
        message = f"{prefix}: no rank has operations: expected computations or communication"
        raise TraceError(message, kind="empty_trace")
    trace = Trace(
        name=reader.name or prefix.name,
        ranks=tuple(ranks),
        collectives=tuple(reader.collectives),
    )
    return trace, (*reader.lines(), *groups.remarks())


def _files(path: Path) -> tuple[Path, list[Path]]:
    """Returns the prefix, and the files of all ranks.

    Raises:
        TraceError: There are no files, or a folder has files of several prefixes.
    """
    if path.is_dir():
        prefix = prefix_in(path)
        return prefix, rank_files(prefix)
    prefix = prefix_of(path)
    if path.is_file() and not _OF_RANK.search(path.name):
        return prefix, [path]
    return prefix, rank_files(prefix)


def prefix_in(folder: Path) -> Path:
    """Returns the prefix of the files in a folder.

    Raises:
        TraceError: The folder has no traces, or those of several prefixes.
    """
    found = {prefix_of(each) for each in folder.iterdir() if _OF_RANK.search(each.name)}
    if len(found) != 1:
        names = ", ".join(sorted(each.name for each in found)[:5])
        problem = f"traces of {len(found)} prefixes ({names})" if found else "no traces"
        message = f"{folder}: {problem}: expected files <prefix>.<rank>.et of one prefix"
        raise TraceError(message, kind="missing_rank", fields={"rank": 0})
    return found.pop()


@dataclass
class _Reader:
    """Converts the nodes of each rank, with the collectives of all ranks.

    Attributes:
        ranks: The number of ranks.
        groups: The process groups of the table.
        repair: Whether the order of streams is added.
        name: The name in a file that tutti wrote.
        collectives: The index of each collective.
        losses: Numbers of nodes by loss.
        dropped: Names of attributes that are not represented.
    """

    ranks: int
    groups: Groups
    repair: bool
    name: str = ""
    collectives: dict[CollectiveCall, int] = field(default_factory=dict)
    losses: Counter[str] = field(default_factory=Counter)
    dropped: set[str] = field(default_factory=set)

    def lines(self) -> list[str]:
        """Returns the losses and repairs."""
        found = [f"{count:,} {text}" for text, count in sorted(self.losses.items()) if count]
        if self.dropped:
            shown = ", ".join(repr(name)[1:-1][:40] for name in sorted(self.dropped)[:9])
            more = ", ..." if len(self.dropped) > 9 else ""
            found.append(f"attributes without an equivalent: {shown}{more}")
        return found

    def operations(self, nodes: Nodes, rank: int) -> Operations:
        """Returns the operations of a rank."""
        graph, at, repairs = acyclic(nodes, rank, repair=self.repair)
        for count, what in zip(repairs, ("on missing nodes", "of control"), strict=True):
            self.losses[f"dependencies {what} were removed"] += count
        kinds = _KINDS[nodes.types]
        launchers = _launchers(nodes, kinds)
        self.losses["launchers of collectives on a CPU are computations"] += int(launchers.sum())
        kinds[launchers] = Kind.COMPUTE
        streams, recorded = self._streams(nodes, kinds, rank)
        graph = self._in_stream_order(graph, nodes, recorded, at, rank)
        self._count_losses(nodes, kinds)
        peers, sizes = self._communication(nodes, kinds, rank)
        used = np.bincount(graph.parents, minlength=graph.count) > 0
        kept = (nodes.types != METADATA) | used
        index = np.cumsum(kept) - 1
        self.losses["METADATA nodes are not operations"] += int((~kept).sum())
        chosen = kept[graph.children]
        children, parents = index[graph.children[chosen]], index[graph.parents[chosen]]
        message = (kinds == Kind.SEND) | (kinds == Kind.RECEIVE)
        names = [nodes.names[node] for node in np.flatnonzero(kept)]
        if "name" in nodes.attributes and not rank:
            self.name = str(nodes.attributes["name"].value)
        return Operations(
            kinds=kinds[kept],
            sizes=sizes[kept],
            durations=np.where(kinds == Kind.COMPUTE, _picoseconds(nodes), 0)[kept],
            peers=peers[kept].astype(np.int32),
            tags=np.where(message, nodes.column("comm_tag", 0), 0)[kept],
            streams=streams[kept].astype(np.int32),
            first_dependency=np.searchsorted(children, np.arange(int(kept.sum()) + 1)).astype(
                np.int64
            ),
            dependencies=parents,
            on_start=_on_start(nodes, graph)[chosen],
            names=tuple(names) if any(names) else (),
        )

    def _streams(
        self, nodes: Nodes, kinds: NDArray[np.uint8], rank: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Returns the stream of each node, and the recorded one, negative if there is none.

        CPU threads follow the GPU streams. Nodes without stream or thread use up to three more: a
        CPU, a GPU and its network interface, as in ASTRA-sim.
        """
        cpu = nodes.column("is_cpu_op", 0) != 0
        given = nodes.column("stream", -1)
        wrong = np.flatnonzero(~cpu & (given > _MOST_STREAM))
        if len(wrong):
            place = nodes.place(int(wrong[0]), rank)
            message = f"{place}: attribute `stream` is {given[wrong[0]]}: expected at most 2^31 - 1"
            raise TraceError(message, kind="attribute_type", fields={"attribute": "stream"})
        found = np.where(cpu, -1, np.maximum(given, -1))
        following = int(found.max(initial=-1)) + 1
        threaded, threads = nodes.integers["tid"]
        on_cpu = cpu[threaded]
        known, numbers = np.unique(threads[on_cpu], return_inverse=True)
        found[threaded[on_cpu]] = following + numbers
        recorded = found.copy()
        following += len(known)
        for others in (kinds == Kind.COMPUTE) & ~cpu, (kinds != Kind.COMPUTE) & ~cpu, cpu:
            unplaced = others & (found < 0)
            if unplaced.any():
                found[unplaced] = following
                following += 1
        if following > _MOST_STREAM:
            message = f"{nodes.source}: too many streams: expected at most 2^31 - 1"
            raise TraceError(message, kind="attribute_type", fields={"attribute": "stream"})
        return found, recorded

    def _in_stream_order(
        self,
        graph: Graph,
        nodes: Nodes,
        streams: NDArray[np.int64],
        at: NDArray[np.int64],
        rank: int,
    ) -> Graph:
        """Counts pairs without the order of their stream, and adds it for `repair`."""
        streams = np.where(nodes.types == METADATA, -1, streams)
        if not nodes.starts.any():
            cpu = nodes.column("is_cpu_op", 0) != 0
            final = np.bincount(graph.parents, minlength=graph.count) == 0
            lost = int((final & (streams >= 0) & ~cpu).sum()) if cpu.any() else 0
            text = "operations of GPU streams have no successor, and no start times to order them"
            self.losses[f"{text} (mlcommons/chakra#215)"] += lost
            return graph
        found = stream_order(graph, nodes, streams, at)
        text = "neighbours of a stream overlap in time: their order is unknown"
        self.losses[text] += found.overlapping
        self.losses["neighbours of a stream were not checked for a path"] += found.unchecked
        if not self.repair:
            text = "operations lack the recorded order of their stream (mlcommons/chakra#215)"
            self.losses[f"{text}; --repair adds it"] += len(found.before)
            return graph
        self.losses["dependencies were added in the recorded order of streams"] += len(found.before)
        graph = graph.with_edges(found.before, found.after)
        hint = ": recorded start times contradict dependencies: expected a trace without --repair"
        positions(graph, nodes, rank, hint=hint)
        return graph

    def _count_losses(self, nodes: Nodes, kinds: NDArray[np.uint8]) -> None:
        count = self.losses
        count["recorded start times"] += int((nodes.starts > 0).sum())
        timed = (kinds != Kind.COMPUTE) & (nodes.durations > 0)
        count["recorded durations of communications"] += int(timed.sum())
        memory = np.isin(nodes.types, (NODE_TYPES.index("MEM_LOAD"), NODE_TYPES.index("MEM_STORE")))
        count["memory accesses are computations of their recorded duration"] += int(memory.sum())
        compute = (kinds == Kind.COMPUTE) & (nodes.types != METADATA)
        roofline = np.maximum(nodes.column("num_ops", 0), nodes.column("tensor_size", 0)) > 0
        text = "computations of 0 s: they have operations and bytes, but no duration"
        count[text] += int((compute & roofline & (_picoseconds(nodes) == 0)).sum())
        cpu = compute & (nodes.column("is_cpu_op", 0) != 0)
        count["CPU operations are computations of a stream per thread"] += int(cpu.sum())
        count["nodes have recorded inputs and outputs"] += nodes.tensors
        self.dropped |= nodes.dropped

    def _communication(
        self, nodes: Nodes, kinds: NDArray[np.uint8], rank: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Returns peers, or collectives, and sizes.

        Raises:
            TraceError: A peer, a size or a collective is missing or invalid.
        """
        peers = np.full(len(nodes), -1, np.int64)
        ends = ((Kind.SEND, "comm_dst", "comm_src"), (Kind.RECEIVE, "comm_src", "comm_dst"))
        for kind, name, own in ends:
            chosen = np.flatnonzero(kinds == kind)
            given = nodes.column(name, -1)[chosen]
            wrong = (given < 0) | (given >= self.ranks) | (given == rank)
            if wrong.any():
                raise self._no_peer(nodes, int(chosen[wrong.argmax()]), rank, name)
            other = nodes.column(own, rank)[chosen] != rank
            if other.any():
                raise _other_rank(nodes, int(chosen[other.argmax()]), rank, own)
            peers[chosen] = given
        sizes = np.where(kinds == Kind.COMPUTE, 0, nodes.column("comm_size", -1))
        wrong = sizes < 0
        wrong[kinds == Kind.COLLECTIVE] = False
        if wrong.any():
            raise _missing(nodes, int(wrong.argmax()), rank, "comm_size")
        chosen = np.flatnonzero(kinds == Kind.COLLECTIVE)
        peers[chosen], scales = self._collectives(nodes, chosen, rank)
        sizes[chosen] = _payloads(nodes, chosen, scales, rank)
        return peers, sizes

    def _collectives(
        self, nodes: Nodes, chosen: NDArray[np.int64], rank: int
    ) -> tuple[list[int], NDArray[np.int64]]:
        """Returns the collective of each of the nodes, and the factor of its payload."""
        types, roots = nodes.column("comm_type", -1)[chosen], nodes.column("comm_root", -1)[chosen]
        rooted = np.isin(types, [COLLECTIVES.index(name) for name in _ROOTED]) & (roots < 0)
        text = "collectives have no `comm_root`: the root is the first rank of the group"
        self.losses[text] += int(rooted.sum())
        if self.ranks == 1:
            self.losses["collectives of other ranks: the trace has one file"] += len(chosen)
        definitions = self.groups.of_rank(nodes.inputs.values(), self.ranks)
        known: dict[tuple[int, str, int], tuple[int, int]] = {}
        found, scales = [], []
        for node, which, root in zip(chosen.tolist(), types.tolist(), roots.tolist(), strict=True):
            key = which, nodes.groups.get(node, ""), root
            if key not in known:
                group = self._group(nodes, node, rank, definitions)
                call, scale = self._call(nodes, node, rank, (which, group, root))
                known[key] = self.collectives.setdefault(call, len(self.collectives)), scale
            found.append(known[key][0])
            scales.append(known[key][1])
        return found, np.array(scales, np.int64)

    def _no_peer(self, nodes: Nodes, node: int, rank: int, name: str) -> TraceError:
        given = int(nodes.column(name, -1)[node])
        if given < 0:
            return _missing(nodes, node, rank, name)
        message = f"{nodes.place(node, rank)}: `{name}` is {given}: expected another rank, 0 to "
        return TraceError(message + f"{self.ranks - 1}", kind="other_ranks", fields={"rank": given})

    def _group(
        self, nodes: Nodes, node: int, rank: int, definitions: GroupsOfRank
    ) -> tuple[int, ...]:
        """Returns the ranks of the group of a node: all ranks without a name.

        Raises:
            TraceError: The group is unknown, lacks the rank, or has ranks without a trace.
        """
        name = nodes.groups.get(node, "")
        members = definitions.members(name, rank, nodes.place(node, rank))
        return tuple(range(self.ranks)) if members is None else members

    def _call(
        self, nodes: Nodes, node: int, rank: int, given: tuple[int, tuple[int, ...], int]
    ) -> tuple[CollectiveCall, int]:
        """Returns the collective of a node, and the factor of its payload: 0 for a barrier.

        Raises:
            TraceError: The collective is missing or unknown.
        """
        which, group, root = given
        if which < 0:
            raise _missing(nodes, node, rank, "comm_type")
        if which >= len(COLLECTIVES):
            known = ", ".join(f"{i} {name}" for i, name in enumerate(COLLECTIVES))
            message = f"{nodes.place(node, rank)}: unknown collective `comm_type` {which}"
            message += f": expected {known}"
            raise TraceError(message, kind="unknown_collective", fields={"comm_type": which})
        name = _RENAMED.get(COLLECTIVES[which], COLLECTIVES[which])
        if root >= len(group):
            message = f"{nodes.place(node, rank)}: `comm_root` is {root}: expected at most "
            message += f"{len(group) - 1}"
            raise TraceError(message, kind="other_ranks", fields={"rank": root})
        call = CollectiveCall(name, group, max(root, 0) if name in _ROOTED else 0)
        return call, 0 if name == "barrier" else len(group) if name in SUMMED else 1


def _launchers(nodes: Nodes, kinds: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Returns the COMM_COLL nodes on a CPU without a collective, such as ``c10d::broadcast_``."""
    unknown = np.maximum(nodes.column("comm_type", -1), nodes.column("comm_size", -1)) < 0
    on_cpu = nodes.column("is_cpu_op", 0) != 0
    found: NDArray[np.bool_] = (kinds == Kind.COLLECTIVE) & unknown & on_cpu
    return found


def _payloads(
    nodes: Nodes, chosen: NDArray[np.int64], scales: NDArray[np.int64], rank: int
) -> NDArray[np.int64]:
    """Returns the payloads of collectives: totals over ranks for all_gather and gather.

    Raises:
        TraceError: A payload is missing, empty or too large.
    """
    sizes = np.where(scales == 0, 1, nodes.column("comm_size", -1)[chosen])
    wrong = (sizes <= 0) | (sizes > MOST // np.maximum(scales, 1))
    if wrong.any():
        at = int(wrong.argmax())
        node, size, scale = int(chosen[at]), int(sizes[at]), int(scales[at])
        if size < 0:
            raise _missing(nodes, node, rank, "comm_size")
        kind = "attribute_type" if size else "no_bytes"
        message = f"{nodes.place(node, rank)}: collective of {size * scale} B: expected 1 B to "
        raise TraceError(message + f"{MOST} B", kind=kind, fields={"comm_size": size})
    found: NDArray[np.int64] = sizes * scales
    return found


def _other_rank(nodes: Nodes, node: int, rank: int, name: str) -> TraceError:
    """Returns the error of a message that another rank would send or receive."""
    given = int(nodes.column(name, -1)[node])
    message = (
        f"{nodes.place(node, rank)}: `{name}` is {given}: expected {rank}, the rank of the file"
    )
    return TraceError(message, kind="other_ranks", fields={"rank": given})


def _missing(nodes: Nodes, node: int, rank: int, name: str) -> TraceError:
    kind = NODE_TYPES[nodes.types[node]]
    message = f"{nodes.place(node, rank)}: the {kind} node has no attribute `{name}`"
    return TraceError(message, kind="missing_attribute", fields={"attribute": name})


def _picoseconds(nodes: Nodes) -> NDArray[np.int64]:
    """Returns durations; `duration_ps` has the picoseconds of a file that tutti wrote."""
    coarse = np.where(nodes.types == METADATA, 0, nodes.durations * PICOSECONDS)
    exact = nodes.column("duration_ps", -1)
    return np.where((exact >= 0) & (np.abs(exact - coarse) <= PICOSECONDS), exact, coarse)


def _on_start(nodes: Nodes, graph: Graph) -> NDArray[np.bool_]:
    """Returns the dependencies that the start of the other operation satisfies."""
    found = np.zeros(len(graph.parents), bool)
    first = graph.first
    for node, numbers in nodes.on_start.items():
        edges = slice(int(first[node]), int(first[node + 1]))
        found[edges] = np.isin(nodes.ids[graph.parents[edges]], np.array(numbers, np.uint64))
    return found

"""Converts Chakra execution traces to programs of the NPUs of a torus.

Compute nodes take their recorded time, or else the roofline time of their operations and bytes
(``num_ops``, ``tensor_size``). CPU nodes run in parallel with NPU nodes. A collective spans the
NPUs of complete rings: all rings, the ones of ``involved_dim``, or those of its group. Ranks
may compute differently; those of a group start the same collectives in the same order. Messages
between two ranks are matched in order, by ``comm_tag``. The size of an all_gather is one rank's
part, as in ASTRA-sim.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tutti import _core
from tutti.base.files.limits import MOST
from tutti.workloads.compute import roofline
from tutti.workloads.errors import TraceError
from tutti.workloads.model import Work

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.base.units import TimePerByte
    from tutti.formats.chakra.groups import GroupsOfRank
    from tutti.formats.chakra.reader import ChakraTrace, Node

_PLANNED = {
    "all_reduce": "all_reduce",
    "all_gather": "all_gather",
    "reduce_scatter": "reduce_scatter",
    "reduce_scatter_block": "reduce_scatter",
    "all_to_all": "all_to_all",
}


@dataclass(frozen=True)
class NodeRates:
    """Rates for nodes without a recorded time.

    Attributes:
        per_second: Operations per second; 0 refuses nodes without a time.
        memory: The memory bandwidth of an NPU.
        replace: Whether compute nodes of a GPU with operations and bytes take the roofline time
            even if they have a recorded one, as in ASTRA-sim.
    """

    per_second: int = 0
    memory: TimePerByte | None = None
    replace: bool = False

    def of(self, node: Node) -> int:
        """Returns the time of a node in picoseconds.

        Raises:
            TraceError: The node has neither a time nor operations and bytes.
        """
        flops, size = node.number("num_ops"), node.number("tensor_size")
        has_work = bool(self.per_second and self.memory) and not (flops is size is None)
        replaced = self.replace and has_work and node.type == "COMP" and not _on_cpu(node)
        recorded = None if replaced else self._recorded(node)
        if recorded is not None:
            return recorded
        if has_work and self.memory is not None:
            return roofline(Work(flops or 0, size or 0), (self.per_second, self.memory))
        message = (
            f"{node.place}: the {node.type} node has no duration: expected a duration, or "
            "operations and bytes"
        )
        raise TraceError(message, kind="missing_attribute")

    @staticmethod
    def _recorded(node: Node) -> int | None:
        """Returns the recorded time of a node in picoseconds; None without one."""
        exact = node.number("duration_ps")
        if exact is not None and abs(exact - node.duration_us * 1_000_000) <= 1_000_000:
            return exact
        return node.duration_us * 1_000_000 or None


@dataclass(frozen=True)
class _Reader:
    """Converts the trace of a rank to tasks on rings of the given sizes."""

    rings: tuple[int, ...]
    groups: GroupsOfRank
    timing: NodeRates

    def tasks(self, trace: ChakraTrace, rank: int) -> list[_core.TraceTask]:
        numbers: dict[int, int] = {}
        waits: dict[int, list[int]] = {}
        found: list[_core.TraceTask] = []
        for node in trace.ordered():
            after: list[int] = []
            for before in (*node.data_deps, *node.ctrl_deps):
                after += [numbers[before]] if before in numbers else waits[before]
            after = sorted(set(after))
            if node.type in ("METADATA", "INVALID") or self._is_alone(node, rank):
                waits[node.id] = after
                continue
            numbers[node.id] = len(found)
            found.append(self._task(node, rank, after))
        if not found:
            message = f"{trace.source}: the trace of rank {rank} has no tasks"
            raise TraceError(message, kind="empty_trace", fields={"rank": rank})
        return found

    def _is_alone(self, node: Node, rank: int) -> bool:
        """Returns whether the group of a collective is a single NPU, so that it takes no time."""
        if node.type != "COMM_COLL":
            return False
        return self.groups.members(node.group, rank, node.place) == (rank,)

    def _task(self, node: Node, rank: int, after: list[int]) -> _core.TraceTask:
        name = node.name or f"node {node.id}"
        if node.type == "COMM_COLL":
            return _core.TraceTask(name, after=after, exchange=self._collective(node, rank))
        if node.type in ("COMM_SEND", "COMM_RECV"):
            return _core.TraceTask(name, after=after, exchange=self._message(node, rank))
        time, background = self.timing.of(node), _on_cpu(node)
        return _core.TraceTask(name, after=after, time_ps=time, background=background)

    def _message(self, node: Node, rank: int) -> _core.Message:
        sends = node.type == "COMM_SEND"
        key = "comm_dst" if sends else "comm_src"
        npus = math.prod(self.rings)
        peer, size = node.number(key), node.number("comm_size")
        if peer is None or size is None:
            message = f"{node.place}: {node.type} without `{key}` or `comm_size`: expected both"
            raise TraceError(message, kind="missing_attribute")
        if not 0 <= peer < npus or peer == rank:
            message = f"{node.place}: `{key}` is {peer}: expected another rank, 0 to {npus - 1}"
            raise TraceError(message, kind="other_ranks", fields={"rank": peer})
        own = "comm_src" if sends else "comm_dst"
        if (stated := node.number(own)) not in {None, rank}:
            message = f"{node.place}: `{own}` is {stated}: expected {rank}, the rank of the file"
            raise TraceError(message, kind="other_ranks", fields={"rank": stated})
        if not 0 < size <= MOST:
            message = f"{node.place}: {node.type} of {size} B: expected 1 B to {MOST} B"
            raise TraceError(message, kind="attribute_type", fields={"comm_size": size})
        tag = (node.number("comm_tag") or 0) & 0xFFFF_FFFF
        every = (1 << len(self.rings)) - 1
        side, ahead = "send" if sends else "recv", (peer - rank) % npus
        return _core.Message(side, every, ahead=ahead, size=size, tag=tag)

    def _collective(self, node: Node, rank: int) -> _core.Transfer:
        name, size = node.collective
        if name not in _PLANNED:
            message = f"{node.place}: {name} is not supported on a torus"
            message += f": expected one of {', '.join(dict.fromkeys(_PLANNED.values()))}"
            raise TraceError(message, kind="not_carried", fields={"collective": name})
        mask = self._mask(node, rank)
        members = math.prod(n for i, n in enumerate(self.rings) if mask >> i & 1)
        if members < 2:
            message = f"{node.place}: {name} on one NPU: expected two or more"
            raise TraceError(message, kind="not_carried", fields={"collective": name})
        size *= members if name == "all_gather" else 1
        if size > MOST:
            message = f"{node.place}: {name} of {size} B: expected at most {MOST} B"
            raise TraceError(message, kind="attribute_type", fields={"comm_size": size})
        return _core.Transfer(_PLANNED[name], mask, size)

    def _mask(self, node: Node, rank: int) -> int:
        members = self.groups.members(node.group, rank, node.place)
        involved = self._involved(node)
        if members is None:
            return (1 << len(self.rings)) - 1 if involved is None else involved
        if involved is not None:
            if _together(self.rings, rank, involved) == set(members):
                return involved
            message = f"{node.place}: `involved_dim` selects other NPUs than group `{node.group}`"
            message += ": expected one of them"
            raise TraceError(message, kind="unknown_group", fields={"group": node.group})
        for mask in range(1 << len(self.rings)):
            if _together(self.rings, rank, mask) == set(members):
                return mask
        shape = " x ".join(map(str, self.rings))
        message = f"{node.place}: group `{node.group}` does not span complete rings of {shape}"
        raise TraceError(message, kind="partial_group", fields={"group": node.group})

    def _involved(self, node: Node) -> int | None:
        """Returns the rings of ``involved_dim``, a bit each; None without the attribute."""
        involved = node.attributes.get("involved_dim")
        if involved is None:
            return None
        if involved.kind != "bool_list":
            message = f"{node.place}: attribute `involved_dim` is a {involved.kind}: "
            message += "expected a bool_list"
            raise TraceError(message, kind="attribute_type")
        every = (1 << len(self.rings)) - 1
        return sum(1 << i for i, given in enumerate(involved.value) if given) & every


def _has_messages(tasks: list[_core.TraceTask]) -> bool:
    return any(isinstance(task.exchange, _core.Message) for task in tasks)


def _on_cpu(node: Node) -> bool:
    """Returns `is_cpu_op`, a bool or a number; by default, a node runs on the NPU."""
    given = node.attributes.get("is_cpu_op")
    if given is not None and given.kind == "bool":
        return bool(given.value)
    return bool(node.number("is_cpu_op"))


def _together(rings: Sequence[int], rank: int, mask: int) -> set[int]:
    """Returns the ranks that differ from `rank` only on the rings of `mask`."""
    found, stride = {rank}, 1
    for index, nodes in enumerate(rings):
        if mask >> index & 1:
            at = rank // stride % nodes
            found = {one + (i - at) * stride for one in found for i in range(nodes)}
        stride *= nodes
    return found


def programs(
    traces: Sequence[ChakraTrace],
    rings: Sequence[int],
    *,
    timing: NodeRates | None = None,
) -> list[_core.TrainingProgram]:
    """Returns the program of each rank, or one if all have the same, without messages.

    Args:
        traces: The trace of each rank.
        rings: The number of NPUs on each ring of the torus.
        timing: Rates for nodes without a recorded time.

    Raises:
        TraceError: The number of ranks differs from the number of NPUs, or a node is not
            supported. The message has file, rank and node.
        WorkloadError: The tasks of a rank are not a valid program.
    """
    npus = math.prod(rings)
    if len(traces) != npus:
        shape = " x ".join(map(str, rings))
        message = (
            f"{traces[0].source}: traces of {len(traces)} ranks: expected {npus} for {shape} NPUs"
        )
        raise TraceError(message, kind="other_ranks", fields={"ranks": len(traces), "npus": npus})
    found = []
    for rank, trace in enumerate(traces):
        groups = trace.groups.of_rank(trace.metadata, npus)
        found.append(_Reader(tuple(rings), groups, timing or NodeRates()).tasks(trace, rank))
    # Messages are between NPUs, so that one NPU cannot represent all.
    alike = all(tasks == found[0] for tasks in found) and not _has_messages(found[0])
    return [_core.TrainingProgram.of_tasks(tasks) for tasks in (found[:1] if alike else found)]

"""The collective or the messages of a communication kernel, from the arguments of its profile.

PyTorch describes a communication in the arguments of the CPU operation ``record_param_comms`` and
of the kernel behind it; versions of 2023 and before do not. A batch of sends and receives
(``batch_isend_irecv``) is one kernel without a description (pytorch/pytorch#194693): it has the
sends and receives that its thread has recorded since its last kernel.
"""

from __future__ import annotations

import zlib
from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tutti.formats.formats import INFERRED
from tutti.formats.kineto.profile import RECORD, integers_of, ranks_of
from tutti.workloads.errors import TraceError
from tutti.workloads.operations import CollectiveCall

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tutti.formats.kineto.profile import Activity, Record
    from tutti.formats.kineto.timeline import Timeline

_NAMES = {
    "allreduce": "all_reduce",
    "allgather": "all_gather",
    "allgatherintotensor": "all_gather",
    "reducescatter": "reduce_scatter",
    "reducescattertensor": "reduce_scatter",
    "alltoall": "all_to_all",
    "alltoallv": "all_to_all",
    "broadcast": "broadcast",
    "reduce": "reduce",
    "gather": "gather",
    "scatter": "scatter",
    "barrier": "barrier",
}
"""Collectives by name without `_`, `base`, `oop` (out of place) and `coalesced`."""
_MESSAGES = {"send": "Dst Rank", "recv": "Src Rank"}
_CONTRADICTORY = "sizes of collectives whose `In msg nelems` and `Out msg nelems` contradict"
_TOTALS = ("all_gather", "reduce_scatter", "gather", "scatter")
_ROOTED = ("broadcast", "reduce", "gather", "scatter")
ELEMENTS = {
    **dict.fromkeys(("Byte", "Char", "Bool", "QInt8", "QUInt8"), 1),
    **dict.fromkeys(("Float8_e5m2", "Float8_e4m3fn", "Float8_e5m2fnuz", "Float8_e4m3fnuz"), 1),
    **dict.fromkeys(("Float8_e8m0fnu", "Float4_e2m1fn_x2"), 1),
    **dict.fromkeys(("Short", "UInt16", "Half", "BFloat16"), 2),
    **dict.fromkeys(("Int", "UInt32", "Float", "QInt32", "ComplexHalf"), 4),
    **dict.fromkeys(("Long", "UInt64", "Double", "ComplexFloat"), 8),
    "ComplexDouble": 16,
}
"""Bytes of an element by PyTorch's name."""


@dataclass(frozen=True)
class Message:
    """A message to or from a rank."""

    sends: bool
    peer: int
    size: int
    tag: int


@dataclass(frozen=True)
class Communication:
    """What a kernel communicates: a collective of a payload, or messages.

    Attributes:
        call: The collective; None for messages.
        size: The payload of the collective, by the convention of tutti.
        messages: The messages.
        number: Process group and sequence number of the collective, if recorded.
    """

    call: CollectiveCall | None = None
    size: int = 0
    messages: tuple[Message, ...] = ()
    number: tuple[str, int] | None = None


@dataclass
class Communications:
    """Reads the communications of a rank.

    Attributes:
        timeline: The order of the rank.
        rank: The rank.
        world: The number of ranks of the job.
        counts: Numbers of kernels by remark.
    """

    timeline: Timeline
    rank: int
    world: int
    counts: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._groups = self.timeline.profile.groups()
        self._seen: set[int] = set()

    def of(self, activity: Activity) -> Communication | None:
        """Returns what a kernel communicates; None if it is a computation or its size is unknown.

        Raises:
            TraceError: The arguments contradict each other.
        """
        if not activity.communicates:
            return None
        record = self._records.get(activity.external)
        arguments = {**(record.communication if record else {}), **activity.communication}
        if not arguments:
            return self._batch(activity)
        if activity.external >= 0 and record is not None:
            if activity.external in self._seen:
                self.counts["further kernels of a communication are computations"] += 1
                return None
            self._seen.add(activity.external)
        return self._described(arguments)

    @cached_property
    def _records(self) -> dict[int, Record]:
        """The descriptions by external id."""
        records = self.timeline.profile.records
        return {each.external: each for each in records if each.external >= 0}

    @cached_property
    def _unlaunched(self) -> dict[tuple[object, object], list[Record]]:
        """Descriptions of messages that no kernel refers to, by thread, ordered by end."""
        used = {each.external for each in self.timeline.activities if each.communicates}
        found: dict[tuple[object, object], list[Record]] = {}
        for record in sorted(self.timeline.profile.records, key=lambda each: each.end):
            is_message = record.communication.get("Collective name") in _MESSAGES
            if is_message and record.external not in used:
                found.setdefault(record.thread, []).append(record)
        return found

    def _batch(self, activity: Activity) -> Communication | None:
        """Returns the messages of a kernel without a description."""
        call = self.timeline.launches.call_of.get(activity.correlation)
        waiting = self._unlaunched.get(call.thread, []) if call else []
        count = bisect_left(waiting, call.end if call else 0, key=lambda each: each.end)
        if not count or "sendrecv" not in activity.name.lower():
            text = "communication kernels without a description take their recorded time"
            self.counts[f"{text}: the profile has no {_DESCRIPTION} for them"] += 1
            return None
        batch = [self._message(each.communication) for each in waiting[:count]]
        del waiting[:count]
        messages = tuple(one for each in batch if each is not None for one in each.messages)
        return Communication(messages=messages) if messages else None

    def _described(self, arguments: Mapping[str, Any]) -> Communication | None:
        name = arguments.get("Collective name")
        if name in _MESSAGES:
            return self._message(arguments)
        plain = str(name).lower()
        for part in ("_", "base", "oop", "coalesced"):
            plain = plain.replace(part, "")
        collective = _NAMES.get(plain)
        if collective is None:
            known = ", ".join(dict.fromkeys(_NAMES.values()))
            message = f"{self._place}: unknown collective {str(name)[:40]!r}: expected send, recv, "
            raise TraceError(message + known, kind="unknown_collective")
        group = self._group(arguments)
        element = self._element(arguments)
        sent, received = (
            self._count(arguments, f"{direction} msg nelems") for direction in ("In", "Out")
        )
        if collective == "all_to_all":
            rows = [self._splits(arguments, direction) for direction in ("In", "Out")]
            if any(rows):
                return self._uneven(rows, group, (sent * element, received * element))
        size = (max(sent, received) if collective in _TOTALS else sent) * element
        if not _agree(collective, sent, received, len(group)):
            self.counts[f"{INFERRED}{_CONTRADICTORY}"] += 1
        if collective != "barrier" and not size:
            self.counts["collectives of 0 B are computations"] += 1
            return None
        number = None
        if type(arguments.get("Seq")) is int:
            number = (str(arguments.get("Process Group Name")), arguments["Seq"])
        call = CollectiveCall(collective, group, self._root(collective, arguments, group))
        return Communication(call, 0 if collective == "barrier" else size, number=number)

    @property
    def _place(self) -> str:
        return f"{self.timeline.profile.source}, rank {self.rank}"

    def _element(self, arguments: Mapping[str, Any]) -> int:
        name = arguments.get("dtype")
        if name not in ELEMENTS:
            message = f"{self._place}: unknown dtype {str(name)[:40]!r}: expected one of PyTorch, "
            raise TraceError(f"{message}such as Float or BFloat16", kind="attribute_type")
        return ELEMENTS[str(name)]

    def _count(self, arguments: Mapping[str, Any], name: str) -> int:
        given = arguments.get(name)
        if type(given) is not int or not 0 <= given < 1 << 56:
            message = f"{self._place}: `{name}` is {str(given)[:40]}: expected a number of elements"
            raise TraceError(message, kind="attribute_type", fields={"attribute": name})
        return given

    def _group(self, arguments: Mapping[str, Any]) -> tuple[int, ...]:
        """Returns the ranks of the process group.

        Raises:
            TraceError: They are unknown, contradict the size of the group, or lack this rank.
        """
        name, size = arguments.get("Process Group Name"), arguments.get("Group size")
        group = ranks_of(arguments.get("Process Group Ranks")) or self._groups.get(str(name))
        if group is None and size == self.world:
            group = tuple(range(self.world))
        problem = None
        if group is None:
            problem = "is unknown: expected `Process Group Ranks`, or `pg_config`"
        elif type(size) is int and size != len(group):
            problem = f"has {len(group)} ranks and a `Group size` of {size}: expected as many"
        elif max(group) >= self.world:
            problem = f"has rank {max(group)}: expected ranks of the job, 0 to {self.world - 1}"
        elif self.rank not in group or len(set(group)) < len(group):
            problem = f"is {list(group[:8])}: expected ranks with rank {self.rank}, each once"
        if group is None or problem:
            message = f"{self._place}: process group {str(name)[:40]!r} {problem}"
            raise TraceError(message, kind="process_group", fields={"group": str(name)})
        return group

    def _root(self, collective: str, arguments: Mapping[str, Any], group: tuple[int, ...]) -> int:
        if collective not in _ROOTED:
            return 0
        root = arguments.get("Rank")
        if type(root) is int and 0 <= root < len(group):
            return root
        self.counts[f"{INFERRED}roots of collectives: the first rank of the group"] += 1
        return 0

    def _message(self, arguments: Mapping[str, Any]) -> Communication | None:
        """Returns a message. Versions without `Dst Rank` have the peer in `Rank`: its index."""
        sends = arguments["Collective name"] == "send"
        group, name = self._group(arguments), _MESSAGES[arguments["Collective name"]]
        peer, place = arguments.get(name), arguments.get("Rank")
        if peer is None and type(place) is int and 0 <= place < len(group):
            peer = group[place]
        if peer is None:
            self.counts["messages without a peer take their recorded time"] += 1
            return None
        if type(peer) is not int or peer not in group or peer == self.rank:
            message = f"{self._place}: `{name}` is {str(peer)[:40]}: expected another rank of "
            raise TraceError(f"{message}the group {list(group[:8])}", kind="other_ranks")
        size = self._count(arguments, "In msg nelems" if sends else "Out msg nelems")
        size *= self._element(arguments)
        return Communication(messages=(Message(sends, peer, size, _tag(group)),))

    def _uneven(
        self, splits: list[tuple[int, ...]], group: tuple[int, ...], totals: tuple[int, int]
    ) -> Communication:
        """Returns the messages of an all-to-all whose parts differ, as NCCL sends them."""
        messages = []
        for direction, given, total in zip(("In", "Out"), splits, totals, strict=True):
            rows = given or (1,) * len(group)
            is_divided = not total % sum(rows) if sum(rows) else not total
            if len(rows) != len(group) or not is_divided:
                message = (
                    f"{self._place}: `{direction} split size` {list(rows[:8])} does not divide "
                )
                message += f"{total} B among {len(group)} ranks"
                raise TraceError(message, kind="attribute_type")
            row = total // max(sum(rows), 1)
            messages += [
                Message(direction == "In", peer, part * row, _tag(group))
                for peer, part in zip(group, rows, strict=True)
                if peer != self.rank and part
            ]
        return Communication(messages=tuple(messages))

    def _splits(self, arguments: Mapping[str, Any], direction: str) -> tuple[int, ...]:
        """Returns the rows of an all-to-all for each rank; empty if they are equal."""
        rows = integers_of(arguments.get(f"{direction} split size", "[]"), 1 << 56)
        if rows is None:
            text = f"{INFERRED}even all-to-alls: the profile abbreviates their parts"
            self.counts[text] += direction == "In"
        return rows or ()


_DESCRIPTION = f"`{RECORD}`"


def _tag(group: tuple[int, ...]) -> int:
    """Returns the tag of the messages of a group, which all its ranks compute alike."""
    return zlib.crc32(repr(group).encode()) & 0x3FFF_FFFF


def _agree(collective: str, sent: int, received: int, ranks: int) -> bool:
    """Returns whether the elements in and out fit each other; 0 if a rank has none."""
    small, large = sorted((sent, received))
    each = ranks if collective in _TOTALS else 1
    return not small or collective == "barrier" or large == small * each

"""Objects that ranks of `torch.distributed` exchange, while one of them runs at a time."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import torch.distributed as dist

from tutti.training.capture.refusals import no_peer, script_line
from tutti.training.capture.taken import Finished

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

__all__ = ["Awaited", "Mailbox", "Objects"]


class Awaited(NamedTuple):
    """Objects of a rank for which another one waits.

    Attributes:
        source: The rank that sends them.
        target: The rank that receives them, or the name of its group.
        number: How many objects it sends there before.
    """

    source: int
    target: Hashable
    number: int


class Mailbox:
    """What ranks that have run leave for those that run later.

    Attributes:
        groups: The ranks of the process groups that a captured rank creates.
        awaited: The objects for which the last rank has waited in vain.
        requested: The objects whose sender leaves the program after it has sent them.
    """

    def __init__(self) -> None:
        """Starts empty."""
        self.groups: dict[tuple[int, ...], None] = {}
        self.awaited: Awaited | None = None
        self.requested: tuple[Awaited, ...] = ()
        self._sent: dict[tuple[int, Hashable], list[list[Any]]] = {}
        self._read: Counter[tuple[int, Hashable]] = Counter()

    def start(self, rank: int) -> None:
        """Starts the capture of a rank, which sends and receives from its start."""
        self._sent = {key: sent for key, sent in self._sent.items() if key[0] != rank}
        self._read.clear()
        self.awaited = None

    def send(self, source: int, target: Hashable, objects: list[Any]) -> None:
        """Stores objects for a rank, or for the ranks of a group of some name.

        Raises:
            Finished: They are requested.
        """
        self._sent.setdefault((source, target), []).append(list(objects))
        if any(one.source == source and self.has(one) for one in self.requested):
            raise Finished

    def receive(self, source: int, target: Hashable) -> list[Any] | None:
        """Returns the oldest objects from a rank that are new; None if there are none."""
        awaited = Awaited(source, target, self._read[source, target])
        self._read[source, target] += 1
        if self.has(awaited):
            return list(self._sent[source, target][awaited.number])
        self.awaited = awaited
        return None

    def has(self, one: Awaited) -> bool:
        """Returns whether objects have been sent."""
        return one.number < len(self._sent.get((one.source, one.target), []))


@dataclass
class Objects:
    """Collectives and messages of objects of a rank.

    The objects of a root that is captured later are those that this rank has in their place.

    Attributes:
        rank: The rank.
        script: The file of the program, for errors.
        mailbox: Objects of ranks that were captured before.
    """

    rank: int
    script: str
    mailbox: Mailbox

    def replacements(self) -> dict[str, Callable[..., object]]:
        """Returns what replaces names of `torch.distributed`."""
        return {
            "send_object_list": self.send,
            "recv_object_list": self.receive,
            "broadcast_object_list": self.broadcast,
            "scatter_object_list": self.scatter,
            "gather_object": self.gather,
            "all_gather_object": self.gather_all,
        }

    def send(self, objects: list[Any], dst: int | None = None, *_: object, **more: object) -> None:
        """Sends objects to a rank."""
        self.mailbox.send(self.rank, _peer(dst, more.get("group_dst"), more.get("group")), objects)

    def receive(
        self, objects: list[Any], src: int | None = None, *_: object, **more: object
    ) -> int:
        """Receives objects of a rank.

        Raises:
            CaptureError: The rank was not captured before.
        """
        source = _peer(src, more.get("group_src"), more.get("group"))
        sent = self.mailbox.receive(source, self.rank)
        if sent is None:
            raise no_peer(script_line(self.script), "recv_object_list")
        objects[:] = sent
        return source

    def broadcast(
        self,
        objects: list[Any],
        src: int | None = None,
        group: Any = None,  # noqa: ANN401 - torch is optional
        *_: object,
        **more: object,
    ) -> None:
        """Sends the objects of a root to the ranks of its group, or receives them."""
        if _is_outside(group):
            return
        source = _peer(src, more.get("group_src"), group)
        if self.rank == source:
            self.mailbox.send(self.rank, _name_of(group), objects)
            return
        sent = self.mailbox.receive(source, _name_of(group))
        if sent is not None:
            objects[:] = sent

    def scatter(
        self,
        outputs: list[Any],
        inputs: list[Any] | None = None,
        src: int | None = None,
        group: Any = None,  # noqa: ANN401
        *_: object,
        **more: object,
    ) -> None:
        """Sends an object to each rank of a group, or receives that of this rank.

        Raises:
            CaptureError: The root was not captured before, and this rank has no objects.
        """
        if _is_outside(group):
            return
        source = _peer(src, more.get("group_src"), group)
        if self.rank == source:
            self.mailbox.send(self.rank, _name_of(group), inputs or [])
            sent = inputs
        else:
            sent = self.mailbox.receive(source, _name_of(group)) or inputs
        if not sent:
            raise no_peer(script_line(self.script), "scatter_object_list")
        outputs[0] = sent[dist.get_rank(group)]

    def gather(
        self,
        one: object,
        objects: list[Any] | None = None,
        dst: int | None = None,
        group: Any = None,  # noqa: ANN401
        *_: object,
        **more: object,
    ) -> None:
        """Gathers the object of this rank in place of all, on the root."""
        if _is_outside(group) or objects is None:
            return
        if self.rank == _peer(dst, more.get("group_dst"), group):
            objects[:] = [one] * len(objects)

    def gather_all(self, objects: list[Any], one: object, *_: object, **__: object) -> None:
        """Gathers the object of this rank in place of all."""
        objects[:] = [one] * len(objects)


def _peer(rank: int | None, in_group: Any, group: Any) -> int:  # noqa: ANN401
    """Returns a rank of the job, which a program names in the job or in a group; 0 by default."""
    if rank is None and in_group is not None:
        return int(dist.get_process_group_ranks(group or dist.group.WORLD)[in_group])
    return rank or 0


def _is_outside(group: Any) -> bool:  # noqa: ANN401
    """Returns whether this rank is not one of a group: its collectives do nothing."""
    return group is dist.GroupMember.NON_GROUP_MEMBER


def _name_of(group: Any) -> str:  # noqa: ANN401
    """Returns the name of a group, which is the same on all its ranks."""
    return str((group or dist.group.WORLD).group_name)

"""`torch.distributed` with one rank: the fake process group in place of NCCL."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import Backend
from torch.testing._internal.distributed.fake_pg import FakeStore

from tutti.training.capture.refusals import no_peer, script_line

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping

__all__ = ["Mailbox", "replacements"]

_Target = tuple[Any, str, Any]


class Mailbox:
    """What captured ranks leave for those that are captured later.

    Attributes:
        groups: The ranks of the process groups that a captured rank creates.
    """

    def __init__(self) -> None:
        """Starts empty."""
        self.groups: dict[tuple[int, ...], None] = {}
        self._sent: dict[tuple[int, Hashable], list[Any]] = {}
        self._read: Counter[tuple[int, Hashable]] = Counter()

    def start(self, rank: int) -> None:
        """Starts the capture of a rank, which sends and receives from its start."""
        self._sent = {key: sent for key, sent in self._sent.items() if key[0] != rank}
        self._read.clear()

    def send(self, source: int, target: Hashable, objects: list[Any]) -> None:
        """Stores objects for a rank, or for the ranks of a group of some name."""
        self._sent.setdefault((source, target), []).append(list(objects))

    def receive(self, source: int, target: Hashable) -> list[Any] | None:
        """Returns the oldest objects from a rank that are new; None if there are none."""
        sent, at = self._sent.get((source, target), []), self._read[source, target]
        self._read[source, target] += 1
        return sent[at] if at < len(sent) else None


def replacements(rank: int, world: int, script: str, mailbox: Mailbox) -> list[_Target]:
    """Returns what replaces names of `torch.distributed`, as (module, name, value).

    Args:
        rank: The rank.
        world: The number of ranks.
        script: The file of the program, for errors.
        mailbox: Objects and process groups of ranks that were captured before.
    """
    init, new_group = dist.init_process_group, dist.new_group
    create_tagged = dist.distributed_c10d._new_group_with_tag

    def start(*_: object, **__: object) -> None:
        if not dist.is_initialized():
            init("fake", rank=rank, world_size=world, store=FakeStore())

    def create(ranks: object = None, *_: object, **more: object) -> object:
        names = ("use_local_synchronization", "group_desc")
        named = {name: more[name] for name in names if name in more}
        return new_group(ranks, backend="fake", **named)

    def tagged(ranks: Iterable[int] | None = None, *args: object, **more: object) -> object:
        if ranks is not None:
            ranks = list(ranks)
            mailbox.groups[tuple(sorted(ranks))] = None
        return create_tagged(ranks, *args, **more)

    names: dict[str, Callable[..., object]] = {
        "init_process_group": start,
        "new_group": create,
        "_new_group_with_tag": tagged,
        **_messages(rank, script, mailbox),
        **_of_groups(rank, script, mailbox),
        "all_gather_object": _gather_all,
        "barrier": _nothing,
        "monitored_barrier": _nothing,
    }
    if not hasattr(Backend, "supports_coalescing"):
        names["batch_isend_irecv"] = _issue_all
    modules = (dist, dist.distributed_c10d)
    found: list[_Target] = [
        (module, name, value) for name, value in names.items() for module in modules
    ]
    found += [(module, name, value) for name, value in _CHECKPOINTS.items()
              for module in _checkpointing()]  # fmt: skip
    # A reducer compares shapes between ranks, which needs data.
    compare = "_verify_param_shape_across_processes"
    return [*found, *((module, compare, _nothing) for module in _comparing())]


def _messages(rank: int, script: str, mailbox: Mailbox) -> dict[str, Callable[..., object]]:
    """Returns what replaces sends and receives of objects of a rank, by name."""

    def send(objects: list[Any], dst: int | None = None, *_: object, **more: object) -> None:
        mailbox.send(rank, _peer(dst, "group_dst", more), objects)

    def receive(objects: list[Any], src: int | None = None, *_: object, **more: object) -> int:
        source = _peer(src, "group_src", more)
        sent = mailbox.receive(source, rank)
        if sent is None:
            raise no_peer(script_line(script), "recv_object_list")
        objects[:] = sent
        return source

    return {"send_object_list": send, "recv_object_list": receive}


def _of_groups(rank: int, script: str, mailbox: Mailbox) -> dict[str, Callable[..., object]]:
    """Returns what replaces collectives of objects with a root, by name.

    The objects of a root that is captured later are those that this rank has in their place.
    """

    def broadcast(
        objects: list[Any],
        src: int | None = None,
        group: Any = None,  # noqa: ANN401
        *_: object,
        **more: object,
    ) -> None:
        if _is_outside(group):
            return
        source = _root(src, "group_src", group, more)
        if rank == source:
            mailbox.send(rank, _name_of(group), objects)
            return
        sent = mailbox.receive(source, _name_of(group))
        if sent is not None:
            objects[:] = sent

    def scatter(
        outputs: list[Any],
        inputs: list[Any] | None = None,
        src: int | None = None,
        group: Any = None,  # noqa: ANN401
        *_: object,
        **more: object,
    ) -> None:
        if _is_outside(group):
            return
        source = _root(src, "group_src", group, more)
        if rank == source:
            mailbox.send(rank, _name_of(group), inputs or [])
            sent = inputs
        else:
            sent = mailbox.receive(source, _name_of(group)) or inputs
        if not sent:
            raise no_peer(script_line(script), "scatter_object_list")
        outputs[0] = sent[dist.get_rank(group)]

    def gather(
        one: object,
        objects: list[Any] | None = None,
        dst: int | None = None,
        group: Any = None,  # noqa: ANN401
        *_: object,
        **more: object,
    ) -> None:
        if _is_outside(group):
            return
        if objects is not None and rank == _root(dst, "group_dst", group, more):
            objects[:] = [one] * len(objects)

    return {
        "broadcast_object_list": broadcast,
        "scatter_object_list": scatter,
        "gather_object": gather,
    }


def _root(rank: int | None, name: str, group: Any, more: Mapping[str, Any]) -> int:  # noqa: ANN401
    """Returns the root of a collective: a rank of the job, 0 by default, or one of the group."""
    if rank is None and more.get(name) is None:
        return 0
    return _peer(rank, name, {**more, "group": group})


def _is_outside(group: Any) -> bool:  # noqa: ANN401
    """Returns whether this rank is not one of a group: its collectives do nothing."""
    return group is dist.GroupMember.NON_GROUP_MEMBER


def _name_of(group: Any) -> str:  # noqa: ANN401 - torch is optional
    """Returns the name of a group, which is the same on all its ranks."""
    return str((group or dist.group.WORLD).group_name)


def _checkpointing() -> tuple[Any, ...]:
    from torch.distributed import checkpoint

    return checkpoint, checkpoint.state_dict_saver, checkpoint.state_dict_loader


def _written_later(*_: object, **__: object) -> Any:  # noqa: ANN401
    """Returns a future of a checkpoint that is not written."""
    future: Any = Future()
    future.set_result(None)
    return future


def _comparing() -> tuple[Any, ...]:
    from torch.distributed import utils

    return dist, utils, torch.nn.parallel.distributed


def _gather_all(objects: list[Any], one: object, *_: object, **__: object) -> None:
    objects[:] = [one] * len(objects)


def _issue_all(messages: list[Any]) -> list[Any]:
    """Issues messages one by one: the fake process group of PyTorch 2.5 has no batches."""
    works = [one.op(one.tensor, one.peer, one.group, one.tag) for one in messages]
    return [one for one in works if one is not None]


def _peer(rank: int | None, name: str, more: Mapping[str, Any]) -> int:
    if rank is not None:
        return rank
    group = more.get("group") or dist.group.WORLD
    return int(dist.get_process_group_ranks(group)[more[name]])


def _nothing(*_: object, **__: object) -> None:
    """Does nothing: all ranks agree, and tensors without data are neither written nor read."""


_CHECKPOINTS = {
    **dict.fromkeys(("save", "save_state_dict", "load", "load_state_dict"), _nothing),
    "async_save": _written_later,
}
"""What replaces names of `torch.distributed.checkpoint`."""

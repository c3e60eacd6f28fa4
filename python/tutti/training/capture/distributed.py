"""`torch.distributed` with one rank: the fake process group in place of NCCL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import Backend
from torch.testing._internal.distributed.fake_pg import FakeStore

from tutti.training.capture.refusals import no_peer, script_line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["Mailbox", "replacements"]

_Target = tuple[Any, str, Any]


class Mailbox:
    """Objects that captured ranks sent to ranks that are captured later."""

    def __init__(self) -> None:
        """Starts empty."""
        self._sent: dict[tuple[int, int], list[Any]] = {}

    def send(self, source: int, target: int, objects: list[Any]) -> None:
        """Stores objects."""
        self._sent.setdefault((source, target), []).append(list(objects))

    def receive(self, source: int, target: int) -> list[Any] | None:
        """Returns the oldest objects from a rank; None if there are none."""
        waiting = self._sent.get((source, target))
        return waiting.pop(0) if waiting else None


def replacements(rank: int, world: int, script: str, mailbox: Mailbox) -> list[_Target]:
    """Returns what replaces names of `torch.distributed`, as (module, name, value).

    Args:
        rank: The rank.
        world: The number of ranks.
        script: The file of the program, for errors.
        mailbox: Objects of ranks that were captured before.
    """
    init, new_group = dist.init_process_group, dist.new_group

    def start(*_: object, **__: object) -> None:
        if not dist.is_initialized():
            init("fake", rank=rank, world_size=world, store=FakeStore())

    def create(ranks: object = None, *_: object, **more: object) -> object:
        names = ("use_local_synchronization", "group_desc")
        named = {name: more[name] for name in names if name in more}
        return new_group(ranks, backend="fake", **named)

    names: dict[str, Callable[..., object]] = {
        "init_process_group": start,
        "new_group": create,
        **_exchanges(rank, script, mailbox),
        "all_gather_object": _gather_all,
        "broadcast_object_list": _nothing,
        "barrier": _nothing,
        "monitored_barrier": _nothing,
    }
    if not hasattr(Backend, "supports_coalescing"):
        names["batch_isend_irecv"] = _issue_all
    modules = (dist, dist.distributed_c10d)
    found: list[_Target] = [
        (module, name, value) for name, value in names.items() for module in modules
    ]
    # A reducer compares shapes between ranks, which needs data.
    compare = "_verify_param_shape_across_processes"
    return [*found, *((module, compare, _nothing) for module in _comparing())]


def _exchanges(rank: int, script: str, mailbox: Mailbox) -> dict[str, Callable[..., object]]:
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
    """Does nothing: all ranks agree."""

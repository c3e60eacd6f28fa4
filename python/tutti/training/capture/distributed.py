"""`torch.distributed` with one rank: the fake process group in place of NCCL."""

from __future__ import annotations

import os
import sys
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, cast
from unittest.mock import patch

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import Backend
from torch.testing._internal.distributed.fake_pg import FakeStore

from tutti.training.capture.objects import Objects

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from contextlib import ExitStack

    from tutti.training.capture.followed import Followed
    from tutti.training.capture.objects import Mailbox

__all__ = ["replacements"]

_Target = tuple[Any, str, Any]


def replacements(
    rank: int,
    script: str,
    mailbox: Mailbox,
    stack: ExitStack,
    followed: Followed | None = None,
) -> list[_Target]:
    """Returns what replaces names of `torch.distributed`, as (module, name, value).

    Args:
        rank: The rank.
        script: The file of the program, for errors.
        mailbox: Objects and process groups of ranks that were captured before.
        stack: Undoes what the start of the job replaces.
        followed: Notes which ranks take the same branches of the program.
    """
    new_group = dist.new_group

    def create(ranks: object = None, *_: object, **more: object) -> object:
        names = ("use_local_synchronization", "group_desc")
        named = {name: more[name] for name in names if name in more}
        return new_group(ranks, backend="fake", **named)

    names: dict[str, Callable[..., object]] = {
        "init_process_group": _starting(stack),
        "new_group": create,
        "_new_group_with_tag": _noted(mailbox),
        **Objects(rank, script, mailbox).replacements(),
        "get_rank": _ranked(followed),
        "barrier": _nothing,
        "monitored_barrier": _nothing,
    }
    if not hasattr(Backend, "supports_coalescing"):
        names["batch_isend_irecv"] = _issue_all
    modules = (dist, dist.distributed_c10d)
    found: list[_Target] = [
        (module, name, value) for name, value in names.items() for module in modules
    ]
    found += _of_checkpoints()
    # A reducer compares shapes between ranks, which needs data.
    compare = "_verify_param_shape_across_processes"
    return [*found, *((module, compare, _nothing) for module in _comparing())]


def _starting(stack: ExitStack) -> Callable[..., object]:
    """Returns what creates the process group of all ranks."""
    init = dist.init_process_group

    def start(*_: object, **__: object) -> None:
        if not dist.is_initialized():
            # A module of the program may have got this function when another rank ran.
            rank, world = (int(os.environ[name]) for name in ("RANK", "WORLD_SIZE"))
            init("fake", rank=rank, world_size=world, store=FakeStore())
            for target, name, value in _of_pipelines():
                stack.enter_context(patch.object(target, name, value))

    return start


def _ranked(followed: Followed | None) -> Callable[..., object]:
    """Returns what returns the rank, which the program gets as a number that is followed."""
    get = dist.get_rank

    def ranked(group: Any = None) -> int:  # noqa: ANN401
        # A module of the program may have got this function when another rank ran.
        found, active = get(group), getattr(dist.get_rank, "followed", None)
        is_world = group is None or group is dist.group.WORLD
        if active is None or not is_world or not active.from_program(1):
            return int(found)
        return cast("int", active.number(range(len(active.alike))))

    ranked.followed = followed  # type: ignore[attr-defined]
    return ranked


def _noted(mailbox: Mailbox) -> Callable[..., object]:
    """Returns what creates process groups and notes their ranks."""
    create = dist.distributed_c10d._new_group_with_tag

    def noted(ranks: Iterable[int] | None = None, *args: object, **more: object) -> object:
        if ranks is not None:
            ranks = list(map(int, ranks))
            mailbox.groups[tuple(sorted(ranks))] = None
        return create(ranks, *args, **more)

    return noted


def _of_checkpoints() -> list[_Target]:
    """Returns what replaces names of `torch.distributed.checkpoint`."""
    from torch.distributed import checkpoint

    names = dict.fromkeys(("save", "save_state_dict", "load", "load_state_dict"), _nothing)
    modules = (checkpoint, checkpoint.state_dict_saver, checkpoint.state_dict_loader)
    return [
        (module, name, value)
        for name, value in {**names, "async_save": _written_later}.items()
        for module in modules
    ]


def _of_pipelines() -> list[_Target]:
    """Returns what replaces names of `torch.distributed.pipelining`.

    PyTorch refuses stages without shapes on a fake process group, since no stage would answer. Its
    import takes half a second, and is left to the program.
    """
    schedules: Any = sys.modules.get("torch.distributed.pipelining.schedules")
    name = "_initialize_pipeline_distributed_state"
    schedule = getattr(schedules, "_PipelineSchedule", None)
    initialize: Any = getattr(schedule, name, None)  # PyTorch up to 2.9 has none

    def initialized(self: object, stages: list[Any], *args: Any, **more: Any) -> None:  # noqa: ANN401
        try:
            initialize(self, stages, *args, **more)
        except RuntimeError as error:
            if "fake process group" not in str(error):
                raise
            for one in stages:
                one._inference_mode = schedules.InferenceMode.DYNAMIC

    return [(schedule, name, initialized)] if initialize else []


def _written_later(*_: object, **__: object) -> Any:  # noqa: ANN401
    """Returns a future of a checkpoint that is not written."""
    future: Any = Future()
    future.set_result(None)
    return future


def _comparing() -> tuple[Any, ...]:
    from torch.distributed import utils

    return dist, utils, torch.nn.parallel.distributed


def _issue_all(messages: list[Any]) -> list[Any]:
    """Issues messages one by one: the fake process group of PyTorch 2.5 has no batches."""
    works = [one.op(one.tensor, one.peer, one.group, one.tag) for one in messages]
    return [one for one in works if one is not None]


def _nothing(*_: object, **__: object) -> None:
    """Does nothing: all ranks agree, and tensors without data are neither written nor read."""

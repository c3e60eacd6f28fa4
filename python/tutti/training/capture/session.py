"""Captures a training step of a program that runs in this process."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import warnings
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import torch
import torch.distributed as dist

from tutti.training.capture import flex, named
from tutti.training.capture.devices import Devices
from tutti.training.capture.distributed import replacements
from tutti.training.capture.modules import Modules
from tutti.training.capture.objects import Mailbox
from tutti.training.capture.recorder import Recorder
from tutti.training.capture.refusals import refusal_of
from tutti.training.capture.taken import Captured, Finished
from tutti.training.errors import CaptureError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tutti.training.capture.followed import Followed

__all__ = ["recording"]

_NODE = 8
"""GPUs of a node, by default, for LOCAL_RANK and LOCAL_WORLD_SIZE."""


@contextlib.contextmanager
def recording(
    world_size: int,
    rank: int = 0,
    *,
    script: str = "",
    step: int | None = None,
    value: float | None = None,
    leaves: bool = False,
    node: int = _NODE,
    mailbox: Mailbox | None = None,
    followed: Followed | None = None,
) -> Iterator[Captured]:
    """Captures a training step of what runs inside.

    Args:
        world_size: The number of ranks.
        rank: The captured rank.
        script: The file of the program, for errors.
        step: The captured step, from 1; None for the first one that is like later ones.
        value: What values that the program reads are; None refuses the program.
        leaves: Whether to leave the program after the step.
        node: The GPUs of a node.
        mailbox: Objects and process groups of ranks that were captured before.
        followed: Notes which ranks take the same branches of the program.

    Raises:
        CaptureError: The program cannot be captured, or a script fails.
    """
    if not 0 <= rank < world_size:
        message = f"rank {rank} of {world_size:,} ranks: expected 0 to {world_size - 1:,}"
        raise CaptureError(message, kind="rank", fields={"rank": rank})
    captured = Captured(rank, step, leaves=leaves, script=script)
    devices = Devices(rank % node, node)
    captured.modules = Modules(captured.started, captured.stepped)
    captured.recorder = Recorder(script, captured.modules, devices, value)
    mailbox = mailbox or Mailbox()
    mailbox.start(rank)
    with contextlib.ExitStack() as stack:
        replaced = replacements(rank, script, mailbox, stack, followed)
        if followed is not None:
            replaced.append(followed.variables(_numbers(world_size, node)))
        stack.enter_context(warnings.catch_warnings())
        # Modules that are copied ask whether their parameters have data.
        warnings.filterwarnings("ignore", "Accessing the data pointer of FakeTensor")
        stack.callback(_leave_groups)
        _replace(stack, captured, devices, replaced)
        stack.enter_context(patch.dict(os.environ, _environment(world_size, rank, node)))
        stack.enter_context(captured.modules)
        stack.enter_context(captured.recorder)
        stack.enter_context(_refusing(script))
        yield captured
        captured.ended()


@contextlib.contextmanager
def _refusing(script: str) -> Iterator[None]:
    """Ends with the step, and turns errors of PyTorch into refusals."""
    try:
        yield
    except Finished:
        pass
    except Exception as error:
        refusal = refusal_of(error, script)
        if refusal is None:
            raise
        raise refusal from error


def _environment(world: int, rank: int, node: int) -> dict[str, str]:
    return {
        **{name: str(values[rank]) for name, values in _numbers(world, node).items()},
        "WORLD_SIZE": str(world), "LOCAL_WORLD_SIZE": str(min(node, world)),
        "MASTER_ADDR": "localhost", "MASTER_PORT": "29500",
    }  # fmt: skip


def _numbers(world: int, node: int) -> dict[str, Sequence[int]]:
    """Returns the variables that differ between ranks, with their values on all ranks."""
    local = min(node, world)
    return {
        "RANK": range(world),
        "LOCAL_RANK": [rank % local for rank in range(world)],
        "GROUP_RANK": [rank // local for rank in range(world)],
    }


def _replace(
    stack: contextlib.ExitStack,
    captured: Captured,
    devices: Devices,
    distributed: list[tuple[Any, str, Any]],
) -> None:
    """Replaces what needs GPUs, peers or a compiler until the stack ends."""
    targets = [(torch.cuda, name, value) for name, value in devices.replacements().items()]
    targets += [*_around_steps(devices), *distributed, *named.replacements(devices.device)]
    targets += [*_noted(captured), *flex.replacements(captured.recorder.remark)]
    previous = torch._C._only_lift_cpu_tensors()
    torch._C._set_only_lift_cpu_tensors(True)
    stack.callback(torch._C._set_only_lift_cpu_tensors, previous)
    named.ensure_guard()
    _keep_parameters(stack)
    # One thread issues the operators of all passes, in one order.
    stack.enter_context(torch.autograd.set_multithreading_enabled(False))
    for target, name, value in targets:
        if hasattr(target, name):
            stack.enter_context(patch.object(target, name, value))


def _noted(captured: Captured) -> list[tuple[Any, str, Any]]:
    """Returns what replaces names whose calls a capture notes."""
    resize, create = torch.UntypedStorage.resize_, torch.optim.Optimizer.__init__

    def compiled(model: Any = None, **_: Any) -> Any:  # noqa: ANN401
        captured.compiled = True
        return model if model is not None else (lambda function: function)

    def compiled_module(*_: object, **__: object) -> None:
        captured.compiled = True

    def resized(storage: Any, size: int) -> Any:  # noqa: ANN401
        captured.recorder.storages.resized(storage, size)
        return resize(storage, size)

    def created(optimizer: Any, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        captured.created.add(optimizer)
        create(optimizer, *args, **kwargs)

    return [
        (torch.optim.Optimizer, "__init__", created),
        (torch, "compile", compiled),
        (torch.nn.Module, "compile", compiled_module),
        (torch.UntypedStorage, "resize_", resized),
    ]


def _around_steps(devices: Devices) -> list[tuple[Any, str, Any]]:
    """Returns what replaces names that programs use around a step."""
    accelerator = getattr(torch, "accelerator", None)  # PyTorch 2.5 has none
    return [
        *((accelerator, name, value) for name, value in devices.of_accelerator().items()),
        *((torch.cuda.memory, name, value) for name, value in devices.of_memory().items()),
        # FSDP2 without a mesh shards over all accelerators.
        (torch._C, "_get_accelerator", lambda *_: torch.device("cuda")),
        # A checkpoint without data would replace one with data.
        (torch, "save", _nothing),
        # The allocator requests it; the core refuses streams that are only named.
        (torch.Tensor, "record_stream", _nothing),
        # It logs tracebacks of errors that are raised, too.
        (logging.getLogger("torch._subclasses.fake_tensor"), "disabled", True),
    ]


def _nothing(*_: object, **__: object) -> None:
    """Does nothing: a capture writes no files, and allocates nothing."""


def _keep_parameters(stack: contextlib.ExitStack) -> None:
    """Lets modules that move keep their parameters: some are tied, or those of an optimizer."""
    future = torch.__future__
    stack.callback(
        future.set_swap_module_params_on_conversion, future.get_swap_module_params_on_conversion()
    )
    future.set_swap_module_params_on_conversion(True)


def _leave_groups() -> None:
    if dist.is_initialized():
        dist.destroy_process_group()
    _forget_meshes()


def _forget_meshes() -> None:
    """Clears the caches of DTensor: their results refer to meshes with the groups of this rank.

    Meshes of equal ranks are equal, so that the next captured rank would find them.
    """
    tensor = sys.modules.get("torch.distributed.tensor")
    if tensor is None:
        return
    propagator = tensor.DTensor._op_dispatcher.sharding_propagator
    redistribute = sys.modules.get("torch.distributed.tensor._redistribute")
    clears = [
        getattr(propagator.propagate_op_sharding, "cache_clear", None),
        getattr(torch._C, "_clear_DTensor_sharding_propagator_cache", None),
        getattr(redistribute, "clear_redistribute_planner_cache", None),
        getattr(getattr(redistribute, "_gen_transform_infos", None), "cache_clear", None),
    ]
    for clear in filter(None, clears):  # versions of PyTorch have some of them
        clear()

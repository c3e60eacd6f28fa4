"""Tensors of a GPU that is only named, without a driver.

Python sees fake tensors on CUDA. The core of PyTorch must not: its autograd engine queries the
driver for devices of CUDA, which fails in a build for CUDA on a machine without GPUs. It therefore
sees a device type that has no driver and that programs do not use.
"""

from __future__ import annotations

import copy
from functools import wraps
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import torch
from torch._subclasses import fake_tensor
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils import _foreach_utils
from torch.utils.data import dataloader

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["SEEN", "ensure_guard", "on_gpu", "on_named", "replacements", "seen_by_core"]

SEEN = torch.device("lazy", 0)
"""The device that the core sees."""


def seen_by_core(tensor: Any) -> Any:  # noqa: ANN401 - torch is optional
    """Returns the device of a tensor, as the core of PyTorch sees it."""
    if not isinstance(tensor, FakeTensor):
        return tensor.device
    return SEEN if tensor.fake_device.type == "cuda" else tensor.fake_device


def on_named(kwargs: Mapping[str, Any], gpu: torch.device) -> Mapping[str, Any]:
    """Returns named arguments with the named GPU for any GPU and for the device of the core."""
    device = kwargs.get("device")
    if device is None or torch.device(device) not in {SEEN, torch.device("cuda")}:
        return kwargs
    return {**kwargs, "device": gpu}


def _is_cuda(tensor: Any) -> bool:  # noqa: ANN401
    return bool(tensor.device.type == "cuda")


def _local_device(tensor: Any) -> Any:  # noqa: ANN401
    return tensor._local_tensor.device


def _element_device(tensor: Any) -> Any:  # noqa: ANN401
    return tensor.elem.device


def _attention(  # noqa: PLR0917 - the signature of PyTorch
    query: Any,  # noqa: ANN401
    key: Any,  # noqa: ANN401
    value: Any,  # noqa: ANN401
    attn_mask: Any = None,  # noqa: ANN401
    dropout_p: float = 0.0,
    is_causal: bool = False,
    **more: Any,  # noqa: ANN401
) -> Any:  # noqa: ANN401
    """Calls the kernel of attention that PyTorch chooses on a GPU: flash or memory-efficient."""
    scale, aten = more.get("scale"), torch.ops.aten
    if query.dtype in {torch.float16, torch.bfloat16} and attn_mask is None:
        return aten._scaled_dot_product_flash_attention(
            query,
            key,
            value,
            dropout_p,
            is_causal,
            False,
            scale=scale,
        )[0]
    if key.shape[-3] != query.shape[-3]:
        repeats = query.shape[-3] // key.shape[-3]
        key, value = (one.repeat_interleave(repeats, -3) for one in (key, value))
    if attn_mask is not None:
        shape = (*query.shape[:-1], key.shape[-2])
        attn_mask = attn_mask.to(query.dtype).expand(shape)
    saves = query.requires_grad or key.requires_grad or value.requires_grad
    return aten._scaled_dot_product_efficient_attention(
        query, key, value, attn_mask, saves, dropout_p, is_causal, scale=scale
    )[0]


def on_gpu(kernel: Callable[..., Any], otherwise: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function that calls `kernel` for tensors of the GPU, else `otherwise`.

    It has the name of `otherwise`: context parallelism replaces attention by name.
    """

    @wraps(otherwise)
    def called(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        first = args[0] if args else next(iter(kwargs.values()))
        local = getattr(first, "_local_tensor", first)
        is_on_gpu = isinstance(local, FakeTensor) and local.device.type == "cuda"
        return (kernel if is_on_gpu else otherwise)(*args, **kwargs)

    return called


def _dropout(
    input: Any,  # noqa: ANN401, A002 - the signature of PyTorch
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,  # noqa: ARG001
) -> Any:  # noqa: ANN401
    """Calls the fused kernel of dropout, as PyTorch does on a GPU."""
    return torch.native_dropout(input, p, train=True)[0] if training and p else input


def replacements(gpu: torch.device) -> list[tuple[Any, str, Any]]:
    """Returns what replaces attributes of tensors, as (class, name, value), for a named GPU."""
    dispatch = FakeTensor.__dict__["__torch_dispatch__"].__func__

    def dispatched(
        cls: Any,  # noqa: ANN401
        func: Any,  # noqa: ANN401
        types: Any,  # noqa: ANN401
        args: Any = (),  # noqa: ANN401
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401
        if func is torch.ops.prim.device.default and not args[0].fake_mode.in_kernel_invocation:
            return seen_by_core(args[0])
        return dispatch(cls, func, types, args, kwargs)

    functional, name = torch.nn.functional, "scaled_dot_product_attention"
    truncated, types = "_no_grad_trunc_normal_", "_foreach_supported_types"
    return [
        (FakeTensor, "__torch_dispatch__", classmethod(dispatched)),
        (FakeTensor, "is_cuda", property(_is_cuda)),
        (functional, name, on_gpu(_attention, getattr(functional, name))),
        (torch.nn.init, truncated, on_gpu(_drawn, getattr(torch.nn.init, truncated))),
        (functional, "dropout", on_gpu(_dropout, functional.dropout)),
        (torch.utils, "weakref", SimpleNamespace(getweakrefs=_no_references)),
        # PyTorch 2.5 creates a tensor on the GPU whenever `torch.cuda` answers.
        (FakeTensor, "__format__", _formatted),
        (fake_tensor, "init_gpu_context", _nothing),
        (torch.Tensor, "pin_memory", _pinned),
        (torch._C, _GROUPS, _grouped(getattr(torch._C, _GROUPS))),
        (_foreach_utils, types, [*getattr(_foreach_utils, types, ()), FakeTensor]),
        (dataloader, "_MultiProcessingDataLoaderIter", _loaded_here),
        *_of_dtensor(),
        *_of_moves(gpu),
        *([] if _HAS_GUARD else _of_wrappers()),
    ]


_GROUPS = "_group_tensors_by_device_and_dtype"


def _grouped(group: Any) -> Any:  # noqa: ANN401
    """Returns what groups tensors by their named device, not by the one that the core sees.

    Else `clip_grad_norm_` does not call the operators on lists that it calls on a GPU.
    """

    def grouped(lists: Any, with_indices: bool = False) -> Any:  # noqa: ANN401
        found = group(lists, with_indices)
        return {(value[0][0][0].device, key[1]): value for key, value in found.items()}

    return grouped


def _drawn(tensor: Any, *_: object, **__: object) -> Any:  # noqa: ANN401
    """Returns a tensor without data: PyTorch draws again while values are out of range."""
    return tensor


def _formatted(tensor: Any, form: str) -> str:  # noqa: ANN401
    """Formats the value of a scalar, as PyTorch does for tensors with data."""
    return format(tensor.item() if tensor.dim() == 0 else str(tensor), form)


def _pinned(tensor: Any, *_: object, **__: object) -> Any:  # noqa: ANN401
    """Returns a tensor of the host: pinning memory needs the driver."""
    return tensor


def _loaded_here(loader: Any) -> Any:  # noqa: ANN401
    """Returns an iterator that loads samples in this process: workers would ask the driver."""
    here = copy.copy(loader)
    here.num_workers, here.timeout, here.pin_memory = 0, 0, False
    return dataloader._SingleProcessDataLoaderIter(here)


def _nothing(*_: object) -> None:
    """Does nothing."""


def _no_references(_tensor: object) -> list[object]:
    """Returns no references: modules that move to the GPU swap their fake parameters.

    `swap_tensors` refuses tensors with weak references. Those of fake tensors are entries of
    caches, which may refer to either of the swapped tensors.
    """
    return []


def _of_dtensor() -> list[tuple[Any, str, Any]]:
    try:
        from torch.distributed.tensor import DTensor
    except ImportError:
        return []
    from torch.distributed.tensor import _random

    tracker = _random.OffsetBasedRNGTracker
    return [
        (DTensor, "device", property(_local_device)),
        (DTensor, "is_cuda", property(_is_cuda)),
        # It compares states of ranks, which are equal, and computes offsets from their values.
        (tracker, "_get_device_state", lambda *_: torch.zeros(16, dtype=torch.uint8, device="cpu")),
        # PyTorch up to 2.8 keeps them, without data after a broadcast.
        (tracker, "get_offset", lambda *_: 0),
        (tracker, "set_offset", _nothing),
    ]


_HAS_GUARD = hasattr(torch._C, "_ensureCUDADeviceGuardSet")
"""Whether the core can do without a driver where it sees CUDA: PyTorch after 2.9."""


def ensure_guard() -> None:
    """Lets the core do without a driver where it sees CUDA."""
    if _HAS_GUARD:
        torch._C._ensureCUDADeviceGuardSet()


def _of_wrappers() -> list[tuple[Any, str, Any]]:
    """Returns what hides CUDA from the core in tensors that wrap others, such as DTensor."""
    from torch.distributed._functional_collectives import AsyncCollectiveTensor

    make = torch.Tensor._make_wrapper_subclass

    def made(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        device = kwargs.get("device")
        is_on_gpu = device is not None and torch.device(device).type == "cuda"
        return make(*args, **kwargs | ({"device": SEEN} if is_on_gpu else {}))

    return [
        (torch.Tensor, "_make_wrapper_subclass", staticmethod(made)),
        (AsyncCollectiveTensor, "device", property(_element_device)),
        (AsyncCollectiveTensor, "is_cuda", property(_is_cuda)),
    ]


def _of_moves(gpu: torch.device) -> list[tuple[Any, str, Any]]:
    """Returns what moves data to the named GPU without the core.

    It would ask the driver for the current GPU, or take the first one in place of the rank's.
    """
    move = torch.Tensor.to

    def is_any_gpu(value: object) -> bool:
        is_device = isinstance(value, str | torch.device)
        return is_device and str(value).partition(":")[0] == "cuda"

    def moved(tensor: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        given = {name: gpu if is_any_gpu(one) else one for name, one in kwargs.items()}
        return move(tensor, *(gpu if is_any_gpu(one) else one for one in args), **given)

    def moved_to_gpu(
        tensor: Any,  # noqa: ANN401
        device: object = None,  # noqa: ARG001 - a rank has one GPU
        non_blocking: bool = False,
        memory_format: Any = torch.preserve_format,  # noqa: ANN401
    ) -> Any:  # noqa: ANN401
        return move(tensor, gpu, non_blocking=non_blocking, memory_format=memory_format)

    def created(make: Callable[..., Any]) -> Callable[..., Any]:
        def create(data: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
            if not is_any_gpu(kwargs.get("device")):
                return make(data, *args, **kwargs)
            saves = kwargs.get("requires_grad", False)
            host = {"device": "cpu", **({"requires_grad": False} if saves else {})}
            result = move(make(data, *args, **kwargs | host), gpu)
            return result.requires_grad_() if saves else result

        return create

    return [
        (torch.Tensor, "to", moved),
        (torch.Tensor, "cuda", moved_to_gpu),
        (torch.Tensor, "type", _typed(gpu)),
        (torch, "Generator", _generator_of(gpu)),
        (torch, "tensor", created(torch.tensor)),
        (torch, "as_tensor", created(torch.as_tensor)),
    ]


def _typed(gpu: torch.device) -> Callable[..., Any]:
    """Returns what replaces `Tensor.type`, whose core requests types of the GPU from the driver."""
    convert, move = torch.Tensor.type, torch.Tensor.to

    def typed(tensor: Any, dtype: Any = None, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        if dtype is None and tensor.device.type == "cuda":
            host = torch.empty(0, dtype=tensor.dtype)
            return convert(host).replace("torch.", "torch.cuda.", 1)
        name = dtype if isinstance(dtype, str) else _name_of_type(dtype)
        if not name.startswith("torch.cuda."):
            return convert(tensor, dtype, *args, **kwargs)
        plain = getattr(torch, name.removeprefix("torch.cuda."))
        return move(tensor, gpu, plain.dtype)

    return typed


def _name_of_type(value: object) -> str:
    """Returns the name of a type of tensors, such as `torch.cuda.FloatTensor`, or ""."""
    return f"{value.__module__}.{value.__name__}" if isinstance(value, type) else ""


def _generator_of(gpu: torch.device) -> type:
    """Returns a class of generators, of which those of the GPU draw on the host."""

    class Kind(type(torch.Generator)):  # type: ignore[misc] # torch is optional
        def __instancecheck__(cls, one: object) -> bool:
            return isinstance(one, torch._C.Generator)

    class Generator(torch.Generator, metaclass=Kind):  # type: ignore[misc] # torch is optional
        def __new__(cls, device: Any = "cpu") -> Any:  # noqa: ANN401
            made = super().__new__(cls, "cpu")
            made.is_on_gpu = torch.device(device).type == "cuda"
            return made

        @property
        def device(self) -> torch.device:
            return gpu if self.is_on_gpu else torch.device("cpu")

    return Generator

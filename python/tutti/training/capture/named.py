"""Tensors of a GPU that is only named, without a driver.

Python sees fake tensors on CUDA. The core of PyTorch must not: its autograd engine queries the
driver for devices of CUDA, which fails in a build for CUDA on a machine without GPUs. It therefore
sees a device type that has no driver and that programs do not use.
"""

from __future__ import annotations

from functools import wraps
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import torch
from torch._subclasses.fake_tensor import FakeTensor

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["SEEN", "replacements", "seen_by_core"]

SEEN = torch.device("lazy", 0)
"""The device that the core sees."""


def seen_by_core(tensor: Any) -> Any:  # noqa: ANN401 - torch is optional
    """Returns the device of a tensor, as the core of PyTorch sees it."""
    if not isinstance(tensor, FakeTensor):
        return tensor.device
    return SEEN if tensor.fake_device.type == "cuda" else tensor.fake_device


def _is_cuda(tensor: Any) -> bool:  # noqa: ANN401
    return bool(tensor.device.type == "cuda")


def _local_device(tensor: Any) -> Any:  # noqa: ANN401
    return tensor._local_tensor.device


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


def _on_gpu(kernel: Callable[..., Any], otherwise: Callable[..., Any]) -> Callable[..., Any]:
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


def replacements() -> list[tuple[Any, str, Any]]:
    """Returns what replaces attributes of tensors, as (class, name, value)."""
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
    return [
        (FakeTensor, "__torch_dispatch__", classmethod(dispatched)),
        (FakeTensor, "is_cuda", property(_is_cuda)),
        (functional, name, _on_gpu(_attention, getattr(functional, name))),
        (functional, "dropout", _on_gpu(_dropout, functional.dropout)),
        (torch.utils, "weakref", SimpleNamespace(getweakrefs=_no_references)),
        *_of_dtensor(),
    ]


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
    return [
        (DTensor, "device", property(_local_device)),
        (DTensor, "is_cuda", property(_is_cuda)),
    ]

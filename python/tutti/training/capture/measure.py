"""Measures the operators of a captured step on the GPU of this machine.

Each distinct product and attention runs on random tensors of its shapes and datatype.
"""

from __future__ import annotations

import statistics
import time
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import torch

from tutti.training.capture.measured import MeasuredTimes, key_of, operators_of
from tutti.training.errors import CaptureError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tutti.training.capture.record import Operator

__all__ = ["gpu_name", "measure"]

_WARM, _RUNS = 3, 10
_CAUSAL = 0.75
"""The share of the FLOPs of all scores below which an attention is causal."""
_ATEN = torch.ops.aten
_PRODUCTS = ("aten.mm", "aten.bmm", "aten.addmm", "aten.baddbmm")


def gpu_name() -> str:
    """Returns the product name of the GPU of this machine.

    Raises:
        CaptureError: PyTorch finds none.
    """
    if not torch.cuda.is_available():
        raise CaptureError("this machine has no GPU that PyTorch can use", kind="no_gpu")
    return str(torch.cuda.get_device_name(0))


def measure(
    operators: Iterable[Operator], gpu: str, device: str = "cuda"
) -> tuple[MeasuredTimes, list[str]]:
    """Returns measured times, and names and shapes of operators that were not measured.

    Args:
        operators: The operators of a step; the distinct products and attention are measured.
        gpu: The name of the GPU in tutti.
        device: The device of PyTorch.
    """
    us, skipped = {}, []
    for one in operators_of(operators):
        run = _call(one, device)
        if run is None:
            skipped.append(f"{one.name} {one.shapes}")
        else:
            us[key_of(one)] = 1e6 * _median(run, device)
    return MeasuredTimes(gpu, us), skipped


def _call(one: Operator, device: str) -> Callable[[], object] | None:
    """Returns a call of an operator; None if it cannot be called by the shapes of its tensors."""
    shapes = _shapes(one.shapes)
    dtype = getattr(torch, one.dtype, None)
    if shapes is None or dtype is None:
        return None
    tensors = [torch.randn(shape, device=device, dtype=torch.float32).to(dtype) for shape in shapes]
    if one.name in _PRODUCTS:
        function = getattr(_ATEN, one.name.removeprefix("aten."))
        return lambda: function(*tensors)
    if one.name.startswith("aten._scaled_dot_product") and len(tensors) >= 3:
        return _attention(one, tensors[-3:])
    return None


def _attention(one: Operator, tensors: Sequence[Any]) -> Callable[[], object]:
    """Returns an attention of queries, keys and values, or its backward pass."""
    from torch.nn.functional import scaled_dot_product_attention as attention

    batch, heads, queries, width = tensors[0].shape
    products = 10 if "backward" in one.name else 4
    complete = products * batch * heads * queries * tensors[1].shape[2] * width
    more = {"is_causal": one.flops < _CAUSAL * complete,
            "enable_gqa": heads != tensors[1].shape[1]}  # fmt: skip
    if "backward" not in one.name:
        return lambda: attention(*tensors, **more)
    leaves = [tensor.requires_grad_() for tensor in tensors]
    out = attention(*leaves, **more)
    upstream = torch.ones_like(out)
    return lambda: torch.autograd.grad(out, leaves, upstream, retain_graph=True)


def _shapes(text: str) -> list[tuple[int, ...]] | None:
    """Returns the shapes of the first tensors of a captured operator."""
    try:
        words = text.partition(" +")[0].split()
        return [tuple(int(size) for size in word.split("x")) for word in words]
    except ValueError:
        return None


def _median(run: Callable[[], object], device: str) -> float:
    """Returns the median seconds of a call, between events of the GPU."""
    for _ in range(_WARM):
        run()
    if device != "cuda":
        found = []
        for _ in range(_RUNS):
            start = time.perf_counter()
            run()
            found.append(time.perf_counter() - start)
        return statistics.median(found)
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(_RUNS + 1)]
    marks[0].record()
    for mark in marks[1:]:
        run()
        mark.record()
    torch.cuda.synchronize()
    times = (first.elapsed_time(second) for first, second in pairwise(marks))
    return float(statistics.median(times)) * 1e-3

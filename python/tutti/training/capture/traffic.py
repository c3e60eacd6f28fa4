"""Bytes that kernels move: of strided operands, and of operands that a kernel reads again.

GPUs read memory in sectors of 32 B (CUDA C++ Best Practices Guide, "Coalesced access to global
memory"): one half of interleaved pairs takes as long as both. Which operands kernels read again
follows from PyTorch's sources in aten/src/ATen/native/cuda.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["AGAIN", "again", "nbytes"]

_SECTOR = 32
"""Bytes of a sector."""
_CACHED_ROW = (50 << 20) // (2 * 132)
"""Bytes of a row that an L2 cache of 50 MiB holds for two blocks on each of 132 SMs (H100)."""

_SOFTMAX = frozenset({"_softmax", "_log_softmax"})
_SOFTMAX_BACKWARD = frozenset({"_softmax_backward_data", "_log_softmax_backward_data"})
_NORM_BACKWARD = {"native_layer_norm_backward": "input", "_fused_rms_norm_backward": "input"}
"""Gradients of norms over rows, with the name of the operand of the forward pass."""
AGAIN = frozenset({*_SOFTMAX, *_SOFTMAX_BACKWARD, *_NORM_BACKWARD})
"""Operators whose kernels read operands again."""


def nbytes(tensor: Any) -> int:  # noqa: ANN401 - torch is optional
    """Returns the bytes that a kernel moves for a tensor: those of its elements or sectors.

    Elements that an expanded view repeats count once.
    """
    size = int(tensor.numel()) * int(tensor.element_size())
    if size and not tensor.is_contiguous():
        size = _strided(tensor)
    return min(size, int(tensor.untyped_storage().nbytes()))


def _strided(tensor: Any) -> int:  # noqa: ANN401
    """Returns the bytes of the sectors of a tensor with gaps."""
    element = int(tensor.element_size())
    run, runs, gap = element, 1, 0
    places = zip(tensor.stride(), tensor.shape, strict=True)
    for stride, count in sorted((stride * element, count) for stride, count in places
                                if count > 1 and stride):  # fmt: skip
        if not gap and stride <= run:
            run += (count - 1) * stride
        else:
            gap, runs = gap or stride, runs * count
    return runs * (min(gap, -(-run // _SECTOR) * _SECTOR) if gap else run)


def again(name: str, named: Mapping[str, Any]) -> int:
    """Returns the bytes that the kernels of an operator of :data:`AGAIN` move in addition.

    - Softmax reads a row three times (`cunn_SoftMaxForward`), and its gradient the gradient twice
      (`cunn_SoftMaxBackward`): from memory if the rows exceed the L2 cache.
    - The gradient of a softmax multiplies the gradient and the result in a kernel before
      (`softmax_backward_cuda_out`).
    - Norms read both operands in a second kernel for the gradients of their weights
      (`GammaBetaBackward`).

    Args:
        name: The operator, without its namespace.
        named: Its operands by name.
    """
    if name in _NORM_BACKWARD:
        inner = nbytes(named["grad_out"]) + nbytes(named[_NORM_BACKWARD[name]])
        return inner if any(named["output_mask"][1:]) else 0
    operand = named["self" if name in _SOFTMAX else "grad_output"]
    size, dim = nbytes(operand), int(named["dim"])
    is_last = dim in {-1, operand.dim() - 1}
    is_long = is_last and int(operand.shape[-1]) * int(operand.element_size()) > _CACHED_ROW
    if name in _SOFTMAX:
        return 2 * size if is_long else 0
    product = 3 * size if name == "_softmax_backward_data" else 0
    return product + (size if is_long else 0)

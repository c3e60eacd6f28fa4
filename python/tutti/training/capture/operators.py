"""What an operator of PyTorch costs: FLOPs, bytes, and what its time depends on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.utils.flop_counter import (
    flop_registry,
    sdpa_backward_flop_count,
    sdpa_flop_count,
)

from tutti.training.capture.traffic import AGAIN, again, nbytes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tutti.training.capture.record import Kind

__all__ = ["Cost", "changed_by", "cost_of", "launches_kernel", "tensors_in"]

_ATEN = torch.ops.aten

_WITHOUT_KERNEL = frozenset(
    {
        "empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "detach",
        "detach_", "alias", "lift", "lift_fresh", "set_", "resize_", "_unsafe_view", "size",
        "stride", "_fused_sdp_choice", "record_stream", "is_pinned", "_pin_memory",
        "_local_scalar_dense", "_reshape_alias", "wait_tensor", "wait_tensors",
        "record_grad_output_stream",
    }
)  # fmt: skip
"""Operators that launch nothing and are no views by their schema."""

_PRODUCTS = frozenset({"mm", "addmm", "bmm", "baddbmm", "_scaled_mm", "_grouped_mm",
                       "convolution", "convolution_backward", "_convolution"})  # fmt: skip
_ROWS = frozenset({"embedding", "index", "index_select", "gather", "take_along_dim"})
"""Operators that read as much as they write, however large the table is."""
_WRITES = frozenset({"zeros", "ones", "full", "zeros_like", "ones_like", "full_like", "new_zeros",
                     "new_ones", "new_full", "zero_", "fill_", "arange", "randint", "rand",
                     "randn", "normal_", "uniform_", "random_", "_foreach_zero_"})  # fmt: skip

_COPIES = frozenset({"copy_", "_foreach_copy_"})
"""Operators that overwrite the tensors that they change."""
_UNREAD = {
    "nll_loss_forward": "self", "nll_loss2d_forward": "self", "nll_loss_backward": "self",
    "nll_loss2d_backward": "self", "max_pool2d_with_indices_backward": "self",
    "avg_pool2d_backward": "self", "_adaptive_avg_pool2d_backward": "self",
}  # fmt: skip
"""Operands of which kernels need the shape, or an element per row."""
_INTO_ROWS = {
    "scatter_": "src", "scatter_add_": "src", "index_add_": "source", "index_copy_": "source",
    "index_put_": "values", "_index_put_impl_": "values",
}  # fmt: skip
"""Operators that change as many elements in place as this operand has."""
_FUSED_STEPS = frozenset({"_fused_adam_", "_fused_adamw_", "_fused_sgd_", "_fused_adagrad_"})
"""Steps of optimizers that only write gradients which they scale back."""


_BY_NAME = frozenset({*_UNREAD, *_INTO_ROWS, *_FUSED_STEPS, *AGAIN})


class Cost:
    """The cost of an operator.

    Attributes:
        kind: What its time depends on.
        flops: Its FLOPs.
        bytes: Bytes that it reads and writes.
        weight: Bytes of `bytes` of a matrix of weights or its gradient.
    """

    __slots__ = ("bytes", "flops", "kind", "weight")

    def __init__(self, kind: Kind, flops: int, size: int, weight: int = 0) -> None:
        """Has the attributes of the same name; `size` are the bytes."""
        self.kind, self.flops, self.bytes, self.weight = kind, flops, size, weight


def tensors_in(values: Any) -> list[Any]:  # noqa: ANN401 - torch is optional
    """Returns the tensors of nested lists, tuples and dictionaries, as arguments of operators are.

    PyTorch's `tree_leaves` takes a third of a capture.
    """
    if isinstance(values, torch.Tensor):
        return [values]
    if isinstance(values, dict):
        values = values.values()
    elif not isinstance(values, list | tuple):
        return []
    return [tensor for value in values for tensor in tensors_in(value)]


def launches_kernel(func: Any) -> bool:  # noqa: ANN401
    """Returns whether an operator launches a kernel, instead of changing a view."""
    return not (func.is_view or _name(func) in _WITHOUT_KERNEL)


def _name(func: Any) -> str:  # noqa: ANN401
    return str(func._schema.name.partition("::")[2])


def _moved(
    func: Any,  # noqa: ANN401
    args: Any,  # noqa: ANN401
    kwargs: Mapping[str, Any],
    outputs: list[Any],
) -> int:
    name, written = _name(func), _sizes(outputs)
    inputs = tensors_in((args, kwargs))
    if name in _WRITES:
        return written or _sizes(inputs)
    if name in _ROWS:
        return 2 * written
    if name == "all_gather_copy_in":
        # FSDP copies the shards to their place in the result of the gather.
        return 2 * _sizes(args[0])
    # To name the operands of each operator would take a tenth of a capture.
    named = _named(func, args, kwargs) if name in _BY_NAME else {}
    if name in _INTO_ROWS:
        given = tensors_in([named.get(key) for key in (_INTO_ROWS[name], "index", "indices")])
        rows = max(int(one.numel()) for one in given) * int(named["self"].element_size())
        return _sizes(inputs) - _sizes(named["self"]) + 2 * rows
    changed = changed_by(func, args, kwargs)
    unread = changed if name in _COPIES else tensors_in(kwargs.get("out"))
    unread = [*unread, *tensors_in(named.get(_UNREAD.get(name, "")))]
    back = _sizes(changed)
    if name in _FUSED_STEPS and named.get("grad_scale") is None:
        back -= _sizes(named["grads"])
    more = again(name, named) if name in AGAIN else 0
    return _sizes(inputs) - _sizes(unread) + max(written, back) + more


def _sizes(tensors: Any) -> int:  # noqa: ANN401
    """Returns the bytes of tensors; an operand that is given twice is read once."""
    return sum(nbytes(one) for one in {id(one): one for one in tensors_in(tensors)}.values())


def changed_by(func: Any, args: Any, kwargs: Mapping[str, Any]) -> list[Any]:  # noqa: ANN401
    """Returns the tensors that an operator changes in place."""
    found: list[Any] = []
    for place, argument in enumerate(func._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            value = args[place] if place < len(args) else kwargs.get(argument.name)
            found += tensors_in(value)
    return found


def _flops(func: Any, args: Any, kwargs: Mapping[str, Any], result: Any) -> int:  # noqa: ANN401
    if _name(func).startswith(("_scaled_dot_product_", "flex_attention")):
        return _attention_flops(_named(func, args, kwargs))
    count = flop_registry.get(func._overloadpacket)
    return int(count(*args, **kwargs, out_val=result)) if count is not None else 0


def _named(func: Any, args: Any, kwargs: Mapping[str, Any]) -> dict[str, Any]:  # noqa: ANN401
    names = [one.name for one in func._schema.arguments]
    return dict(zip(names, args, strict=False)) | dict(kwargs)


def _attention_flops(named: Mapping[str, Any]) -> int:
    """Returns the FLOPs of an attention, whose keys and values may have fewer heads.

    The counter of PyTorch up to 2.8 refuses them.
    """
    query, *others = (tuple(named[name].shape) for name in ("query", "key", "value"))
    key, value = ((*query[:-2], *one[-2:]) for one in others)
    gradient = next((named[name] for name in ("grad_out", "grad_out_") if name in named), None)
    if gradient is None:
        return int(sdpa_flop_count(query, key, value))
    return int(sdpa_backward_flop_count(tuple(gradient.shape), query, key, value))


def _share(func: Any, args: Any, kwargs: Mapping[str, Any]) -> float:  # noqa: ANN401
    """Returns the share of an attention's scores that count: if causal, the lower triangle."""
    named = _named(func, args, kwargs)
    if not named.get("is_causal"):
        return float(named.get("share", 1.0))
    keys = next(named[name] for name in ("key", "k") if name in named)
    length = int(keys.shape[-2])
    return (length + 1) / (2 * length)


def _weight(func: Any, args: Any, result: Any, *, backward: bool) -> int:  # noqa: ANN401
    """Returns the bytes of the weights of a product, or of their gradient.

    The weight gradient multiplies a transposed matrix; all other products have their weights as
    the second operand.
    """
    if _name(func) not in {"mm", "addmm"}:
        return 0
    first, second = args[-2:] if len(args) >= 2 else (None, None)
    if first is None or first.dim() != 2:
        return 0
    transposed = backward and first.stride(0) == 1 and first.shape[0] > 1
    return nbytes(result if transposed else second)


def cost_of(
    func: Any,  # noqa: ANN401
    args: Any,  # noqa: ANN401
    kwargs: Mapping[str, Any],
    result: Any,  # noqa: ANN401
    *,
    backward: bool,
) -> Cost:
    """Returns the cost of an operator that launches a kernel.

    Args:
        func: The operator.
        args: Its positional arguments.
        kwargs: Its named arguments.
        result: Its result.
        backward: Whether the backward pass issues it.
    """
    inputs, outputs = tensors_in((args, kwargs)), tensors_in(result)
    inside = {one.untyped_storage()._cdata for one in inputs}
    fresh = [one for one in outputs if one.untyped_storage()._cdata not in inside]
    flops, size = _flops(func, args, kwargs, result), _moved(func, args, kwargs, fresh)
    if "attention" in _name(func):
        return Cost("attention", round(flops * _share(func, args, kwargs)), size)
    if _name(func) in _PRODUCTS or flops:
        return Cost("product", flops, size, _weight(func, args, result, backward=backward))
    return Cost("memory", 0, size)

"""`flex_attention`, whose kernel PyTorch generates from Python code: an operator with a cost.

The code of a block mask decides which scores the kernel computes. It runs here on the indices of
some rows. Tensors without data that it reads, such as the numbers of documents, are zeros: all
tokens are of one document.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_map_only

from tutti.training.capture.named import on_gpu

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["replacements"]

_ROWS = 64
"""Rows of scores, evenly spaced, on which a mask is evaluated."""


@torch.library.custom_op(  # type: ignore[untyped-decorator]
    "tutti::flex_attention",
    mutates_args=(),
    schema="(Tensor query, Tensor key, Tensor value, float share) -> (Tensor, Tensor)",
)
def _forward(query: Any, key: Any, value: Any, share: float) -> Any:  # noqa: ANN401
    raise NotImplementedError


@torch.library.custom_op(  # type: ignore[untyped-decorator]
    "tutti::flex_attention_backward",
    mutates_args=(),
    schema="(Tensor grad_out, Tensor query, Tensor key, Tensor value, Tensor out, Tensor lse, "
    "float share) -> (Tensor, Tensor, Tensor)",
)
def _backward(grad_out: Any, query: Any, *more: Any) -> Any:  # noqa: ANN401
    raise NotImplementedError


@_forward.register_fake  # type: ignore[untyped-decorator]
def _shapes(query: Any, _key: Any, value: Any, _share: float) -> Any:  # noqa: ANN401
    """Returns the output, with the strides of the queries, and the log-sums of rows in FP32."""
    out = (
        torch.empty_like(query)
        if query.shape[-1] == value.shape[-1]
        else query.new_empty((*query.shape[:-1], value.shape[-1]))
    )
    return out, query.new_empty(query.shape[:-1], dtype=torch.float32)


@_backward.register_fake  # type: ignore[untyped-decorator]
def _gradients(_grad: Any, query: Any, key: Any, value: Any, *_: Any) -> Any:  # noqa: ANN401
    return tuple(torch.empty_like(one) for one in (query, key, value))


def _save(ctx: Any, inputs: Any, output: Any) -> None:  # noqa: ANN401
    ctx.share = inputs[-1]
    ctx.save_for_backward(*inputs[:-1], *output)


def _differentiate(ctx: Any, gradient: Any, _: Any) -> Any:  # noqa: ANN401
    return (*_backward(gradient, *ctx.saved_tensors, ctx.share), None)


_forward.register_autograd(_differentiate, setup_context=_save)


def replacements(remark: Callable[[str], None]) -> list[tuple[Any, str, Any]]:
    """Returns what replaces `flex_attention`, as (module, name, value).

    Args:
        remark: Notes what is assumed.
    """
    from torch.nn.attention import flex_attention as module

    plain, shares = module.flex_attention, {}
    signature = inspect.signature(plain)

    def attention(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        given = signature.bind(*args, **kwargs).arguments
        query, key, value = (given[name] for name in ("query", "key", "value"))
        mask = getattr(given.get("block_mask"), "mask_mod", None)
        place = (mask, query.shape[1], query.shape[-2], key.shape[-2])
        if place not in shares:
            shares[place] = _share(*place)
        share, text = shares[place]
        if text:
            remark(text)
        if given.get("score_mod") is not None:
            remark("`score_mod` of `flex_attention` takes no time")
        return _returned(_local(query, key, value, share), given, module)

    return [
        (module, "flex_attention", on_gpu(attention, plain)),
        (module, "create_block_mask", _block_mask_of(module)),
    ]


def _local(query: Any, key: Any, value: Any, share: float) -> Any:  # noqa: ANN401
    """Returns the results of an attention; DTensors have complete sequences on each rank."""
    if not hasattr(query, "_local_tensor"):
        return _forward(query, key, value, share)
    found = _forward(*(one.to_local() for one in (query, key, value)), share)
    return [type(query).from_local(one, query.device_mesh, query.placements) for one in found]


def _returned(found: Any, given: dict[str, Any], module: Any) -> Any:  # noqa: ANN401
    """Returns the results that a program requests."""
    out, lse = found
    aux = given.get("return_aux")
    if aux is not None:
        parts = {name: lse for name in ("lse", "max_scores") if getattr(aux, name, False)}
        return out, module.AuxOutput(**parts)
    return (out, lse) if given.get("return_lse") else out


def _block_mask_of(module: Any) -> Callable[..., Any]:  # noqa: ANN401
    """Returns what creates block masks of the GPU, without values and without taking time.

    PyTorch would write the mask of all scores, unless the program compiles it.
    """
    plain, make = module.create_block_mask, module.BlockMask.from_kv_blocks
    signature, parameters = inspect.signature(plain), inspect.signature(make).parameters

    def create(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        given = bound.arguments
        gpu = torch.device(given["device"] or "cuda")
        if gpu.type != "cuda":
            return plain(*args, **kwargs)
        lengths, size = (given["Q_LEN"], given["KV_LEN"]), given["BLOCK_SIZE"]
        blocks = (size, size) if isinstance(size, int) else size
        grid = [-(-length // block) for length, block in zip(lengths, blocks, strict=True)]
        shape = (given["B"] or 1, given["H"] or 1, *grid)
        counts = torch.empty(shape[:-1], dtype=torch.int32, device=gpu)
        indices = torch.empty(shape, dtype=torch.int32, device=gpu)
        # PyTorch 2.5 has no lengths that blocks do not divide.
        more = {"seq_lengths": lengths} if "seq_lengths" in parameters else {}
        return make(counts, indices, counts, indices, BLOCK_SIZE=tuple(blocks),
                    mask_mod=given["mask_mod"], **more)  # fmt: skip

    return create


class _WithZeros(TorchDispatchMode):  # type: ignore[misc] # torch is optional
    """Computes with zeros in place of tensors without data."""

    reads = False

    def __torch_dispatch__(
        self,
        func: Any,  # noqa: ANN401
        types: Any,  # noqa: ANN401
        args: Any = (),  # noqa: ANN401
        kwargs: Any = None,  # noqa: ANN401
    ) -> Any:  # noqa: ANN401
        self.reads = self.reads or FakeTensor in types
        args, kwargs = tree_map_only(FakeTensor, _zeros, (args, kwargs or {}))
        return func(*args, **kwargs)


def _zeros(tensor: Any) -> Any:  # noqa: ANN401
    return torch.zeros(tensor.shape, dtype=tensor.dtype)


def _share(mask: Any, heads: int, queries: int, keys: int) -> tuple[float, str]:  # noqa: ANN401
    """Returns the share of the scores that a mask leaves, and a remark if it is unknown."""
    if mask is None:
        return 1.0, ""
    with _disable_current_modes(), _WithZeros() as mode:
        at = sorted({(2 * row + 1) * queries // (2 * _ROWS) for row in range(_ROWS)})
        rows, columns = torch.tensor(at)[:, None], torch.arange(keys)
        zero = torch.zeros((), dtype=torch.int64)
        try:
            found = mask(zero, torch.arange(heads)[:, None, None], rows, columns)
            shape = torch.broadcast_shapes(found.shape, (1, len(at), keys))
            kept = found.bool().broadcast_to(shape)
            causal = (rows >= columns).expand_as(kept)
            is_causal = queries == keys and torch.equal(kept, causal)
            share = (keys + 1) / (2 * keys) if is_causal else float(kept.double().mean())
        except Exception:  # noqa: BLE001 - the program's code may fail in any way
            share = 0.0
    if not share:
        return 1.0, "masks of `flex_attention` that cannot be evaluated leave all scores"
    if not mode.reads:
        return share, ""
    of = "causal" if is_causal else f"{share:.0%} of the scores"
    return share, f"masks of `flex_attention` are {of}, with zeros for the tensors that they read"

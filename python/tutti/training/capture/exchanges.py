"""Collectives and messages of `torch.distributed`, as its dispatcher sees them.

Both the operators of `c10d` and the functional ones are read by the names of their arguments, so
that versions of PyTorch may differ in their order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import _create_work_from_future

from tutti.training.capture.operators import tensors_in
from tutti.training.capture.record import Exchange, Group

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["NAMESPACES", "Groups", "Issued", "issued_by", "work_of"]

NAMESPACES = frozenset({"c10d", "_c10d_functional"})

_COLLECTIVES = {
    "allreduce": "all_reduce",
    "all_reduce": "all_reduce",
    "allgather": "all_gather",
    "_allgather_base": "all_gather",
    "all_gather_into_tensor": "all_gather",
    "all_gather_into_tensor_out": "all_gather",
    "allgather_into_tensor": "all_gather",
    "reduce_scatter": "reduce_scatter",
    "_reduce_scatter_base": "reduce_scatter",
    "reduce_scatter_tensor": "reduce_scatter",
    "reduce_scatter_tensor_out": "reduce_scatter",
    "alltoall": "all_to_all",
    "alltoall_base": "all_to_all",
    "all_to_all_single": "all_to_all",
    "broadcast": "broadcast",
    "reduce": "reduce",
    "gather": "gather",
    "scatter": "scatter",
    "barrier": "barrier",
    "send": "send",
    "isend": "send",
    "recv": "recv",
    "irecv": "recv",
}
"""The collective of each operator, without suffixes of variants."""

_OUTPUTS = ("output_tensor", "output_tensors", "output", "outputs", "output_lists", "out")
_INPUTS = ("input_tensor", "input_tensors", "input", "inputs", "input_list", "tensors", "tensor")


@dataclass(frozen=True)
class Issued:
    """A collective that the program issues.

    Attributes:
        exchange: What it moves.
        inputs: The tensors that it reads.
        outputs: The tensors that it writes; for functional collectives, its result.
        waits: Whether the current stream waits for its end.
        uneven: Whether the parts of an all-to-all differ.
        shift: Whether it sends to one rank only, as a step of ring attention does.
    """

    exchange: Exchange
    inputs: tuple[Any, ...]
    outputs: tuple[Any, ...]
    waits: bool
    uneven: bool = False
    shift: bool = False


class Groups:
    """The process groups of a rank."""

    def __init__(self) -> None:
        """Starts without groups."""
        self.groups: list[Group] = []
        self._numbers: dict[str, int] = {}

    def number(self, group: Any) -> int:  # noqa: ANN401 - torch is optional
        """Returns the index of a process group."""
        name = str(group.group_name)
        if name not in self._numbers:
            ranks = tuple(sorted(dist.get_process_group_ranks(group)))
            title = str(getattr(group, "group_desc", "") or name)
            self._numbers[name] = len(self.groups)
            self.groups.append(Group(title if title != "undefined" else name, ranks))
        return self._numbers[name]


def work_of(tensors: tuple[Any, ...]) -> Any:  # noqa: ANN401
    """Returns the work of a collective that has ended, with its results."""
    future: Any = torch.futures.Future()
    future.set_result(list(tensors))
    return _create_work_from_future(future).boxed()


def _arguments(func: Any, args: Any, kwargs: Mapping[str, Any]) -> dict[str, Any]:  # noqa: ANN401
    names = [one.name for one in func._schema.arguments]
    defaults = {one.name: one.default_value for one in func._schema.arguments}
    return defaults | dict(zip(names, args, strict=False)) | dict(kwargs)


def _collective_of(name: str) -> str | None:
    plain = name.removesuffix("_coalesced_").removesuffix("_coalesced").removesuffix("_")
    return _COLLECTIVES.get(plain)


def _tensors(arguments: Mapping[str, Any], names: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple(tensors_in([arguments.get(name) for name in names]))


def _bytes(tensors: tuple[Any, ...]) -> int:
    return sum(int(one.numel()) * one.element_size() for one in tensors)


def _group_of(arguments: Mapping[str, Any]) -> Any:  # noqa: ANN401
    if "process_group" in arguments:
        return dist.ProcessGroup.unbox(arguments["process_group"])
    name = arguments["group_name"]
    return dist.distributed_c10d._resolve_process_group(name) if isinstance(name, str) else name


def _size(collective: str, inputs: tuple[Any, ...], outputs: tuple[Any, ...]) -> int:
    if collective in {"all_gather", "gather", "recv"}:
        return _bytes(outputs)
    return _bytes(inputs)


def issued_by(
    func: Any,  # noqa: ANN401
    args: Any,  # noqa: ANN401
    kwargs: Mapping[str, Any],
    result: Any,  # noqa: ANN401
    groups: Groups,
) -> Issued | None:
    """Returns the collective or message of an operator; None if it is neither.

    Args:
        func: The operator.
        args: Its positional arguments.
        kwargs: Its named arguments.
        result: Its result, for functional collectives.
        groups: The process groups, to which a new one is added.
    """
    collective = _collective_of(func._schema.name.partition("::")[2])
    if collective is None:
        return None
    arguments = _arguments(func, args, kwargs)
    group = _group_of(arguments)
    functional = func.namespace == "_c10d_functional"
    inputs = _tensors(arguments, _INPUTS)
    outputs = _tensors(arguments, _OUTPUTS)
    if functional and not outputs:
        outputs = tuple(tensors_in(result))
    outputs = outputs or inputs
    peer = arguments.get("dst", arguments.get("src")) if collective in {"send", "recv"} else None
    splits = [arguments.get(f"{side}_split_sizes") or () for side in ("input", "output")]
    number = groups.number(group)
    shift = all(each and sum(map(bool, each)) == 1 for each in splits)
    if peer is not None and int(peer) == group.rank():
        # Stages of one rank, up to PyTorch 2.9: a copy that is short next to their computation.
        return None
    if peer is not None:
        # The peer is an index in the group.
        peer = sorted(dist.get_process_group_ranks(group))[int(peer)]
    exchange = Exchange(
        collective, number, _size(collective, inputs, outputs), peer, int(arguments.get("tag") or 0)
    )
    return Issued(
        exchange,
        () if collective == "recv" else inputs,
        () if collective == "send" else outputs,
        waits=not functional and not arguments.get("async_op", True),
        uneven=not shift and any(len({int(part) for part in each}) > 1 for each in splits),
        shift=shift,
    )

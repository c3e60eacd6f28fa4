"""A captured training step: what one rank of each role issues, without torch.

A role is what ranks do alike: a pipeline stage, for example. Operators are in the order in which
the program issues them. An operator starts after the operators of `after`, which follow from its
stream, the events and streams that this one waits for, and the collectives whose results it reads.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, get_args

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "CapturedStep",
    "Exchange",
    "Group",
    "Kind",
    "MemoryChange",
    "MemoryKind",
    "Operator",
    "Phase",
    "Role",
]

Phase = Literal["forward", "backward", "recompute", "optimizer"]
Kind = Literal["product", "attention", "memory", "collective", "message"]
KINDS: tuple[Kind, ...] = get_args(Kind)
PHASES: tuple[Phase, ...] = get_args(Phase)

MemoryKind = Literal[
    "parameters", "gradients", "optimizer", "activations", "gathered", "temporary", "other"
]
MEMORY_KINDS: tuple[MemoryKind, ...] = get_args(MemoryKind)


@dataclass(frozen=True)
class Group:
    """The ranks of a process group.

    Attributes:
        name: The name that the program or PyTorch gave.
        ranks: The ranks, ascending.
    """

    name: str
    ranks: tuple[int, ...]


@dataclass(frozen=True)
class Exchange:
    """What a collective or message moves.

    Attributes:
        collective: `all_reduce`, `all_gather`, `reduce_scatter`, `all_to_all`, `broadcast`,
            `send`, `recv` and so on.
        group: The index of the process group in the role.
        bytes: The payload: the complete buffer of an all-reduce or broadcast, all parts of an
            all-gather or reduce-scatter, what a rank sends in an all-to-all.
        peer: The other rank of a message, in the job.
        tag: The tag of a message.
    """

    collective: str
    group: int
    bytes: int
    peer: int | None = None
    tag: int = 0


@dataclass(frozen=True)
class Operator:
    """An operator that launches a kernel, a collective or a message.

    Attributes:
        name: The name in PyTorch, such as `aten.mm`.
        module: The qualified name of the innermost module.
        phase: The part of the step.
        stream: The number of the stream; 0 is the default stream.
        kind: What its time depends on.
        after: The indices of the operators that it waits for, ascending.
        flops: Its FLOPs; a causal attention has those of the lower triangle.
        bytes: Bytes that it reads and writes, each operand once.
        weight: Bytes of `bytes` that are a matrix of weights or their gradient.
        dtype: The datatype of its operands.
        shapes: The shapes of its tensors, for people.
        exchange: What a collective or message moves.
    """

    name: str
    module: str
    phase: Phase
    stream: int
    kind: Kind
    after: tuple[int, ...] = ()
    flops: int = 0
    bytes: int = 0
    weight: int = 0
    dtype: str = ""
    shapes: str = ""
    exchange: Exchange | None = None

    def since(self, first: int) -> Operator:
        """Returns the operator with indices from that of another one, before which none counts."""
        if not first:
            return self
        return replace(self, after=tuple(one - first for one in self.after if one >= first))


@dataclass(frozen=True)
class MemoryChange:
    """An allocation of device memory, or its release.

    Attributes:
        operator: The number of operators that were issued before.
        bytes: The size; negative for a release.
        module: The module that allocated it.
        kind: What it holds.
    """

    operator: int
    bytes: int
    module: str
    kind: MemoryKind


@dataclass(frozen=True)
class Role:
    """A captured rank, which represents all ranks of its role.

    Attributes:
        rank: The captured rank.
        operators: Its operators, in the order of issue.
        groups: The process groups of its collectives and messages.
        parameters: Elements of parameters that the rank stores.
        weights: Elements of parameters of its modules, before sharding.
        memory: Changes of device memory, in order; the first ones precede the step.
        remarks: What was assumed or left out.
        ranks: The ranks of the role if they take other branches of the program than those at the
            same place of the process groups; else empty.
    """

    rank: int
    operators: tuple[Operator, ...]
    groups: tuple[Group, ...]
    parameters: int = 0
    weights: int = 0
    memory: tuple[MemoryChange, ...] = ()
    remarks: tuple[str, ...] = ()
    ranks: tuple[int, ...] = ()

    @property
    def exchanges(self) -> Iterator[tuple[Operator, Exchange]]:
        """The collectives and messages, in order."""
        return ((one, one.exchange) for one in self.operators if one.exchange is not None)

    @property
    def peers(self) -> tuple[int, ...]:
        """The ranks with which it exchanges messages."""
        return tuple(sorted({to.peer for _, to in self.exchanges if to.peer is not None}))

    def flops(self, *kinds: Kind) -> int:
        """Returns the FLOPs of operators of some kinds; of all without any."""
        return sum(one.flops for one in self.operators if not kinds or one.kind in kinds)

    def is_like(self, other: Role) -> bool:
        """Returns whether another rank issues the same operators and exchanges.

        Groups may have other ranks; peers may be other ranks at the same distance.
        """
        return self._relative() == other._relative()

    def _relative(self) -> tuple[object, ...]:
        groups = tuple(
            (len(one.ranks), tuple(rank - one.ranks[0] for rank in one.ranks))
            for one in self.groups
        )
        peers = tuple(None if to.peer is None else to.peer - self.rank for _, to in self.exchanges)
        plain = tuple(
            (one.name, one.module, one.phase, one.stream, one.kind, one.after, one.flops,
             one.bytes, one.shapes,
             one.exchange and (one.exchange.collective, one.exchange.group, one.exchange.bytes))
            for one in self.operators
        )  # fmt: skip
        return plain, groups, peers, self.parameters


@dataclass(frozen=True, kw_only=True)
class CapturedStep:
    """A training step of a PyTorch program, captured without GPUs.

    Attributes:
        script: The program and its arguments.
        world_size: The number of ranks.
        torch: The version of PyTorch.
        compiled: Whether the program calls `torch.compile`, which fuses operators of memory.
        roles: A captured rank of each role.
        seconds: The time of the capture.
    """

    script: str
    world_size: int
    torch: str
    roles: tuple[Role, ...]
    compiled: bool = False
    seconds: float = field(default=0.0, compare=False, repr=False)

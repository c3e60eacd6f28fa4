"""All_reduce of NCCL with SHARP: the switches between nodes reduce and multicast.

The GPUs of a node reduce each shard to the GPU with its network interface. The interfaces of a
shard reduce it in the switches between nodes, which also multicast the sum. The GPU of the
interface distributes the sum in its node. Within a node, NVLS reduces and multicasts in the
NVSwitch, CollNetDirect exchanges messages with all GPUs, and CollNetChain passes them along a chain
of GPUs for each interface. Source: NCCL, src/device/all_reduce.h.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from tutti.schedules.builder import ScheduleBuilder
from tutti.schedules.errors import AlgorithmError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tutti.nccl.schedules import Layout
    from tutti.schedules.builder import RankProgram
    from tutti.schedules.ir import Schedule

SHARP = ("NVLS", "CollNetDirect", "CollNetChain")
"""The algorithms; NVLS on several nodes."""
_MOST_OPS = 2_000_000
"""Most ops of a schedule, which is built op by op."""


def sharp(algorithm: str, layout: Layout, pieces: int) -> Schedule:
    """Returns an all_reduce with SHARP.

    Args:
        algorithm: One of `SHARP`.
        layout: The ranks, on two nodes or more.
        pieces: The pieces of a shard, which are in flight at the same time.

    Raises:
        AlgorithmError: The schedule has too many ops.
    """
    width, ranks = layout.width, layout.width * layout.nodes
    up = max(1, width - 1) if algorithm == "CollNetChain" else 1
    steps = pieces + 2 * up + 1
    ops = 2 * ranks * steps * (2 * width + 2 * layout.nodes)
    if ops > _MOST_OPS:
        problem = f"{algorithm} on {layout.nodes} nodes has about {ops:,} ops"
        raise AlgorithmError(f"{problem}: expected at most {_MOST_OPS:,}", kind="too_many_ranks")
    name = f"{algorithm.lower()}:{width},{pieces}"
    builder = ScheduleBuilder("all_reduce", ranks=ranks, chunks=pieces * ranks, name=name)
    for rank in range(ranks):
        member = _MEMBERS[algorithm](builder.rank(rank), rank, layout, pieces)
        for step in range(steps):
            member.add(step, up)
    return builder.build()


class _Member(ABC):
    """A rank. Slots: its data, the contributions of its node, those of other nodes.

    A chunk is a part of a piece of a shard, one for each node, whose GPU sums it.
    """

    def __init__(self, program: RankProgram, rank: int, layout: Layout, pieces: int) -> None:
        self.program = program
        self.node, self.index = divmod(rank, layout.width)
        self.width, self.nodes, self.pieces = layout.width, layout.nodes, pieces

    def add(self, step: int, up: int) -> None:
        """Adds a step: what is sent in each phase, then what is received.

        Args:
            step: The step.
            up: The steps in which a node reduces a piece.
        """
        self.program.step(f"step {step}")
        phases = ((self.up, step), (self.across, step - up), (self.back, step - up - 1),
                  (self.down, step - up - 2))  # fmt: skip
        for is_sent in (True, False):
            for phase, piece in phases:
                phase(piece, is_sent=is_sent)

    @abstractmethod
    def up(self, piece: int, *, is_sent: bool) -> None:
        """Reduces a piece of each shard in the node."""

    @abstractmethod
    def down(self, piece: int, *, is_sent: bool) -> None:
        """Distributes the sum in the node."""

    def across(self, piece: int, *, is_sent: bool) -> None:
        """Reduces a piece of the shard of this rank in the switches between nodes."""
        if not 0 <= piece < self.pieces:
            return
        first = self.chunks(self.index, piece)[0]
        if is_sent:
            for node in self.others:
                self.program.contribute(self.at(self.index, node), chunk=first + node)
            return
        operands: list[tuple[int, int | None]] = []
        for node in range(self.nodes):
            slot = self.width + node - (node > self.node)
            other = (slot, self.at(self.index, node))
            operands.append((0, None) if node == self.node else other)
        self.program.combine(0, operands, chunk=first + self.node)

    def back(self, piece: int, *, is_sent: bool) -> None:
        """Multicasts the sum to the other nodes."""
        if not 0 <= piece < self.pieces:
            return
        first, others = self.chunks(self.index, piece)[0], self.others
        if is_sent:
            peers = [self.at(self.index, node) for node in others]
            self.program.multicast(peers, chunk=first + self.node)
            return
        for node in others:
            self.program.recv(self.at(self.index, node), chunk=first + node)

    def chunks(self, index: int, piece: int) -> tuple[int, int]:
        """Returns the first chunk of a piece of a shard, and the one after the last."""
        first = (piece * self.width + index) * self.nodes
        return first, first + self.nodes

    def at(self, index: int, node: int | None = None) -> int:
        """Returns the rank of a GPU, by default of this node."""
        return (self.node if node is None else node) * self.width + index

    @property
    def others(self) -> list[int]:
        """The other nodes, such that no two ranks of a shard start with the same."""
        return [(self.node + by) % self.nodes for by in range(1, self.nodes)]

    @property
    def peers(self) -> list[int]:
        """The other GPUs of the node, such that no two start with the same."""
        return [(self.index + by) % self.width for by in range(1, self.width)]

    def slot(self, index: int) -> int:
        """Returns the slot of the contribution of a GPU of the node."""
        return index + (index < self.index)


class _Nvls(_Member):
    """NVLS: the NVSwitch reduces and multicasts."""

    def up(self, piece: int, *, is_sent: bool) -> None:
        if not 0 <= piece < self.pieces or self.width == 1:
            return
        if is_sent:
            for peer in self.peers:
                self.program.contribute(self.at(peer), chunks=self.chunks(peer, piece))
            return
        operands: list[tuple[int, int | None]] = [
            (0, None) if peer == self.index else (self.slot(peer), self.at(peer))
            for peer in range(self.width)
        ]
        self.program.combine(0, operands, chunks=self.chunks(self.index, piece))

    def down(self, piece: int, *, is_sent: bool) -> None:
        if not 0 <= piece < self.pieces or self.width == 1:
            return
        if is_sent:
            peers = [self.at(peer) for peer in self.peers]
            self.program.multicast(peers, chunks=self.chunks(self.index, piece))
            return
        for peer in self.peers:
            self.program.recv(self.at(peer), chunks=self.chunks(peer, piece))


class _Direct(_Member):
    """CollNetDirect: each GPU sends a shard to each other GPU."""

    def up(self, piece: int, *, is_sent: bool) -> None:
        if not 0 <= piece < self.pieces or self.width == 1:
            return
        own = self.chunks(self.index, piece)
        for peer in self.peers:
            if is_sent:
                self.program.send(self.at(peer), chunks=self.chunks(peer, piece))
            else:
                self.program.recv(self.at(peer), chunks=own, slot=self.slot(peer))
        if not is_sent:
            slots = [0 if peer == self.index else self.slot(peer) for peer in range(self.width)]
            self.program.reduce(0, slots, chunks=own)

    def down(self, piece: int, *, is_sent: bool) -> None:
        if not 0 <= piece < self.pieces:
            return
        for peer in self.peers:
            if is_sent:
                self.program.send(self.at(peer), chunks=self.chunks(self.index, piece))
            else:
                self.program.recv(self.at(peer), chunks=self.chunks(peer, piece))


class _Chain(_Member):
    """CollNetChain: a chain for each shard, which ends at the GPU of its network interface."""

    def up(self, piece: int, *, is_sent: bool) -> None:
        last = self.width - 1
        for shard in range(self.width):
            place = (self.index - shard - 1) % self.width
            at = piece - place if is_sent else piece - place + 1
            if not 0 <= at < self.pieces:
                continue
            chunks = self.chunks(shard, at)
            if is_sent and place < last:
                self.program.send(self.at((self.index + 1) % self.width), chunks=chunks)
            if not is_sent and place > 0:
                self.program.recv(self.at(self.index - 1 if self.index else last), chunks=chunks,
                                  slot=1)  # fmt: skip
                self.program.reduce(0, [1, 0], chunks=chunks)

    def down(self, piece: int, *, is_sent: bool) -> None:
        last = self.width - 1
        for shard in range(self.width):
            place = (shard - self.index) % self.width
            at = piece - place if is_sent else piece - place + 1
            if not 0 <= at < self.pieces:
                continue
            chunks = self.chunks(shard, at)
            if is_sent and place < last:
                self.program.send(self.at(self.index - 1 if self.index else last), chunks=chunks)
            if not is_sent and place > 0:
                self.program.recv(self.at((self.index + 1) % self.width), chunks=chunks)


_MEMBERS: dict[str, Callable[[RankProgram, int, Layout, int], _Member]] = {
    "NVLS": _Nvls,
    "CollNetDirect": _Direct,
    "CollNetChain": _Chain,
}

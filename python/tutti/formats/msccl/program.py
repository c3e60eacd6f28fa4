"""Programs of thread blocks, which MSCCL and MSCCL++ execute: the content of their files.

Every GPU runs thread blocks concurrently. A thread block performs its events in order, and waits
for events of other thread blocks where the file requires it. Buffers are ``i`` (input), ``o``
(output) and ``s`` (scratch), counted in chunks.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil


@dataclass(frozen=True, slots=True)
class ChunkRange:
    """Chunks of a buffer of a GPU."""

    buffer: str
    index: int
    count: int

    @property
    def end(self) -> int:
        """The chunk after the last one."""
        return self.index + self.count


@dataclass(eq=False, slots=True)
class Held:
    """A temporary buffer, whose chunks have the positions of `like` in a slot."""

    like: ChunkRange

    @property
    def count(self) -> int:
        """The number of chunks."""
        return self.like.count


Ref = ChunkRange | Held
"""Chunks that an action reads or writes."""


@dataclass(slots=True)
class Action:
    """A part of an event.

    Attributes:
        kind: ``send``, ``recv``, ``copy`` or ``fold``.
        rank: The GPU that performs it, which differs from that of the event in one-sided access.
        sources: What it reads.
        into: What it writes; None for a send.
        message: The number of the message of a send or receive.
    """

    kind: str
    rank: int
    sources: tuple[Ref, ...] = ()
    into: Ref | None = None
    message: int = -1


@dataclass(slots=True)
class Event:
    """A step of a thread block.

    Attributes:
        rank: The GPU.
        block: The thread block, numbered within the GPU; negative outside of the thread blocks.
        number: The position in the thread block, from 0.
        actions: What it does. Actions of its GPU are performed in order.
        after: Events that precede it, without the previous one of the thread block.
        after_all: Events that precede it including their actions on other GPUs.
        label: The name of the step in errors, by default from the number.
    """

    rank: int
    block: int
    number: int
    actions: list[Action] = field(default_factory=list)
    after: list[int] = field(default_factory=list)
    after_all: list[int] = field(default_factory=list)
    label: str = ""

    @property
    def place(self) -> str:
        """The place in the file, for errors."""
        block = f"tb {self.block}, " if self.block >= 0 else ""
        return f"gpu {self.rank}, {block}{self.label or f'step {self.number}'}"


@dataclass(slots=True)
class Program:
    """A program of thread blocks.

    Attributes:
        name: The name.
        collective: The collective in tutti's terms.
        ranks: The number of GPUs.
        chunks: The number of chunks of the payload.
        in_place: Whether input and output are the same memory.
        events: The events; those of a thread block are in order.
        messages: Sender and receiver of each message.
        root: The root of a rooted collective.
        source: The file.
    """

    name: str
    collective: str
    ranks: int
    chunks: int
    in_place: bool
    source: str
    events: list[Event] = field(default_factory=list)
    messages: list[tuple[int, int]] = field(default_factory=list)
    root: int = 0

    def shard(self) -> int:
        """Returns the chunks of a shard."""
        return ceil(self.chunks / self.ranks)


_MOST_CHUNKS = 1 << 16
_MOST_CELLS = 1 << 22


def check_size(program: Program) -> str:
    """Returns what exceeds the limits of the readers, or ""."""
    cells = sum(
        (action.into or action.sources[0]).count
        for event in program.events
        for action in event.actions
    )
    counts = (
        ("chunks", program.chunks, _MOST_CHUNKS),
        ("chunks on all GPUs", program.chunks * program.ranks, _MOST_CELLS),
        ("accesses to chunks", cells, _MOST_CELLS),
    )
    return next(
        (
            f"has {count:,} {what}: expected at most {most:,}"
            for what, count, most in counts
            if count > most
        ),
        "",
    )

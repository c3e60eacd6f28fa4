"""Statements of a program in the order of their execution, with the line of each."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

_PACKAGE = str(Path(__file__).parent) + os.sep


class Location(NamedTuple):
    """A line of the user's source."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


def caller() -> Location:
    """Returns the innermost line outside this package."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return Location(frame.f_code.co_filename, frame.f_lineno)


class Region(NamedTuple):
    """Consecutive chunks of a buffer of a rank, from `start` to before `end`."""

    rank: int
    buffer: int
    start: int
    end: int

    def part(self, index: int, parts: int) -> Region:
        """Returns one of equal parts, if each chunk is divided into `parts`."""
        count = self.end - self.start
        start = self.start * parts + index * count
        return Region(self.rank, self.buffer, start, start + count)


@dataclass(frozen=True, eq=False)
class Sent:
    """A message that is sent and not yet received.

    Attributes:
        source: The chunks that are sent.
        peer: The receiver.
        location: The line that sends.
    """

    source: Region
    peer: int
    location: Location


@dataclass(frozen=True)
class Statement:
    """A statement of a program.

    Attributes:
        kind: What it does.
        location: Its line.
        targets: The chunks that it writes.
        operands: The chunks that it reads, in order, or messages that it receives.
        channel: The channel of its messages, if any.
        in_network: Whether the network may reduce the operands of a fold, or what a send sends.
        sent: The messages of a send.
        multicast: Whether the messages of a copy or a send are a multicast.
        duration_ps: The duration of `compute` and `sleep`, in ps.
        rank: The rank that computes or sleeps, or starts a step.
        name: The name of the step.
    """

    kind: Literal["copy", "fold", "send", "compute", "sleep", "step"]
    location: Location
    targets: tuple[Region, ...] = ()
    operands: tuple[Region | Sent, ...] = ()
    channel: int | None = None
    in_network: bool = False
    sent: tuple[Sent, ...] = ()
    multicast: bool = False
    duration_ps: int = 0
    rank: int = 0
    name: str = ""


@dataclass
class Batch:
    """Statements that read the values before all of them; or the start of a step.

    Attributes:
        statements: The statements; none for the start of a step.
        step: The name of the step that starts, or None.
        ranks: The ranks of the step.
    """

    statements: list[Statement] = field(default_factory=list)
    step: str | None = None
    ranks: tuple[int, ...] = ()

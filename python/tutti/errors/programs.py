"""Errors of chunk programs."""

from __future__ import annotations

from typing import ClassVar

from tutti.errors.base import Kind
from tutti.errors.inputs import ScheduleError


class ProgramError(ScheduleError):
    """Raised for a statement of a chunk program; ``file`` and ``line`` are those of the statement.

    ``overwritten`` is the file and line of the statement that overwrote a stale chunk.
    """

    kinds: ClassVar[dict[str, Kind]] = {
        "stale": Kind(
            "A statement reads chunks that a later statement has overwritten.",
            "use the reference that `copy`, `reduce` or `fold` returned, or call `chunk` again",
        ),
        "uninitialised": Kind(
            "A statement reads a chunk that no statement has written.",
            "copy data to it first; the collective defines which ranks start with data",
        ),
        "in_exchange": Kind(
            "A statement of an exchange reads a chunk that the exchange writes.",
            "read it after the `with` block of the exchange",
        ),
        "written_twice": Kind(
            "Two statements of an exchange write the same chunk.",
            "reduce both values with one `fold`, or use two exchanges",
        ),
        "nested": Kind("A step or an exchange starts within an exchange.", "end the first one"),
        "no_such_rank": Kind("The group has no such rank.", "ranks count from 0 in each group"),
        "no_such_chunks": Kind("The group has no such chunks.", "chunks count from 0"),
        "no_operands": Kind("A fold has no operands.", "name the chunks to reduce"),
        "counts": Kind("Operands have different numbers of chunks.", "give the same `count`"),
        "in_network": Kind(
            "Operands of a fold in the network start at different chunks.",
            "copy them to the index of the result first",
        ),
        "multicast": Kind(
            "The destinations of a message are invalid.",
            "name each other rank at most once; use a plain copy within a rank",
        ),
        "order": Kind(
            "Messages between two ranks are not received in the order in which they are sent.",
            "receive each message before later ones of the same pair of ranks",
        ),
        "not_received": Kind("A message is never received.", "call `receive`, or use it in a fold"),
        "group": Kind(
            "The ranks are not distinct, or the chunks do not divide equally.",
            "choose a number of chunks that divides the range",
        ),
        "shape": Kind(
            "The number of chunks or instances is invalid.",
            "use at least one of each, and one instance for all_to_all_v",
        ),
        "closed": Kind(
            "A statement is not within the `with` block of its program.",
            "indent it into the block; a program cannot be reopened",
        ),
        "not_finished": Kind(
            "The schedule is not available before the `with` block has ended.",
            "read `schedule` after the block",
        ),
        "does_not_fit": Kind(
            "A schedule cannot be performed on the ranks and chunks of the group.",
            "give it the ranks of the group, and chunks that divide those of the group",
        ),
        "load": Kind(
            "The text does not name a function that returns a program or a schedule.",
            "write `module:function`",
        ),
    }

"""Executes the rounds of a schedule as statements of a program."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

from tutti.schedules.language.record import program_error
from tutti.schedules.language.rounds import rounds
from tutti.schedules.language.trace import Region, Sent

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tutti.schedules.ir import Schedule
    from tutti.schedules.language.chunk import Chunk, SentChunk
    from tutti.schedules.language.program import RankGroup
    from tutti.schedules.language.trace import Location, Statement


def perform(group: RankGroup, schedule: Schedule, location: Location) -> None:
    """Executes a schedule on the ranks and chunks of a group.

    Raises:
        ProgramError: The ranks, the chunks or the result buffer of the schedule do not fit.
        VerificationError: The schedule is not correct.
    """
    fits = schedule.ranks == group.ranks and group.chunks % schedule.chunks == 0
    if not fits or schedule.result != 0 or schedule.blocks is not None:
        problem = (
            f"{schedule.name} ({schedule.ranks} ranks, {schedule.chunks} chunks, result in slot "
            f"{schedule.result}) on {group.ranks} ranks and {group.chunks} chunks"
        )
        raise program_error("does_not_fit", location, problem)
    schedule.verify()
    found = rounds(schedule)
    if found is None:
        problem = f"ranks of {schedule.name} wait for messages of steps that start later"
        raise program_error("does_not_fit", location, problem)
    view = group.group(range(group.ranks), chunks=schedule.chunks)
    performer = Performer(view)
    for each in found:
        view.step(each.name)
        performer.run(each.messages, exchange=True)
        performer.run(each.locals, exchange=False)


def buffer_name(slot: int) -> str:
    """Returns the name of a slot, as in the text form of schedules."""
    return f"s{slot}" if slot else "data"


class Performer:
    """Executes statements of a schedule on a group."""

    def __init__(self, group: RankGroup) -> None:
        """Starts without messages."""
        self._group = group
        self._sent: dict[Sent, SentChunk] = {}

    def run(self, statements: Iterable[Statement], *, exchange: bool) -> None:
        """Executes statements, in an exchange or in order."""
        with self._group.exchange() if exchange else nullcontext():
            for statement in statements:
                self._run(statement)

    def _run(self, statement: Statement) -> None:
        group = self._group
        if statement.kind == "step":
            group.group([statement.rank]).step(statement.name)
            return
        if statement.kind in {"compute", "sleep"}:
            from tutti.base.units import Time

            work = group.compute if statement.kind == "compute" else group.sleep
            work(statement.rank, Time(ps=statement.duration_ps))
            return
        operands = [
            self._sent[each] if isinstance(each, Sent) else self._chunk(each)
            for each in statement.operands
        ]
        first = statement.operands[0]
        if statement.kind == "send":
            source = self._chunk(statement.sent[0].source)
            peers = [each.peer for each in statement.sent]
            if statement.multicast:
                self._sent.update(zip(statement.sent, source.send(peers), strict=True))
            else:
                handle = source.send(peers[0], in_network=statement.in_network)
                self._sent[statement.sent[0]] = handle
        elif statement.kind == "fold":
            self._chunk(statement.targets[0]).fold(*operands, in_network=statement.in_network)
        else:
            target = statement.targets[0]
            buffer = buffer_name(target.buffer)
            if isinstance(first, Sent):
                self._sent[first].receive(target.start, buffer=buffer)
                return
            ranks = [each.rank for each in statement.targets]
            source = self._chunk(first)
            if statement.multicast:
                source.copy(ranks, target.start, buffer=buffer)
            else:
                source.copy(ranks[0], target.start, buffer=buffer)

    def _chunk(self, region: Region) -> Chunk:
        return self._group.chunk(
            region.rank,
            region.start,
            count=region.end - region.start,
            buffer=buffer_name(region.buffer),
        )

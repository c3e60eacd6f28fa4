"""References to chunks, and the statements on them."""

from __future__ import annotations

from typing import TYPE_CHECKING, overload

from tutti.schedules.language.trace import Region, Sent, Statement, caller

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.schedules.language.program import RankGroup
    from tutti.schedules.language.trace import Location


class Chunk:
    """A reference to consecutive chunks of a buffer of a rank, as :meth:`RankGroup.chunk` returns.

    A reference names values, not positions. A statement that reads a reference after another
    statement has overwritten the chunks is an error.
    """

    __slots__ = ("_group", "_region", "_versions")

    def __init__(self, group: RankGroup, region: Region, versions: tuple[int, ...]) -> None:
        """Use :meth:`RankGroup.chunk`."""
        self._group = group
        self._region = region
        self._versions = versions

    @property
    def rank(self) -> int:
        """The rank, in the numbering of its group."""
        return self._group._ranks.index(self._region.rank)

    @property
    def index(self) -> int:
        """The first chunk, in the numbering of its group."""
        return self._group._index(self._region.start)

    @property
    def count(self) -> int:
        """The number of chunks, in the units of its group."""
        return self._group._count(self._region)

    @property
    def buffer(self) -> str:
        """The name of the buffer."""
        return self._group._record.names[self._region.buffer]

    @overload
    def copy(
        self,
        to: int,
        index: int | None = None,
        *,
        buffer: str | None = None,
        channel: int | None = None,
    ) -> Chunk: ...
    @overload
    def copy(
        self,
        to: Sequence[int],
        index: int | None = None,
        *,
        buffer: str | None = None,
        channel: int | None = None,
    ) -> tuple[Chunk, ...]: ...
    def copy(
        self,
        to: int | Sequence[int],
        index: int | None = None,
        *,
        buffer: str | None = None,
        channel: int | None = None,
    ) -> Chunk | tuple[Chunk, ...]:
        """Copies the chunks to a rank, or within the rank.

        Args:
            to: The destination; several destinations are a multicast.
            index: The first chunk at the destination; the same index by default.
            buffer: The buffer at the destination; the same buffer by default.
            channel: The channel of the message. A rank sends, and receives, one message at a time
                on a channel, in the order of the program. Default: no such constraint.

        Returns:
            The chunks at the destination; a tuple for several destinations.

        Raises:
            ProgramError: The chunks are stale or uninitialised, or the destination does not exist.
        """
        group, record = self._group, self._group._record
        location = caller()
        peers = (to,) if isinstance(to, int) else tuple(to)
        at = self._at(peers, index, buffer, location)
        record.read(self, location)
        if not isinstance(to, int):
            record.check_destinations(self._region.rank, [each.rank for each in at], location)
        record.check_order((self._region,), at, location)
        record.add(
            Statement(
                "copy",
                location,
                targets=at,
                operands=(self._region,),
                channel=channel,
                multicast=not isinstance(to, int),
            )
        )
        written = tuple(Chunk(group, each, record.write(each, location)) for each in at)
        return written[0] if isinstance(to, int) else written

    def reduce(
        self, *others: Chunk | SentChunk, channel: int | None = None, in_network: bool = False
    ) -> Chunk:
        """Reduces other chunks into these: ``c = c + others[0] + others[1] ...``.

        The arguments are those of :meth:`fold`.

        Raises:
            ProgramError: Chunks are stale or uninitialised, or their counts differ.
        """
        return self._fold((self, *others), channel, in_network)

    def fold(
        self, *operands: Chunk | SentChunk, channel: int | None = None, in_network: bool = False
    ) -> Chunk:
        """Sets the chunks to the reduction of the operands, from left to right.

        Args:
            operands: The operands, of any rank, with the same number of chunks. The chunks
                themselves may be among them.
            channel: The channel of the messages, as for :meth:`copy`.
            in_network: Whether the network may reduce the operands of other ranks.

        Returns:
            The chunks with their new values.

        Raises:
            ProgramError: Chunks are stale or uninitialised, or their counts differ.
        """
        return self._fold(operands, channel, in_network)

    @overload
    def send(
        self, to: int, *, channel: int | None = None, in_network: bool = False
    ) -> SentChunk: ...
    @overload
    def send(
        self, to: Sequence[int], *, channel: int | None = None, in_network: bool = False
    ) -> tuple[SentChunk, ...]: ...
    def send(
        self, to: int | Sequence[int], *, channel: int | None = None, in_network: bool = False
    ) -> SentChunk | tuple[SentChunk, ...]:
        """Sends the chunks to a rank, which receives them in a later statement.

        A copy sends and receives in one statement. Use `send` to send early, or to choose the order
        of a rank's sends independently of the order in which others receive.

        Args:
            to: The destination; several destinations are a multicast.
            channel: The channel of the message, as for :meth:`copy`.
            in_network: Whether the message is an operand of a fold in the network.

        Raises:
            ProgramError: The chunks are stale or uninitialised, or a rank does not exist.
        """
        location = caller()
        record = self._group._record
        one = isinstance(to, int)
        peers = [
            self._group._rank(each, location) for each in ([to] if isinstance(to, int) else to)
        ]
        record.read(self, location)
        record.check_destinations(self._region.rank, peers, location)
        sent = tuple(Sent(self._region, peer, location) for peer in peers)
        record.sends(sent)
        record.add(
            Statement(
                "send",
                location,
                operands=(self._region,),
                channel=channel,
                in_network=in_network,
                sent=sent,
                multicast=not one,
            )
        )
        handles = tuple(SentChunk(self._group, each) for each in sent)
        return handles[0] if one else handles

    def _fold(
        self, operands: Sequence[Chunk | SentChunk], channel: int | None, in_network: bool
    ) -> Chunk:
        location = caller()
        record = self._group._record
        record.check_operands(self._region, [e._region for e in operands], in_network, location)
        reads: list[Region | Sent] = []
        for each in operands:
            if isinstance(each, SentChunk):
                record.receives(each._sent, self._region.rank, location)
                reads.append(each._sent)
            else:
                record.read(each, location)
                reads.append(each._region)
        at = self._region
        record.check_order(reads, (at,), location)
        record.add(
            Statement(
                "fold",
                location,
                targets=(at,),
                operands=tuple(reads),
                channel=channel,
                in_network=in_network,
            )
        )
        return Chunk(self._group, at, record.write(at, location))

    def _at(
        self, peers: Sequence[int], index: int | None, buffer: str | None, location: Location
    ) -> tuple[Region, ...]:
        """Returns the regions of the destinations."""
        group = self._group
        index = self.index if index is None else index
        buffer = self.buffer if buffer is None else buffer
        return tuple(group._region(each, index, self.count, buffer, location) for each in peers)

    def __repr__(self) -> str:
        index = f"{self.index}..{self.index + self.count}" if self.count != 1 else f"{self.index}"
        return f"<Chunk {self.buffer}[{index}] of rank {self.rank}>"


class SentChunk:
    """Chunks that a rank has sent: received by :meth:`receive`, or as an operand of a fold."""

    __slots__ = ("_group", "_sent")

    def __init__(self, group: RankGroup, sent: Sent) -> None:
        """Use :meth:`Chunk.send`."""
        self._group = group
        self._sent = sent

    @property
    def _region(self) -> Region:
        return self._sent.source

    def receive(
        self, index: int | None = None, *, buffer: str | None = None, channel: int | None = None
    ) -> Chunk:
        """Receives the chunks, by default at the index and in the buffer of the sender.

        Messages from one rank to another are received in the order in which they are sent.

        Raises:
            ProgramError: The chunks do not exist, or an earlier message is not yet received.
        """
        location = caller()
        group, record, source = self._group, self._group._record, self._sent.source
        index = group._index(source.start) if index is None else index
        buffer = record.names[source.buffer] if buffer is None else buffer
        to = group._ranks.index(self._sent.peer)
        at = group._region(to, index, group._count(source), buffer, location)
        record.receives(self._sent, at.rank, location)
        record.add(
            Statement("copy", location, targets=(at,), operands=(self._sent,), channel=channel)
        )
        return Chunk(group, at, record.write(at, location))

"""The record of a program: its statements, and what every chunk contains."""

from __future__ import annotations

from collections import defaultdict, deque
from typing import TYPE_CHECKING

from tutti.schedules.errors import ProgramError
from tutti.schedules.language.trace import Batch, Location, Region, Sent, Statement

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.schedules.language.chunk import Chunk

_UNINITIALISED = -1


class Record:
    """The statements so far, and the version of every chunk.

    A version is the index of the line that wrote the chunk. The first is the initial data.
    """

    def __init__(self, collective: str, *, ranks: int, chunks: int, root: int) -> None:
        """Starts with the data of the collective's precondition."""
        self.batches: list[Batch] = []
        self.names = ["data"]
        self.chunks = chunks
        self.is_open = False
        self.exchange: Batch | None = None
        self._lines: list[Location] = [Location("", 0)]
        self._contents: dict[tuple[int, int], list[int]] = {}
        self._exchanged: dict[tuple[int, int, int], int] = {}
        self._pending: dict[tuple[int, int], deque[Sent]] = defaultdict(deque)
        for rank in range(ranks):
            self._contents[rank, 0] = _initial(collective, rank, ranks, chunks, root)

    def buffer(self, name: str) -> int:
        """Returns the number of a buffer, which is created on first use."""
        if name not in self.names:
            self.names.append(name)
        return self.names.index(name)

    def versions(self, region: Region) -> tuple[int, ...]:
        """Returns the versions of the chunks."""
        return tuple(self._versions(region)[region.start : region.end])

    def read(self, chunk: Chunk, location: Location) -> None:
        """Checks that a statement may read chunks.

        Raises:
            ProgramError: They are stale, uninitialised, or written in this exchange.
        """
        region, expected = chunk._region, chunk._versions
        found = self.versions(region)
        if found == expected and _UNINITIALISED not in found:
            return
        for at, (version, now) in enumerate(zip(expected, found, strict=True), region.start):
            what = f"chunk {at} of `{self.names[region.buffer]}` on rank {region.rank}"
            if version == self._exchanged.get((region.rank, region.buffer, at)):
                problem = f"{what} is written in this exchange ({self._lines[version]})"
                raise program_error("in_exchange", location, problem)
            if version != now:
                problem = f"{what} was overwritten at {self._lines[now]}"
                raise program_error("stale", location, problem, overwritten=self._lines[now])
            if now == _UNINITIALISED:
                raise program_error(
                    "uninitialised", location, f"{what} is read, but was never written"
                )

    def write(self, region: Region, location: Location) -> tuple[int, ...]:
        """Gives the chunks a new version, at the end of an exchange if one is open.

        Raises:
            ProgramError: Two statements of an exchange write the same chunk.
        """
        self._lines.append(location)
        version = len(self._lines) - 1
        if self.exchange is None:
            self._versions(region)[region.start : region.end] = [version] * _length(region)
            return (version,) * _length(region)
        for chunk in range(region.start, region.end):
            key = (region.rank, region.buffer, chunk)
            first = self._exchanged.setdefault(key, version)
            if first != version:
                what = f"chunk {chunk} of `{self.names[region.buffer]}` on rank {region.rank}"
                problem = f"{what} is also written at {self._lines[first]} in the same exchange"
                raise program_error("written_twice", location, problem)
        return (version,) * _length(region)

    def add(self, statement: Statement) -> None:
        """Adds a statement.

        Raises:
            ProgramError: The program is not open.
        """
        self.check_open(statement.location)
        if self.exchange is not None:
            self.exchange.statements.append(statement)
        else:
            self.batches.append(Batch([statement]))

    def start_step(self, name: str, ranks: Sequence[int], location: Location) -> None:
        """Starts a step on some ranks.

        Raises:
            ProgramError: The program is not open, or an exchange is.
        """
        self.check_open(location)
        if self.exchange is not None:
            raise program_error("nested", location, "a step starts within an exchange")
        self.batches.append(Batch(step=name, ranks=tuple(ranks)))

    def start_exchange(self, location: Location) -> None:
        """Starts an exchange.

        Raises:
            ProgramError: The program is not open, or an exchange is.
        """
        self.check_open(location)
        if self.exchange is not None:
            raise program_error("nested", location, "an exchange starts within an exchange")
        self.exchange = Batch()

    def end_exchange(self) -> None:
        """Ends the exchange: its writes take effect."""
        if self.exchange is not None and self.exchange.statements:
            self.batches.append(self.exchange)
        self.exchange = None
        for (rank, buffer, chunk), version in self._exchanged.items():
            self._versions(Region(rank, buffer, chunk, chunk + 1))[chunk] = version
        self._exchanged.clear()

    def check_open(self, location: Location) -> None:
        """Checks that statements are allowed.

        Raises:
            ProgramError: The program is not open.
        """
        if not self.is_open:
            raise program_error(
                "closed", location, "a statement outside the `with` block of its program"
            )

    def check_operands(
        self, target: Region, operands: Sequence[Region], in_network: bool, location: Location
    ) -> None:
        """Checks the number of operands, and their chunks.

        Raises:
            ProgramError: There are none, their counts differ, or their indices do in the network.
        """
        if not operands:
            raise program_error("no_operands", location, "a fold has no operands")
        for each in operands:
            if _length(each) != _length(target):
                problem = f"an operand has {_length(each)} chunks, the result {_length(target)}"
                raise program_error("counts", location, problem)
            if in_network and each.start != target.start:
                problem = f"an operand in the network starts at chunk {each.start}"
                raise program_error("in_network", location, f"{problem}, not at {target.start}")

    def check_destinations(self, source: int, peers: Sequence[int], location: Location) -> None:
        """Checks the destinations of messages.

        Raises:
            ProgramError: There are none, one appears twice, or it is the source.
        """
        if not peers or source in peers or len(set(peers)) != len(peers):
            problem = f"rank {source} sends to ranks {list(peers)}"
            raise program_error("multicast", location, problem)

    def check_order(
        self, reads: Sequence[Region | Sent], targets: Sequence[Region], location: Location
    ) -> None:
        """Checks that messages of a statement do not overtake messages that are not received.

        Raises:
            ProgramError: A message would.
        """
        pairs = [(r.rank, t.rank) for r in reads if isinstance(r, Region) for t in targets]
        for source, peer in pairs:
            pending = self._pending.get((source, peer))
            if pending:
                problem = (
                    f"a message from rank {source} to rank {peer} overtakes that of "
                    f"{pending[0].location}, which is not yet received"
                )
                raise program_error("order", location, problem)

    def sends(self, sent: Sequence[Sent]) -> None:
        """Stores messages that are received later."""
        for each in sent:
            self._pending[each.source.rank, each.peer].append(each)

    def receives(self, sent: Sent, rank: int, location: Location) -> None:
        """Removes a message that is received.

        Raises:
            ProgramError: Another rank receives it, or it is not the next one.
        """
        source = sent.source.rank
        pending = self._pending[source, sent.peer]
        if rank != sent.peer:
            problem = f"rank {rank} receives a message from rank {source} to rank {sent.peer}"
            raise program_error("order", location, problem)
        if not pending or pending[0] is not sent:
            first = f"that of {pending[0].location}" if pending else "none"
            problem = f"rank {rank} receives the message of {sent.location}: the next is {first}"
            raise program_error("order", location, problem)
        pending.popleft()

    def check_received(self) -> None:
        """Checks that every message is received.

        Raises:
            ProgramError: A message is not received.
        """
        for (source, peer), pending in self._pending.items():
            if pending:
                problem = f"rank {peer} never receives this message of rank {source}"
                raise program_error("not_received", pending[0].location, problem)

    def writer(self, rank: int, buffer: int, chunk: int) -> Location | None:
        """Returns the line that last wrote a chunk; None if no line did."""
        version = self._versions(Region(rank, buffer, chunk, chunk + 1))[chunk]
        return self._lines[version] if version > 0 else None

    def _versions(self, region: Region) -> list[int]:
        key = (region.rank, region.buffer)
        if key not in self._contents:
            self._contents[key] = [_UNINITIALISED] * self.chunks
        return self._contents[key]


def _length(region: Region) -> int:
    return region.end - region.start


def _initial(collective: str, rank: int, ranks: int, chunks: int, root: int) -> list[int]:
    """Returns the versions of the data buffer before the collective: 0 where there is data."""
    shard = max(chunks // ranks, 1)
    if collective in {"all_gather", "gather", "all_to_all_v"}:
        return [0 if chunk // shard == rank else _UNINITIALISED for chunk in range(chunks)]
    if collective in {"broadcast", "scatter"} and rank != root:
        return [_UNINITIALISED] * chunks
    return [0] * chunks


def program_error(
    kind: str, location: Location, problem: str, *, overwritten: Location | None = None
) -> ProgramError:
    """Returns the error of a statement, with its line."""
    fields: dict[str, object] = {"file": location.file, "line": location.line}
    if overwritten is not None:
        fields["overwritten"] = (overwritten.file, overwritten.line)
    return ProgramError(f"{location}: {problem}", kind=kind, fields=fields)

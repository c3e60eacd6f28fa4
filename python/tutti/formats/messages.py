"""Messages between ranks with their dependencies: the input of packet-level network simulators."""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from tutti.base.files.mistakes import mistake
from tutti.workloads.operations import Kind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tutti.base.errors import ConfigError
    from tutti.workloads.operations import Operations, Trace

_MOST_DEPENDENCIES: Final = 1 << 24
_Awaited = dict[int, int]
"""The time in ps between the completion of each message and an operation; -1 is the start."""
_START: Final = -1


@dataclass(frozen=True, kw_only=True)
class Messages:
    """Messages between ranks. Message i has element i of each column.

    A message starts when its start time has passed and, for each of its dependencies, the delay has
    passed since that message completed: at its destination if the waiting message starts there,
    else at its source.

    Attributes:
        name: The name, for results.
        ranks: The number of ranks.
        sources: The sending rank, int32.
        destinations: The receiving rank, int32.
        sizes: Bytes, int64.
        starts: The earliest start in ps, int64.
        first_dependency: Offsets into `dependencies`, int64, one more than messages.
        dependencies: Indices of messages that must have completed, int64.
        delays: Time between the completion of a dependency and the start in ps, such as a
            computation; int64, one per dependency.
    """

    name: str
    ranks: int
    sources: NDArray[np.int32]
    destinations: NDArray[np.int32]
    sizes: NDArray[np.int64]
    starts: NDArray[np.int64]
    first_dependency: NDArray[np.int64]
    dependencies: NDArray[np.int64]
    delays: NDArray[np.int64]

    def __len__(self) -> int:
        """Returns the number of messages."""
        return len(self.sources)

    def __eq__(self, other: object) -> bool:
        """Returns whether all columns are equal; the name does not count."""
        return (
            isinstance(other, Messages)
            and self.ranks == other.ranks
            and all(np.array_equal(getattr(self, c), getattr(other, c)) for c in _COLUMNS)
        )

    __hash__ = None  # type: ignore[assignment] # arrays have no hash

    def awaited(self, message: int) -> NDArray[np.int64]:
        """Returns the dependencies of a message."""
        first, last = self.first_dependency[message : message + 2]
        return self.dependencies[first:last]

    @classmethod
    def of_rows(
        cls,
        name: str,
        ranks: int,
        rows: list[tuple[int, int, int, int]],
        awaited: list[dict[int, int]],
    ) -> Messages:
        """Returns messages from a row (source, destination, bytes, start in ps) for each.

        Args:
            name: The name, for results.
            ranks: The number of ranks.
            rows: A row per message.
            awaited: The dependencies of each message, with their delays in ps.
        """
        table = np.array(rows, dtype=np.int64).reshape(-1, 4)
        offsets = np.zeros(len(rows) + 1, dtype=np.int64)
        np.cumsum([len(each) for each in awaited], out=offsets[1:])
        pairs = np.array(
            [pair for each in awaited for pair in sorted(each.items())], dtype=np.int64
        ).reshape(-1, 2)
        return cls(
            name=name,
            ranks=ranks,
            sources=table[:, 0].astype(np.int32),
            destinations=table[:, 1].astype(np.int32),
            sizes=table[:, 2].copy(),
            starts=table[:, 3].copy(),
            first_dependency=offsets,
            dependencies=pairs[:, 0].copy(),
            delays=pairs[:, 1].copy(),
        )


_COLUMNS: Final = (
    "sources",
    "destinations",
    "sizes",
    "starts",
    "first_dependency",
    "dependencies",
    "delays",
)


def messages_of(trace: Trace) -> Messages:
    """Returns the messages of a trace, in the order of their sources.

    A receive becomes a dependency on its message, and a computation a delay. Sends and receives of
    two ranks and a tag match in order. Streams, which serialise operations, are not represented.

    Args:
        trace: A trace without collectives.

    Raises:
        ConfigError: The trace has collectives, sends without receives or the reverse, or a cycle of
            dependencies.
    """
    _refuse_collectives(trace)
    refuse_timed(trace)
    numbers, matched = _matched(trace)
    rows: list[tuple[int, int, int, int]] = []
    awaited: list[_Awaited] = []
    total = 0
    for rank, operations in enumerate(trace.ranks):
        waits = _waits(trace, rank, numbers[rank], matched)
        for index in sorted(numbers[rank]):
            needs = waits[index]
            start = needs.pop(_START, 0)
            total += len(needs)
            if total > _MOST_DEPENDENCIES:
                raise _error(trace, f"the messages have more than {total - 1:,} dependencies")
            awaited.append(needs)
            rows.append((rank, int(operations.peers[index]), int(operations.sizes[index]), start))
    return Messages.of_rows(trace.name, len(trace.ranks), rows, _reduced(rows, awaited))


def _error(trace: Trace, problem: str, hint: str = "") -> ConfigError:
    return mistake(
        problem,
        source=trace.name,
        expected="sends and receives that match, with dependencies that can be met",
        hint=hint,
    )


def _refuse_collectives(trace: Trace) -> None:
    for rank, operations in enumerate(trace.ranks):
        found = np.flatnonzero(operations.kinds == Kind.COLLECTIVE)
        if len(found):
            call = trace.collectives[operations.peers[found[0]]].collective
            raise _error(
                trace,
                f"rank {rank} starts {call}, which has no messages",
                "name an algorithm that replaces collectives by messages",
            )


def refuse_timed(trace: Trace) -> None:
    """Refuses collectives that have only a time, which no format represents.

    Raises:
        ConfigError: The trace has one.
    """
    for rank, operations in enumerate(trace.ranks):
        found = np.flatnonzero(operations.kinds == Kind.TIMED)
        if len(found):
            raise mistake(
                f"rank {rank}, operation {found[0]} is a collective that has only a time",
                source=trace.name,
                expected="the trace before `timed` replaces its collectives",
            )


def _matched(trace: Trace) -> tuple[list[dict[int, int]], list[dict[int, int]]]:
    """Returns the message of each send, by rank and operation, and that of each receive."""
    sent: dict[tuple[int, int, int], deque[int]] = defaultdict(deque)
    numbers: list[dict[int, int]] = []
    count = 0
    for rank, operations in enumerate(trace.ranks):
        mine = {}
        for index in np.flatnonzero(operations.kinds == Kind.SEND).tolist():
            sent[rank, int(operations.peers[index]), int(operations.tags[index])].append(count)
            mine[index] = count
            count += 1
        numbers.append(mine)
    received: list[dict[int, int]] = []
    for rank, operations in enumerate(trace.ranks):
        theirs = {}
        for index in np.flatnonzero(operations.kinds == Kind.RECEIVE).tolist():
            source, tag = int(operations.peers[index]), int(operations.tags[index])
            queue = sent.get((source, rank, tag))
            if not queue:
                raise _error(
                    trace,
                    f"rank {rank} receives from {source} with tag {tag} what it does not send",
                )
            theirs[index] = queue.popleft()
        received.append(theirs)
    for (source, target, tag), queue in sent.items():
        if queue:
            raise _error(
                trace, f"rank {target} does not receive what {source} sends with tag {tag}"
            )
    return numbers, received


def _waits(
    trace: Trace, rank: int, numbers: dict[int, int], matched: list[dict[int, int]]
) -> dict[int, _Awaited]:
    """Returns the messages that each send of a rank awaits, with the delay since then."""
    operations, received = trace.ranks[rank], matched[rank]
    starts: dict[int, _Awaited] = {}
    pending, followers = _followers(operations)
    ready = deque(index for index, count in enumerate(pending) if count == 0)
    done = 0
    while ready:
        index = ready.popleft()
        done += 1
        start = starts.setdefault(index, {})
        if operations.kinds[index] == Kind.COMPUTE:
            extra = int(operations.durations[index])
            end = {message: delay + extra for message, delay in (start or {_START: 0}).items()}
        elif index in numbers:
            end = {numbers[index]: 0}
        else:
            end = {**start, received[index]: 0}
        for follower, on_start in followers.get(index, ()):
            into = starts.setdefault(follower, {})
            for message, delay in (start if on_start else end).items():
                into[message] = max(delay, into.get(message, 0))
            pending[follower] -= 1
            if pending[follower] == 0:
                ready.append(follower)
        if index not in numbers:
            del starts[index]
    if done < len(operations):
        raise _error(trace, f"the operations of rank {rank} have cyclic dependencies")
    return starts


def _followers(operations: Operations) -> tuple[list[int], dict[int, list[tuple[int, bool]]]]:
    """Returns the number of dependencies of each operation, and who depends on each."""
    spans = list(pairwise(operations.first_dependency.tolist()))
    pending = [end - start for start, end in spans]
    followers: dict[int, list[tuple[int, bool]]] = defaultdict(list)
    for index, (start, end) in enumerate(spans):
        for place in range(start, end):
            followers[int(operations.dependencies[place])].append(
                (index, bool(operations.on_start[place]))
            )
    return pending, followers


def _reduced(rows: list[tuple[int, int, int, int]], awaited: list[_Awaited]) -> list[_Awaited]:
    """Removes dependencies without a delay that another dependency implies.

    A message that has started implies what it awaited, where it awaited it: at its source.
    """
    reduced = []
    for (rank, *_), needs in zip(rows, awaited, strict=True):
        implied = {
            earlier
            for message in needs
            for earlier in awaited[message]
            if rank == rows[message][0] or rows[earlier][1] == rows[message][0]
        }
        reduced.append({m: delay for m, delay in needs.items() if delay > 0 or m not in implied})
    return reduced

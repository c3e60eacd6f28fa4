"""Messages of traces: against a direct evaluation of the trace, and by hand."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from tutti.base.errors import ConfigError
from tutti.formats.messages import Messages, messages_of
from tutti.workloads.operations import CollectiveCall, Kind, Operations, Trace

Row = tuple[Kind, int, int, int, list[tuple[int, bool]]]
"""Kind, peer, size or duration, tag, and dependencies with whether they are on the start."""


def operations(rows: list[Row]) -> Operations:
    sizes = [0 if kind is Kind.COMPUTE else amount for kind, _, amount, _, _ in rows]
    durations = [amount if kind is Kind.COMPUTE else 0 for kind, _, amount, _, _ in rows]
    offsets = np.cumsum([0, *(len(needs) for *_, needs in rows)])
    return Operations(
        kinds=np.array([row[0] for row in rows], dtype=np.uint8),
        sizes=np.array(sizes, dtype=np.int64),
        durations=np.array(durations, dtype=np.int64),
        peers=np.array([row[1] for row in rows], dtype=np.int32),
        tags=np.array([row[3] for row in rows], dtype=np.int64),
        streams=np.zeros(len(rows), dtype=np.int32),
        first_dependency=offsets.astype(np.int64),
        dependencies=np.array([d for *_, needs in rows for d, _ in needs], dtype=np.int64),
        on_start=np.array([s for *_, needs in rows for _, s in needs], dtype=np.bool_),
    )


def trace(*ranks: list[Row]) -> Trace:
    return Trace(name="t", ranks=tuple(operations(rows) for rows in ranks))


def random_trace(random: Random) -> Trace:
    """Adds computations, and pairs of send and receive, that depend on earlier operations."""
    ranks: list[list[Row]] = [[] for _ in range(random.randint(2, 4))]

    def needs(rank: int) -> list[tuple[int, bool]]:
        count = min(len(ranks[rank]), random.randint(0, 3))
        return [(d, random.random() < 0.2) for d in random.sample(range(len(ranks[rank])), count)]

    for _ in range(random.randint(1, 20)):
        a, b = random.sample(range(len(ranks)), 2)
        tag = random.randint(0, 1)
        if random.random() < 0.4:
            ranks[a].append((Kind.COMPUTE, -1, random.randint(0, 90), 0, needs(a)))
        else:
            ranks[a].append((Kind.SEND, b, random.randint(1, 9), tag, needs(a)))
            ranks[b].append((Kind.RECEIVE, a, 1, tag, needs(b)))
    return trace(*ranks)


def starts_of_trace(given: Trace, sent: list[int], arrived: list[int]) -> list[int]:
    """Returns the start of each send, if message i takes `sent[i]`, and `arrived[i]` to arrive."""
    numbers: dict[tuple[int, int], int] = {}
    for rank, ops in enumerate(given.ranks):
        for index in np.flatnonzero(ops.kinds == Kind.SEND).tolist():
            numbers[rank, index] = len(numbers)
    senders = {number: place for place, number in numbers.items()}

    def message(rank: int, index: int) -> int:
        ops = given.ranks[rank]
        source, tag = ops.peers[index], ops.tags[index]
        same = (ops.kinds == Kind.RECEIVE) & (ops.peers == source) & (ops.tags == tag)
        place = np.flatnonzero(same).tolist().index(index)
        there = given.ranks[source]
        sends = (there.kinds == Kind.SEND) & (there.peers == rank) & (there.tags == tag)
        return numbers[int(source), np.flatnonzero(sends).tolist()[place]]

    def start(rank: int, index: int) -> int:
        ops = given.ranks[rank]
        first, last = ops.first_dependency[index : index + 2]
        return max(
            (
                start(rank, d) if s else end(rank, d)
                for d, s in zip(
                    ops.dependencies[first:last].tolist(), ops.on_start[first:last], strict=True
                )
            ),
            default=0,
        )

    def end(rank: int, index: int) -> int:
        ops = given.ranks[rank]
        if ops.kinds[index] == Kind.COMPUTE:
            return start(rank, index) + int(ops.durations[index])
        if ops.kinds[index] == Kind.SEND:
            return start(rank, index) + sent[numbers[rank, index]]
        number = message(rank, index)
        return max(start(rank, index), start(*senders[number]) + arrived[number])

    return [start(*senders[number]) for number in range(len(numbers))]


def starts_of_messages(given: Messages, sent: list[int], arrived: list[int]) -> list[int]:
    found: dict[int, int] = {}

    def start(message: int) -> int:
        if message not in found:
            first, last = given.first_dependency[message : message + 2]
            waits = [int(given.starts[message])]
            for d, delay in zip(
                given.dependencies[first:last].tolist(), given.delays[first:last], strict=True
            ):
                there = given.sources[message] == given.destinations[d]
                waits.append(start(d) + (arrived if there else sent)[d] + int(delay))
            found[message] = max(waits)
        return found[message]

    return [start(message) for message in range(len(given))]


def test_messages_start_as_in_the_trace() -> None:
    random = Random(1)
    for _ in range(150):
        given = random_trace(random)
        messages = messages_of(given)
        sent = [random.randint(0, 50) for _ in range(len(messages))]
        arrived = [each + random.randint(0, 50) for each in sent]
        assert starts_of_messages(messages, sent, arrived) == starts_of_trace(given, sent, arrived)


def test_a_receive_and_a_computation_become_a_dependency_and_a_delay() -> None:
    first: list[Row] = [
        (Kind.COMPUTE, -1, 7, 0, []),
        (Kind.SEND, 1, 64, 3, [(0, False)]),
    ]
    second: list[Row] = [
        (Kind.RECEIVE, 0, 64, 3, []),
        (Kind.COMPUTE, -1, 5, 0, [(0, False)]),
        (Kind.SEND, 0, 32, 0, [(1, False)]),
    ]
    last: list[Row] = [(Kind.RECEIVE, 1, 32, 0, [])]
    messages = messages_of(trace(first + last, second))
    assert messages.starts.tolist() == [7, 0]
    assert messages.awaited(1).tolist() == [0]
    assert messages.delays.tolist() == [5]


@pytest.mark.parametrize(
    ("ranks", "problem"),
    [
        ([[(Kind.SEND, 1, 4, 0, [])], []], "does not receive"),
        ([[], [(Kind.RECEIVE, 0, 4, 0, [])]], "does not send"),
        ([[(Kind.COMPUTE, -1, 1, 0, [(0, False)])]], "cyclic"),
    ],
)
def test_traces_without_matching_operations_are_refused(
    ranks: list[list[Row]], problem: str
) -> None:
    with pytest.raises(ConfigError, match=problem):
        messages_of(trace(*ranks))


def test_collectives_have_no_messages() -> None:
    rank = operations([(Kind.COLLECTIVE, 0, 4, 0, [])])
    given = Trace(name="t", ranks=(rank,), collectives=(CollectiveCall("all_reduce", (0,)),))
    with pytest.raises(ConfigError, match="rank 0 starts all_reduce"):
        messages_of(given)

"""Orders the events of concurrent thread blocks into the steps of a schedule.

A schedule has one sequence of steps per rank. Times are ``3 * step + phase``, where the phases of a
step are sends, receives and local ops. Every action gets the first time that its predecessors
permit. Steps of all ranks are numbered alike, so that a message is sent in a step that does not
exceed the step of its receive: the result is free of deadlocks if the program is.

A schedule matches messages of two ranks in order, a program only those of one channel. A message
that would overtake another is delayed; if this blocks the program, the other is received into a
temporary first.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tutti.formats.msccl.program import ChunkRange, Held

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tutti.formats.msccl.layout import Layout, Run
    from tutti.formats.msccl.program import Action, Program, Ref

_PHASES = {"send": 0, "recv": 1, "copy": 2, "fold": 2}


@dataclass(eq=False, slots=True)
class Temporary:
    """A temporary of a rank, used in the steps `first` to `last`; `slot` is set last."""

    rank: int
    start: int
    count: int
    first: int = 1 << 62
    last: int = -1
    slot: int = -1


Cell = tuple["int | Temporary", int, int]
"""Chunks of a slot or a temporary: slot, first chunk, count."""


@dataclass(eq=False, slots=True)
class Node:
    """An action on adjacent chunks, or the start of an event (kind ``start``).

    Attributes:
        sources: What it reads.
        into: What it writes, or None.
        time: The time of its predecessors, then its own.
        missing: The number of unfinished predecessors.
        pair: Sender and receiver of a message.
        sequence: The position of the message among those of the pair.
    """

    kind: str
    rank: int
    event: int
    sources: list[Cell] = field(default_factory=list)
    into: Cell | None = None
    time: int = 0
    missing: int = 0
    done: bool = False
    next: list[Node] = field(default_factory=list)
    pair: tuple[int, int] = (-1, -1)
    sequence: int = -1


class _Graph:
    """The nodes of a program and their order."""

    def __init__(self, program: Program, layout: Layout) -> None:
        self._program, self._layout = program, layout
        self._held: dict[int, dict[Run, Temporary]] = {}
        self.nodes: list[Node] = []
        self._sends: dict[int, list[Node]] = {}
        self._cuts = self._message_cuts()
        self._connect()

    def _message_cuts(self) -> dict[int, set[int]]:
        cuts: dict[int, set[int]] = {}
        for event in self._program.events:
            for action in event.actions:
                if action.message >= 0:
                    ref = action.sources[0] if action.kind == "send" else action.into
                    found = self._layout.cuts(action.rank, ref) if ref is not None else set()
                    cuts.setdefault(action.message, set()).update(found)
        return cuts

    def _connect(self) -> None:
        """Creates all nodes and their edges."""
        ends: list[Node] = []
        everything: list[list[Node]] = []
        previous: dict[tuple[int, int], int] = {}
        starts: list[Node] = []
        for index, event in enumerate(self._program.events):
            start = self._node("start", event.rank, index)
            starts.append(start)
            own, last = [start], start
            for action in event.actions:
                local = action.rank == event.rank
                before = last if local else start
                for node in self._pieces(action, index):
                    _link(before, node)
                    before = node
                    own.append(node)
                if local:
                    last = before
            ends.append(last)
            everything.append(own)
        for index, event in enumerate(self._program.events):
            block = (event.rank, event.block)
            if block in previous:
                _link(ends[previous[block]], starts[index])
            previous[block] = index
            for other in event.after:
                _link(ends[other], starts[index])
            for other in event.after_all:
                for node in everything[other]:
                    _link(node, starts[index])
        self._match()

    def _match(self) -> None:
        """Links each send to its receive."""
        recvs: dict[int, list[Node]] = {}
        for node in self.nodes:
            if node.kind in {"send", "recv"}:
                by_message = self._sends if node.kind == "send" else recvs
                by_message.setdefault(node.sequence, []).append(node)
        for message, nodes in recvs.items():
            for send, recv in zip(self._sends[message], nodes, strict=True):
                send.pair = recv.pair = self._program.messages[message]
                _link(send, recv)

    def _node(self, kind: str, rank: int, event: int) -> Node:
        node = Node(kind, rank, event)
        self.nodes.append(node)
        return node

    def _pieces(self, action: Action, event: int) -> Iterable[Node]:
        refs = [*action.sources, *([action.into] if action.into is not None else [])]
        cuts = set(self._cuts.get(action.message, ()))
        for ref in refs:
            cuts |= self._layout.cuts(action.rank, ref)
        start = 0
        for end in sorted(cuts):
            sources = [self._cell(action.rank, ref, start, end) for ref in action.sources]
            into = None
            if action.into is not None:
                into = self._cell(action.rank, action.into, start, end)
            if action.kind == "fold" and into is not None:
                for number, cell in enumerate(sources):
                    if cell[1] != into[1]:  # a reduction works on equal positions
                        copy = self._node("copy", action.rank, event)
                        held = (Temporary(action.rank, into[1], into[2]), into[1], into[2])
                        copy.sources, copy.into, sources[number] = [cell], held, held
                        yield copy
            node = self._node(action.kind, action.rank, event)
            node.sources, node.into, node.sequence = sources, into, action.message
            start = end
            yield node

    def _cell(self, rank: int, ref: Ref, start: int, end: int) -> Cell:
        like = ref.like if isinstance(ref, Held) else ref
        part = ChunkRange(like.buffer, like.index + start, end - start)
        slot, at, count = self._layout.runs(rank, part)[0]
        if not isinstance(ref, Held):
            return slot, at, count
        # All pieces of a run share a temporary.
        pieces = self._held.setdefault(id(ref), {})
        run_of = next(run for run in self._layout.runs(rank, like) if _holds(run, slot, at))
        if run_of not in pieces:
            pieces[run_of] = Temporary(rank, run_of[1], run_of[2])
        return pieces[run_of], at, count


def _holds(run: Run, slot: int, at: int) -> bool:
    return run[0] == slot and run[1] <= at < run[1] + run[2]


def _link(before: Node, after: Node) -> None:
    before.next.append(after)
    after.missing += 1


class _Scheduler:
    """Assigns times in ascending order."""

    def __init__(self, nodes: list[Node]) -> None:
        self._heap: list[tuple[int, int, Node]] = []
        self._pushed = 0
        self.order: list[Node] = []
        self._sent: dict[tuple[int, int], list[Node]] = {}
        self._received: dict[tuple[int, int], int] = {}
        self._early: dict[tuple[int, int], dict[int, Node]] = {}
        self._touched: dict[tuple[int, int], set[tuple[int, int]]] = {}
        self._now = 0
        self.staged = 0
        for node in nodes:
            if node.missing == 0:
                self._push(node, 0)

    def run(self) -> None:
        """Orders all nodes that can be reached."""
        while True:
            while self._heap:
                self._now, _, node = heapq.heappop(self._heap)
                if node.kind != "recv" or self._may_receive(node):
                    self._finish(node)
            if not self._stage():
                return

    def _push(self, node: Node, time: int) -> None:
        if node.kind != "start":
            time += (_PHASES[node.kind] - time) % 3
        node.time = time
        self._pushed += 1
        heapq.heappush(self._heap, (time, self._pushed, node))

    def _finish(self, node: Node) -> None:
        node.done = True
        self.order.append(node)
        if node.kind == "send":
            sent = self._sent.setdefault(node.pair, [])
            recv = node.next[-1]
            recv.sequence = len(sent)
            sent.append(recv)
        if node.kind in {"send", "recv"}:
            cell = node.sources[0] if node.kind == "send" else node.into
            if cell is not None:
                self._touched.setdefault((node.rank, node.time // 3), set()).update(_cells(cell))
        for after in node.next:
            after.time = max(after.time, node.time)
            after.missing -= 1
            if after.missing == 0:
                self._push(after, after.time)

    def _may_receive(self, node: Node) -> bool:
        """Whether a receive can be in this step; else it is postponed."""
        expected = self._received.get(node.pair, 0)
        early = self._early.setdefault(node.pair, {})
        if node.sequence != expected:
            early[node.sequence] = node
            return False
        touched = self._touched.get((node.rank, node.time // 3), set())
        if node.into is not None and not touched.isdisjoint(_cells(node.into)):
            self._push(node, node.time + 3)
            return False
        self._advance(node.pair)
        return True

    def _advance(self, pair: tuple[int, int]) -> None:
        """Expects the next message of a pair."""
        expected = self._received[pair] = self._received.get(pair, 0) + 1
        waiting = self._early.get(pair, {}).pop(expected, None)
        if waiting is not None:
            self._push(waiting, max(waiting.time, self._now))

    def _stage(self) -> bool:
        """Receives the messages that block others into temporaries."""
        for pair in sorted(pair for pair, early in self._early.items() if early):
            first = self._received.get(pair, 0)
            for node in self._sent[pair][first : min(self._early[pair])]:
                self._receive_early(node, pair)
            return True
        return False

    def _receive_early(self, node: Node, pair: tuple[int, int]) -> None:
        if node.into is None:
            return
        time = self._now + (1 - self._now) % 3
        recv = Node("recv", node.rank, node.event, time=time, pair=pair)
        self._now = time
        slot, start, count = node.into
        if isinstance(slot, Temporary):
            recv.into, node.kind, node.into = node.into, "start", None
        else:
            temporary = Temporary(node.rank, start, count)
            recv.into = (temporary, start, count)
            node.kind, node.sources = "copy", [recv.into]
        recv.done = True
        self.staged += 1
        self.order.append(recv)
        self._advance(pair)


def _cells(cell: Cell) -> list[tuple[int, int]]:
    slot, start, count = cell
    if isinstance(slot, Temporary):
        return []
    return [(slot, at) for at in range(start, start + count)]


def ordered(program: Program, layout: Layout) -> tuple[list[Node], list[Node], int]:
    """Orders the actions of a program.

    Returns:
        The nodes in order, the nodes that a deadlock blocks, and the number of messages that are
        received early into temporaries.
    """
    graph = _Graph(program, layout)
    scheduler = _Scheduler(graph.nodes)
    scheduler.run()
    stuck = [node for node in graph.nodes if not node.done]
    return scheduler.order, stuck, scheduler.staged

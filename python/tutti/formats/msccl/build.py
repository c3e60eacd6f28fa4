"""Builds and verifies the schedule of a program of thread blocks."""

from __future__ import annotations

from collections import defaultdict
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tutti import _core
from tutti.base.errors import ConfigError
from tutti.base.files.mistakes import mistake
from tutti.formats.msccl.layout import Layout
from tutti.formats.msccl.order import Temporary, ordered
from tutti.formats.msccl.program import check_size
from tutti.formats.msccl.races import races
from tutti.schedules.errors import VerificationError
from tutti.schedules.ir import Schedule

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tutti.formats.msccl.order import Cell, Node
    from tutti.formats.msccl.program import Program


@contextmanager
def assuming(values: Sequence[str]) -> Iterator[None]:
    """Names values that a reader assumes in the errors of its program."""
    try:
        yield
    except ConfigError as error:
        if values:
            error.hint = "; ".join(filter(None, [error.hint, f"assumed: {', '.join(values)}"]))
        raise


def built(program: Program, *, checks_races: bool = True) -> tuple[Schedule, list[str]]:
    """Returns the verified schedule of a program, and what it does not represent.

    Raises:
        ConfigError: The program is too large, deadlocks, has accesses whose order depends on
            timing, or does not perform its collective.
    """
    problem = check_size(program)
    if problem:
        raise mistake(problem, source=program.source, expected="a smaller program")
    layout = Layout(program)
    order, stuck, staged = ordered(program, layout)
    if stuck:
        raise _deadlock(program, stuck)
    losses = []
    if checks_races:
        losses += _checked_races(program, order)
    schedule = _schedule(program, layout, order)
    try:
        schedule.verify()
    except VerificationError as error:
        raise _incorrect(program, layout, order, error) from None
    if staged:
        losses.append(
            f"{staged} messages overtake others on another channel: received into temporaries"
        )
    return schedule, losses


def _checked_races(program: Program, order: list[Node]) -> list[str]:
    found = races(program, order)
    if found is None:
        return ["too large to check for races between thread blocks"]
    if not found:
        return []
    first, second, (_, start, count) = found[0]
    events = program.events
    raise mistake(
        f"accesses chunk {start} at the same time as {events[first].place}"
        if count == 1
        else f"accesses chunks {start} to {start + count - 1} at the same time as "
        f"{events[first].place}",
        source=program.source,
        key=events[second].place,
        expected="a dependency that orders accesses of which one is a write",
        hint="the result depends on timing: add a dependency between the two steps",
    )


def _deadlock(program: Program, stuck: list[Node]) -> ConfigError:
    """Returns the error of a program whose thread blocks wait for each other."""
    blocked: dict[tuple[int, int], Node] = {}
    for node in stuck:
        event = program.events[node.event]
        blocked.setdefault((event.rank, event.block), node)
    chain: list[int] = []
    index = stuck[0].event
    while index not in chain:
        chain.append(index)
        index = _awaited(program, stuck, index)
        event = program.events[index]
        index = blocked[event.rank, event.block].event
    cycle = [program.events[each].place for each in chain[chain.index(index) :]]
    shown = [*cycle[:4], f"{len(cycle) - 4} more"] if len(cycle) > 5 else cycle
    return mistake(
        "deadlock: waits for " + ", which waits for ".join([*shown[1:], cycle[0]]),
        source=program.source,
        key=cycle[0],
        expected="steps that can all be executed",
    )


def _awaited(program: Program, stuck: list[Node], index: int) -> int:
    """Returns an event for which an event waits."""
    unfinished = {node.event for node in stuck}
    event = program.events[index]
    for other in (*event.after, *event.after_all):
        if other in unfinished:
            return other
    for action in event.actions:
        if action.kind == "recv":
            sender = next(
                (node.event for node in stuck if _sends(program, node, action.message)), index
            )
            if sender != index:
                return sender
    return index


def _sends(program: Program, node: Node, message: int) -> bool:
    actions = program.events[node.event].actions
    return any(each.kind == "send" and each.message == message for each in actions)


def _schedule(program: Program, layout: Layout, order: list[Node]) -> Schedule:
    """Writes the ordered actions as steps."""
    _place_temporaries(order, layout.first_held)
    build = _core.ScheduleBuilder(
        program.name, program.collective, program.ranks, program.chunks, root=program.root
    )
    build.result(layout.result)
    steps = [-1] * program.ranks
    for _, node in sorted(enumerate(order), key=lambda each: (each[1].time, each[0])):
        if node.kind == "start":
            continue
        step = node.time // 3
        if steps[node.rank] != step:
            steps[node.rank] = step
            build.step(node.rank, "")
        _add(build, node)
    return Schedule(build.build())


def _add(build: _core.ScheduleBuilder, node: Node) -> None:
    sources = [_slot(cell) for cell in node.sources]
    _, start, count = node.into or node.sources[0]
    chunks = (start, start + count)
    if node.kind == "send":
        build.send(node.rank, node.pair[1], sources[0], chunks)
    elif node.into is None:
        return
    elif node.kind == "recv":
        build.recv(node.rank, node.pair[0], _slot(node.into), chunks)
    elif node.kind == "fold":
        build.reduce(node.rank, _slot(node.into), sources, chunks)
    else:
        begin = node.sources[0][1]
        source = (begin, begin + count)
        if (sources[0], begin) != (_slot(node.into), start):
            build.copy(node.rank, sources[0], source, _slot(node.into), start)


def _slot(cell: Cell) -> int:
    return cell[0].slot if isinstance(cell[0], Temporary) else cell[0]


def _place_temporaries(order: list[Node], first: int) -> None:
    """Assigns slots to temporaries; a slot is reused after the step of the last access."""
    found: dict[int, Temporary] = {}
    for node in order:
        cells = [*node.sources, *([node.into] if node.into is not None else [])]
        for slot, _, _ in cells:
            if isinstance(slot, Temporary):
                found[id(slot)] = slot
                slot.first = min(slot.first, node.time // 3)
                slot.last = max(slot.last, node.time // 3)
    busy: dict[int, list[dict[int, int]]] = defaultdict(list)
    for each in sorted(found.values(), key=lambda each: each.first):
        rows = busy[each.rank]
        places = range(each.start, each.start + each.count)
        free = (
            number
            for number, row in enumerate(rows)
            if all(row.get(place, -1) < each.first for place in places)
        )
        number = next(free, len(rows))
        if number == len(rows):
            rows.append({})
        rows[number].update(dict.fromkeys(places, each.last))
        each.slot = first + number


def _incorrect(
    program: Program, layout: Layout, order: list[Node], error: VerificationError
) -> ConfigError:
    """Returns the error of a program that does not perform its collective."""
    fields = error.fields
    places: list[str] = []
    if "chunk" in fields and "rank" in fields:
        rank, chunk = fields["rank"], fields["chunk"]
        places = [_last_writer(program, order, rank, layout.result, chunk)]
    elif "at" in fields:
        places = _at_step(program, order, *fields["at"])
    return mistake(
        f"does not perform {program.collective}: {str(error).splitlines()[0]}",
        source=program.source,
        key=places[0] if places and places[0] else "",
        expected=f"a correct {program.collective}",
        hint="ranks are GPUs; the key names the last step that wrote the chunk"
        if "chunk" in fields
        else "",
    )


def _last_writer(program: Program, order: list[Node], rank: int, slot: int, chunk: int) -> str:
    for node in reversed(order):
        if node.rank == rank and node.into is not None and _slot(node.into) == slot:
            start, count = node.into[1:]
            if start <= chunk < start + count:
                return program.events[node.event].place
    return ""


def _at_step(program: Program, order: list[Node], rank: int, step: int) -> list[str]:
    """Returns the places of the events in a step of the schedule."""
    times = sorted({node.time // 3 for node in order if node.rank == rank and node.kind != "start"})
    if step >= len(times):
        return []
    nodes = (node for node in order if node.rank == rank and node.time // 3 == times[step])
    return [program.events[node.event].place for node in nodes if node.kind != "start"]

"""Writes the statements of rounds as Python source."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tutti.schedules.language.patterns import Loop, find_loop, merged, ordered, values_of
from tutti.schedules.language.performing import buffer_name
from tutti.schedules.language.trace import Region, Sent, Statement

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tutti.schedules.ir import Schedule
    from tutti.schedules.language.rounds import Round

_INDENT = "    "


@dataclass
class Section:
    """Statements of one round, or of consecutive rounds with one pattern.

    Attributes:
        name: The name of the step; None if no step starts.
        groups: The statements of a round: concurrent ones, then those that follow.
        loops: The loop of each group, or None.
        exchange: Whether the first group is an exchange.
    """

    name: str | None
    groups: list[list[Statement]]
    loops: list[Loop | None] = field(default_factory=list)
    exchange: bool = False


def sections(rounds: Sequence[Round], ranks: int, *, steps: bool, loops: bool) -> list[Section]:
    """Returns the sections of a program, one per round.

    Args:
        rounds: The rounds.
        ranks: The number of ranks.
        steps: Whether each round starts a step.
        loops: Whether statements are ordered for loops over ranks.
    """
    found = []
    for each in rounds:
        section = Section(each.name if steps else None, [])
        for statements in (each.messages, each.locals):
            loop = find_loop(statements, ranks) if loops and statements else None
            section.loops.append(loop)
            section.groups.append(
                list(statements) if loop is None else ordered(statements, loop.owners)
            )
        section.exchange = _interferes(section.groups[0])
        found.append(section)
    return found


def _interferes(statements: Sequence[Statement]) -> bool:
    """Returns whether a statement reads or writes what an earlier one writes."""
    written: set[tuple[int, int, int]] = set()
    for each in statements:
        reads = [o for o in each.operands if isinstance(o, Region)]
        if any(written & set(_places(region)) for region in (*reads, *each.targets)):
            return True
        for region in each.targets:
            written.update(_places(region))
    return False


def _places(region: Region) -> Iterator[tuple[int, int, int]]:
    return ((region.rank, region.buffer, chunk) for chunk in range(region.start, region.end))


def source(schedule: Schedule, found: Sequence[Section], *, explicit_steps: bool) -> str:
    """Returns the source of a program with these sections."""
    writer = _Writer()
    body = writer.sections(found)
    arguments = [f'"{schedule.collective}"', f"ranks={schedule.ranks}"]
    if schedule.blocks is None:
        arguments.append(f"chunks={schedule.chunks}")
    else:
        arguments.append(f"blocks={schedule.blocks}")
    if schedule.root:
        arguments.append(f"root={schedule.root}")
    arguments.append(f"name={_quoted(schedule.name)}")
    if schedule.result:
        arguments.append(f"result={_quoted(buffer_name(schedule.result))}")
    if explicit_steps:
        arguments.append("explicit_steps=True")
    lines = [
        "import tutti",
        "",
        "",
        "def build() -> tutti.Schedule:",
        f"{_INDENT}with tutti.Program({', '.join(arguments)}) as program:",
        *(f"{_INDENT}{_INDENT}{line}" for line in body or ["pass"]),
        f"{_INDENT}return program.schedule",
    ]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    quoted = repr(text)
    return quoted if '"' in text else f'"{quoted[1:-1]}"'


class _Writer:
    """Writes statements; numbers the messages that are sent and received separately."""

    def __init__(self) -> None:
        self._sent: dict[Sent, str] = {}

    def sections(self, found: Sequence[Section]) -> list[str]:
        """Returns the lines of sections; those with one pattern become a loop over steps."""
        lines: list[str] = []
        index = 0
        while index < len(found):
            loops, end = _run(found, index)
            lines += self._section(found[index], loops, end - index)
            index = end
        return lines

    def _section(self, section: Section, loops: Sequence[Loop | None], steps: int) -> list[str]:
        lines: list[str] = []
        if section.name is not None:
            lines.append(f"program.step({_quoted(section.name) if section.name else ''})")
        for group, loop in zip(section.groups, loops, strict=True):
            written = self._group(group, loop)
            if group is section.groups[0] and section.exchange:
                written = ["with program.exchange():", *_indented(written)]
            lines += written
        if steps > 1:
            return [f"for step in range({steps}):", *_indented(lines)]
        return lines

    def _group(self, statements: Sequence[Statement], loop: Loop | None) -> list[str]:
        if loop is None:
            return [line for each in statements for line in self._statement(each)]
        expressions = loop.expressions() or []
        body = [
            line
            for statement, texts in zip(statements, expressions, strict=False)
            for line in self._statement(statement, texts)
        ]
        owners = loop.owners
        bounds = f"{owners.start}, {owners.stop}, {owners.step}"
        if owners.step == 1:
            bounds = f"{owners.stop}" if owners.start == 0 else f"{owners.start}, {owners.stop}"
        return [f"for rank in range({bounds}):", *_indented(body)]

    def _statement(self, statement: Statement, texts: Sequence[str] | None = None) -> list[str]:
        """Returns the lines of a statement, with the expressions of its numbers."""
        if not statement.operands:
            return [_without_operands(statement)]
        if texts is None:
            values = values_of(statement)
            texts = [str(number) for number in values.numbers] if values else []
        if statement.kind == "send":
            return [self._send(statement)]
        first = statement.operands[0]
        if isinstance(first, Sent) and statement.kind == "copy":
            return [f"{self._sent[first]}.receive({_place(first.source, statement.targets[0])})"]
        if not texts:
            return self._fold_of_sent(statement)
        pairs = list(zip(texts[::2], texts[1::2], strict=True))
        count = len(statement.targets)
        operands = [
            _chunk(region, *pair)
            for region, pair in zip(statement.operands, pairs[count:], strict=True)
            if isinstance(region, Region)
        ]
        if statement.kind == "fold":
            return _fold(_chunk(statement.targets[0], *pairs[0]), operands, statement)
        return [_copy(operands[0], statement, pairs)]

    def _send(self, statement: Statement) -> str:
        names = [f"sent_{len(self._sent) + index}" for index in range(len(statement.sent))]
        self._sent.update(zip(statement.sent, names, strict=True))
        peers = str([each.peer for each in statement.sent])
        if not statement.multicast:
            peers = peers[1:-1]
        option = ", in_network=True" if statement.in_network else ""
        region = statement.sent[0].source
        chunk = _chunk(region, str(region.rank), str(region.start))
        left = f"{', '.join(names)}{',' if peers == f'[{statement.sent[0].peer}]' else ''}"
        return f"{left} = {chunk}.send({peers}{option})"

    def _fold_of_sent(self, statement: Statement) -> list[str]:
        target = statement.targets[0]
        operands = [
            self._sent[each]
            if isinstance(each, Sent)
            else _chunk(each, str(each.rank), str(each.start))
            for each in statement.operands
        ]
        return _fold(_chunk(target, str(target.rank), str(target.start)), operands, statement)


def _without_operands(statement: Statement) -> str:
    """Returns the start of a step, or work."""
    if statement.kind == "step":
        name = _quoted(statement.name) if statement.name else ""
        return f"program.group([{statement.rank}]).step({name})"
    return f'program.{statement.kind}({statement.rank}, "{statement.duration_ps} ps")'


def _run(found: Sequence[Section], start: int) -> tuple[list[Loop | None], int]:
    """Returns the loops of the sections from `start` with one pattern, and their end."""
    loops = list(found[start].loops)
    end = start + 1
    while end < len(found):
        section, following = found[start], found[end]
        if section.exchange != following.exchange or section.name != following.name:
            break
        joined: list[Loop | None] = []
        for loop, other, group, others in zip(
            loops, following.loops, section.groups, following.groups, strict=True
        ):
            both = merged(loop, other) if loop and other else None
            if both is None and (group or others):
                return loops, end
            joined.append(both)
        loops = joined
        end += 1
    return loops, end


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"{_INDENT}{line}" for line in lines]


def _chunk(region: Region, rank: str, index: str) -> str:
    arguments = [rank]
    if index != "0":
        arguments.append(index)
    if region.end - region.start != 1:
        arguments.append(f"count={region.end - region.start}")
    if region.buffer:
        arguments.append(f"buffer={_quoted(buffer_name(region.buffer))}")
    return f"program.chunk({', '.join(arguments)})"


def _fold(target: str, operands: Sequence[str], statement: Statement) -> list[str]:
    """Returns the lines of a fold."""
    option = ", in_network=True" if statement.in_network else ""
    if operands[0] == target and len(operands) > 1:
        return [f"{target}.reduce({', '.join(operands[1:])}{option})"]
    if target in operands:
        named = ["chunk" if each == target else each for each in operands]
        return [f"chunk = {target}", f"chunk.fold({', '.join(named)}{option})"]
    return [f"{target}.fold({', '.join(operands)}{option})"]


def _copy(chunk: str, statement: Statement, pairs: Sequence[tuple[str, str]]) -> str:
    targets = statement.targets
    ranks = [rank for rank, _ in pairs[: len(targets)]]
    arguments = [f"[{', '.join(ranks)}]" if statement.multicast else ranks[0]]
    operand = statement.operands[0]
    if pairs[0][1] != pairs[len(targets)][1]:
        arguments.append(pairs[0][1])
    if isinstance(operand, Region) and operand.buffer != targets[0].buffer:
        arguments.append(f"buffer={_quoted(buffer_name(targets[0].buffer))}")
    return f"{chunk}.copy({', '.join(arguments)})"


def _place(source_region: Region, target: Region) -> str:
    """Returns the arguments of a receive."""
    arguments = []
    if target.start != source_region.start:
        arguments.append(f"{target.start}")
    if target.buffer != source_region.buffer:
        arguments.append(f"buffer={_quoted(buffer_name(target.buffer))}")
    return ", ".join(arguments)

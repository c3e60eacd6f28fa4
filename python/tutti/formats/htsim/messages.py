"""Connection matrices and topologies of htsim, as formats of `tutti convert`.

Source: ``ConnectionMatrix::load`` of ``sim/datacenter/connection_matrix.cpp`` and
``FatTreeTopology::load`` of ``fat_tree_topology.cpp`` in Broadcom/csg-htsim (2026-03). Times are in
ps, sizes in bytes. Connections start by time, or when a trigger fires.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NoReturn

import numpy as np

from tutti.base.files import limits
from tutti.base.files.limits import parse_count
from tutti.base.files.mistakes import did_you_mean, mistake, shown
from tutti.base.files.reader import check_lines, read_text
from tutti.formats.messages import Messages

if TYPE_CHECKING:
    from pathlib import Path


_EXPECTED: Final = "a connection matrix of htsim"
_MOST_INT: Final = 2**31 - 1
_TYPES: Final = ("oneshot", "barrier", "multishot")
_NUMBERS: Final = (
    "id",
    "start",
    "size",
    "trigger",
    "send_done_trigger",
    "recv_done_trigger",
    "prio",
)
_COUNTS: Final = ("Nodes", "Connections", "Triggers", "Failures")


@dataclass
class _Connection:
    """A line of the file."""

    line: int
    source: int
    target: int
    values: dict[str, int] = field(default_factory=dict)


@dataclass
class _File:
    """The content of a file, before dependencies are resolved."""

    source: str
    counts: dict[str, int] = field(default_factory=dict)
    connections: list[_Connection] = field(default_factory=list)
    triggers: dict[int, tuple[str, int, int]] = field(default_factory=dict)
    """Type, count and line of each trigger."""
    failures: int = 0
    added: int = 0

    def refuse(self, line: int, problem: str, expected: str, hint: str = "") -> NoReturn:
        raise mistake(problem, source=f"{self.source}, line {line}", expected=expected, hint=hint)


def read_connections(path: Path) -> tuple[Messages, tuple[str, ...]]:
    """Reads a connection matrix; triggers become dependencies.

    Returns:
        The messages, and a line for each kind of content that they do not represent.

    Raises:
        ConfigError: The file cannot be read or is invalid; the message has the line.
    """
    text = read_text(path, limits.Bytes.SCHEDULE, _EXPECTED)
    check_lines(text, limits.LOG_LINE, source=str(path))
    found = _File(str(path))
    for number, line in enumerate(text.split("\n"), start=1):
        words = line.split()
        if words and not words[0].startswith("#"):
            _read_line(found, number, words)
    _check_counts(found)
    rows = [
        (each.source, each.target, each.values.get("size", 0), each.values.get("start", 0))
        for each in found.connections
    ]
    messages = Messages.of_rows(path.stem, found.counts["Nodes"], rows, _dependencies(found))
    lost = {
        "link failures": found.failures,
        "priorities": sum("prio" in each.values for each in found.connections),
        "connections that extend a connection (addon)": found.added,
        "connections without a size, whose size htsim selects": sum(
            "size" not in each.values for each in found.connections
        ),
    }
    return messages, tuple(f"{count:,} x {what}" for what, count in lost.items() if count)


def _read_line(found: _File, number: int, words: list[str]) -> None:
    if words[0] in _COUNTS:
        found.counts[words[0]] = _integer(found, number, words, 1, words[0])
    elif "->" in words[0]:
        _read_connection(found, number, words)
    elif words[0] == "trigger":
        _read_trigger(found, number, words)
    elif words[0] == "failure":
        found.failures += 1
    else:
        known = (*_COUNTS, "trigger", "failure")
        hint = did_you_mean(words[0], known)
        found.refuse(number, f"unknown word {shown(words[0])}", "a header or `0->1 ...`", hint)


def _integer(found: _File, line: int, words: list[str], index: int, name: str) -> int:
    text = words[index] if index < len(words) else ""
    digits, _, decimals = text.partition(".")
    value = parse_count(digits) if not decimals.strip("0") else None
    if value is None:
        found.refuse(line, f"`{name}` is {shown(text)}", "an integer from 0")
    return value


def _read_connection(found: _File, line: int, words: list[str]) -> None:
    source, _, target = words[0].partition("->")
    ends = [parse_count(end, most=limits.RANKS) for end in (source, target)]
    if None in ends:
        found.refuse(line, f"{shown(words[0])} is not a connection", "such as 0->1")
    connection = _Connection(line, ends[0] or 0, ends[1] or 0)
    index = 1
    while index < len(words):
        word = words[index]
        if word == "addon":
            found.added += 1
            index += 1
            continue
        if word not in _NUMBERS:
            found.refuse(
                line,
                f"unknown word {shown(word)}",
                ", ".join(_NUMBERS),
                did_you_mean(word, _NUMBERS),
            )
        connection.values[word] = _integer(found, line, words, index + 1, word)
        index += 2
    if ("start" in connection.values) == ("trigger" in connection.values):
        found.refuse(line, "the connection has no single start", "either `start` or `trigger`")
    found.connections.append(connection)


def _read_trigger(found: _File, line: int, words: list[str]) -> None:
    kinds = [word for word in words if word in _TYPES]
    values = {
        word: _integer(found, line, words, index + 1, word)
        for index, word in enumerate(words)
        if word in {"id", "count"}
    }
    if len(kinds) != 1 or not values.get("id") or values["id"] in found.triggers:
        found.refuse(
            line, "the trigger is invalid", "a new `id` above 0 and one of " + ", ".join(_TYPES)
        )
    found.triggers[values["id"]] = (kinds[0], values.get("count", 0), line)


def _check_counts(found: _File) -> None:
    actual = {
        "Connections": len(found.connections),
        "Triggers": len(found.triggers),
        "Failures": found.failures,
    }
    if not 0 < found.counts.get("Nodes", 0) <= limits.RANKS:
        found.refuse(1, "`Nodes` is missing or out of range", f"1 to {limits.RANKS:,}")
    for name, count in actual.items():
        if found.counts.get(name, 0) != count:
            stated = found.counts.get(name, 0)
            found.refuse(1, f"`{name}` is {stated}, but the file has {count}", "equal numbers")
    for each in found.connections:
        if max(each.source, each.target) >= found.counts["Nodes"]:
            found.refuse(each.line, "a node is out of range", f"below {found.counts['Nodes']}")


def _dependencies(found: _File) -> list[dict[int, int]]:
    fired: dict[int, list[int]] = defaultdict(list)
    for index, each in enumerate(found.connections):
        for name in ("send_done_trigger", "recv_done_trigger"):
            if each.values.get(name):
                fired[each.values[name]].append(index)
    started: dict[int, int] = defaultdict(int)
    for each in found.connections:
        started[each.values.get("trigger", 0)] += 1
    for trigger, (kind, count, line) in found.triggers.items():
        by = len(fired[trigger])
        needed = count if kind == "barrier" else 1
        if started[trigger] and (by != needed or (kind == "multishot" and started[trigger] > 1)):
            found.refuse(
                line,
                f"the {kind} trigger {trigger} is fired {by} times",
                "as many times as it needs: the order of more is not known before a simulation",
            )
    awaited: list[dict[int, int]] = []
    for each in found.connections:
        trigger = each.values.get("trigger", 0)
        if trigger and trigger not in found.triggers:
            found.refuse(each.line, f"trigger {trigger} is not defined", "a line `trigger id ...`")
        awaited.append(dict.fromkeys(fired[trigger], 0) if trigger else {})
    return awaited


def write_connections(messages: Messages, path: Path) -> tuple[str, ...]:
    """Writes a connection matrix; dependencies become triggers.

    Returns:
        A line for each part of the messages that the file does not represent.

    Raises:
        ConfigError: A message is too large for htsim, has the same source and destination, or must
            fire more than two triggers.
    """
    _check_sizes(messages, str(path))
    triggers = _Triggers(messages, str(path))
    lines = [f"Nodes {messages.ranks}", f"Connections {len(messages)}"]
    if triggers.numbers:
        lines.append(f"Triggers {len(triggers.numbers)}")
    for message in range(len(messages)):
        source, target = messages.sources[message], messages.destinations[message]
        start = triggers.of_message[message]
        words = [f"{source}->{target}", "id", str(message + 1)]
        words += [f"trigger {start}"] if start else [f"start {messages.starts[message]}"]
        words.append(f"size {max(1, messages.sizes[message])}")
        names = ("send_done_trigger", "recv_done_trigger")
        fired = zip(names, triggers.fired[message], strict=False)
        lines.append(" ".join([*words, *(f"{name} {number}" for name, number in fired)]))
    for awaited, number in triggers.numbers.items():
        kind = "oneshot" if len(awaited) == 1 else f"barrier count {len(awaited)}"
        lines.append(f"trigger id {number} {kind}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return _losses(messages, triggers)


def _check_sizes(messages: Messages, source: str) -> None:
    for what, wrong, expected in (
        ("is larger than htsim reads", messages.sizes > _MOST_INT, f"at most {_MOST_INT:,} B"),
        (
            "has the same source and destination",
            messages.sources == messages.destinations,
            "messages between two ranks",
        ),
    ):
        found = np.flatnonzero(wrong)
        if len(found):
            raise mistake(f"message {found[0]} {what}", source=source, expected=expected)


class _Triggers:
    """A trigger for each set of messages that others await."""

    def __init__(self, messages: Messages, source: str) -> None:
        self.numbers: dict[tuple[int, ...], int] = {}
        self.of_message: list[int] = []
        self.fired: list[list[int]] = [[] for _ in range(len(messages))]
        for message in range(len(messages)):
            awaited = tuple(sorted(messages.awaited(message).tolist()))
            if not awaited:
                self.of_message.append(0)
                continue
            if awaited not in self.numbers:
                self.numbers[awaited] = len(self.numbers) + 1
                for each in awaited:
                    self._fire(messages, each, message, self.numbers[awaited], source)
            self.of_message.append(self.numbers[awaited])

    def _fire(
        self, messages: Messages, message: int, follower: int, number: int, source: str
    ) -> None:
        fired = self.fired[message]
        if len(fired) == 2:
            raise mistake(
                f"message {message} must fire more than two triggers",
                source=source,
                expected="at most two: htsim has one when a message is sent and one on arrival",
            )
        # `send_done_trigger` comes first, as htsim's generators use it; the second is on arrival.
        at_source = messages.sources[follower] == messages.sources[message]
        fired.insert(0 if at_source else len(fired), number)


def _losses(messages: Messages, triggers: _Triggers) -> tuple[str, ...]:
    waits = np.diff(messages.first_dependency) > 0
    rounded = messages.starts.astype(np.float32).astype(np.int64) != messages.starts
    lost = {
        "delays after dependencies, such as computations": int(np.count_nonzero(messages.delays)),
        "start times of messages with dependencies": int(np.count_nonzero(messages.starts[waits])),
        "start times that htsim rounds to 24 bits": int(np.count_nonzero(rounded & ~waits)),
        "messages of 0 B, which have 1 B": int(np.count_nonzero(messages.sizes == 0)),
        "recv_done_trigger, which only htsim_ndp and htsim_eqds use": sum(
            len(each) == 2 for each in triggers.fired
        ),
    }
    return tuple(f"{count:,} x {what}" for what, count in lost.items() if count)

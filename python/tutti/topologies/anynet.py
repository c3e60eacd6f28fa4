"""Network files of BookSim 2 (`anynet`): routers, the nodes on them, and latencies in cycles.

A line starts with a router or node and lists its neighbours, each with an optional latency in
cycles (default 1)::

    router 0 node 0 node 1 router 1 15 router 2

A node is an NPU. A latency between routers applies to one direction: the line of the other router
gives that of the reverse channel, 1 cycle by default. A later value replaces an earlier one. A
latency after a node applies to both directions. (BookSim 2.0 documents this for nodes, but its
parser takes the node's number for that of a router there: its nodes stay 1 cycle away.)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, NoReturn

from tutti import _core
from tutti.base.errors import ConfigError
from tutti.base.files.limits import LINE
from tutti.base.files.mistakes import did_you_mean, shown
from tutti.base.files.reader import check_lines, decoded
from tutti.topologies.errors import TopologyError
from tutti.topologies.files import read_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tutti.base.units import Time, TimePerByte

_MOST_CYCLES = 2**31 - 1
_HINT = "a line is such as `router 0 node 0 node 1 router 1 15`"
_KINDS = ("router", "node")

Kind = Literal["router", "node"]


class Channel(NamedTuple):
    """A link of the file."""

    cycles: int
    line: int
    """The line that defines it, from 1."""


@dataclass(slots=True)
class Anynet:
    """The content of a file, not validated as a topology."""

    source: str
    router_of: dict[int, int] = field(default_factory=dict)
    """The router of each node."""
    nodes: dict[int, Channel] = field(default_factory=dict)
    """The links between each node and its router, in both directions."""
    channels: dict[tuple[int, int], Channel] = field(default_factory=dict)
    """The link from one router to another."""
    routers: dict[int, int] = field(default_factory=dict)
    """The line that first names each router."""


def read(path: str | Path) -> Anynet:
    """Reads a file.

    Raises:
        TopologyError: The file cannot be read, or a line is invalid.
    """
    data = read_bytes(Path(path), hint="name a network file of BookSim")
    try:
        text = decoded(data, source=str(path), expected="a network file of BookSim")
        check_lines(text, LINE, source=str(path))
    except ConfigError as error:
        raise TopologyError(error.problem, kind="format", hint=error.hint) from None
    return parse(text, source=str(path))


def parse(text: str, *, source: str) -> Anynet:
    """Parses the text of a file; `source` names it in errors.

    Raises:
        TopologyError: A line is invalid, or numbers are missing.
    """
    anynet = Anynet(source=source)
    for number, line in enumerate(text.split("\n"), start=1):
        words = line.split()
        if words:
            _read_line(anynet, number, words)
    _refuse_gaps(anynet)
    return anynet


def core_of(anynet: Anynet, *, name: str, cycle: Time, rate: TimePerByte) -> _core.Topology:
    """Returns the topology, with NPUs `npu0`, `npu1`, ... and routers `router0`, `router1`, ...

    Raises:
        TopologyError: A latency has too many cycles, or the graph is not a topology.
    """
    npus = len(anynet.nodes)
    most = (2**64 - 1) // max(cycle.ps, 1)

    def parameters(channel: Channel) -> tuple[_core.TimePerByte, int, int | None]:
        if channel.cycles > most:
            problem = f"{channel.cycles} cycles of {cycle} are too long"
            _refuse(anynet.source, channel.line, problem, f"at most {most} cycles")
        return (rate.core, channel.cycles * cycle.ps, None)

    links = []
    for node, channel in anynet.nodes.items():
        router = npus + anynet.router_of[node]
        links += [(node, router, parameters(channel)), (router, node, parameters(channel))]
    for (a, b), channel in anynet.channels.items():
        links.append((npus + a, npus + b, parameters(channel)))
    try:
        return _core.Topology.from_links(
            name,
            [f"npu{node}" for node in range(npus)],
            [("router", f"router{router}") for router in range(len(anynet.routers))],
            links,
        )
    except TopologyError as error:
        raise TopologyError(
            f"{anynet.source}: {error.problem}",
            kind=error.kind,
            hint=error.hint,
            fields={**error.fields, "source": anynet.source},
        ) from None


def _read_line(anynet: Anynet, line: int, words: list[str]) -> None:
    source = anynet.source
    rest = iter(words)
    kind, number = _end(source, line, next(rest), rest, "at the start of a line")
    if kind == "router":
        anynet.routers.setdefault(number, line)
    word = next(rest, None)
    while word is not None:
        other_kind, other = _end(source, line, word, rest, f"after {kind} {number}")
        word = next(rest, None)
        cycles = 1
        if word is not None and word not in _KINDS and _starts_a_number(word):
            cycles = _integer(source, line, word, f"the cycles to {other_kind} {other}", least=1)
            word = next(rest, None)
        _link(anynet, Channel(cycles, line), (kind, number), (other_kind, other))


def _link(anynet: Anynet, channel: Channel, a: tuple[Kind, int], b: tuple[Kind, int]) -> None:
    source, line = anynet.source, channel.line
    if a[0] == b[0] == "node":
        problem = f"node {a[1]} is linked to node {b[1]}"
        _refuse(source, line, problem, "nodes that are linked to a router")
    if a[0] == b[0] == "router":
        if a == b:
            problem = f"router {a[1]} is linked to itself"
            _refuse(source, line, problem, "another router")
        anynet.routers.setdefault(b[1], line)
        anynet.channels[a[1], b[1]] = channel
        anynet.channels.setdefault((b[1], a[1]), Channel(1, line))
        return
    node, router = (a[1], b[1]) if a[0] == "node" else (b[1], a[1])
    before = anynet.router_of.get(node, router)
    if before != router:
        problem = f"node {node} is on router {router}, but was on router {before}"
        where = f"one router, as in line {anynet.nodes[node].line}"
        _refuse(source, line, problem, where)
    anynet.routers.setdefault(router, line)
    anynet.router_of[node] = router
    anynet.nodes[node] = channel


def _end(source: str, line: int, word: str, rest: Iterator[str], place: str) -> tuple[Kind, int]:
    """Parses `router 3` or `node 3`, of which `word` is the first word."""
    if word not in _KINDS:
        hint = did_you_mean(word, _KINDS) or None
        _refuse(source, line, f"found `{shown(word)[1:-1]}` {place}", "`router` or `node`", hint)
    number = next(rest, None)
    if number is None:
        _refuse(source, line, f"the line ends behind `{word}`", f"the number of the {word}")
    kind: Kind = "router" if word == "router" else "node"
    return kind, _integer(source, line, number, f"the number of a {word}", least=0)


def _starts_a_number(word: str) -> bool:
    return word[0].isdigit() or word[0] in "+-."


def _integer(source: str, line: int, word: str, what: str, *, least: int) -> int:
    # Longer numbers exceed the maximum, and Python limits the digits that it converts.
    plain = word.isascii() and word.isdigit() and len(word.lstrip("0")) <= 10
    value = int(word) if plain else -1
    if not plain or not least <= value <= _MOST_CYCLES:
        expected = f"{what}, an integer from {least} to {_MOST_CYCLES}"
        _refuse(source, line, f"found `{shown(word)[1:-1]}`", expected)
    return value


def _refuse_gaps(anynet: Anynet) -> None:
    """Rejects gaps: nodes are ranks, so their numbers are those of a list."""
    named = {"node": {n: channel.line for n, channel in anynet.nodes.items()}}
    for kind, lines in {**named, "router": anynet.routers}.items():
        if not lines:
            _refuse(anynet.source, 0, f"there is no {kind}", "at least one")
        missing = _first_missing(lines)
        if missing is not None:
            last = max(lines)
            problem = f"{kind} {last} is defined, but {kind} {missing} is not"
            expected = f"{kind}s 0 to {len(lines) - 1} for {len(lines)} {kind}s"
            _refuse(anynet.source, lines[last], problem, expected)


def _first_missing(numbers: Iterable[int]) -> int | None:
    for expected, number in enumerate(sorted(numbers)):
        if number != expected:
            return expected
    return None


def _refuse(
    source: str, line: int, problem: str, expected: str, hint: str | None = None
) -> NoReturn:
    """Raises an error; line 0 is the entire file."""
    place = f"{source}:{line}" if line else source
    raise TopologyError(
        f"{place}: {problem}\nexpected: {expected}",
        kind="format",
        hint=hint or _HINT,
        fields={"source": source, "line": line, "expected": expected},
    )

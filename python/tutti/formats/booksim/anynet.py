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

from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, NoReturn

from tutti import _core
from tutti.base.errors import ConfigError
from tutti.base.files.limits import LINE
from tutti.base.files.mistakes import did_you_mean, mistake, shown
from tutti.base.files.reader import check_lines, decoded
from tutti.base.units import Time, TimePerByte
from tutti.topologies import Topology
from tutti.topologies.errors import TopologyError
from tutti.topologies.files import read_bytes
from tutti.view.quantity import plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tutti.formats.formats import Options
    from tutti.topologies import Link

_MOST_CYCLES = 2**31 - 1
_HINT = "a line is such as `router 0 node 0 node 1 router 1 15`"
_KINDS = ("router", "node")
_CYCLE: Final = Time(ps=1000)
_RATE: Final = "16 GB/s"
_Losses = tuple[str, ...]

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


def topology_of(path: str | Path, *, cycle: str | Time, rate: str | TimePerByte) -> Topology:
    """Reads a file as a topology; its nodes are the NPUs, by number.

    Args:
        path: The file.
        cycle: Time of a cycle, such as ``"1 ns"``.
        rate: Rate of every link, such as ``"16 GB/s"``.

    Raises:
        TopologyError: The file cannot be read or is invalid; the error names the line.
        UnitError: A value has no unit.
    """
    name, time = Path(path).stem or str(path), Time.of_any(cycle)
    return built(read(path), name=name, cycle=time, rate=TimePerByte.of_any(rate))


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


def built(anynet: Anynet, *, name: str, cycle: Time, rate: TimePerByte) -> Topology:
    """Returns the topology, with NPUs `npu0`, `npu1`, ... and routers `router0`, `router1`, ...

    Raises:
        TopologyError: A latency has too many cycles, or the graph is not a topology.
    """
    npus = len(anynet.nodes)
    most = (2**64 - 1) // max(cycle.ps, 1)

    def parameters(channel: Channel) -> tuple[_core.TimePerByte, int, int | None]:
        if channel.cycles > most:
            problem = f"{plural(channel.cycles, 'cycle')} of {cycle} are too long"
            _refuse(anynet.source, channel.line, problem, f"at most {plural(most, 'cycle')}")
        return (rate.core, channel.cycles * cycle.ps, None)

    links = []
    for node, channel in anynet.nodes.items():
        router = npus + anynet.router_of[node]
        links += [(node, router, parameters(channel)), (router, node, parameters(channel))]
    for (a, b), channel in anynet.channels.items():
        links.append((npus + a, npus + b, parameters(channel)))
    try:
        core = _core.Topology.from_links(
            name,
            [f"npu{node}" for node in range(npus)],
            [("router", f"router{router}") for router in range(len(anynet.routers))],
            links,
        )
    except TopologyError as error:
        problem = f"{anynet.source}: {error.problem}"
        raise error.reworded(problem, source=anynet.source) from None
    return Topology(core)


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
    # Longer numbers exceed the maximum, and Python limits the digits that it converts, also zeros.
    digits = word.lstrip("0") or word[-1:]
    plain = word.isascii() and word.isdigit() and len(digits) <= 10
    value = int(digits) if plain else -1
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


# --- formats of `tutti convert` -------------------------------------------------------------------


def read_anynet(path: Path, _options: Options) -> tuple[Topology, _Losses]:
    """Reads a network of BookSim."""
    topology = topology_of(path, cycle=_CYCLE, rate=_RATE)
    assumed = f"the file has neither cycle nor rate: {_CYCLE} and {_RATE} are assumed"
    return topology, (assumed,)


def write_anynet(topology: Topology, path: Path, _options: Options) -> _Losses:
    """Writes the network; see `_Anynet` for what becomes a router or a node."""
    found = _Anynet(topology, str(path))
    path.write_text("\n".join(found.lines()) + "\n", encoding="utf-8")
    return tuple(found.losses)


class _Anynet:
    """A topology as BookSim's routers and nodes.

    An NPU with one cable to a switch or router is a node on it. Another NPU is a node on a
    separate router, because nodes of BookSim never forward.
    """

    def __init__(self, topology: Topology, source: str) -> None:
        self._topology, self._source = topology, source
        self.losses: list[str] = []
        self._out: dict[str, list[Link]] = defaultdict(list)
        for link in topology.links:
            self._out[link.source].append(link)
        switches = [v.name for v in topology.vertices if v.rank is None]
        npus = [v.name for v in topology.vertices if v.rank is not None]
        self._router = {name: number for number, name in enumerate(switches)}
        self._home: dict[str, int] = {}
        for name in npus:
            targets = [link.target for link in self._out[name]]
            if len(targets) == 1 and targets[0] in self._router:
                self._home[name] = self._router[targets[0]]
            else:
                self._home[name] = self._router[name] = len(self._router)
        own = len(self._router) - len(switches)
        if own:
            self.losses.append(
                f"{plural(own, 'NPU')} with several links became a router and a node, one cycle "
                "apart"
            )
        self._npus = npus

    def lines(self) -> list[str]:
        """Returns a line per router.

        Raises:
            ConfigError: A link has no reverse.
        """
        self._check_reverses()
        nodes: dict[int, list[int]] = defaultdict(list)
        for node, name in enumerate(self._npus):
            nodes[self._home[name]].append(node)
        lines, rounded, parallel, at_nodes = [], 0, 0, 0
        for name, number in self._router.items():
            words = [f"router {number}", *(f"node {node}" for node in nodes[number])]
            cycles: dict[int, int] = {}
            for link in self._out[name]:
                exact = link.latency.ps > 0 and link.latency.ps % _CYCLE.ps == 0
                count = max(1, -(-link.latency.ps // _CYCLE.ps))
                if link.target not in self._router:
                    at_nodes += count != 1 or not exact
                    continue
                target = self._router[link.target]
                parallel += target in cycles
                rounded += not exact
                cycles[target] = min(count, cycles.get(target, count))
            words += [f"router {target} {count}" for target, count in cycles.items()]
            lines.append(" ".join(words))
        self._count(rounded, parallel, at_nodes)
        return lines

    def _check_reverses(self) -> None:
        pairs = {(link.source, link.target) for link in self._topology.links}
        for source, target in sorted(pairs):
            if (target, source) not in pairs:
                raise mistake(
                    f"the link from {source} to {target} has no reverse",
                    source=self._source,
                    expected="links in both directions: BookSim adds the reverse of each",
                )

    def _count(self, rounded: int, parallel: int, at_nodes: int) -> None:
        rates = {link.rate for link in self._topology.links}
        if rates != {TimePerByte.parse(_RATE)}:
            self.losses.append(
                f"rates ({', '.join(sorted(map(str, rates)))}): every link of BookSim passes one "
                "flit per cycle"
            )
        if rounded:
            self.losses.append(f"{rounded} latencies were rounded up to cycles of {_CYCLE}")
        if parallel:
            self.losses.append(f"{parallel} parallel links: BookSim has one link per direction")
        if at_nodes:
            self.losses.append(f"{at_nodes} latencies to nodes: they are one cycle in BookSim")
        if any(link.length for link in self._topology.links):
            self.losses.append("lengths of links")
        names = [f"npu{n}" for n in range(len(self._npus))]
        names += [f"router{n}" for n in range(len(self._router))]
        if [v.name for v in self._topology.vertices] != names or any(
            v.kind == "switch" for v in self._topology.vertices
        ):
            self.losses.append("names of vertices, and which of them are switches")

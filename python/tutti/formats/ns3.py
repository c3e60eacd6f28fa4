"""Topologies and flows of the ns-3 simulators of HPCC, ASTRA-sim and SimAI.

Source: ``simulation/scratch/third.cc`` of alibaba-edu/High-Precision-Congestion-Control (HPCC),
``scratch/common.h`` of astra-sim/astra-network-ns3, and
``astra-sim/network_frontend/ns3/common.h`` of aliyun/SimAI 1.7. All read numbers between blanks.
"""

from __future__ import annotations

import re
from decimal import Decimal, localcontext
from typing import TYPE_CHECKING, Final, NoReturn

import numpy as np

from tutti import _core
from tutti.base.errors import UnitError
from tutti.base.files import limits
from tutti.base.files.limits import parse_count
from tutti.base.files.mistakes import mistake, shown
from tutti.base.files.reader import check_lines, read_text
from tutti.formats.link_values import cables_of, gbps_of, hashes, rate_of_bits
from tutti.formats.messages import Messages
from tutti.topologies import Topology
from tutti.topologies.errors import TopologyError

if TYPE_CHECKING:
    from pathlib import Path

    from tutti.topologies import Link

    _Link = tuple[int, int, tuple[_core.TimePerByte, int, int | None]]

_NUMBER: Final = r"([0-9]{1,15}(?:\.[0-9]{0,15})?(?:[eE][-+]?[0-9]{1,2})?)"
_RATE: Final = re.compile(_NUMBER + r"([kKMG]?)(bps|b/s|Bps|B/s)")
_TIME: Final = re.compile(_NUMBER + r"(s|ms|us|ns|ps|fs)")
_PREFIXES: Final = {"": 1, "k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9}
_SECONDS: Final = {"s": 12, "ms": 9, "us": 6, "ns": 3, "ps": 0, "fs": -3}
_MOST_NODES: Final = 1 << 20
_MOST_LINKS: Final = 1 << 21
_MOST_PS: Final = 2**62
_PORT: Final = "100"
_PRIORITY: Final = "3"
_GPU: Final = "H100"
_Losses = tuple[str, ...]


class _Words:
    """The words of a file, in order, with their lines."""

    def __init__(self, path: Path, expected: str) -> None:
        text = read_text(path, limits.Bytes.SCHEDULE, expected)
        check_lines(text, limits.LINE * 16, source=str(path))
        self._source, self._expected = str(path), expected
        self._words = (
            (number, word)
            for number, line in enumerate(text.split("\n"), start=1)
            for word in line.split()
        )
        self.line = 1

    def text(self, what: str) -> str:
        """Returns the next word."""
        found = next(self._words, None)
        if found is None:
            self.refuse(f"the file ends before {what}", self._expected)
        self.line, word = found
        return word

    def integer(self, what: str, most: int) -> int:
        """Returns the next word as an integer."""
        word = self.text(what)
        value = parse_count(word, most=most)
        if value is None:
            self.refuse(f"{what} is {shown(word)}", f"an integer from 0 to {most:,}")
        return value

    def decimal(self, what: str) -> Decimal:
        """Returns the next word as a number."""
        text = self.text(what)
        if not re.fullmatch(_NUMBER, text):
            self.refuse(f"{what} is {shown(text)}", "a number from 0")
        return Decimal(text)

    def rest(self) -> int:
        """Returns the number of words that follow, which ns-3 does not read."""
        return sum(1 for _ in self._words)

    def refuse(self, problem: str, expected: str) -> NoReturn:
        raise mistake(problem, source=f"{self._source}, line {self.line}", expected=expected)


def read_network(path: Path, *, simai: bool) -> tuple[Topology, _Losses]:
    """Reads a topology file. Nodes that are not switches are the NPUs, by number.

    Args:
        path: The file.
        simai: Whether the first line is that of SimAI: nodes, GPUs per server, NVSwitches, other
            switches, links and GPU type. Otherwise it has nodes, switches and links.

    Raises:
        ConfigError: The file cannot be read or is invalid; the message has the line.
        TopologyError: The graph is not a topology.
    """
    words = _Words(path, "a topology of SimAI's ns-3" if simai else "a topology of ns-3 (HPCC)")
    nodes = words.integer("the number of nodes", _MOST_NODES)
    servers = words.integer("the GPUs per server", _MOST_NODES) if simai else 0
    first = words.integer("the number of NVSwitches", nodes) if simai else 0
    switches = first + words.integer("the number of switches", nodes)
    cables = words.integer("the number of links", _MOST_LINKS)
    gpu = words.text("the GPU type") if simai else ""
    kinds = _read_switches(words, nodes, first, switches)
    npus = [node for node in range(nodes) if node not in kinds]
    if servers and len(npus) % servers:
        problem = f"{servers} GPUs per server do not divide the {len(npus)} GPUs"
        words.refuse(problem, "as many GPUs in each server")
    index_of = {node: number for number, node in enumerate([*npus, *kinds])}
    links, errors = _read_links(words, cables, nodes, index_of)
    topology = _built(path, len(npus), list(kinds.values()), links)
    lost = [f"{errors} error rates of links"] if errors else []
    if rest := words.rest():
        lost.append(f"{rest} words after the last link, which ns-3 does not read")
    if npus and npus[-1] >= len(npus):
        lost.append("numbers of nodes: switches are not the last ones")
    if simai:
        lost.append(f"{servers} GPUs per server of type {shown(gpu)}")
    return topology, (*lost, hashes("ns-3"))


def _read_switches(words: _Words, nodes: int, first: int, count: int) -> dict[int, str]:
    """Returns the names of switches by node; the first ones are NVSwitches."""
    kinds: dict[int, str] = {}
    for index in range(count):
        node = words.integer("a switch", nodes - 1)
        if node in kinds:
            words.refuse(f"node {node} is a switch already", f"{count} different switches")
        kinds[node] = f"nvswitch{index}" if index < first else f"switch{index - first}"
    return kinds


def _built(path: Path, npus: int, switches: list[str], links: list[_Link]) -> Topology:
    try:
        core = _core.Topology.from_links(
            path.stem or str(path),
            [f"npu{rank}" for rank in range(npus)],
            [("switch", name) for name in switches],
            links,
        )
    except TopologyError as error:
        raise error.reworded(f"{path}: {error.problem}") from None
    return Topology(core, routing="ecmp")


def _read_links(
    words: _Words, cables: int, nodes: int, index_of: dict[int, int]
) -> tuple[list[_Link], int]:
    """Returns both links of each cable, and the number of error rates above 0."""
    links: list[_Link] = []
    errors = 0
    for _ in range(cables):
        source, target = (words.integer("an end of a link", nodes - 1) for _ in range(2))
        rate, latency = _read_rate(words), _read_latency(words)
        errors += words.decimal("an error rate") > 0
        a, b = index_of[source], index_of[target]
        links += [(a, b, (rate, latency, None)), (b, a, (rate, latency, None))]
    return links, errors


def _read_rate(words: _Words) -> _core.TimePerByte:
    text = words.text("the rate of a link")
    found = _RATE.fullmatch(text)
    if found is None or not Decimal(found[1]):
        words.refuse(f"the rate of a link is {shown(text)}", "such as 400Gbps, above 0")
    bits = Decimal(found[1]) * _PREFIXES[found[2]] * (8 if found[3].startswith("B") else 1)
    try:
        return rate_of_bits(bits).core
    except UnitError:
        words.refuse(f"the rate of a link is {shown(text)}", "a rate that is in range")


def _read_latency(words: _Words) -> int:
    text = words.text("the latency of a link")
    found = _TIME.fullmatch(text)
    ps = Decimal(found[1]).scaleb(_SECONDS[found[2]]) if found else Decimal(-1)
    if not 0 <= ps <= _MOST_PS:
        words.refuse(f"the latency of a link is {shown(text)}", "such as 500ns or 0.0005ms")
    return round(ps)


def write_network(topology: Topology, path: Path, *, simai: bool) -> _Losses:
    """Writes a topology file: NPUs by rank, then NVSwitches, then other switches.

    For SimAI, servers are the smallest equal blocks of consecutive ranks that have a switch of
    their own. That switch is an NVSwitch, if its NPUs have other switches, too.

    Raises:
        ConfigError: A link has no equal reverse.
    """
    cables, single = cables_of(topology.links)
    if single:
        raise mistake(
            f"the link from {single[0].source} to {single[0].target} has no equal reverse",
            source=str(path),
            expected="links of equal rate and latency in both directions: ns-3 has cables",
        )
    npus = [v.name for v in topology.vertices if v.rank is not None]
    switches = [v.name for v in topology.vertices if v.rank is None]
    nvswitches, servers = _nvswitches(topology, cables) if simai else ([], 1)
    others = [name for name in switches if name not in set(nvswitches)]
    order = {name: number for number, name in enumerate([*npus, *nvswitches, *others])}
    head = [len(order), len(switches), len(cables)]
    if simai:
        head = [len(order), servers, len(nvswitches), len(others), len(cables)]
    lines = [" ".join(map(str, head)) + (f" {_GPU}" if simai else "")]
    lines.append(" ".join(str(number) for number in range(len(npus), len(order))))
    inexact = 0
    for link in cables:
        gbps, exact = gbps_of(link.rate)
        inexact += not exact
        ns = Decimal(link.latency.ps) / 1000
        ends = f"{order[link.source]} {order[link.target]}"
        lines.append(f"{ends} {gbps.normalize():f}Gbps {ns.normalize():f}ns 0")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return _network_losses(topology, cables, inexact, list(order), len(nvswitches), simai=simai)


def _nvswitches(topology: Topology, cables: list[Link]) -> tuple[list[str], int]:
    """Returns the NVSwitches in the order of their ranks, and the GPUs of a server."""
    ranks = {v.name: v.rank for v in topology.vertices if v.rank is not None}
    around: dict[str, set[str]] = {v.name: set() for v in topology.vertices}
    for link in cables:
        around[link.source].add(link.target)
        around[link.target].add(link.source)
    servers: dict[int, dict[str, int]] = {}
    for vertex in topology.vertices:
        near = around[vertex.name]
        if vertex.rank is None and all(name in ranks and len(around[name]) > 1 for name in near):
            first, size = min(ranks[name] for name in near), len(near)
            if first % size == 0 and max(ranks[name] for name in near) < first + size:
                servers.setdefault(size, {})[vertex.name] = first
    for size in sorted(servers):
        if len(set(servers[size].values())) * size == topology.ranks:
            return sorted(servers[size], key=lambda name: servers[size][name]), size
    return [], 1


def _network_losses(
    topology: Topology,
    cables: list[Link],
    inexact: int,
    order: list[str],
    nvswitches: int,
    *,
    simai: bool,
) -> _Losses:
    kinds = {v.name: v.kind for v in topology.vertices}
    lost = {
        "rates that were rounded to a bit per second": inexact,
        "latencies that ns-3 truncates to a nanosecond": sum(
            link.latency.ps % 1000 != 0 for link in cables
        ),
        "lengths of links": sum(link.length is not None for link in cables),
        "routers, which become switches": sum(kind == "router" for kind in kinds.values()),
        "cables between NPUs: an NPU of ns-3 does not forward": sum(
            kinds[link.source] == kinds[link.target] == "npu" for link in cables
        ),
    }
    texts = [f"{count:,} x {what}" for what, count in lost.items() if count]
    npus = topology.ranks
    names = [f"npu{rank}" for rank in range(npus)]
    names += [f"nvswitch{index}" for index in range(nvswitches)]
    names += [f"switch{index}" for index in range(len(order) - len(names))]
    if order != names or [v.name for v in topology.vertices] != names:
        texts.append("names of vertices, and the order of switches")
    if simai:
        texts.append(f"the GPU type, which is written as {_GPU}")
    return tuple(texts)


def read_flows(path: Path) -> tuple[Messages, _Losses]:
    """Reads a flow file: a count, then source, destination, priority, port, bytes and start in s.

    Raises:
        ConfigError: The file cannot be read or is invalid; the message has the line.
    """
    words = _Words(path, "a flow file of ns-3 (HPCC)")
    rows: list[tuple[int, int, int, int]] = []
    for _ in range(words.integer("the number of flows", 1 << 24)):
        source, target = (words.integer("an end of a flow", limits.RANKS) for _ in range(2))
        for what in ("the priority", "the port"):
            words.integer(what, 1 << 16)
        size = words.integer("the bytes", limits.MOST)
        with localcontext(prec=40):
            start = words.decimal("the start") * 10**12
        if start > _MOST_PS:
            words.refuse("the start is too late", "at most 53 days")
        rows.append((source, target, size, round(start)))
    ranks = max((max(row[:2]) for row in rows), default=0) + 1
    messages = Messages.of_rows(path.stem, ranks, rows, [{} for _ in rows])
    lost = ["priorities and ports of flows"] if rows else []
    if rest := words.rest():
        lost.append(f"{rest} words after the last flow, which ns-3 does not read")
    return messages, tuple(lost)


def write_flows(messages: Messages, path: Path) -> _Losses:
    """Writes a flow file, by start time.

    Raises:
        ConfigError: A message has the same source and destination.
    """
    same = np.flatnonzero(messages.sources == messages.destinations)
    if len(same):
        raise mistake(
            f"message {same[0]} has the same source and destination",
            source=str(path),
            expected="messages between two ranks",
        )
    order = np.argsort(messages.starts, kind="stable")
    lines = [str(len(messages))]
    for index in order.tolist():
        ends = f"{messages.sources[index]} {messages.destinations[index]}"
        seconds = Decimal(int(messages.starts[index])).scaleb(-12).normalize()
        size = max(1, int(messages.sizes[index]))
        lines.append(f"{ends} {_PRIORITY} {_PORT} {size} {seconds:f}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    lost = {
        "dependencies: each message starts at its time": len(messages.dependencies),
        "delays after dependencies, such as computations": int(np.count_nonzero(messages.delays)),
        "messages of 0 B, which have 1 B": int(np.count_nonzero(messages.sizes == 0)),
        "start times that ns-3 truncates to a nanosecond": int(
            np.count_nonzero(messages.starts % 1000)
        ),
    }
    texts = [f"{count:,} x {what}" for what, count in lost.items() if count]
    if (np.diff(order) < 0).any():
        texts.append("the order of messages: flows are in the order of their start")
    return tuple(texts)

"""Debug logs of NCCL and RCCL (``NCCL_DEBUG=INFO``): versions, ranks, channels, networks, choices.

Lines of other programs are skipped. Records that cannot be read, such as two lines that processes
wrote at once, are left out and listed. Choices and graphs need
``NCCL_DEBUG_SUBSYS=INIT,ENV,NET,GRAPH,TUNING``.

Source: ``src/init.cc``, ``src/enqueue.cc``, ``src/transport`` and ``src/graph`` of NCCL 2.18 to
2.30.7.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from tutti.base.files import limits
from tutti.base.files.log_files import read_log
from tutti.base.files.mistakes import mistake, shown
from tutti.formats.benchmarks.prefixes import without_prefixes
from tutti.formats.nccl.graphs import PATTERNS, ChannelGraph

if TYPE_CHECKING:
    from collections.abc import Callable

ALGORITHMS: Final = (
    "tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat",
)  # fmt: skip
"""Names of the algorithms, by NCCL's number."""
PROTOCOLS: Final = ("ll", "ll128", "simple")
"""Names of the protocols, by NCCL's number."""
_EXPECTED: Final = "a log with NCCL_DEBUG=INFO"
_MOST_RANKS: Final = 1 << 20
"""More ranks than any communicator has, but few enough to list those that are missing."""
_LINE: Final = re.compile(
    r"(?P<host>[\w.-]{1,255}):(?P<pid>\d{1,10}):\d{1,10} \[(?P<dev>-?\d{1,4})\] "
    r"(?:\S{1,200}:\d{1,6} )?(?:\([^)]{0,60}\) )?NCCL (?P<level>INFO|WARN) (?P<text>.*)"
)
_MARK: Final = re.compile(r"NCCL (?:INFO|WARN) ")
_VERSION: Final = re.compile(
    r"^(?:.*\s)?(?P<library>R?NCCL) version (?P<version>\d+\.\d+(?:\.\d+)?[\w.+-]*)"
)
COMPLETE: Final = "Init COMPLETE"
"""What records of a rank that completed the initialisation contain."""
RANK_OF: Final = re.compile(r" rank (?P<rank>\d{1,8}) nranks (?P<ranks>\d{1,8}) ")
"""Rank and number of ranks in them."""
_COLLECTIVES: Final = {
    "AllReduce": "all_reduce",
    "AllGather": "all_gather",
    "ReduceScatter": "reduce_scatter",
    "Broadcast": "broadcast",
    "Reduce": "reduce",
}


class Choice(NamedTuple):
    """The algorithm and protocol that NCCL chose for an operation.

    Attributes:
        collective: The collective in tutti's words; None in logs before NCCL 2.22.
        size_bytes: The size as logged: before NCCL 2.27 by the convention of nccl-tests, later the
            number of elements of one rank's call.
        channels: The number of channels; None before 2.27.
        predicted_us: NCCL's prediction; None since 2.27.
    """

    line: int
    collective: str | None
    size_bytes: int
    algorithm: str
    protocol: str
    channels: int | None
    predicted_us: float | None


class Member(NamedTuple):
    """A rank of a communicator."""

    line: int
    rank: int
    ranks: int
    host: str
    device: int


@dataclass
class DebugLog:
    """What a log states.

    Attributes:
        versions: The versions of the library, each with the line and the host of its first record.
        members: Ranks that completed the initialisation, by rank and number of ranks.
        nodes: The numbers of nodes of communicators, by number of ranks.
        channels: The channels of each rank for collectives, with the number of ranks that state it.
        networks: The networks (``Using network``), with the number of records.
        devices: NICs of connections between nodes, with the number of channels.
        direct: The same for connections with GPUDirect RDMA.
        nvls: Devices that state whether NVLink SHARP is available.
        environment: Variables that NCCL reports, such as ``NCCL_ALGO``.
        graphs: Channel graphs by pattern, the first of each; their channels are not read.
        choices: Choices of algorithm and protocol.
        warnings: Lines and texts of warnings.
        omitted: Lines that were left out, with the reason.
    """

    source: str
    versions: dict[str, tuple[int, str]] = field(default_factory=dict)
    members: dict[tuple[int, int], Member] = field(default_factory=dict)
    nodes: dict[int, int] = field(default_factory=dict)
    channels: Counter[int] = field(default_factory=Counter)
    networks: Counter[str] = field(default_factory=Counter)
    devices: Counter[str] = field(default_factory=Counter)
    direct: Counter[str] = field(default_factory=Counter)
    nvls: dict[tuple[str, int], bool] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    graphs: dict[str, ChannelGraph] = field(default_factory=dict)
    choices: list[Choice] = field(default_factory=list)
    warnings: list[tuple[int, str]] = field(default_factory=list)
    omitted: list[tuple[int, str]] = field(default_factory=list)

    @property
    def version(self) -> str | None:
        """The version of the library; None if the log does not state it.

        Raises:
            ConfigError: The log states several versions.
        """
        if len(self.versions) > 1:
            listed = ", ".join(
                f"{version} (line {line})" for version, (line, _) in self.versions.items()
            )
            raise mistake(
                f"mixes versions of the library: {listed}",
                source=self.source,
                expected="the log of processes with one version",
                hint="set the same LD_LIBRARY_PATH on all nodes",
            )
        return next(iter(self.versions), None)

    @property
    def missing(self) -> dict[int, list[int]]:
        """Ranks that the largest communicators of each size lack, by number of ranks."""
        by_size: dict[int, set[int]] = {}
        for rank, ranks in self.members:
            by_size.setdefault(ranks, set()).add(rank)
        return {
            size: absent
            for size, present in by_size.items()
            if (absent := [rank for rank in range(size) if rank not in present])
        }


def is_debug_log(text: str) -> bool:
    """Returns whether a text has records of NCCL."""
    return bool(_MARK.search(text))


def read_debug_log(path: str | Path) -> DebugLog:
    """Reads a debug log, as :func:`parse_debug_log`."""
    return parse_debug_log(read_log(Path(path), _EXPECTED), source=str(path))


def parse_debug_log(text: str, *, source: str) -> DebugLog:
    """Reads a debug log from text.

    Args:
        text: The log, mixed with output of any other program.
        source: The name of the log in errors.

    Raises:
        ConfigError: No line is a record of NCCL.
    """
    found = DebugLog(source)
    seen = False
    lines = without_prefixes(text)
    for number, line in enumerate(lines, start=1):
        if (version := _VERSION.search(line[: limits.LOG_LINE])) and "NCCL INFO" not in line:
            _add_version(found, version, number, "")
            seen = True
        marks = len(_MARK.findall(line))
        if not marks:
            continue
        seen = True
        record = _LINE.search(line[: limits.LOG_LINE])
        if marks > 1:
            found.omitted.append((number, "several records in one line"))
        elif record is None:
            found.omitted.append((number, "the prefix host:pid:tid [device] is damaged"))
        elif number == len(lines):
            found.omitted.append((number, "the last line has no line ending: it may be truncated"))
        else:
            _read_record(found, record, number)
    if not seen:
        first = next((line for line in lines if line.strip()), "")
        raise mistake(
            "has no record of NCCL",
            source=source,
            value=shown(first.strip()),
            expected=_EXPECTED,
            hint="set NCCL_DEBUG=INFO and NCCL_DEBUG_SUBSYS=INIT,ENV,NET,GRAPH,TUNING",
        )
    return found


# --- records --------------------------------------------------------------------------------------


def _read_record(found: DebugLog, record: re.Match[str], number: int) -> None:
    text = record["text"].strip()
    if record["level"] == "WARN":
        found.warnings.append((number, text))
        return
    for start, pattern, add in _RECORDS:
        if start in text:
            if match := pattern.search(text):
                add(found, match, number, record)
            elif start not in _OPTIONAL:
                found.omitted.append((number, f"unknown form of the record `{start.strip()}`"))
            return


def _add_version(found: DebugLog, match: re.Match[str], number: int, host: str) -> None:
    version = f"{match['library']} {match['version']}"
    found.versions.setdefault(version, (number, host))


def _version(found: DebugLog, match: re.Match[str], number: int, record: re.Match[str]) -> None:
    _add_version(found, match, number, record["host"])


def _member(found: DebugLog, match: re.Match[str], number: int, record: re.Match[str]) -> None:
    rank, ranks = int(match["rank"]), int(match["ranks"])
    if rank >= ranks or ranks > _MOST_RANKS:
        found.omitted.append((number, f"rank {rank} of {ranks} does not exist"))
        return
    one = Member(number, rank, ranks, record["host"], int(record["dev"]))
    found.members.setdefault((rank, ranks), one)


def _nodes(found: DebugLog, match: re.Match[str], number: int, _: re.Match[str]) -> None:
    ranks, nodes = int(match["ranks"]), int(match["nodes"])
    if 1 <= nodes <= ranks:
        found.nodes[ranks] = nodes
    else:
        found.omitted.append((number, f"{nodes} nodes for {ranks} ranks"))


def _channels(found: DebugLog, match: re.Match[str], *_: object) -> None:
    found.channels[int(match[1])] += 1


def _network(found: DebugLog, match: re.Match[str], *_: object) -> None:
    found.networks[match[1]] += 1


def _connection(found: DebugLog, match: re.Match[str], *_: object) -> None:
    device = f"{match['net']}/{match['device']}"
    found.devices[device] += 1
    if "GDRDMA" in match["rest"]:
        found.direct[device] += 1


def _nvls(found: DebugLog, match: re.Match[str], _: int, record: re.Match[str]) -> None:
    found.nvls[record["host"], int(match[2])] = match[1] == ""


def _variable(found: DebugLog, match: re.Match[str], *_: object) -> None:
    found.environment[match[1]] = match[2].rstrip(".")


def _graph(found: DebugLog, match: re.Match[str], number: int, _: re.Match[str]) -> None:
    name = PATTERNS.get(int(match["pattern"]))
    if name is None:
        found.omitted.append((number, f"unknown pattern {match['pattern']}"))
        return
    graph = ChannelGraph(
        pattern=name,
        count=int(match["channels"]),
        crosses_nics=match["cross"] != "0",
        intra_bytes_per_s=float(match["intra"]) * 1e9,
        inter_bytes_per_s=float(match["inter"]) * 1e9,
        intra=match["path"],
        inter=match["to_nic"],
        same=match["same"] != "0",
        channels=(),
        line=number,
    )
    found.graphs.setdefault(name, graph)


def _choice(found: DebugLog, match: re.Match[str], number: int, _: re.Match[str]) -> None:
    name = match["collective"]
    algorithm = _name(match["algorithm"], ALGORITHMS)
    protocol = _name(match["protocol"], PROTOCOLS)
    if algorithm is None or protocol is None or (name and name not in _COLLECTIVES):
        what = f"{name or 'collective'}, {match['algorithm']}, {match['protocol']}"
        found.omitted.append((number, f"unknown collective, algorithm or protocol: {what}"))
        return
    low, high, time = match["low"], match["high"], match["time"]
    found.choices.append(
        Choice(
            line=number,
            collective=_COLLECTIVES[name] if name else None,
            size_bytes=int(match["size"]),
            algorithm=algorithm,
            protocol=protocol,
            channels=int(high) - int(low) + 1 if low and high else None,
            predicted_us=float(time) if time else None,
        )
    )


def _name(text: str, names: tuple[str, ...]) -> str | None:
    """Returns the name of an algorithm or protocol, which old logs give by number."""
    if text.isdigit():
        return names[int(text)] if int(text) < len(names) else None
    return text.lower() if text.lower() in names else None


_RECORDS: Final[tuple[tuple[str, re.Pattern[str], Callable[..., None]], ...]] = (
    (" version ", _VERSION, _version),
    (COMPLETE, RANK_OF, _member),
    ("Pattern ", re.compile(
        r"^Pattern (?P<pattern>\d{1,3}), crossNic (?P<cross>\d{1,3}), nChannels "
        r"(?P<channels>\d{1,4}), (?:bw|speed) (?P<intra>\d{1,9}\.\d{1,9})/"
        r"(?P<inter>\d{1,9}\.\d{1,9}), type (?P<path>\w{2,8})/(?P<to_nic>\w{2,8}), "
        r"sameChannels (?P<same>\d{1,3})"), _graph),
    (" nNodes ", re.compile(r" nRanks (?P<ranks>\d{1,8}) nNodes (?P<nodes>\d{1,8}) "), _nodes),
    (" coll channels", re.compile(r"^(\d{1,4}) coll channels"), _channels),
    ("Using network ", re.compile(r"^Using network (\S{1,60})"), _network),
    ("via NET/", re.compile(
        r"via NET/(?P<net>.{1,80}?)/(?P<device>\d{1,4})(?P<rest>.*)"), _connection),
    ("NVLS multicast", re.compile(r"support is (not )?available on dev (\d{1,4})"), _nvls),
    ("set by environment to ", re.compile(
        r"^(\w{1,80}) set by environment to (\S{1,200})"), _variable),
    ("Bytes -> Algo", re.compile(
        r"^(?:(?P<collective>\w{1,40}): )?(?P<size>\d{1,18}) Bytes -> Algo (?P<algorithm>\w{1,20}) "
        r"proto (?P<protocol>\w{1,20})(?: time (?P<time>\d{1,12}(?:\.\d{1,9})?)"
        r"| channel\{Lo\.\.Hi\}=\{(?P<low>\d{1,4})\.\.(?P<high>\d{1,4})\})"), _choice),
)  # fmt: skip
_OPTIONAL: Final = frozenset({" version ", "set by environment to "})

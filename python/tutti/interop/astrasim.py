"""ASTRA-sim 2: its files of networks, systems and workloads, run as they are.

- **Network** (YAML): per dimension a building block, NPUs, bandwidth in GB/s of 2^30 bytes, and
  latency in ns for each hop.
- **System** (JSON): how collectives are scheduled, cut into chunks and handled. The keys that
  decide something here are read; an algorithm other than `ring` is refused.
- **Workload**: Chakra traces ``<prefix>.<npu>.et``, or a text file of layers as of version 1.

Each dimension is a ring of NPUs. Through a switch a message takes two hops. Congestion-aware, it is
there as a whole before it goes on, and links are shared by what goes over them; congestion-unaware,
each message has each link for itself. A message then waits the endpoint's delay, and a reduction
passes memory three times (at 10^9 bytes in a GB). Times are not cut down to nanoseconds, as they
are there.

Source: Sys.cc, Ring.cc, PacketBundle.cc of astra-sim/astra-sim 518bd51.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from tutti import _core
from tutti.config.mistakes import mistake, shown
from tutti.errors import TraceError
from tutti.interop import chakra
from tutti.units import Time, TimePerByte
from tutti.workload.trace import Timing, programs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

__all__ = [
    "Dimension",
    "Network",
    "Run",
    "System",
    "load_groups",
    "load_network",
    "load_programs",
    "load_system",
    "simulate",
]

Block = Literal["Ring", "FullyConnected", "Switch"]

_GIB = 1 << 30


@dataclass(frozen=True, kw_only=True)
class Dimension:
    """A dimension of a network.

    Attributes:
        block: What joins its NPUs.
        npus: How many.
        bandwidth: Of a link and direction, in 2^30 B/s.
        latency: Of a hop, in ns.
    """

    block: Block
    npus: int
    bandwidth: float
    latency: float


@dataclass(frozen=True, kw_only=True)
class Network:
    """A network, the nearest dimension first."""

    dimensions: tuple[Dimension, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """NPUs of each dimension."""
        return tuple(dimension.npus for dimension in self.dimensions)

    def torus(self, *, aware: bool, nested: bool) -> _core.Torus:
        """The rings, congestion-aware or not.

        Raises:
            TopologyError: There are fewer than two NPUs, or a link takes no time.
        """
        rings, relays = [], []
        for one in self.dimensions:
            rate = TimePerByte.parse(f"{round(one.bandwidth * _GIB)} B/s").core
            hops = 2 if one.block == "Switch" else 1
            latency = round(hops * one.latency * 1000)
            if aware:
                rings.append((one.npus, rate, latency))
                relays.append(rate if one.block == "Switch" else None)
            else:
                # Nothing is served: each message takes its time, whatever others do.
                rings.append((one.npus, _core.TimePerByte("0 ns/B"), latency))
                relays.append(rate)
        return _core.Torus(rings, relays=relays, nested=nested)


@dataclass(frozen=True, kw_only=True)
class System:
    """A system: how NPUs carry out collectives.

    Attributes:
        order: Which collective goes first.
        nested: Whether an all-reduce goes inwards and back over the dimensions
            (`localBWAware`), and not over one after the other with all data.
        delay: What each message waits, in ns.
        memory: GB/s of 10^9.
        splits: Chunks of a collective.
        active: Chunks at once on each dimension.
        peak: TFLOP/s; 0 where nodes take the time that was recorded.
    """

    order: Literal["lifo", "fifo"] = "lifo"
    nested: bool = True
    delay: int = 10
    memory: float = 0
    splits: int = 1
    active: int = 1
    peak: float = 0

    def endpoint(self) -> _core.Endpoint:
        """The messaging agent of its NPUs."""
        rate = TimePerByte.parse(f"{round(self.memory * 10**9)} B/s").core if self.memory else None
        return _core.Endpoint.agent(
            {
                "delay": self.delay * 1000,
                "memory": rate or _core.TimePerByte("0 ns/B"),
                "chunks": (1 << 30, self.active),
            }
        )

    @property
    def timing(self) -> Timing:
        """How long nodes take that say what they do."""
        if not self.peak or not self.memory:
            return Timing()
        memory = TimePerByte.parse(f"{round(self.memory * 10**9)} B/s")
        return Timing(round(self.peak * 10**12), memory)


@dataclass(frozen=True)
class Run:
    """What a workload came to.

    Attributes:
        total: When the last NPU was done.
        compute: Of the NPU that is told: picoseconds in which it computed.
        exposed: In which it communicated and did not compute.
        npus: How many NPUs there are.
    """

    total: Time
    compute: int
    exposed: int
    npus: int


def simulate(
    network: Network,
    system: System,
    found: Sequence[_core.TrainingProgram],
    *,
    aware: bool = True,
) -> Run:
    """Runs the programs of NPUs, or one that all have.

    Raises:
        TraceError: All-reduces are to go over several dimensions with all their data.
        TopologyError: The network cannot be.
        SimulationError: NPUs do not hand over the same collectives.
    """
    if not system.nested and sum(size > 1 for size in network.sizes) > 1:
        message = "`collective-optimization`: `baseline` over several dimensions is not carried out"
        raise TraceError(f"{message} here: expected `localBWAware`", kind="not_carried")
    torus = network.torus(aware=aware, nested=system.nested)
    carriage = {
        "chunk": 1,
        "message": 1 << 40,
        "parts": system.splits,
        "order": system.order,
        "every_npu": len(found) > 1,
        "window": 0,
    }
    each = list(found) if len(found) > 1 else []
    record = _core.simulate_training(found[0], torus, system.endpoint(), carriage, each)
    compute, overlap, exposed, _ = record.breakdown()
    return Run(Time(ps=record.end_ps), compute + overlap, exposed, torus.npus)


def load_programs(
    workload: Path, network: Network, system: System, groups: Path | None = None
) -> list[_core.TrainingProgram]:
    """The programs of ``<workload>.<npu>.et``, or of a text file of layers.

    Raises:
        TraceError: A file cannot be used: with file, rank and node.
        ConfigError: A text file cannot be used.
    """
    from tutti.interop.astrasim_text import load_text

    if workload.suffix == ".txt":
        return [load_text(workload, network.sizes)]
    given = load_groups(groups) if groups else {}
    traces = chakra.read_all(workload)
    return programs(traces, network.sizes, groups=given, timing=system.timing)


# --- networks ------------------------------------------------------------------------------------

_BLOCKS: dict[str, Block] = {
    "Ring": "Ring",
    "FullyConnected": "FullyConnected",
    "Switch": "Switch",
}
_KEYS = ("topology", "npus_count", "bandwidth", "latency")


def load_network(path: Path) -> Network:
    """The network of a file.

    Raises:
        ConfigError: The file cannot be used.
    """
    import yaml

    source = str(path)
    try:
        tables = yaml.safe_load(_text(path))
    except yaml.YAMLError as error:
        problem = " ".join(str(error).split())
        raise mistake(f"is no YAML: {problem}", source=source) from None
    given = _object(tables, source)
    for key in given:
        if key not in _KEYS:
            expected = f"{', '.join(_KEYS)} of ASTRA-sim 2"
            raise mistake("unknown key", source=source, key=str(key), expected=expected)
    lists = {key: _list(given, key, source) for key in _KEYS}
    lengths = {key: len(values) for key, values in lists.items()}
    for key, length in lengths.items():
        if length != lengths["topology"]:
            problem = f"has {length} values, and `topology` {lengths['topology']}"
            raise mistake(problem, source=source, key=key)
    dimensions = []
    for index, block in enumerate(lists["topology"]):
        if block not in _BLOCKS:
            key, expected = f"topology[{index}]", " or ".join(_BLOCKS)
            problem = "is no building block"
            raise mistake(problem, source=source, key=key, value=shown(block), expected=expected)
        npus = _number(lists["npus_count"][index], f"npus_count[{index}]", source, whole=True)
        dimensions.append(
            Dimension(
                block=_BLOCKS[block],
                npus=int(npus),
                bandwidth=_number(lists["bandwidth"][index], f"bandwidth[{index}]", source),
                latency=_number(lists["latency"][index], f"latency[{index}]", source),
            )
        )
    return Network(dimensions=tuple(dimensions))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no text"
        raise mistake(f"cannot be read: {reason}", source=str(path)) from None


def _object(tables: object, source: str) -> Mapping[str, Any]:
    if not isinstance(tables, dict):
        raise mistake("is no table of keys and values", source=source)
    return tables


def _list(given: Mapping[str, Any], key: str, source: str) -> list[Any]:
    values = given.get(key)
    if not isinstance(values, list) or not values:
        problem = "is missing" if key not in given else "is no list"
        expected = "a list with a value for each dimension"
        raise mistake(problem, source=source, key=key, expected=expected)
    return values


def _number(value: object, key: str, source: str, *, whole: bool = False) -> float:
    kinds = (int,) if whole else (int, float)
    if isinstance(value, bool) or not isinstance(value, kinds) or not 0 < value < 1 << 40:
        expected = "a whole number above 0" if whole else "a number above 0"
        problem = "is no such number"
        raise mistake(problem, source=source, key=key, value=shown(value), expected=expected)
    return value


# --- systems -------------------------------------------------------------------------------------

_COLLECTIVES = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all")
_IGNORED = {
    *("boost-mode", "trace-enabled", "track-local-mem", "local-mem-trace-filename"),
    *("intra-dimension-scheduling", "inter-dimension-scheduling", "local-reduction-delay"),
    *("L", "o", "g", "G"),
}


def load_system(path: Path) -> System:
    """The system of a file.

    Raises:
        ConfigError: The file cannot be used, or asks for what is not done here.
    """
    source = str(path)
    try:
        tables = json.loads(_text(path))
    except json.JSONDecodeError as error:
        problem = f"is no JSON: {error.msg} in line {error.lineno}"
        raise mistake(problem, source=source) from None
    given = dict(_object(tables, source))
    for collective in _COLLECTIVES:
        _check_rings(given, f"{collective}-implementation", source)
    if given.pop("model-shared-bus", 0):
        problem = "a shared bus is not modelled here"
        raise mistake(problem, source=source, key="model-shared-bus", expected="0")
    policy = _word(given, "scheduling-policy", {"LIFO": "lifo", "FIFO": "fifo"}, "LIFO", source)
    way = _word(
        given,
        "collective-optimization",
        {"localBWAware": "nested", "baseline": "baseline"},
        "baseline",
        source,
    )
    splits = _count(given, "preferred-dataset-splits", source)
    roofline = given.pop("roofline-enabled", 0)
    peak = given.pop("peak-perf", 0)
    system = System(
        order="lifo" if policy == "lifo" else "fifo",
        nested=way == "nested",
        delay=int(given.pop("endpoint-delay", 10)),
        memory=given.pop("local-mem-bw", 0),
        splits=splits,
        active=_count(given, "active-chunks-per-dimension", source),
        peak=peak if roofline else 0,
    )
    unknown = next((key for key in given if key not in _IGNORED), None)
    if unknown is not None:
        raise mistake("unknown key", source=source, key=unknown)
    return system


def _check_rings(given: dict[str, Any], key: str, source: str) -> None:
    for index, algorithm in enumerate(given.pop(key, ["ring"])):
        if algorithm != "ring":
            raise mistake(
                "is not carried out here",
                source=source,
                key=f"{key}[{index}]",
                value=shown(algorithm),
                expected="`ring`",
            )


def _word(
    given: dict[str, Any], key: str, known: Mapping[str, str], default: str, source: str
) -> str:
    value = given.pop(key, default)
    if value not in known:
        expected = " or ".join(known)
        problem = "is no such word"
        raise mistake(problem, source=source, key=key, value=shown(value), expected=expected)
    return known[value]


def _count(given: dict[str, Any], key: str, source: str) -> int:
    return int(_number(given.pop(key, 1), key, source, whole=True))


def load_groups(path: Path) -> dict[str, tuple[int, ...]]:
    """Communicators: a JSON table of names and lists of ranks.

    Raises:
        TraceError: The file cannot be read, or is no such table.
    """
    try:
        tables = json.loads(path.read_text(encoding="utf-8"))
        return {str(name): tuple(int(rank) for rank in ranks) for name, ranks in tables.items()}
    except OSError as error:
        message = f"{path}: cannot be read: {error.strerror}"
        raise TraceError(message, kind="unreadable") from None
    except (ValueError, TypeError, AttributeError):
        message = f"{path}: is no JSON table of groups and their ranks"
        raise TraceError(message, kind="malformed") from None

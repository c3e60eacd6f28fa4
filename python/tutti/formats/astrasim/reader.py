"""Runs unmodified network, system and workload files of ASTRA-sim 2.

- **Network** (YAML): building block, NPUs, bandwidth in GB/s of 2^30 bytes and latency per hop in
  ns, per dimension.
- **System** (JSON): scheduling, chunking and processing of collectives. Keys without effect on time
  are reported. Algorithms other than `ring` are refused.
- **Workload**: Chakra traces ``<prefix>.<npu>.et``, or a text file of layers of version 1.

Each dimension is a ring of NPUs. Switches take two hops. The congestion-aware network stores and
forwards messages, which share links; the congestion-unaware network has no contention. A message
then waits for the endpoint delay, and a reduction accesses memory three times (10^9 bytes in a GB).
An all-to-all is `ring:blockwise` along each dimension in sequence. Times are not rounded down to
nanoseconds, unlike in ASTRA-sim.

Source: Sys.cc, Ring.cc, CollectiveImplLookup.cc, PacketBundle.cc of astra-sim/astra-sim 518bd51.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal, cast, get_args

from pydantic import AfterValidator, ConfigDict, Field

from tutti import _core
from tutti.base.errors import ConfigError
from tutti.base.files.mistakes import mistake
from tutti.base.files.reader import read_json, read_yaml
from tutti.base.files.tables import Table
from tutti.base.files.validate import validated
from tutti.base.units import Time, TimePerByte
from tutti.formats.astrasim.text import load_text
from tutti.formats.chakra import reader as chakra
from tutti.formats.chakra.groups import MOST_NPUS, load_groups
from tutti.schedules.ir import schedule
from tutti.workloads.errors import TraceError
from tutti.workloads.trace import NodeRates, programs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import polars as pl

Block = Literal["Ring", "FullyConnected", "Switch"]

_MOST_ON_RING = 2048
_GIB = 1 << 30


@dataclass(frozen=True, kw_only=True)
class Dimension:
    """A dimension of a network.

    Attributes:
        block: The building block.
        npus: The number of NPUs.
        bandwidth: The bandwidth of a link per direction, in 2^30 B/s.
        latency: The latency of a hop, in ns.
    """

    block: Block
    npus: int
    bandwidth: float
    latency: float


@dataclass(frozen=True, kw_only=True)
class AstraSimNetwork:
    """A network, the innermost dimension first."""

    dimensions: tuple[Dimension, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """NPUs of each dimension."""
        return tuple(dimension.npus for dimension in self.dimensions)

    def torus(self, *, aware: bool) -> _core.StepFabric:
        """Returns the rings, congestion-aware or not.

        Raises:
            TopologyError: The network has fewer than two NPUs, or a link takes no time.
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
                # No contention: messages do not queue for links.
                rings.append((one.npus, _core.TimePerByte("0 ns/B"), latency))
                relays.append(rate)
        return _core.StepFabric.torus(rings, relays=relays)


@dataclass(frozen=True, kw_only=True)
class System:
    """A system: how NPUs execute collectives.

    Attributes:
        order: The scheduling order of collectives.
        nested: Whether an all_reduce is hierarchical over the dimensions (`localBWAware`), and not
            sequential with all data.

        delay: The endpoint delay per message, in ns.
        memory: Memory bandwidth in 10^9 B/s.
        splits: Chunks per collective.
        active: Concurrent chunks per dimension.
        peak: TFLOP/s, or 0 to use recorded times.
        implementations: The number of dimensions with an algorithm, by collective; None: those of
            the network.
        source: The file, for errors.
        unused: Keys of the file without effect on time.
    """

    order: Literal["lifo", "fifo"] = "lifo"
    nested: bool = True
    delay: int = 10
    memory: float = 0
    splits: int = 1
    active: int = 1
    peak: float = 0
    implementations: Mapping[str, int] | None = None
    source: str = "system"
    unused: tuple[str, ...] = ()

    def endpoint(self) -> _core.Endpoint:
        """Returns the messaging agent of the NPUs."""
        rate = TimePerByte.parse(f"{round(self.memory * 10**9)} B/s").core if self.memory else None
        return _core.Endpoint.agent(
            {
                "delay": self.delay * 1000,
                "memory": rate or _core.TimePerByte("0 ns/B"),
                "chunks": self.active,
            }
        )

    @property
    def timing(self) -> NodeRates:
        """The roofline times of nodes with operations and bytes."""
        if not self.peak or not self.memory:
            return NodeRates()
        memory = TimePerByte.parse(f"{round(self.memory * 10**9)} B/s")
        return NodeRates(round(self.peak * 10**12), memory)


@dataclass(frozen=True)
class AstraSimRun:
    """The times of a workload.

    Attributes:
        total: The finish time of the last NPU.
        compute: Compute time of the reported NPU, in picoseconds.
        exposed: Its exposed communication, in picoseconds.
        npus: The number of NPUs.
    """

    total: Time
    compute: int
    exposed: int
    npus: int


def simulate(
    network: AstraSimNetwork,
    system: System,
    found: Sequence[_core.TrainingProgram],
    *,
    aware: bool = True,
) -> AstraSimRun:
    """Runs one program per NPU, or one program on all NPUs.

    Raises:
        TraceError: The system has `baseline` all_reduce over several dimensions, or an all_to_all
            has too many NPUs on a ring.
        TopologyError: The network is invalid.
        SimulationError: NPUs start different collectives.
    """
    if not system.nested and sum(size > 1 for size in network.sizes) > 1:
        message = "`collective-optimization`: `baseline` over several dimensions is not supported"
        raise TraceError(f"{message}: expected `localBWAware`", kind="not_carried")
    torus = network.torus(aware=aware)
    torus = torus.with_algorithms(_algorithms(network, found[0].transfers))
    settings = {
        "chunk": 1,
        "message": 1 << 40,
        "parts": system.splits,
        "order": system.order,
        "every_npu": len(found) > 1,
        "detail": "packets",
        "window": 0,
        "launch": 0,
    }
    of = list(range(len(found))) if len(found) > 1 else []
    record = _core.simulate_training(list(found), torus, system.endpoint(), settings, of)
    parts = record.breakdown()
    compute = parts.compute_ps + parts.overlap_ps
    return AstraSimRun(Time(ps=record.end_ps), compute, parts.exposed_ps, torus.npus)


def frame(run: AstraSimRun, workload: str, network: str, *, aware: bool) -> pl.DataFrame:
    """Returns a row: workload, network, npus, congestion, total_ps, compute_ps, exposed_ps."""
    import polars as pl

    row = {"workload": workload, "network": network, "npus": run.npus, "congestion": aware}
    times = {"total_ps": run.total.ps, "compute_ps": run.compute, "exposed_ps": run.exposed}
    return pl.DataFrame([row | times])


def load_programs(
    workload: Path, network: AstraSimNetwork, system: System, groups: Path | None = None
) -> list[_core.TrainingProgram]:
    """Loads the programs of ``<workload>.<npu>.et``, or of a text file of layers.

    Raises:
        TraceError: A trace is invalid. The message has file, rank and node.
        ConfigError: A file cannot be read, a text file is invalid, or the system has no algorithm
            for a collective and a dimension.
    """
    if workload.suffix == ".txt":
        found = [load_text(workload, network.sizes)]
    else:
        given = load_groups(groups) if groups else {}
        traces = chakra.read_all(workload)
        found = programs(traces, network.sizes, groups=given, timing=system.timing)
    _check_implementations(network, system, found[0])
    return found


def _algorithms(
    network: AstraSimNetwork, transfers: Sequence[tuple[str, int, int, int]]
) -> list[tuple[str, int, list[_core.Schedule]]]:
    """Returns the schedule of each collective on its dimensions: all chunks use the same.

    Raises:
        TraceError: An all_to_all has too many NPUs on a ring.
    """
    found = []
    for collective, mask in dict.fromkeys(transfer[:2] for transfer in transfers):
        given = enumerate(network.sizes)
        sizes = [size for at, size in given if size > 1 and mask >> at & 1]
        if collective == "all_to_all" and max(sizes) > _MOST_ON_RING:
            message = (
                f"an all_to_all on a ring of {max(sizes):,} NPUs is too large: each sends "
                f"{max(sizes) * (max(sizes) - 1) // 2:,} messages: expected at most "
                f"{_MOST_ON_RING:,} NPUs in a dimension"
            )
            raise TraceError(message, kind="not_carried", fields={"npus": max(sizes)})
        notation = _notation(collective, sizes)
        one = schedule(notation, collective=collective, ranks=math.prod(sizes))
        found.append((collective, mask, [one.core]))
    return found


def _notation(collective: str, sizes: Sequence[int]) -> str:
    """Returns the algorithm of a collective on dimensions of these sizes, innermost first.

    The all_gathers of an all_reduce go in the opposite direction, as in ASTRA-sim.
    """
    levels, ring = "x".join(map(str, sizes)), "ring"
    if collective == "all_to_all":
        ring = "ring:blockwise"
    if len(sizes) == 1:
        return ring
    if collective == "all_reduce":
        ring = "/".join([ring] * len(sizes) + ["ring:backward"] * (len(sizes) - 1))
    return f"hierarchical:{levels}:{ring}"


def _check_implementations(
    network: AstraSimNetwork, system: System, program: _core.TrainingProgram
) -> None:
    """Checks that each collective of a program has an algorithm for each dimension.

    Raises:
        ConfigError: A collective has no algorithms, or those of another number of dimensions.
    """
    if system.implementations is None:
        return
    for collective in dict.fromkeys(kind for kind, *_ in program.transfers):
        key = f"{collective.replace('_', '-')}-implementation"
        count, expected = system.implementations.get(collective), len(network.dimensions)
        if count == expected:
            continue
        problem = "does not list one algorithm for each dimension of the network"
        if count is None:
            problem = f"is missing, and the workload has an {collective}"
        listed = json.dumps(["ring"] * expected)
        value = json.dumps(["ring"] * count) if count else ""
        raise mistake(problem, source=system.source, key=key, value=value, expected=listed)


# --- networks ------------------------------------------------------------------------------------

_MOST_DIMENSIONS = 8
_Npus = Annotated[int, Field(ge=1, le=1 << 20)]
_Bandwidth = Annotated[float, Field(ge=2**-30, le=2**30)]
_Latency = Annotated[float, Field(gt=0, le=1 << 40)]
_Each = Field(min_length=1, max_length=_MOST_DIMENSIONS)


class _RawNetwork(Table):
    topology: Annotated[
        list[Annotated[str, AfterValidator(lambda block: _known(block, get_args(Block)))]], _Each
    ]
    npus_count: Annotated[list[_Npus], _Each]
    bandwidth: Annotated[list[_Bandwidth], _Each]
    latency: Annotated[list[_Latency], _Each]


def load_network(path: Path) -> AstraSimNetwork:
    """Loads a network file.

    Raises:
        ConfigError: The file is invalid.
    """
    source = str(path)
    given = validated(_RawNetwork, read_yaml(path, "a network of ASTRA-sim 2"), source=source)
    for key in _RawNetwork.model_fields:
        values = getattr(given, key)
        if len(values) != len(given.topology):
            problem = f"has {len(values)} values, and `topology` {len(given.topology)}"
            raise mistake(problem, source=source, key=key)
    if math.prod(given.npus_count) > MOST_NPUS:
        problem, expected = "too many NPUs", f"at most {MOST_NPUS:,}"
        value = f"{math.prod(given.npus_count):,}"
        raise mistake(problem, source=source, key="npus_count", value=value, expected=expected)
    columns = (given.topology, given.npus_count, given.bandwidth, given.latency)
    return AstraSimNetwork(
        dimensions=tuple(
            Dimension(block=cast("Block", block), npus=npus, bandwidth=bandwidth, latency=latency)
            for block, npus, bandwidth, latency in zip(*columns, strict=True)
        )
    )


def _known(word: str, known: Sequence[str]) -> str:
    """Returns a word of the supported ones.

    Raises:
        ConfigError: The word is not supported.
    """
    if word not in known:
        problem = f"`{word}` is not modelled: expected {' or '.join(known)}"
        raise ConfigError(problem, kind="invalid")
    return word


# --- systems -------------------------------------------------------------------------------------


def _one_of(*known: str) -> AfterValidator:
    return AfterValidator(lambda word: _known(word, known))


_COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")
_Rings = Annotated[
    list[Annotated[str, _one_of("ring")]],
    Field(default=["ring"], min_length=1, max_length=_MOST_DIMENSIONS),
]
_Chunks = Annotated[int, Field(ge=1, le=1 << 20)]
_Switch = Annotated[int, Field(ge=0, le=1)]
_Unused = Annotated[str | int | float | None, Field(default=None)]
_UNUSED = (
    *("boost-mode", "trace-enabled", "track-local-mem", "local-mem-trace-filename"),
    *("local-reduction-delay", "L", "o", "g", "G"),
)
"""Keys without effect on time in ASTRA-sim 2; the last four are of a shared bus."""


class _RawSystem(Table):
    """All keys of a system file; those of `_UNUSED` have no effect."""

    model_config = ConfigDict(alias_generator=lambda name: name.replace("_", "-"))

    all_reduce_implementation: _Rings
    all_gather_implementation: _Rings
    reduce_scatter_implementation: _Rings
    all_to_all_implementation: _Rings
    scheduling_policy: Annotated[str, _one_of("LIFO", "FIFO")] = "LIFO"
    collective_optimization: Annotated[str, _one_of("localBWAware", "baseline")] = "baseline"
    intra_dimension_scheduling: Annotated[str, _one_of("FIFO")] = "FIFO"
    inter_dimension_scheduling: Annotated[str, _one_of("ascending", "baseline")] = "ascending"
    model_shared_bus: Annotated[int, Field(ge=0, le=0)] = 0
    endpoint_delay: Annotated[int, Field(ge=0, le=1 << 40)] = 10
    preferred_dataset_splits: _Chunks = 1
    active_chunks_per_dimension: _Chunks = 1
    local_mem_bw: Annotated[float, Field(ge=1e-9, le=1e9)] | None = None
    roofline_enabled: _Switch = 0
    peak_perf: Annotated[float, Field(ge=0, le=1e6)] = 0
    boost_mode: _Unused
    trace_enabled: _Unused
    track_local_mem: _Unused
    local_mem_trace_filename: _Unused
    local_reduction_delay: _Unused
    L: _Unused
    o: _Unused
    g: _Unused
    G: _Unused


def load_system(path: Path) -> System:
    """Loads a system file.

    Raises:
        ConfigError: The file is invalid, or requires an unsupported feature.
    """
    tables = read_json(path, "a system of ASTRA-sim 2 (JSON)")
    given = validated(_RawSystem, tables, source=str(path))
    unused = [key for key in _UNUSED if key in tables]
    if not given.roofline_enabled and "peak-perf" in tables:
        unused.append("peak-perf")
    return System(
        order="lifo" if given.scheduling_policy == "LIFO" else "fifo",
        nested=given.collective_optimization == "localBWAware",
        delay=given.endpoint_delay,
        memory=given.local_mem_bw or 0,
        splits=given.preferred_dataset_splits,
        active=given.active_chunks_per_dimension,
        peak=given.peak_perf if given.roofline_enabled else 0,
        source=str(path),
        implementations={
            collective: len(getattr(given, f"{collective}_implementation"))
            for collective in _COLLECTIVES
            if f"{collective}_implementation" in given.model_fields_set
        },
        unused=tuple(unused),
    )

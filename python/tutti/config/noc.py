"""Files that describe a network of routers: topology, routers, traffic, and how long to measure."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, model_validator
from pydantic_core import PydanticCustomError

from tutti.config import paths
from tutti.config.mistakes import did_you_mean, mistake, shown
from tutti.config.platform import PerByteParameter, TimeParameter, written
from tutti.config.reader import MAX_SCHEDULE_BYTES, parse_toml, read_text, read_toml
from tutti.config.tables import Table, kind_of
from tutti.config.validate import validated
from tutti.errors import TuttiError
from tutti.units import Length, Size, Time

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.noc import Network, Plan, Trace, Traffic
    from tutti.topology import Topology

Count = Annotated[int, Field(ge=0, lt=1 << 32)]
Cycles = Annotated[int, Field(ge=0, le=1 << 40)]
Rate = Annotated[float, Field(ge=0, allow_inf_nan=False)]
VcRange = Annotated[list[Count], Field(min_length=2, max_length=2)]
Allocator = Literal[
    "separable_input_first",
    "separable_output_first",
    "islip",
    "wavefront",
    "pim",
    "maximum",
]


class NocLinks(Table):
    """The links of one kind, in each direction."""

    rate: Annotated[PerByteParameter, Field(description="Bytes per time, in each direction.")]
    latency: Annotated[
        TimeParameter,
        Field(description="From end to end; rounded up to whole cycles, at least one."),
    ]
    length: Annotated[
        Length | None, Field(default=None, description="For the energy of wires; may be left out.")
    ]


class NocTopology(Table):
    """Routers and links: a family, or a graph from a file; and which way packets take."""

    build: Annotated[str | None, Field(default=None, description="A family, such as `mesh:8x8`.")]
    file: Annotated[
        str | None,
        Field(default=None, description="Instead, a GraphML or node-link JSON file."),
    ]
    links: Annotated[
        list[NocLinks],
        Field(
            default_factory=list,
            description="For a family: its links, or one table for each class of links.",
        ),
    ]
    routing: Annotated[
        str,
        Field(
            default="shortest_path",
            description="Which way packets take, as `name` or `name:argument`; "
            "docs/models/flit.md lists them.",
        ),
    ]
    grid: Annotated[
        list[Annotated[int, Field(ge=1, lt=1 << 32)]] | None,
        Field(
            default=None,
            description="The nodes along each dimension, for patterns along a grid; that of a mesh "
            "or torus if left out.",
        ),
    ]

    @model_validator(mode="after")
    def _one_origin(self) -> NocTopology:
        if (self.build is None) == (self.file is None):
            raise PydanticCustomError("topology", "expected either `build` or `file`")
        if (self.build is None) == bool(self.links):
            raise PydanticCustomError(
                "topology", "expected `links` for a family, and none for a file, which has its own"
            )
        return self


class SpeculationTable(Table):
    """Heads ask for a VC and for the switch in the same cycle."""

    check_vc: Annotated[
        bool, Field(default=True, description="Ask for the switch only where a VC is free.")
    ]
    check_credit: Annotated[
        bool, Field(default=False, description="Ask only where a free VC has a credit.")
    ]
    allocator: Annotated[
        Allocator | None,
        Field(default=None, description="An allocator of its own; else they share the switch's."),
    ]
    yield_to_requests: Annotated[
        bool,
        Field(default=False, description="Lose an output that others ask for, granted or not."),
    ]


class RouterTable(Table):
    """What all routers are like; delays in cycles, buffers in flits."""

    vcs: Annotated[Count, Field(default=4, description="Virtual channels of each port, 1 to 64.")]
    buffer: Annotated[
        Count, Field(default=8, description="Flits that the buffer of each VC holds.")
    ]
    routing_delay: Annotated[
        Count, Field(default=0, description="Cycles for routing; none with look-ahead.")
    ]
    vc_delay: Annotated[
        Count, Field(default=1, description="Cycles for VC allocation, at least one.")
    ]
    switch_delay: Annotated[
        Count, Field(default=1, description="Cycles for switch allocation, at least one.")
    ]
    traversal_delay: Annotated[Count, Field(default=1, description="Cycles in the switch.")]
    credit_delay: Annotated[
        Count, Field(default=1, description="Cycles until a credit that has arrived counts.")
    ]
    port_latency: Annotated[
        int,
        Field(
            default=1,
            ge=1,
            le=1 << 16,
            description="Cycles between an NPU and a router of its own, each way.",
        ),
    ]
    speculation: Annotated[
        Annotated[bool, Tag("value")] | Annotated[SpeculationTable, Tag("table")],
        Discriminator(kind_of),
        Field(default=False, description="Whether heads ask for VC and switch at once."),
    ]
    vc_allocator: Annotated[
        Allocator, Field(default="separable_input_first", description="Who gets which VC.")
    ]
    switch_allocator: Annotated[
        Allocator, Field(default="separable_input_first", description="Who gets the switch.")
    ]
    arbiter: Annotated[
        str,
        Field(
            default="round_robin",
            description="The arbiters in both: `round_robin`, `matrix`, `tree_round_robin:GROUPS` "
            "or `tree_matrix:GROUPS`.",
        ),
    ]
    iterations: Annotated[
        Count, Field(default=1, description="Iterations of allocators that iterate.")
    ]
    input_speedup: Annotated[Count, Field(default=1, description="Switch inputs per input port.")]
    output_speedup: Annotated[
        Count, Field(default=1, description="Switch outputs per output port.")
    ]
    internal_speedup: Annotated[Count, Field(default=1, description="Allocation rounds per cycle.")]
    output_buffer: Annotated[
        Count | None,
        Field(default=None, description="Flits that wait behind a switch output; no limit unless."),
    ]
    wait_for_tail_credit: Annotated[
        bool,
        Field(default=False, description="A VC is given again only when its buffer is empty."),
    ]
    busy_when_full: Annotated[
        bool, Field(default=False, description="A VC without credits is not given to anybody.")
    ]
    prioritize_empty: Annotated[
        bool, Field(default=False, description="Empty VCs are given first.")
    ]
    hold_switch: Annotated[
        bool,
        Field(default=False, description="A packet keeps its way through the switch to its tail."),
    ]
    cut_through: Annotated[
        bool,
        Field(
            default=False, description="A packet goes on only where there is room for all of it."
        ),
    ]
    priority: Annotated[
        Literal["none", "ordered", "age"],
        Field(default="none", description="Which packets go first: `ordered` by their traffic's."),
    ]


class TrafficTable(Table):
    """Packets of one class: generated, or of a trace."""

    pattern: Annotated[
        str,
        Field(
            default="uniform",
            description="Where packets go, as `name` or `name:argument`; docs/models/flit.md lists "
            "them.",
        ),
    ]
    process: Annotated[
        str,
        Field(
            default="bernoulli",
            description="When: `bernoulli`, `periodic`, `periodic:aligned` or `on_off:` with two "
            "of `alpha=`, `beta=`, `r1=`.",
        ),
    ]
    rate: Annotated[Rate | None, Field(default=None, description="Flits per node and cycle.")]
    packet: Annotated[
        Annotated[Annotated[int, Field(ge=1, lt=1 << 32)], Tag("value")]
        | Annotated[str, Tag("text")],
        Discriminator(lambda value: "text" if isinstance(value, str) else "value"),
        Field(
            default=1,
            description='Flits of a packet: a number, several such as "1,5", or with weights, '
            '"1,5/3,1".',
        ),
    ]
    vcs: Annotated[
        VcRange | None,
        Field(default=None, description="The first and the last VC of the class; all if left out."),
    ]
    priority: Annotated[
        Annotated[int, Field(ge=-(1 << 62), le=1 << 62)],
        Field(default=0, description="Larger goes first, where the routers' is `ordered`."),
    ]
    trace: Annotated[
        str | None,
        Field(
            default=None,
            description="Instead of all but `vcs`, a CSV file: cycle, source, destination, flits.",
        ),
    ]


class MeasureTable(Table):
    """How long to run, in cycles."""

    warmup: Annotated[Cycles, Field(default=5_000, description="Before what is measured.")]
    measure: Annotated[Cycles, Field(default=20_000, description="What is measured.")]
    batches: Annotated[
        Count,
        Field(default=20, description="Parts of it whose means give confidence intervals."),
    ]
    drain: Annotated[
        Cycles, Field(default=20_000, description="Afterwards, at most, until all has arrived.")
    ]
    patience: Annotated[
        Cycles, Field(default=5_000, description="Without any move: then it is deadlocked.")
    ]
    sample: Annotated[
        Cycles, Field(default=100, description="Between looks at the buffers; never if 0.")
    ]


class RawNoc(Table):
    """A network of routers, flit by flit, and the traffic on it."""

    title: Annotated[str, Field(default="", description="What is asked, for reports.")]
    cycle: Annotated[Time, Field(default=Time(ps=1000), description="The length of a clock cycle.")]
    flit: Annotated[Size, Field(default=Size(bytes=16), description="The size of a flit.")]
    seed: Annotated[
        int,
        Field(default=1, ge=0, lt=1 << 63, description="The seed of everything that is random."),
    ]
    topology: Annotated[NocTopology, Field(description="Routers, links and routing.")]
    router: Annotated[
        RouterTable, Field(default_factory=RouterTable, description="What routers are like.")
    ]
    traffic: Annotated[
        Annotated[TrafficTable, Tag("table")]
        | Annotated[Annotated[list[TrafficTable], Field(min_length=1)], Tag("list")],
        Discriminator(kind_of),
        Field(description="What is sent: a table `[traffic]`, or `[[traffic]]` for each class."),
    ]
    measure: Annotated[
        MeasureTable, Field(default_factory=MeasureTable, description="How long to run.")
    ]
    output: Annotated[
        str,
        Field(
            default="out/noc",
            min_length=1,
            description="The folder for results, from where the command is run.",
        ),
    ]


@dataclass(frozen=True, kw_only=True)
class Noc:
    """A network and its traffic, as they can be run.

    Attributes:
        source: The file, for messages.
        title: What is asked.
        network: The network.
        traffic: A table of each class, or a trace.
        plan: How long to measure.
        output: The folder for results.
    """

    source: str
    title: str
    network: Network
    traffic: tuple[Traffic, ...] | Trace
    plan: Plan
    output: Path


def load_noc(path: Path, changes: Sequence[str] = (), *, output: Path | None = None) -> Noc:
    """Reads the file of a network.

    Args:
        path: The file.
        changes: Each ``KEY=VALUE``: a key path, and what it is instead.
        output: The folder for results, instead of the file's.

    Raises:
        ConfigError: The file or a change cannot be used.
    """
    tables: dict[str, Any] = read_toml(path)
    for change in changes:
        tables = _changed(tables, change)
    if output is not None:
        tables = {**tables, "output": str(output)}
    source = f"{path} with --set" if changes else str(path)
    return resolve_noc(tables, source=source, folder=path.parent)


def resolve_noc(tables: dict[str, Any], *, source: str, folder: Path) -> Noc:
    """Checks the tables; `folder` is what relative paths in them start from.

    Raises:
        ConfigError: They describe no network, or no traffic on it.
    """
    from tutti.noc import Network

    raw = validated(RawNoc, tables, source=source)
    try:
        topology = _topology(raw.topology, folder)
    except TuttiError as error:
        raise mistake(error.problem, source=source, key="topology", hint=error.hint) from None
    network = Network(
        topology=topology,
        routing=raw.topology.routing,
        router=router_of(raw.router),
        cycle=raw.cycle,
        flit=raw.flit,
        grid=tuple(raw.topology.grid) if raw.topology.grid else None,
        seed=raw.seed,
    )
    found = Noc(
        source=source,
        title=raw.title,
        network=network,
        traffic=_traffic(raw, source, folder),
        plan=_plan(raw.measure),
        output=Path(raw.output),
    )
    _check(found)
    return found


def _changed(tables: dict[str, Any], change: str) -> dict[str, Any]:
    """The same tables with one value replaced, as ``router.vcs=8`` says."""
    key, equals, text = change.partition("=")
    path = paths.parse(key.strip())
    if not equals or path is None:
        raise mistake(
            "is no change",
            source="--set",
            value=shown(change),
            expected="KEY=VALUE, such as router.vcs=8 or topology.routing=valiant",
        )
    known = list(RawNoc.model_fields)
    if path[0] not in known:
        raise mistake(
            f"there is no key `{path[0]}`",
            source="--set",
            expected=f"a path that starts with one of {', '.join(known)}",
            hint=did_you_mean(str(path[0]), known),
        )
    try:
        changed: dict[str, Any] = paths.with_value(tables, path, _value(text))
    except paths.NoSuchPlaceError as error:
        problem = f"leads nowhere: {paths.written(error.at)} {error.problem}"
        raise mistake(problem, source="--set", key=key) from None
    return changed


def _value(text: str) -> object:
    """A value as TOML has it; what is none is text."""
    try:
        return parse_toml(f"value = {text}", source="--set")["value"]
    except TuttiError:
        return text.strip()


def router_of(table: RouterTable) -> Any:  # noqa: ANN401 - Router, whose module loads later
    """The settings that a table stands for."""
    from tutti.noc import Router, Speculation

    values = {one.name: getattr(table, one.name) for one in fields(Router)}
    ahead = table.speculation
    if isinstance(ahead, SpeculationTable):
        values["speculation"] = Speculation(**ahead.model_dump())
    else:
        values["speculation"] = Speculation() if ahead else None
    return Router(**values)


def _plan(table: MeasureTable) -> Plan:
    from tutti.noc import Plan

    return Plan(**table.model_dump())


def _traffic(raw: RawNoc, source: str, folder: Path) -> tuple[Traffic, ...] | Trace:
    from tutti.noc import Trace, Traffic

    tables = raw.traffic if isinstance(raw.traffic, list) else [raw.traffic]
    names = [
        f"traffic[{number}]" if isinstance(raw.traffic, list) else "traffic"
        for number in range(len(tables))
    ]
    traces = {table.trace for table in tables}
    if traces != {None}:
        _refuse_beside_trace(tables, names, source)
        text = read_text(folder / str(tables[0].trace), MAX_SCHEDULE_BYTES, "a trace as CSV")
        given = [table.vcs for table in tables]
        every = (0, max(raw.router.vcs - 1, 0))
        ranges = tuple(every if one is None else (one[0], one[1]) for one in given)
        return Trace(text=text, vcs=ranges)
    loads = []
    for table, name in zip(tables, names, strict=True):
        if table.rate is None:
            raise mistake("`rate` is missing", source=source, key=f"{name}.rate",
                          expected="flits per node and cycle, such as 0.1")  # fmt: skip
        values = table.model_dump(exclude={"trace", "vcs"})
        vcs = None if table.vcs is None else (table.vcs[0], table.vcs[1])
        loads.append(Traffic(**values, vcs=vcs))
    return tuple(loads)


def _refuse_beside_trace(tables: list[TrafficTable], names: list[str], source: str) -> None:
    """Everything that a trace says itself, and a second trace."""
    for table, name in zip(tables, names, strict=True):
        beside = sorted(table.model_fields_set - {"trace", "vcs"})
        if beside:
            problem = f"`{beside[0]}` stands beside `trace`, which says it"
            raise mistake(problem, source=source, key=name, expected="`trace` and `vcs` only")
        if table.trace != tables[0].trace:
            problem = "names another trace than the first class, or none"
            raise mistake(problem, source=source, key=name, expected="one trace for all classes")


def _topology(table: NocTopology, folder: Path) -> Topology:
    from tutti.topology import Topology

    if table.build is None:
        return Topology.read(folder / str(table.file))
    links: list[dict[str, Any]] = [
        {"rate": written(link.rate), "latency": written(link.latency), "length": link.length}
        for link in table.links
    ]
    if len(links) == 1:
        return Topology.build(table.build, **links[0])
    return Topology.build(table.build, links=links)


_PLACES = {
    "no_cycle": "cycle",
    "too_many_cycles": "topology.links",
    "buffer_smaller_than_packet": "router.buffer",
    "no_such_vcs": "traffic.vcs",
    "unknown_routing": "topology.routing",
    "routing_argument": "topology.routing",
    "routing_does_not_fit": "topology.routing",
    "too_few_vcs": "router.vcs",
    "unknown_arbiter": "router.arbiter",
    "groups": "router.arbiter",
    "no_dimensions": "topology.routing",
    "not_a_dragonfly": "topology.routing",
    "not_a_fat_tree": "topology.routing",
    "trace": "traffic.trace",
    "unknown_process": "traffic.process",
    "chance": "traffic.rate",
    "bursts": "traffic.process",
    "out_of_reach": "traffic.process",
    "stuck": "traffic.process",
    "no_flits": "traffic.packet",
    "no_grid": "topology.grid",
    "grid_size": "topology.grid",
}
"""Where a mistake that the core finds stands in the file, by its kind."""


def _check(found: Noc) -> None:
    """Lets the core refuse what makes no sense together."""
    from tutti.errors import NocError, TrafficError
    from tutti.noc.runs import check

    try:
        check(found.network, found.traffic, found.plan)
    except TuttiError as error:
        key = _PLACES.get(error.kind, "")
        if error.kind == "out_of_range":
            what = str(error.fields.get("what", ""))
            key = f"measure.{what}" if what in MeasureTable.model_fields else f"router.{what}"
            key = key if what in {*MeasureTable.model_fields, *RouterTable.model_fields} else ""
        elif not key:
            key = {NocError: "router", TrafficError: "traffic.pattern"}.get(type(error), "topology")
        raise mistake(error.problem, source=found.source, key=key, hint=error.hint) from None

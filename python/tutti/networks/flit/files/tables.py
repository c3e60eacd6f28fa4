"""The tables of network files: keys, types and units, not resolved."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Discriminator, Field, Tag, model_validator

from tutti.base.files.custom_errors import refused
from tutti.base.files.described import Count, Positive, described_by, table_of
from tutti.base.files.sourced import PerByteParameter, TimeParameter
from tutti.base.files.tables import Table, kind_of
from tutti.base.units import Length, Size, Time
from tutti.networks.flit.settings import (
    Deadlock,
    MeasurementPlan,
    NarrowLinks,
    Reply,
    Router,
    RouterBuffers,
    RouterClock,
    Traffic,
)

LinkNames = Annotated[
    Annotated[dict[str, str], Field(min_length=1), Tag("table")] | Annotated[str, Tag("value")],
    Discriminator(lambda value: "table" if isinstance(value, dict) else "value"),
]
VcRange = Annotated[list[Count], Field(min_length=2, max_length=2)]


class ConstantTable(Table):
    """A constant that replaces the value of a technology."""

    value: float = Field(description="The value, in the unit of the constant's name.")
    source: str = Field(min_length=1, description="The source of the value.")
    low_factor: float = Field(default=1.0, description="The lower bound, as a factor of the value.")
    high_factor: float = Field(
        default=1.0, description="The upper bound, as a factor of the value."
    )


class EnergyTable(Table):
    """Energy and area of routers and links; docs/models/energy.md lists the technologies."""

    router: str = Field(description="The technology of the routers, such as `dsent_45nm`.")
    link: LinkNames = Field(
        description="The technology of the links, such as `dsent_45nm`; a table with one for each "
        "link class where classes differ, such as "
        '`{ on-chip = "dsent_45nm", die-to-die = "ucie_advanced" }`.'
    )
    constants: dict[str, ConstantTable] = Field(
        default_factory=dict, description="Constants to replace, by name."
    )


class LinksTable(Table):
    """The parameters of a link class."""

    rate: PerByteParameter = Field(description="Bandwidth in each direction.")
    latency: TimeParameter = Field(
        description="Latency of the link; routers round it up to cycles, at least one."
    )
    length: Length | None = Field(
        default=None, description="Length of the link, for the energy of wires."
    )


class NocTopology(Table):
    """Routers and links, from a family or a graph file, and the routing."""

    build: str | None = Field(default=None, description="A family, such as `mesh:8x8`.")
    file: str | None = Field(
        default=None, description="A GraphML or node-link JSON file, instead of `build`."
    )
    links: list[LinksTable] = Field(
        default_factory=list,
        description="For a family: one table for all links, or one per link class.",
    )
    routing: str | None = Field(
        default=None,
        min_length=1,
        description="The routing, as `name` or `name:argument`; docs/models/flit.md lists them. "
        "If absent, the best deadlock-free one of the family, such as `dimension_order` on a mesh.",
    )
    narrow_links: NarrowLinks = "refuse"
    deadlock: Deadlock = "warn"
    grid: list[Positive] | None = Field(
        default=None,
        description="Nodes in each dimension, for patterns that use coordinates; the default "
        "is the grid of the mesh or torus.",
    )

    @model_validator(mode="after")
    def _one_origin(self) -> NocTopology:
        if (self.build is None) == (self.file is None):
            raise refused("expected either `build` or `file`")
        if (self.build is None) == bool(self.links):
            raise refused(
                "expected `links` for a family, such as "
                '`links = [{ rate = "16 GB/s", latency = "1 ns" }]`, and no `links` for a file, '
                "which defines them",
                key="links",
            )
        return self


RouterNames = Annotated[
    list[str],
    Field(
        min_length=1,
        description='Names of routers, or patterns with `*`, `?` and `[...]`, such as `"0,*"`.',
    ),
]


@described_by(RouterBuffers)
class RouterBuffersTable(Table):
    """Routers with fewer VCs or smaller buffers than `[router]` states."""

    at: RouterNames


@described_by(RouterClock)
class RouterClockTable(Table):
    """A clock domain: routers with a clock that differs from that of the network."""

    at: RouterNames
    period: Time = Field(description="The period; at least `cycle`, at most 64 times that.")

    @model_validator(mode="before")
    @classmethod
    def _has_a_period(cls, table: Any) -> Any:  # noqa: ANN401 - any value of a file
        if isinstance(table, dict) and "frequency" in table:
            raise refused("expected `period`, such as `2 ns` for 500 MHz", key="frequency")
        return table


@described_by(Reply)
class ReplyTable(Table):
    """The replies to the packets of a traffic class."""

    vcs: VcRange | None = Field(
        default=None,
        description="First and last VC of replies; all VCs if absent. Deadlock-free only if "
        "requests have other VCs.",
    )


@described_by(Traffic)
class TrafficTable(Table):
    """The packets of a traffic class: generated, or from a trace."""

    rate: Annotated[float | None, table_of(Traffic).model_fields["rate"]] = None
    vcs: VcRange | None = Field(
        default=None, description="First and last VC of the class; all VCs if absent."
    )
    reply: ReplyTable | None = Field(
        default=None,
        description="The packet that a node returns for each packet that arrives; none if absent.",
    )
    trace: str | None = Field(
        default=None,
        description="A CSV file of cycle, source, destination and flits, and optionally class, id, "
        "after and delay; replaces all keys but `vcs`.",
    )
    matrix: str | None = Field(
        default=None,
        description="A file with a row of weights for each source and a column for each "
        "destination; replaces `pattern`.",
    )


@described_by(MeasurementPlan)
class MeasureTable(Table):
    """Lengths of warm-up, measurement and drain, in cycles."""


class RawNoc(Table):
    """A network of routers, simulated flit by flit, and its traffic."""

    title: str = Field(default="", description="Title of reports.")
    cycle: Time = Field(
        default=Time(ps=1000),
        description="The clock period of the network: the unit of latencies and loads, and the "
        "shortest period of `clocks`.",
    )
    flit: Size = Field(default=Size(bytes=16), description="The size of a flit.")
    seed: int = Field(default=1, ge=0, lt=1 << 63, description="The random seed.")
    topology: NocTopology = Field(description="Routers, links and routing.")
    router: Router = Field(default_factory=Router, description="The parameters of all routers.")
    routers: list[RouterBuffersTable] = Field(
        default_factory=list,
        description="Routers with fewer VCs or smaller buffers than `[router]` states.",
    )
    clocks: list[RouterClockTable] = Field(
        default_factory=list,
        description="Clock domains: routers with slower clocks than the network.",
    )
    traffic: Annotated[
        Annotated[TrafficTable, Tag("table")]
        | Annotated[Annotated[list[TrafficTable], Field(min_length=1)], Tag("list")],
        Discriminator(kind_of),
    ] = Field(description="The traffic: a table `[traffic]`, or `[[traffic]]` per class.")
    measure: MeasureTable = Field(default_factory=MeasureTable, description="Length of the run.")
    energy: EnergyTable | None = Field(
        default=None, description="Energy of events; if absent, energy is not reported."
    )
    output: str = Field(
        default="out/noc",
        min_length=1,
        description="The folder for results, relative to the working directory.",
    )

"""Files of networks as they are written: keys, types and units, and nothing resolved."""

from __future__ import annotations

from typing import Annotated

from pydantic import Discriminator, Field, Tag, model_validator

from tutti.config.sourced import PerByteParameter, TimeParameter
from tutti.files.custom_errors import refused
from tutti.files.described import Count, Positive, described_by, table_of
from tutti.files.tables import Table, kind_of
from tutti.noc.settings import Deadlock, MeasurementPlan, NarrowLinks, Router, Traffic
from tutti.units import Length, Size, Time

VcRange = Annotated[list[Count], Field(min_length=2, max_length=2)]


class ConstantTable(Table):
    """Another value of a constant."""

    value: Annotated[float, Field(description="In the unit of the constant's name.")]
    source: Annotated[str, Field(min_length=1, description="Where it is from.")]
    low_factor: Annotated[
        float, Field(default=1.0, description="The lower bound, as a part of the value.")
    ]
    high_factor: Annotated[
        float, Field(default=1.0, description="The upper bound, as a multiple of the value.")
    ]


class EnergyTable(Table):
    """What routers and links cost; docs/models/energy.md lists the technologies."""

    router: Annotated[
        str, Field(description="The technology of the routers, such as `dsent_45nm`.")
    ]
    link: Annotated[str, Field(description="The technology of the links, such as `dsent_45nm`.")]
    constants: Annotated[
        dict[str, ConstantTable],
        Field(default_factory=dict, description="Other values of constants, by their names."),
    ]


class LinksTable(Table):
    """The links of one kind, in each direction."""

    rate: Annotated[PerByteParameter, Field(description="Bytes per time, in each direction.")]
    latency: Annotated[
        TimeParameter,
        Field(description="From end to end; routers round it up to whole cycles, at least one."),
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
        list[LinksTable],
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
    narrow_links: NarrowLinks = "refuse"
    deadlock: Deadlock = "warn"
    grid: Annotated[
        list[Positive] | None,
        Field(
            default=None,
            description="The nodes along each dimension, for patterns along a grid; that of a mesh "
            "or torus if left out.",
        ),
    ]

    @model_validator(mode="after")
    def _one_origin(self) -> NocTopology:
        if (self.build is None) == (self.file is None):
            raise refused("expected either `build` or `file`")
        if (self.build is None) == bool(self.links):
            raise refused(
                "expected `links` for a family, and none for a file, which has its own",
                key="links",
            )
        return self


@described_by(Traffic)
class TrafficTable(Table):
    """Packets of one class: generated, or of a trace."""

    rate: Annotated[float | None, table_of(Traffic).model_fields["rate"]] = None
    vcs: Annotated[
        VcRange | None,
        Field(default=None, description="The first and the last VC of the class; all if left out."),
    ]
    trace: Annotated[
        str | None,
        Field(
            default=None,
            description="Instead of all but `vcs`, a CSV file: cycle, source, destination, flits.",
        ),
    ]


@described_by(MeasurementPlan)
class MeasureTable(Table):
    """How long to run, in cycles."""


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
    router: Annotated[Router, Field(default_factory=Router, description="What routers are like.")]
    traffic: Annotated[
        Annotated[TrafficTable, Tag("table")]
        | Annotated[Annotated[list[TrafficTable], Field(min_length=1)], Tag("list")],
        Discriminator(kind_of),
        Field(description="What is sent: a table `[traffic]`, or `[[traffic]]` for each class."),
    ]
    measure: Annotated[
        MeasureTable, Field(default_factory=MeasureTable, description="How long to run.")
    ]
    energy: Annotated[
        EnergyTable | None,
        Field(default=None, description="What events cost; without it, energy is not told."),
    ]
    output: Annotated[
        str,
        Field(
            default="out/noc",
            min_length=1,
            description="The folder for results, from where the command is run.",
        ),
    ]

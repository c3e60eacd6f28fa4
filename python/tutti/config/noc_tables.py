"""Files of networks as they are written: keys, types and units, and nothing resolved."""

from __future__ import annotations

from typing import Annotated

from pydantic import Discriminator, Field, Tag, model_validator

from tutti.config.sourced import PerByteParameter, TimeParameter
from tutti.files.custom_errors import refused
from tutti.files.tables import Table, kind_of
from tutti.noc.settings import Deadlock, NarrowLinks, Router
from tutti.units import Length, Size, Time

Count = Annotated[int, Field(ge=0, lt=1 << 32)]
Cycles = Annotated[int, Field(ge=0, le=1 << 40)]
Rate = Annotated[float, Field(ge=0, allow_inf_nan=False)]
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
    narrow_links: NarrowLinks = "refuse"
    deadlock: Deadlock = "warn"
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
            raise refused("expected either `build` or `file`")
        if (self.build is None) == bool(self.links):
            raise refused(
                "expected `links` for a family, and none for a file, which has its own",
                key="links",
            )
        return self


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
    keep_vcs: Annotated[
        bool, Field(default=False, description="Keep every VC's buffer and flits at each look.")
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

"""Platform files: a machine as numbers, each with the source it comes from.

A number stands either by itself (`alpha_p = "1.34 us"`) or with its source
(`alpha_p = { value = "1.34 us", source = "...", inferred = false }`). The platforms that tutti
brings along give a source for each; a test demands it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, model_validator

from tutti.config.flits import FlitsTable  # noqa: TC001 - pydantic looks at it
from tutti.config.mesh import MeshTable  # noqa: TC001 - pydantic looks at it
from tutti.config.package import PackageTable  # noqa: TC001 - pydantic looks at it
from tutti.config.sourced import (
    CountParameter,
    PerByteParameter,
    SizeParameter,
    Sourced,
    TimeParameter,
    written,
)
from tutti.files.custom_errors import refused
from tutti.files.tables import Table
from tutti.topology.graph import CHOICES
from tutti.units import Length, Size

if TYPE_CHECKING:
    from collections.abc import Iterator


NO_TIME = "0 ns"
NO_TIME_PER_BYTE = "0 ns/B"


class _Model(Table):
    summary: Annotated[str, Field(default="", description="What these numbers stand for.")]


class PostalModel(_Model):
    """alpha + n beta for each message, one after the other."""

    kind: Literal["postal"]
    alpha: Annotated[TimeParameter, Field(description="Fixed time per message.")]
    beta: Annotated[PerByteParameter, Field(default=NO_TIME_PER_BYTE, description="Time per byte.")]


class PipeliningPostalModel(_Model):
    """alpha_p + b (alpha_r + n beta) for b messages that overlap."""

    kind: Literal["pipelining_postal"]
    alpha_p: Annotated[TimeParameter, Field(description="Time that overlapping messages share.")]
    alpha_r: Annotated[TimeParameter, Field(description="Time that each message adds.")]
    beta: Annotated[PerByteParameter, Field(default=NO_TIME_PER_BYTE, description="Time per byte.")]


class LogPModel(_Model):
    """Latency L, overhead o and gap g between messages; the size does not matter."""

    kind: Literal["logp"]
    L: Annotated[TimeParameter, Field(description="Latency of the network.")]
    o: Annotated[TimeParameter, Field(description="Overhead of a send and of a receive.")]
    g: Annotated[TimeParameter, Field(description="Least time between two messages of a rank.")]


class LoPModel(_Model):
    """Small messages that pipeline until the adapter saturates; a form inferred from the paper."""

    kind: Literal["lop"]
    L: Annotated[TimeParameter, Field(description="Latency that messages of a burst share.")]
    o_first: Annotated[TimeParameter, Field(description="Overhead of the first of a burst.")]
    o_next: Annotated[
        TimeParameter, Field(description="Overhead of later messages, and of messages taken.")
    ]
    processing: Annotated[TimeParameter, Field(description="The adapter's time per message.")]
    saturation: Annotated[
        TimeParameter, Field(description="The adapter's further time per message past the knee.")
    ]
    knee: Annotated[
        CountParameter, Field(description="Messages of a burst before the adapter saturates.")
    ]


class LogfPModel(_Model):
    """LogP in which the first f messages of a burst need no gap."""

    kind: Literal["logfp"]
    L: Annotated[TimeParameter, Field(description="Latency of the network.")]
    o: Annotated[TimeParameter, Field(description="Overhead of a send and of a receive.")]
    g: Annotated[TimeParameter, Field(description="Least time between two messages of a rank.")]
    f: Annotated[CountParameter, Field(description="Messages of a burst that need no gap.")]


class LogGPModel(_Model):
    """LogP with a gap G per byte, for long messages."""

    kind: Literal["loggp"]
    L: Annotated[TimeParameter, Field(description="Latency of the network.")]
    o: Annotated[TimeParameter, Field(description="Overhead of a send and of a receive.")]
    g: Annotated[TimeParameter, Field(description="Least time between two messages of a rank.")]
    G: Annotated[PerByteParameter, Field(description="Time per byte.")]


Model = Annotated[
    PostalModel | PipeliningPostalModel | LogPModel | LoPModel | LogfPModel | LogGPModel,
    Field(discriminator="kind"),
]


class Compute(Table):
    """What work on a rank costs."""

    gamma: Annotated[
        PerByteParameter,
        Field(default=NO_TIME_PER_BYTE, description="Reducing one operand into another, per byte."),
    ]
    reduce_overhead: Annotated[
        TimeParameter, Field(default=NO_TIME, description="Fixed time of a reduction.")
    ]
    copy_: Annotated[
        PerByteParameter,
        Field(default=NO_TIME_PER_BYTE, alias="copy", description="Copying, per byte."),
    ]


class Links(Table):
    """The links of one kind, in each direction."""

    rate: Annotated[PerByteParameter, Field(description="Bytes per time, in each direction.")]
    latency: Annotated[TimeParameter, Field(description="From end to end of the link.")]
    length: Annotated[
        Length | None,
        Field(default=None, description="For the energy of wires; may be left out."),
    ]


class PacketsTable(Table):
    """Messages are cut into packets, and these queue for the links of the topology."""

    size: Annotated[
        SizeParameter,
        Field(default=Size(bytes=4096), description="The most bytes of a message in one packet."),
    ]
    buffer: Annotated[
        SizeParameter,
        Field(
            default=Size(bytes=65536),
            description="Room behind each link, beyond what its wire holds.",
        ),
    ]
    header: Annotated[
        SizeParameter,
        Field(default=Size(bytes=0), description="Bytes of a packet besides those of its message."),
    ]
    injection: Annotated[
        PerByteParameter | None,
        Field(default=None, description="Rate of the port through which all leaves an NPU."),
    ]
    ejection: Annotated[
        PerByteParameter | None,
        Field(default=None, description="Rate of the port through which all reaches an NPU."),
    ]
    package: Annotated[
        PackageTable | None,
        Field(default=None, description="The routers; without it, energy is not told."),
    ]


class TopologyTable(Table):
    """How the ranks are linked: a family with its links, or a graph from a file.

    Every message then takes the latency of each link on its way longer, and its bytes as long as
    the slowest link takes where that is longer than in the model. Without `packets` or `flits`, no
    message is in another's way.
    """

    build: Annotated[
        str | None,
        Field(default=None, description="A family, such as `torus:4x4` or `hierarchical:...`."),
    ]
    file: Annotated[
        str | None,
        Field(default=None, description="Instead, a GraphML or node-link JSON file."),
    ]
    links: Annotated[
        list[Links],
        Field(
            default_factory=list,
            description="For a family: its links, or one table for each level of a hierarchy.",
        ),
    ]
    routing: Annotated[
        Literal[
            "shortest_path",
            "dimension_order",
            "minimal",
            "d_mod_k",
            "ecmp",
            "adaptive",
            "valiant",
            "ugal",
        ],
        Field(default="shortest_path", description="Which way messages take."),
    ]
    routing_seed: Annotated[
        int | None,
        Field(
            default=None,
            ge=0,
            lt=1 << 64,
            description="For `ecmp`: what its draws depend on besides the pair; 0 if left out.",
        ),
    ]
    ways: Annotated[
        list[Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=2)]],
        Field(
            default_factory=list,
            description="Where all vertices are NPUs: ways from one rank to another, each as the "
            "ranks on it, ends included. Other pairs take the shortest path.",
        ),
    ]
    packets: Annotated[
        PacketsTable | None,
        Field(default=None, description="How messages meet: in queues for links."),
    ]
    flits: Annotated[
        FlitsTable | None,
        Field(default=None, description="How messages meet, instead: in routers, cycle by cycle."),
    ]

    @model_validator(mode="after")
    def _one_origin(self) -> TopologyTable:
        if (self.build is None) == (self.file is None):
            raise refused("expected either `build` or `file`")
        if (self.build is None) == bool(self.links):
            raise refused("expected `links` for a family, and none for a file, which has its own")
        if self.packets is not None and self.flits is not None:
            raise refused("expected either `packets` or `flits`")
        if self.ways and self.routing != "shortest_path":
            raise refused(
                "routing is `{routing}`, which decides every way: expected no `ways`",
                routing=self.routing,
            )
        met = self.packets or self.flits
        if met is None and self.routing in CHOICES:
            raise refused(
                "routing is `{routing}`, which packets choose by: expected a `packets` table",
                routing=self.routing,
            )
        return self


class RawPlatform(Table):
    """A machine: one or more models of its network, and what work costs on a rank."""

    name: Annotated[str, Field(min_length=1, description="Its name in results.")]
    summary: Annotated[str, Field(default="", description="What it is, in a sentence.")]
    source: Annotated[str, Field(default="", description="Where it is described.")]
    default_model: Annotated[
        str | None,
        Field(default=None, description="The model that is used when none is asked for."),
    ]
    models: Annotated[
        dict[str, Model], Field(min_length=1, description="Models of its network, by name.")
    ]
    compute: Annotated[
        Compute, Field(default_factory=Compute, description="What work on a rank costs.")
    ]
    topology: Annotated[
        TopologyTable | None,
        Field(default=None, description="How ranks are linked; without it all are equally far."),
    ]
    mesh: Annotated[
        MeshTable | None,
        Field(default=None, description="Instead, a mesh whose routers may fork and combine."),
    ]

    @model_validator(mode="after")
    def _one_network(self) -> RawPlatform:
        if self.topology is not None and self.mesh is not None:
            raise refused("expected either `topology` or `mesh`")
        return self

    @model_validator(mode="after")
    def _default_exists(self) -> RawPlatform:
        if self.default_model is None and len(self.models) > 1:
            raise refused(
                "has {count} models and names no default: "
                "expected `default_model` to be one of {names}",
                count=len(self.models),
                names=", ".join(self.models),
            )
        if self.default_model is not None and self.default_model not in self.models:
            raise refused(
                "has no model `{name}`, which `default_model` names: expected one of {names}",
                name=self.default_model,
                names=", ".join(self.models),
            )
        return self


def numbers(platform: RawPlatform) -> Iterator[tuple[str, str, str, bool]]:
    """Every number that is written in a platform.

    Yields:
        Its key path, value, source (empty if not given), and whether it is inferred.
    """
    tables: list[tuple[str, Table]] = [
        (f"models.{name}", model) for name, model in platform.models.items()
    ]
    tables.append(("compute", platform.compute))
    if platform.topology is not None:
        links = enumerate(platform.topology.links)
        tables.extend((f"topology.links[{index}]", link) for index, link in links)
        if platform.topology.packets is not None:
            tables.append(("topology.packets", platform.topology.packets))
        if platform.topology.flits is not None:
            tables.append(("topology.flits", platform.topology.flits))
            tables.append(("topology.flits.router", platform.topology.flits.router))
    if platform.mesh is not None:
        tables.append(("mesh", platform.mesh))
    for path, table in tables:
        for field, info in type(table).model_fields.items():
            value = getattr(table, field)
            if field in {"kind", "summary", "router"} or field not in table.model_fields_set:
                continue
            key = f"{path}.{info.alias or field}"
            if isinstance(value, Sourced):
                yield key, str(written(value)), value.source, value.inferred
            else:
                yield key, str(value), "", False

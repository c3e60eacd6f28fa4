"""Platform files: a machine as numbers, each with the source it comes from.

A number stands either by itself (`alpha_p = "1.34 us"`) or with its source
(`alpha_p = { value = "1.34 us", source = "...", inferred = false }`). The platforms that tutti
brings along give a source for each; a test demands it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias, Union

from pydantic import BaseModel, Field, model_validator

from tutti.config.flits import FlitsTable
from tutti.config.mesh import MeshTable
from tutti.config.noc_tables import LinksTable
from tutti.config.package import PackageTable  # noqa: TC001 - pydantic looks at it
from tutti.config.sourced import Sourced, sourced_table, written
from tutti.declared.groups import LocalCosts, PacketParameters
from tutti.declared.models import MODELS
from tutti.files.custom_errors import refused
from tutti.files.tables import Table
from tutti.topology.graph import CHOICES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tutti.declared.base import NetworkModel


_SUMMARY = (str, Field(default="", description="What these numbers stand for."))

if TYPE_CHECKING:
    Compute: TypeAlias = LocalCosts

    class Model(NetworkModel):
        """The table of any model."""

        summary: str

    _Packets: TypeAlias = PacketParameters
else:
    Compute, _Packets = sourced_table(LocalCosts), sourced_table(PacketParameters)
    _tables = [
        sourced_table(model, without=LocalCosts.model_fields, summary=_SUMMARY) for model in MODELS
    ]
    Model = Annotated[Union[tuple(_tables)], Field(discriminator="kind")]  # noqa: UP007 - made here


class PacketsTable(_Packets):
    """Messages are cut into packets, and these queue for the links of the topology."""

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
        list[LinksTable],
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
    paths: Annotated[
        list[Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=2)]],
        Field(
            default_factory=list,
            description="Where all vertices are NPUs: paths between ranks, each as its ranks, "
            "ends included. Other pairs take the shortest path.",
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
        if self.paths and self.routing != "shortest_path":
            raise refused(
                "routing is `{routing}`, which selects every path: expected no `paths`",
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
    tables: list[tuple[str, BaseModel]] = [
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

"""Platform files: the parameters of a machine, and their sources.

A parameter is either a value (`alpha_p = "1.34 us"`) or a value with its source
(`alpha_p = { value = "1.34 us", source = "...", inferred = false }`). The bundled platforms give a
source for each parameter; a test checks this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias, Union

from pydantic import BaseModel, Discriminator, Field, Tag, model_validator

from tutti.base.declared.groups import FlowParameters, LocalCosts, PacketParameters
from tutti.base.declared.models import MODELS
from tutti.base.files.custom_errors import refused
from tutti.base.files.sourced import Sourced, SwitchesParameter, sourced_table, written
from tutti.base.files.tables import Table, kind_of
from tutti.networks.flit.files.tables import LinksTable
from tutti.platforms.contention import Flits, FlowLevel, Free, Packets
from tutti.platforms.files.flits import FlitsTable
from tutti.platforms.files.mesh import MeshTable
from tutti.platforms.files.node import NodeTable
from tutti.platforms.files.package import PackageTable  # noqa: TC001 - pydantic resolves it
from tutti.topologies.routing import CHOICES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tutti.base.declared.network_model import NetworkModel


_SUMMARY = (
    str,
    Field(default="", description="The machine or measurement that the values describe."),
)

SWITCHES = ("multicast", "reduce")
"""The keys of the topology table that state what switches do, for flows and packets."""

OF_MODELS = ("launch", "gamma", "gamma_memory", "cache")
"""Costs of local work that a model may have instead of the platform: NCCL's protocols differ in
their launch, the libraries and memories of a machine in their reductions."""

if TYPE_CHECKING:
    Compute: TypeAlias = LocalCosts

    class Model(NetworkModel):
        """The table of any model."""

        summary: str

    _Packets: TypeAlias = PacketParameters
    _Flow: TypeAlias = FlowParameters
else:
    Compute = sourced_table(LocalCosts)
    _Packets = sourced_table(PacketParameters, without=SWITCHES)
    _Flow = sourced_table(FlowParameters, without=SWITCHES)
    _work = LocalCosts.model_fields.keys() - set(OF_MODELS)
    _tables = [sourced_table(model, without=_work, summary=_SUMMARY) for model in MODELS]
    Model = Annotated[Union[tuple(_tables)], Field(discriminator="kind")]  # noqa: UP007 - built at run time


CONTENTION = {of.key: of for of in (FlowLevel, Packets, Flits, Free)}
"""The keys of the topology table that select what messages share; at most one is given."""


class FlowTable(_Flow):
    """The ports of the flow model, in which concurrent messages share links by max-min fairness."""


class PacketsTable(_Packets):
    """Splits messages into packets, which queue for the links of the topology."""

    package: PackageTable | None = Field(
        default=None, description="The routers; if absent, energy is not reported."
    )


class TopologyTable(Table):
    """The network between the ranks: a family with its links, or a graph from a file.

    The latency of each link of its route delays a message. Its bytes take the time of the slowest
    link, if that exceeds the time of the model. Concurrent messages share links by the flow model,
    unless `packets`, `flits` or `contention_free` selects another.
    """

    build: str | None = Field(
        default=None, description="A family, such as `torus:4x4` or `hierarchical:...`."
    )
    file: str | None = Field(
        default=None, description="A GraphML or node-link JSON file, instead of `build`."
    )
    links: list[LinksTable] = Field(
        default_factory=list,
        description="For a family: one table for all links, or one per level of a hierarchy.",
    )
    routing: (
        Literal[
            "shortest_path",
            "dimension_order",
            "minimal",
            "d_mod_k",
            "ecmp",
            "adaptive",
            "valiant",
            "ugal",
        ]
        | None
    ) = Field(
        default=None,
        description="The routing of messages. If absent, that of the file, such as `ecmp` of "
        "an imported fabric, or else that of the family: `dimension_order` on grids, `minimal` "
        "on a dragonfly, `d_mod_k` on a fat tree, `ecmp` on rails and hierarchies of these, "
        "`shortest_path` elsewhere.",
    )
    routing_seed: int | None = Field(
        default=None, ge=0, lt=1 << 64, description="For `ecmp`: the random seed; 0 if absent."
    )
    ranks_per_node: int | None = Field(
        default=None,
        ge=1,
        lt=1 << 32,
        description="Consecutive NPUs that share a node; it divides their number. If absent, "
        "it is not known.",
    )
    paths: list[Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=2)]] = Field(
        default_factory=list,
        description="Where all vertices are NPUs: paths between ranks, each as its ranks, "
        "ends included. Other pairs take the shortest path.",
    )
    multicast: SwitchesParameter = Field(
        default=False,
        description="Whether switches fork a multicast, with flows or packets; or the names of "
        "the switches that do, with `*` for any characters.",
    )
    reduce: SwitchesParameter = Field(
        default=False,
        description="Whether switches reduce the contributions to a combine, with flows or "
        "packets; or the names of the switches that do, with `*` for any characters.",
    )
    flow: FlowTable | None = Field(
        default=None, description="Ports of the flow model, which is the default."
    )
    packets: PacketsTable | None = Field(
        default=None, description="Contention in queues of packets at links, instead of `flow`."
    )
    flits: FlitsTable | None = Field(
        default=None, description="Contention in routers, flit by flit, instead of `flow`."
    )
    contention_free: bool = Field(
        default=False,
        description="Whether messages do not share links: several may use the full rate of a "
        "link together.",
    )

    @model_validator(mode="after")
    def _one_origin(self) -> TopologyTable:
        if (self.build is None) == (self.file is None):
            raise refused("expected either `build` or `file`")
        if (self.build is None) == bool(self.links):
            raise refused(
                "expected `links` for a family, and no `links` for a file, which defines them"
            )
        self._check_contention()
        if self.paths and self.routing not in {None, "shortest_path"}:
            raise refused(
                "routing is `{routing}`, which selects every path: expected no `paths`",
                routing=self.routing,
            )
        return self

    @property
    def contention(self) -> type[FlowLevel | Packets | Flits | Free]:
        """The type of what messages share."""
        return next((of for key, of in CONTENTION.items() if getattr(self, key)), FlowLevel)

    def _check_contention(self) -> None:
        """Rejects several types of contention, and routing that depends on queues without any."""
        given = [key for key in CONTENTION if getattr(self, key)]
        if len(given) > 1:
            raise refused(
                "has `{first}` and `{second}`: expected at most one of {names}",
                first=given[0],
                second=given[1],
                names=", ".join(CONTENTION),
            )
        if self.routing in CHOICES and self.routing not in self.contention.choices:
            raise refused(
                "routing is `{routing}`, which depends on queues: expected a `packets` table",
                routing=self.routing,
            )


class CalibrationTable(Table):
    """What the numbers of a platform were fitted to, and how far its default model is off."""

    error: str = Field(
        pattern=r"^[0-9]{1,6}(\.[0-9]{1,3})? %$",
        description="Median absolute relative error of the default model over the "
        "measurements, such as `16 %`.",
    )
    hosts: int | None = Field(
        default=None, ge=1, lt=1 << 32, description="Hosts measured; if absent, unknown."
    )
    cores: int | None = Field(
        default=None, ge=1, lt=1 << 32, description="Cores of a host; if absent, unknown."
    )

    @property
    def share(self) -> float:
        """The error as a fraction: 0.16 is 16 %."""
        return float(self.error.removesuffix(" %")) / 100


class LibraryTable(Table):
    """The communication library that runs on a machine."""

    name: Literal["nccl", "rccl"] = Field(description="The library.")
    version: str = Field(min_length=1, description="The version, such as `2.28`.")
    system: str = Field(
        default="",
        description="The library's description of the nodes, such as `dgx_h100` of `tutti nccl "
        "systems`; if absent, it is not known, and the library predicts nothing.",
    )
    source: str = Field(default="", description="Why the description holds for the machine.")


class RawPlatform(Table):
    """A machine: one or more network models, and the costs of local work."""

    name: str = Field(min_length=1, description="Name in results.")
    summary: str = Field(default="", description="Description in one sentence.")
    source: str = Field(default="", description="The publication that describes the machine.")
    default_model: str | None = Field(
        default=None, description="The model for experiments that name no model."
    )
    models: dict[str, Model] = Field(min_length=1, description="Network models by name.")
    compute: Compute = Field(default_factory=Compute, description="Costs of local work on a rank.")
    topology: TopologyTable | None = Field(
        default=None, description="The topology; if absent, all ranks are at equal distance."
    )
    mesh: MeshTable | None = Field(
        default=None, description="A mesh with multicast and reduction, instead of `topology`."
    )
    calibration: CalibrationTable | None = Field(
        default=None, description="Of fitted numbers: their error, and what was measured."
    )
    library: LibraryTable | None = Field(
        default=None, description="The communication library; if absent, it is not known."
    )

    node: NodeTable | None = Field(
        default=None,
        description="A node and its interfaces, from which fits to measurements start; if absent, "
        "they start from the default model and the topology.",
    )

    @model_validator(mode="after")
    def _environments_have_models(self) -> RawPlatform:
        environments = self.node.environments if self.node is not None else {}
        for name, model in environments.items():
            if model not in self.models:
                raise refused(
                    "has no model `{model}`, which `node.environments` names for `{name}`: "
                    "expected one of {names}",
                    model=model,
                    name=name,
                    names=", ".join(self.models),
                )
        return self

    @model_validator(mode="after")
    def _one_network(self) -> RawPlatform:
        if self.topology is not None and self.mesh is not None:
            raise refused("expected either `topology` or `mesh`")
        return self

    @model_validator(mode="after")
    def _one_cost(self) -> RawPlatform:
        for key in OF_MODELS:
            found = [name for name, model in self.models.items() if key in model.model_fields_set]
            if found and key in self.compute.model_fields_set:
                raise refused(
                    "has `models.{name}.{key}` and `compute.{key}`: expected either the {key} of "
                    "each model or one for all",
                    name=found[0],
                    key=key,
                )
        return self

    @model_validator(mode="after")
    def _default_exists(self) -> RawPlatform:
        if self.default_model is None and len(self.models) > 1:
            raise refused(
                "has {count} models and no default: expected `default_model` to be one of {names}",
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


PlatformChoice = Annotated[
    Annotated[str, Tag("value")] | Annotated[RawPlatform, Tag("table")],
    Discriminator(kind_of),
]
"""The platform of a file: a name, a path or a notation, or a table."""


def numbers(platform: RawPlatform) -> Iterator[tuple[str, str, str, bool]]:
    """Yields every parameter of a platform file.

    Yields:
        Key path, value, source (empty if not given), and whether the value is inferred.
    """
    tables: list[tuple[str, BaseModel]] = [
        (f"models.{name}", model) for name, model in platform.models.items()
    ]
    tables.append(("compute", platform.compute))
    if platform.topology is not None:
        tables.append(("topology", platform.topology))
        links = enumerate(platform.topology.links)
        tables.extend((f"topology.links[{index}]", link) for index, link in links)
        if platform.topology.flow is not None:
            tables.append(("topology.flow", platform.topology.flow))
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
            if table is platform.topology and field not in SWITCHES:
                continue
            key = f"{path}.{info.alias or field}"
            if isinstance(value, Sourced):
                yield key, str(written(value)), value.source, value.inferred
            else:
                yield key, str(value), "", False
    for key, number, source, inferred in platform.node.numbers() if platform.node else ():
        yield f"node.{key}", str(number), source, inferred

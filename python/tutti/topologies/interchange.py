"""Conversion from and to networkx graphs, and validation of their attributes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeVar

import networkx as nx
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tutti import _core
from tutti.base.errors import TuttiError
from tutti.base.files.mistakes import did_you_mean, shown
from tutti.base.units import Length, Time, TimePerByte  # noqa: TC001 - pydantic looks at it
from tutti.topologies.errors import TopologyError

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

    from tutti.topologies.graph import Topology


class _Attributes(BaseModel):
    """Ignores other attributes, which other tools add to graphs."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class VertexAttributes(_Attributes):
    """The attributes of a vertex."""

    kind: Literal["npu", "switch", "router"] | None = Field(
        default=None, description="npu, switch or router"
    )
    rank: int | None = Field(default=None, ge=0, description="an integer from 0")


class EdgeAttributes(_Attributes):
    """The attributes of a link, or of both directions of a cable."""

    rate: TimePerByte = Field(
        description='a rate per direction, such as "50 GB/s", or a time per byte, "0.02 ns/B"'
    )
    latency: Time = Field(description='a time with its unit, such as "300 ns"')
    length: Length | None = Field(
        default=None, description='a length with its unit, such as "12.5 mm"'
    )


A = TypeVar("A", bound=_Attributes)
R = TypeVar("R", bound=str)


def core_of(graph: nx.Graph[Any], *, name: str | None, source: str) -> _core.Topology:
    """Returns the topology of a networkx graph; see `Topology.from_networkx`."""
    npus, others = _vertices(graph, source)
    index = {node: number for number, node in enumerate([*npus, *(node for node, _ in others)])}
    links = []
    for a, b, data in graph.edges(data=True):
        place = f"edge {a} -> {b}" if graph.is_directed() else f"edge {a} - {b}"
        edge = _checked(EdgeAttributes, data, source=source, place=place)
        length_um = None if edge.length is None else edge.length.um
        parameters = (edge.rate.core, edge.latency.ps, length_um)
        links.append((index[a], index[b], parameters))
        if not graph.is_directed():
            links.append((index[b], index[a], parameters))
    try:
        return _core.Topology.from_links(
            name or graph.graph.get("name") or source,
            [str(node) for node in npus],
            [(kind, str(node)) for node, kind in others],
            links,
        )
    except TopologyError as error:
        raise error.reworded(f"{source}: {error.problem}", source=source) from None


def routing_of(graph: nx.Graph[Any], rules: Sequence[R], *, source: str) -> R | None:
    """Returns the routing rule that a graph states, one of `rules`, or None."""
    stated = graph.graph.get("routing")
    for rule in rules:
        if stated == rule:
            return rule
    if stated is None:
        return None
    raise attribute_mistake(
        "unknown routing rule",
        source=source,
        place="the graph",
        attribute="routing",
        value=stated,
        expected=f"one of {', '.join(rules)}",
        hint=did_you_mean(str(stated), rules),
    )


def unread_attributes(graph: nx.Graph[Any]) -> list[str]:
    """Returns a line for each kind of element with attributes that a topology does not have."""
    elements: dict[str, tuple[type[_Attributes], list[dict[str, Any]]]] = {
        "nodes": (VertexAttributes, [data for _, data in graph.nodes(data=True)]),
        "links": (EdgeAttributes, [data for _, _, data in graph.edges(data=True)]),
    }
    lines = []
    for kind, (model, all_data) in elements.items():
        known = {*model.model_fields, "id"}  # the name of an element in GraphML
        others = {str(key) for data in all_data for key in data if key not in known}
        if others:
            listed = ", ".join(shown(name)[1:-1] for name in sorted(others)[:9])
            lines.append(f"attributes of {kind}: {listed}{', ...' if len(others) > 9 else ''}")
    return lines


def _vertices(
    graph: nx.Graph[Any], source: str
) -> tuple[list[Hashable], list[tuple[Hashable, str]]]:
    """Returns the NPUs by rank, then the other vertices with their kinds."""
    vertices = {
        node: _checked(VertexAttributes, data, source=source, place=f"node {node}")
        for node, data in graph.nodes(data=True)
    }
    if any(vertex.kind is not None for vertex in vertices.values()):
        for node, vertex in vertices.items():
            if vertex.kind is None:
                raise attribute_mistake(
                    "`kind` is missing, while other nodes have it",
                    source=source,
                    place=f"node {node}",
                    attribute="kind",
                    expected="npu, switch or router",
                )
    npus = {node: v.rank for node, v in vertices.items() if v.kind in {None, "npu"}}
    others: list[tuple[Hashable, str]] = [
        (node, v.kind) for node, v in vertices.items() if node not in npus and v.kind
    ]
    for node, _ in others:
        if vertices[node].rank is not None:
            raise attribute_mistake(
                f"a {vertices[node].kind} has no rank",
                source=source,
                place=f"node {node}",
                attribute="rank",
                value=vertices[node].rank,
                expected="ranks on NPUs only",
            )
    return _by_rank(npus, source), others


def _by_rank(npus: Mapping[Hashable, int | None], source: str) -> list[Hashable]:
    """Returns NPUs in graph order, or by rank if any has one: each of 0..n-1 once."""
    if all(rank is None for rank in npus.values()):
        return list(npus)
    order: dict[int, Hashable] = {}
    for node, rank in npus.items():
        problem = None
        if rank is None:
            problem = "`rank` is missing, while other NPUs have it"
        elif rank >= len(npus):
            problem = f"rank {rank} is beyond the last"
        elif rank in order:
            problem = f"rank {rank} is already on node {order[rank]}"
        if problem or rank is None:
            raise attribute_mistake(
                problem or "",
                source=source,
                place=f"node {node}",
                attribute="rank",
                value=rank,
                expected=f"each of 0 to {len(npus) - 1} once, as there are {len(npus)} NPUs",
            )
        order[rank] = node
    return [order[rank] for rank in range(len(npus))]


def _checked(model: type[A], data: Mapping[str, Any], *, source: str, place: str) -> A:
    """Returns the validated attributes."""
    for key in data:
        if key not in model.model_fields:
            _refuse_misspelt(str(key), model, data, source=source, place=place)
    try:
        return model.model_validate(dict(data))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        attribute = str(first["loc"][0]) if first["loc"] else ""
        refusal = first.get("ctx", {}).get("error")
        missing = first["type"] == "missing"
        if isinstance(refusal, TuttiError):
            problem, hint = f"`{attribute}`: {refusal.problem}", refusal.hint
        elif missing:
            problem = f"`{attribute}` is missing"
            hint = f"it has {', '.join(map(str, data))}" if data else "it has no attributes"
        else:
            problem, hint = f"`{attribute}` cannot be used", ""
        raise attribute_mistake(
            problem,
            source=source,
            place=place,
            attribute=attribute,
            value=None if missing else first["input"],
            expected=model.model_fields[attribute].description or "",
            hint=hint,
        ) from None


def _refuse_misspelt(
    key: str, model: type[_Attributes], data: Mapping[str, Any], *, source: str, place: str
) -> None:
    """Rejects unknown attributes that resemble a missing one; ignores others."""
    absent: Iterable[str] = [name for name in model.model_fields if name not in data]
    if meant := did_you_mean(key, absent):
        raise attribute_mistake(
            f"unknown attribute `{key}`",
            source=source,
            place=place,
            attribute=key,
            value=data[key],
            expected=", ".join(model.model_fields),
            hint=meant,
        )


def attribute_mistake(
    problem: str,
    *,
    source: str,
    place: str,
    attribute: str = "",
    value: object = None,
    expected: str = "",
    hint: str | None = None,
) -> TopologyError:
    """Returns a `TopologyError` with place (file, node or edge), problem and expectation."""
    lines = [f"{source}: {place}: {problem}"]
    if value is not None:
        lines.append(f"given: {shown(value)}")
    if expected:
        lines.append(f"expected: {expected}")
    return TopologyError(
        "\n".join(lines),
        kind="attribute",
        hint=hint or None,
        fields={"source": source, "place": place, "attribute": attribute, "expected": expected},
    )


def networkx_of(topology: Topology) -> nx.MultiDiGraph[str]:
    """Returns a node per vertex and an edge per link, with the attributes that are read back."""
    graph: nx.MultiDiGraph[str] = nx.MultiDiGraph(name=topology.name)
    if topology.routing is not None:
        graph.graph["routing"] = topology.routing
    for vertex in topology.vertices:
        rank = {} if vertex.rank is None else {"rank": vertex.rank}
        graph.add_node(vertex.name, kind=vertex.kind, **rank)
    for link in topology.links:
        length = {} if link.length is None else {"length": str(link.length)}
        graph.add_edge(
            link.source, link.target, rate=str(link.rate), latency=str(link.latency), **length
        )
    return graph

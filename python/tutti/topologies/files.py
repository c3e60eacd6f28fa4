"""Topology files: GraphML and the node-link JSON of networkx."""

from __future__ import annotations

import io
import json
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from pydantic import AliasChoices, BaseModel, ConfigDict, Field

from tutti.base.errors import ConfigError
from tutti.base.files import reader
from tutti.base.files.limits import Bytes
from tutti.base.files.validate import validated
from tutti.topologies.errors import TopologyError

if TYPE_CHECKING:
    import networkx as nx

    from tutti.topologies.graph import Topology

_SUFFIXES = {".graphml": "GraphML", ".json": "node-link JSON"}


def read(path: str | Path) -> tuple[nx.Graph[Any], str]:
    """Returns the graph in a file and its name.

    Raises:
        TopologyError: The file cannot be read, or does not have the format of its ending.
    """
    path = Path(path)
    suffix = _suffix(path)
    data = read_bytes(path)
    graph = _graphml(data, str(path)) if suffix == ".graphml" else _node_link(data, str(path))
    return graph, str(graph.graph.get("name") or path.stem)


def write(topology: Topology, path: str | Path) -> None:
    """Writes the topology in the format of the file ending."""
    import networkx as nx

    path = Path(path)
    suffix = _suffix(path)
    graph = topology.to_networkx()
    if suffix == ".graphml":
        nx.write_graphml_xml(graph, path)
        return
    text = json.dumps(nx.node_link_data(graph, edges="edges"), indent=1)
    path.write_text(text + "\n", encoding="utf-8")


def _suffix(path: Path) -> str:
    suffix = path.suffix.lower()
    if suffix not in _SUFFIXES:
        known = " or ".join(f"{form} ({ending})" for ending, form in _SUFFIXES.items())
        raise _file_mistake(path, f"unknown file ending `{path.suffix}`: expected {known}")
    return suffix


def read_bytes(path: Path, *, hint: str | None = None) -> bytes:
    """Returns the content of a file of limited size; `hint` replaces the hint about formats.

    Raises:
        TopologyError: The file is missing, not a regular file, or too large.
    """
    try:
        return reader.read_bytes(path, Bytes.TABLE, "a graph", hint=hint or "")
    except ConfigError as error:
        problem = error.problem.removeprefix(f"{path}: ")
        raise _file_mistake(path, problem, error.hint or hint) from None


def _graphml(data: bytes, source: str) -> nx.Graph[Any]:
    import networkx as nx

    try:
        _check_endpoints(ElementTree.fromstring(data), source)  # noqa: S314 - expat limits expansion
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about ports and other parts that mean nothing here
            graph: nx.Graph[Any] = nx.read_graphml(io.BytesIO(data))
            return graph
    except ElementTree.ParseError as error:
        line, column = error.position
        problem = f"not XML at line {line}, column {column + 1}: {error}"
        raise _format_mistake(source, problem) from None
    except TopologyError:
        raise
    except (nx.NetworkXException, ValueError, KeyError, TypeError, LookupError) as error:
        raise _format_mistake(source, f"not GraphML: {_one_line(error)}") from None


def _check_endpoints(root: ElementTree.Element, source: str) -> None:
    """Rejects edges to undefined nodes, for which networkx would create nodes."""
    nodes = {node.get("id") for node in root.iter() if node.tag.rpartition("}")[2] == "node"}
    for edge in root.iter():
        if edge.tag.rpartition("}")[2] != "edge":
            continue
        for end in ("source", "target"):
            if edge.get(end) not in nodes:
                a, b = edge.get("source"), edge.get("target")
                raise _format_mistake(
                    source, f"edge {a} -> {b}: node `{edge.get(end)}` is not defined"
                )


class _NodeLink(BaseModel):
    """The outer structure of node-link JSON; attributes are checked with the graph."""

    model_config = ConfigDict(extra="ignore")

    directed: bool = False
    multigraph: bool = False
    graph: dict[str, Any] = Field(default_factory=dict)
    nodes: list[dict[str, Any]]
    edges: list[dict[str, Any]] = Field(validation_alias=AliasChoices("edges", "links"))


def _node_link(data: bytes, source: str) -> nx.Graph[Any]:
    expected = "node-link JSON, as networkx writes it"
    try:
        text = reader.decoded(data, source=source, expected=expected)
        tables = reader.parse_json(text, source=source, expected=expected)
        document = validated(_NodeLink, tables, source=source)
    except ConfigError as error:
        raise _format_mistake(source, error.problem.removeprefix(f"{source}: ")) from None
    return _linked(document, source)


def _linked(document: _NodeLink, source: str) -> nx.Graph[Any]:
    """Returns the graph; all nodes of its edges are defined."""
    import networkx as nx

    classes = {
        (False, False): nx.Graph,
        (False, True): nx.MultiGraph,
        (True, False): nx.DiGraph,
        (True, True): nx.MultiDiGraph,
    }
    graph: nx.Graph[Any] = classes[document.directed, document.multigraph](**document.graph)
    for number, node in enumerate(document.nodes):
        key = _key(node, "id", f"node number {number}", source)
        if key in graph:
            raise _format_mistake(source, f"node {key}: the `id` appears twice")
        graph.add_node(key, **{str(k): v for k, v in node.items() if k != "id"})
    for number, edge in enumerate(document.edges):
        place = f"edge number {number}"
        a, b = (_key(edge, end, place, source) for end in ("source", "target"))
        for end in (a, b):
            if end not in graph:
                raise _format_mistake(source, f"edge {a} -> {b}: node `{end}` is not defined")
        if not document.multigraph and graph.has_edge(a, b):
            problem = f"edge {a} -> {b}: it appears twice, but the file has `multigraph: false`"
            raise _format_mistake(source, problem)
        rest = {str(k): v for k, v in edge.items() if k not in {"source", "target", "key"}}
        graph.add_edge(a, b, **rest)
    return graph


def _key(table: dict[str, Any], name: str, place: str, source: str) -> str | int:
    """Returns a node's id, which is text or an integer."""
    value = table.get(name)
    if isinstance(value, str | int) and not isinstance(value, bool):
        return value
    problem = f"{place}: `{name}` is {'not an id' if name in table else 'missing'}"
    raise _format_mistake(source, f"{problem}: expected text or an integer")


def _one_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def _file_mistake(path: Path, problem: str, hint: str | None = None) -> TopologyError:
    source = str(path)
    return TopologyError(f"{source}: {problem}", kind="file", hint=hint, fields={"source": source})


def _format_mistake(source: str, problem: str) -> TopologyError:
    return TopologyError(f"{source}: {problem}", kind="format", fields={"source": source})

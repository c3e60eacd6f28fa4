"""Bypass meshes, the hardware, and configurations, the links that are live during a run."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from tutti import _core
from tutti.base.files.mistakes import mistake, shown
from tutti.bypass.errors import BypassError
from tutti.bypass.rates import with_rates
from tutti.topologies import Routes, Topology

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from tutti.base.units import Length, Time, TimePerByte

Port = Literal["east", "west", "south", "north"]
Muxes = Literal["own", "axis", "sign", "any"]


@dataclass(frozen=True, slots=True)
class LiveLink:
    """A live link in one direction."""

    source: int
    destination: int
    bypass: bool
    """Whether the link is a piece of a bypass wire; otherwise it is a mesh link."""
    wire: int | None
    """The wire, counted within its line and direction; None for a mesh link."""
    output: Port
    """The output port at the source."""
    input: Port
    """The input port at the destination."""

    @property
    def name(self) -> str:
        """The notation: ``0=>3`` for a piece, ``0>1`` for a mesh link."""
        return f"{self.source}{'=>' if self.bypass else '>'}{self.destination}"


@dataclass(frozen=True, slots=True)
class IdlePort:
    """A port without a live link."""

    node: int
    port: Port
    end: Literal["output", "input"]


class BypassMesh:
    """A mesh of routers with segmentable bypass wires along its rows and columns.

    Node number = row * columns + column, with row 0 at the top. Each row and column has ``wires``
    bypass wires per direction, each of one segment per mesh link. A router has an output and an
    input port on each side, also at the edge. A port connects to its mesh link or to a piece that
    ``muxes`` allows. ``own`` allows pieces along the axis of the port in the direction of its mesh
    link, ``axis`` pieces along the axis of the port. ``sign`` allows pieces along either axis with
    the sign of its mesh link, ``any`` any piece.
    """

    __slots__ = ("_core",)

    def __init__(
        self, side: int = 4, wires: int = 1, muxes: Muxes = "any", *, rows: int | None = None
    ) -> None:
        """Creates a mesh of ``side`` columns and ``rows`` rows, by default as many.

        Raises:
            BypassError: A side, the number of wires or the multiplexer setting is invalid.
        """
        self._core = _core.BypassMesh(side, side if rows is None else rows, wires, muxes)

    @classmethod
    def parse(cls, size: str, wires: int = 1, muxes: str = "any") -> BypassMesh:
        """Creates a mesh of a size such as ``6x4``: 6 columns and 4 rows.

        Raises:
            ConfigError: The size is malformed.
            BypassError: The mesh is not supported.
        """
        sides = re.fullmatch(r"([0-9]{1,4})x([0-9]{1,4})", size)
        if not sides:
            raise mistake(
                "is not the size of a mesh",
                source="--mesh",
                value=shown(size),
                expected="the numbers of columns and rows, such as 6x4",
            )
        return cls(int(sides[1]), wires, muxes, rows=int(sides[2]))  # type: ignore[arg-type] # it refuses others

    @classmethod
    def of_core(cls, core: _core.BypassMesh) -> BypassMesh:
        """Wraps a mesh of the core."""
        return cls(core.columns, core.wires, core.muxes, rows=core.rows)

    @property
    def columns(self) -> int:
        """The number of columns, hence of nodes in a row."""
        return self._core.columns

    @property
    def rows(self) -> int:
        """The number of rows, hence of nodes in a column."""
        return self._core.rows

    @property
    def size(self) -> str:
        """Columns and rows, such as ``6x4``."""
        return f"{self.columns}x{self.rows}"

    @property
    def nodes(self) -> int:
        """The number of nodes."""
        return self.columns * self.rows

    @property
    def wires(self) -> int:
        """The number of bypass wires of a line in each direction."""
        return self._core.wires

    @property
    def muxes(self) -> Muxes:
        """The pieces that a port can select: ``own``, ``axis``, ``sign`` or ``any``."""
        return self._core.muxes

    @property
    def notation(self) -> str:
        """The mesh in the notation of the family, without links, such as ``4x4,muxes=own``."""
        return self._core.notation

    @property
    def total_segments(self) -> int:
        """The number of mesh links and segments of bypass wires, each in one direction."""
        return sum(self._core.total_segments())

    def place(self, node: int) -> tuple[int, int]:
        """Returns row and column of a node."""
        return divmod(node, self.columns)

    def configure(self, links: str | Iterable[str]) -> BypassConfiguration:
        """Returns a configuration with these live links.

        ``mesh`` selects every mesh link, ``0-1`` and ``0>1`` a mesh link in both directions or
        one, ``0=3`` and ``0=>3`` a piece of a bypass wire. ``@1`` selects the wire, by default the
        lowest that is free. ``/west/east`` selects output and input port, which are assigned by
        default. The text may start with its mesh, as in ``bypass:4x4:mesh``.

        Args:
            links: One text separated by commas, or a list.

        Raises:
            BypassError: A link is impossible, or two need the same segment or port.
        """
        text = links if isinstance(links, str) else ",".join(links)
        return BypassConfiguration(self._core.configure(text))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BypassMesh) and self._core == other._core

    def __hash__(self) -> int:
        return hash(self._core)

    def __repr__(self) -> str:
        rows = "" if self.rows == self.columns else f", rows={self.rows}"
        return f"BypassMesh(side={self.columns}, wires={self.wires}, muxes={self.muxes!r}{rows})"


class BypassConfiguration:
    """The live links of a mesh. Pieces of a wire share no segment; a port has at most one link."""

    def __init__(self, core: _core.BypassConfiguration) -> None:
        """Wraps a configuration of the core; use `BypassMesh.configure`."""
        self._core = core

    @classmethod
    def parse(cls, notation: str) -> BypassConfiguration:
        """Reads a notation with the size of the mesh, such as ``4x4:mesh,0=>3``.

        Raises:
            ConfigError: The size is malformed.
            TopologyError: The notation is invalid.
        """
        family = f"bypass:{notation.removeprefix('bypass:')}"
        Topology.build(family, rate="1 GB/s", latency="0 ns")  # validates the notation
        head, _, links = family.removeprefix("bypass:").partition(":")
        size, *words = (word.strip() for word in head.split(","))
        settings = dict(word.split("=", 1) for word in words if "=" in word)
        mesh = BypassMesh.parse(size, int(settings.get("wires", 1)), settings.get("muxes", "any"))
        return mesh.configure(links)

    @cached_property
    def mesh(self) -> BypassMesh:
        """The mesh."""
        return BypassMesh.of_core(self._core.mesh)

    @cached_property
    def links(self) -> tuple[LiveLink, ...]:
        """The live links: mesh links first, then by source, destination and wire."""
        return tuple(
            LiveLink(
                link.source,
                link.destination,
                link.wire is not None,
                link.wire,
                link.output,
                link.input,
            )
            for link in self._core.links()
        )

    @property
    def notation(self) -> str:
        """The notation that parses to this configuration; the same for equal ones."""
        return self._core.notation

    @property
    def used_segments(self) -> int:
        """The number of live mesh links and of segments of all pieces."""
        return sum(self._core.used_segments())

    @property
    def total_segments(self) -> int:
        """The number of all mesh links and of segments of all bypass wires."""
        return self.mesh.total_segments

    @property
    def used_mesh_links(self) -> int:
        """The number of live mesh links."""
        return self._core.used_segments()[0]

    @property
    def used_bypass_segments(self) -> int:
        """The number of bypass wire segments that belong to a piece."""
        return self._core.used_segments()[1]

    def idle_ports(self) -> tuple[IdlePort, ...]:
        """Returns the ports without a link, by node, then by side, outputs before inputs."""
        return tuple(
            IdlePort(idle.node, idle.port, "output" if idle.is_output else "input")
            for idle in self._core.idle_ports()
        )

    def span(self, link: LiveLink) -> int:
        """Returns the number of segments that a link spans; 1 for a mesh link."""
        (row, column), (to_row, to_column) = map(self.mesh.place, (link.source, link.destination))
        return abs(row - to_row) + abs(column - to_column)

    def filled(self) -> BypassConfiguration:
        """Returns this configuration with every mesh link live whose two ports are idle."""
        return BypassConfiguration(self._core.filled())

    def topology(
        self,
        rate: str | TimePerByte,
        latency: str | Time,
        *,
        length: str | Length | None = None,
        per_span: bool = False,
        chiplets: Mapping[int, str | TimePerByte] | None = None,
        pairs: Mapping[tuple[int, int], str | TimePerByte] | None = None,
    ) -> Topology:
        """Returns the graph of the live links, which need not connect all nodes.

        Args:
            rate: Rate of every link, such as ``"68 GB/s"``.
            latency: Latency of every link, such as ``"12 ns"``.
            length: Length of a mesh link; a piece is longer by its span.
            per_span: Whether the latency of a piece scales with its span.
            chiplets: By node, the rate of its slower ports: no link from or to it is faster.
            pairs: By source and destination, the rate of each of their links.

        Raises:
            BypassError: A node does not exist, or a pair has no live link.
            TopologyError: No link is live; with other rates, also if some nodes are not connected.
            UnitError: A value has no unit.
        """
        link: dict[str, object] = {"rate": rate, "latency": latency}
        if length is not None:
            link["length"] = length
        words = ",distance" if per_span else ""
        graph = Topology.build(
            f"bypass:{self.mesh.notation}{words}:{self.notation}", links=[link, link]
        )
        return with_rates(graph, chiplets or {}, pairs or {}) if chiplets or pairs else graph

    def routes(
        self, topology: Topology, paths: Mapping[tuple[int, int], Sequence[int]] | None = None
    ) -> Routes:
        """Returns routes on a graph of this configuration.

        Parallel links form a bundle, of which a packet takes the link with the shortest wait.

        Args:
            topology: The result of `topology`.
            paths: Nodes of a path, by (source, destination); other pairs take the shortest path.

        Raises:
            BypassError: The topology is not of this configuration.
            TopologyError: A path is invalid.
        """
        expected = sorted((link.source, link.destination) for link in self.links)
        found = [(link.source, link.target) for link in topology.core.links()]
        if topology.ranks != self.mesh.nodes or found != expected:
            message = (
                f"{topology.name} is not a graph of this configuration of {self.mesh.notation}"
            )
            raise BypassError(message, kind="other_topology")
        given = [(source, target, list(path)) for (source, target), path in (paths or {}).items()]
        # Flit simulations identify the routing by name.
        named = ";".join(">".join(map(str, path)) for _, _, path in sorted(given))
        rule = f"paths:{named}" if named else "shortest_path"
        return Routes(topology, _core.Routes.node_paths(topology.core, sorted(given)), rule)

    def draw(
        self,
        path: str | Path,
        *,
        paths: Mapping[tuple[int, int], Sequence[int]] | None = None,
        title: str | None = None,
    ) -> Path:
        """Draws the mesh, its live links with their ports, and highlighted paths.

        Args:
            path: Output file; ``.svg``, ``.png`` or ``.pdf``.
            paths: Paths to highlight, as for `routes`.
            title: Title of the drawing.

        Returns:
            The output file.

        Raises:
            BypassError: The file ending is unknown, the mesh too large, or a path uses a link that
                is not live.
        """
        from tutti.bypass.view.drawing import draw_configuration

        return draw_configuration(path, self, paths, title)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BypassConfiguration) and self._core == other._core

    def __hash__(self) -> int:
        return hash((self.mesh, self.notation))

    def __repr__(self) -> str:
        return f"<Configuration of {self.mesh.notation}: {self.notation or 'no links'}>"

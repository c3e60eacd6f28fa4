"""What is built, a mesh with bypass wires, and what is set before a run, a configuration of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from tutti import _core, display
from tutti.errors import BypassError
from tutti.topology import Routes, Topology

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from tutti.units import Length, Time, TimePerByte

Port = Literal["east", "west", "south", "north"]
Muxes = Literal["own", "axis", "sign", "any"]


@dataclass(frozen=True, slots=True)
class LiveLink:
    """A live link, in one direction."""

    source: int
    destination: int
    bypass: bool
    """Whether it is a piece of a bypass wire; otherwise it is a mesh link."""
    wire: int | None
    """The wire, of its line and direction, that the piece is part of; None of a mesh link."""
    output: Port
    """The port of the source by which it leaves."""
    input: Port
    """The port of the destination at which it arrives."""

    @property
    def name(self) -> str:
        """As it is written in the notation: ``0=>3`` for a piece, ``0>1`` for a mesh link."""
        return f"{self.source}{'=>' if self.bypass else '>'}{self.destination}"


@dataclass(frozen=True, slots=True)
class IdlePort:
    """A port that no live link has."""

    node: int
    port: Port
    end: Literal["output", "input"]


class BypassMesh:
    """A k x k mesh of routers with wires along its rows and columns that can be cut into pieces.

    Node row * k + column, row 0 on top. Along each row and column lie ``wires`` bypass wires for
    each direction, of k - 1 segments each. A router has an output and an input port on each of its
    four sides, also at the rim; each takes its own mesh link or, as ``muxes`` says, a piece:
    ``own`` one along the port's axis that travels as its mesh link does, ``axis`` one along the
    port's axis, ``sign`` one that travels with the sign of its mesh link, along either axis,
    ``any`` any.
    """

    __slots__ = ("_core",)

    def __init__(self, side: int = 4, wires: int = 1, muxes: Muxes = "any") -> None:
        """A mesh of ``side`` x ``side`` nodes.

        Raises:
            BypassError: it is too small or too large, or there are no such muxes.
        """
        self._core = _core.BypassMesh(side, wires, muxes)

    @classmethod
    def of_core(cls, core: _core.BypassMesh) -> BypassMesh:
        """The mesh that the core knows."""
        return cls(core.side, core.wires, core.muxes)  # type: ignore[arg-type] # the core has these

    @property
    def side(self) -> int:
        """The nodes of a row, and of a column."""
        return self._core.side

    @property
    def nodes(self) -> int:
        """How many nodes there are."""
        return self.side * self.side

    @property
    def wires(self) -> int:
        """The bypass wires of a line in each direction."""
        return self._core.wires

    @property
    def muxes(self) -> Muxes:
        """What a port can take: ``own``, ``axis``, ``sign`` or ``any``."""
        return self._core.muxes  # type: ignore[return-value] # the core has these

    @property
    def notation(self) -> str:
        """What stands before the links in the notation of the family, such as ``4x4,muxes=own``."""
        return self._core.notation

    @property
    def total_segments(self) -> int:
        """The links of the mesh and the segments of all bypass wires, each in one direction."""
        return sum(self._core.total_segments())

    def place(self, node: int) -> tuple[int, int]:
        """Row and column of a node."""
        return divmod(node, self.side)

    def configure(self, links: str | Iterable[str]) -> BypassConfiguration:
        """Which links are live.

        Args:
            links: with commas between, or one by one: ``mesh`` for every mesh link, ``0-1`` and
                ``0>1`` for a mesh link both ways and one way, ``0=3`` and ``0=>3`` for a piece of a
                bypass wire; ``@1`` behind it names its wire (the lowest that is free unless given),
                ``/west/east`` the ports by which it leaves and arrives (assigned unless given).
                A text may begin with its mesh, as in ``bypass:4x4:mesh``.

        Raises:
            BypassError: a link cannot be, or two need the same segment or port; the message names
                them and the mark below points at the part.
        """
        text = links if isinstance(links, str) else ",".join(links)
        return BypassConfiguration(self._core.configure(text))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BypassMesh) and self._core == other._core

    def __hash__(self) -> int:
        return hash(self._core)

    def __repr__(self) -> str:
        return f"BypassMesh(side={self.side}, wires={self.wires}, muxes={self.muxes!r})"


class BypassConfiguration:
    """The live links of a mesh: pieces of a wire share no segment, a port has one link at most."""

    def __init__(self, core: _core.BypassConfiguration) -> None:
        """Wraps what the core checked; use `BypassMesh.configure`."""
        self._core = core

    @cached_property
    def mesh(self) -> BypassMesh:
        """The mesh that is configured."""
        return BypassMesh.of_core(self._core.mesh)

    @cached_property
    def links(self) -> tuple[LiveLink, ...]:
        """The live links: those of the mesh first, then by source, destination and wire."""
        return tuple(
            LiveLink(source, destination, wire is not None, wire, output, into)  # type: ignore[arg-type] # the core has these four ports
            for source, destination, wire, output, into in self._core.links()
        )

    @property
    def notation(self) -> str:
        """The text that is read as this configuration; the same for equal ones."""
        return self._core.notation

    @property
    def used_segments(self) -> int:
        """Live mesh links and the segments of all pieces."""
        return sum(self._core.used_segments())

    @property
    def total_segments(self) -> int:
        """All mesh links and the segments of all bypass wires."""
        return self.mesh.total_segments

    @property
    def used_mesh_links(self) -> int:
        """The mesh links that are live."""
        return self._core.used_segments()[0]

    @property
    def used_bypass_segments(self) -> int:
        """The segments of bypass wires that are part of a piece."""
        return self._core.used_segments()[1]

    def idle_ports(self) -> tuple[IdlePort, ...]:
        """The ports that no link has, by node, then by side, outputs before inputs."""
        return tuple(
            IdlePort(node, port, "output" if is_output else "input")  # type: ignore[arg-type] # the core has these four ports
            for node, port, is_output in self._core.idle_ports()
        )

    def span(self, link: LiveLink) -> int:
        """How many segments a link spans; a mesh link is one long."""
        (row, column), (to_row, to_column) = map(self.mesh.place, (link.source, link.destination))
        return abs(row - to_row) + abs(column - to_column)

    def filled(self) -> BypassConfiguration:
        """The same with every mesh link live whose ports are idle at both of its ends."""
        return BypassConfiguration(self._core.filled())

    def topology(
        self,
        rate: str | TimePerByte,
        latency: str | Time,
        *,
        length: str | Length | None = None,
        per_span: bool = False,
    ) -> Topology:
        """The graph of the live links; pairs of nodes without a way are refused when used.

        Args:
            rate: of every link, such as ``"68 GB/s"``.
            latency: of every link, such as ``"12 ns"``.
            length: of a mesh link, such as ``"5 mm"``; a piece is as many times as long as it spans
                segments.
            per_span: whether the latency of a piece is that of a mesh link times its span too.

        Raises:
            TopologyError: no link is live.
            UnitError: a value without a unit.
        """
        link: dict[str, object] = {"rate": rate, "latency": latency}
        if length is not None:
            link["length"] = length
        words = ",distance" if per_span else ""
        return Topology.build(
            f"bypass:{self.mesh.notation}{words}:{self.notation}", links=[link, link]
        )

    def routes(
        self, topology: Topology, paths: Mapping[tuple[int, int], Sequence[int]] | None = None
    ) -> Routes:
        """Routes on a graph of this configuration.

        Args:
            topology: what `topology` returned.
            paths: for some pairs (source, destination) the nodes from one to the other, ends
                included; all others take the shortest path. Links between the same two nodes are a
                bundle, of which a packet takes the one with the shortest wait.

        Raises:
            BypassError: the topology is not of this configuration.
            TopologyError: a path does not fit.
        """
        expected = sorted((link.source, link.destination) for link in self.links)
        found = [(source, target) for source, target, *_ in topology.core.links()]
        if topology.ranks != self.mesh.nodes or found != expected:
            message = f"{topology.name} is no graph of this configuration of {self.mesh.notation}"
            raise BypassError(message, kind="other_topology")
        given = [(source, target, list(path)) for (source, target), path in (paths or {}).items()]
        # Flits know their routing by name.
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
        """Draws the mesh, its live links with their ports, and ways in colour.

        Args:
            path: where to; ``.svg``, ``.png`` or ``.pdf``.
            paths: to show, as for `routes`.
            title: above the drawing.

        Returns:
            The path written.

        Raises:
            BypassError: the ending is unknown, the mesh too large to be drawn, or a way goes where
                no link is live.
        """
        return display.renderers().draw_configuration(path, self, paths, title)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BypassConfiguration) and self._core == other._core

    def __hash__(self) -> int:
        return hash((self.mesh, self.notation))

    def __repr__(self) -> str:
        return f"<Configuration of {self.mesh.notation}: {self.notation or 'no links'}>"

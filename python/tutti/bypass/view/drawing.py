"""Drawings of meshes with bypass wires: live links, their ports, and routes in colour."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tutti.bypass.errors import BypassError
from tutti.view.palette import FAINT, styles
from tutti.view.plot import FORMATS, figure_at

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes

    from tutti.bypass import BypassConfiguration, LiveLink, Port

MOST_DRAWN = 16
"""Maximum number of nodes in a row."""

_HALF = 0.25
"""Half the side of a node; the pitch of nodes is 1."""
_SHIFT = 0.09
"""Distance of a port from the middle of its side."""
_STUB = {True: 0.035, False: 0.065}
"""Distance of a turn from the node, of outputs (True) and inputs (False)."""
_LANE = 0.1
"""Distance of the first bypass wire from the nodes; wires are 0.6 of it apart."""
_FREE = FAINT
_MESH = "#56616E"
_NODE = "#FFFFFF"

Point = tuple[float, float]

_OUTWARDS: dict[Port, Point] = {
    "east": (1, 0), "west": (-1, 0), "south": (0, -1), "north": (0, 1)
}  # fmt: skip


class _Run(NamedTuple):
    """A direction of travel along a line."""

    horizontal: bool
    sign: int
    """1 to the right or up, -1 to the left or down."""


def draw_configuration(
    path: str | Path,
    configuration: BypassConfiguration,
    paths: Mapping[tuple[int, int], Sequence[int]] | None = None,
    title: str | None = None,
) -> Path:
    """Draws a configuration.

    Args:
        path: The file to write; `.svg`, `.png` or `.pdf`.
        configuration: Bypass links of a mesh of at most `MOST_DRAWN` nodes in a row.
        paths: The nodes of highlighted paths, by (source, destination).
        title: The title; by default derived.

    Returns:
        The path written.

    Raises:
        BypassError: The mesh is too large to draw, the suffix is unknown, or a route has a hop
            without a live link.
    """
    mesh = configuration.mesh
    _refuse_undrawable(path, max(mesh.columns, mesh.rows))
    coloured = _links_of_routes(configuration, paths or {})
    used = f"{configuration.used_segments} of {configuration.total_segments} segments"
    # A page width keeps tens of nodes legible.
    width, height = (min(1.6 + 1.25 * side, 14.0) for side in (mesh.columns, mesh.rows))
    with figure_at(path, (width + 1.6, height)) as figure:
        axes = figure.add_subplot()
        axes.set_axis_off()
        axes.set_aspect("equal")
        axes.set_title(title or f"bypass:{configuration.mesh.notation}, {used}", loc="left")
        _wires(axes, configuration)
        _routes(axes, configuration, coloured)
        _links(axes, configuration)
        _nodes(axes, configuration)
        axes.autoscale_view()
        figure.legend(loc="outside right upper")
    return Path(path)


def _refuse_undrawable(path: str | Path, side: int) -> None:
    if side > MOST_DRAWN:
        message = f"{side} nodes in a row are too many to draw: expected at most {MOST_DRAWN}"
        raise BypassError(message, kind="too_large_to_draw")
    if Path(path).suffix.lower() not in FORMATS:
        message = f"cannot draw to `{path}`: expected a suffix in {', '.join(FORMATS)}"
        raise BypassError(message, kind="unknown_ending")


def _links_of_routes(
    configuration: BypassConfiguration, routes: Mapping[tuple[int, int], Sequence[int]]
) -> dict[str, list[LiveLink]]:
    """Returns the first live link of each hop of each route, by the name of the route."""
    live: dict[tuple[int, int], LiveLink] = {}
    for link in configuration.links:
        live.setdefault((link.source, link.destination), link)
    found = {}
    for (source, destination), route in sorted(routes.items()):
        hops = list(pairwise(route))
        for hop in hops:
            if hop not in live:
                message = (
                    f"the route from node {source} to node {destination} has a hop from {hop[0]} "
                    f"to {hop[1]}: expected a live link"
                )
                raise BypassError(message, kind="other_topology")
        found[f"{source} to {destination}"] = [live[hop] for hop in hops]
    return found


def _place(configuration: BypassConfiguration, node: int) -> Point:
    row, column = configuration.mesh.place(node)
    return float(column), float(-row)


def _port(configuration: BypassConfiguration, node: int, port: Port, *, output: bool) -> Point:
    """Returns the position of a port.

    Traffic to the right is on the upper side of its line, and correspondingly for the other
    directions, so that mesh links are straight.
    """
    x, y = _place(configuration, node)
    away_x, away_y = _OUTWARDS[port]
    shift = _SHIFT * (away_x + away_y) * (1 if output else -1)
    return (
        x + away_x * _HALF + (shift if away_y else 0.0),
        y + away_y * _HALF + (shift if away_x else 0.0),
    )


def _run(configuration: BypassConfiguration, link: LiveLink) -> _Run:
    (x, y), (to_x, to_y) = (_place(configuration, node) for node in (link.source, link.destination))
    if y == to_y:
        return _Run(horizontal=True, sign=1 if to_x > x else -1)
    return _Run(horizontal=False, sign=1 if to_y > y else -1)


def _lane(across: float, run: _Run, wire: int) -> float:
    """Returns the position of a wire across its line: above if to the right, right if upwards."""
    return across + run.sign * (_HALF + _LANE + 0.6 * _LANE * wire)


def _turned(point: Point, run: _Run) -> Point:
    """Converts between (x, y) and (along, across)."""
    return point if run.horizontal else (point[1], point[0])


def _points(configuration: BypassConfiguration, link: LiveLink) -> list[Point]:
    """Returns the points of a link from port to port."""
    start = _port(configuration, link.source, link.output, output=True)
    end = _port(configuration, link.destination, link.input, output=False)
    if link.wire is None:
        return [start, end]
    run = _run(configuration, link)
    across = _turned(_place(configuration, link.source), run)[1]
    lane = _lane(across, run, link.wire)

    def tap(node: int, port: Port, at: Point, *, output: bool) -> list[Point]:
        """Returns the points from a port to the wire."""
        (along, side), (away, up) = _turned(at, run), _turned(_OUTWARDS[port], run)
        gap = _STUB[output]
        if away:
            stub = along + away * gap
            course = [(along, side), (stub, side), (stub, lane)]
        elif up == run.sign:
            course = [(along, side), (along, lane)]
        else:
            # The port is on the far side, so that the line turns around the node.
            middle = _turned(_place(configuration, node), run)[0]
            corner = middle + run.sign * (1 if output else -1) * (_HALF + gap)
            stub = side + up * gap
            course = [(along, side), (along, stub), (corner, stub), (corner, lane)]
        return [_turned(point, run) for point in course]

    out = tap(link.source, link.output, start, output=True)
    into = tap(link.destination, link.input, end, output=False)
    return out + into[::-1]


def _wires(axes: Axes, configuration: BypassConfiguration) -> None:
    """Draws all bypass wires from end to end, with their switches."""
    mesh = configuration.mesh
    label: str | None = "unused bypass wire"
    for run in (_Run(horizontal, sign) for horizontal in (True, False) for sign in (1, -1)):
        lines, length = mesh.rows, mesh.columns
        if not run.horizontal:
            lines, length = length, lines
        for line in range(lines):
            for wire in range(mesh.wires):
                lane = _lane(float(line if not run.horizontal else -line), run, wire)
                places = [float(place) for place in range(length)]
                along = places if run.horizontal else [-place for place in places]
                xs, ys = zip(*(_turned((place, lane), run) for place in along), strict=True)
                marker = "|" if run.horizontal else "_"
                axes.plot(xs, ys, color=_FREE, lw=0.7, ls=":", marker=marker, ms=3, zorder=1,
                          label=label)  # fmt: skip
                label = None


def _routes(
    axes: Axes, configuration: BypassConfiguration, routes: dict[str, list[LiveLink]]
) -> None:
    """Draws broad lines below the links of each route."""
    for name, style in styles(routes).items():
        label: str | None = f"route {name}"
        for link in routes[name]:
            xs, ys = zip(*_points(configuration, link), strict=True)
            axes.plot(xs, ys, color=style.colour, lw=6, alpha=0.45, zorder=2, label=label)
            label = None


def _links(axes: Axes, configuration: BypassConfiguration) -> None:
    from matplotlib.patches import FancyArrowPatch
    from matplotlib.path import Path as Course

    wires = sorted({link.wire for link in configuration.links if link.wire is not None})
    named = {wire: f"segment of wire {wire}" for wire in wires}
    colours = {
        wire: style.colour
        for wire, style in zip(wires, styles(named.values()).values(), strict=True)
    }
    shown = set()
    for link in configuration.links:
        colour = _MESH if link.wire is None else colours[link.wire]
        points = _points(configuration, link)
        width = 1.0 if link.wire is None else 1.3
        axes.add_patch(
            FancyArrowPatch(path=Course(points), arrowstyle="-|>", mutation_scale=7, lw=width,
                            color=colour, shrinkA=0, shrinkB=0, zorder=3, joinstyle="round")
        )  # fmt: skip
        name = "mesh link" if link.wire is None else named[link.wire]
        if name not in shown:
            shown.add(name)
            axes.plot([], [], color=colour, lw=width, label=name)


def _nodes(axes: Axes, configuration: BypassConfiguration) -> None:
    from matplotlib.patches import Rectangle

    mesh = configuration.mesh
    idle = {(port.node, port.port, port.end == "output") for port in configuration.idle_ports()}
    labels = {"output port", "input port", "idle port"}
    for node in range(mesh.nodes):
        x, y = _place(configuration, node)
        corner = (x - _HALF, y - _HALF)
        axes.add_patch(
            Rectangle(corner, 2 * _HALF, 2 * _HALF, fc=_NODE, ec=_MESH, lw=1.0, zorder=4)
        )
        axes.text(x, y, str(node), ha="center", va="center", fontsize=9, zorder=6)
        for port in _OUTWARDS:
            for output in (True, False):
                at = _port(configuration, node, port, output=output)
                name = "output port" if output else "input port"
                face, edge = (_MESH if output else _NODE), _MESH
                if (node, port, output) in idle:
                    name, face, edge = "idle port", _FREE, _FREE
                label = name if name in labels else None
                labels.discard(name)
                axes.plot(*at, marker="s", ms=4, mfc=face, mec=edge, mew=0.8, ls="", zorder=5,
                          label=label)  # fmt: skip

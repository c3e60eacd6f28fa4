"""Coordinates of vertices on the grid of a mesh or torus, as columns of data frames."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

    from tutti.topologies.graph import Topology

_AXES = "xyzuvw"
_ENDS = ("source", "target", "router")
"""Columns that name vertices."""


def coordinates_of(topology: Topology) -> dict[str, tuple[int, ...]]:
    """Returns the coordinates of each vertex; empty for a topology without a grid.

    Examples:
        >>> import tutti
        >>> mesh = tutti.Topology.build("mesh:3x2", rate="16 GB/s", latency="1 ns")
        >>> coordinates_of(mesh)["npu4"]
        (1, 1)
    """
    if topology.grid is None:
        return {}
    found = {}
    for number, vertex in enumerate(topology.vertices):
        place, rest = [], number
        for size in topology.grid[0]:
            rest, here = divmod(rest, size)
            place.append(here)
        found[vertex.name] = tuple(place)
    return found


def with_coordinates(frame: pl.DataFrame, topology: Topology) -> pl.DataFrame:
    """Returns a frame with columns such as `source_x` and `source_y` next to names of vertices.

    A frame of a topology without a grid, or of more than six dimensions, is returned unchanged.
    """
    import polars as pl

    places = coordinates_of(topology)
    if not places or len(topology.grid[0] if topology.grid else ()) > len(_AXES):
        return frame
    columns = []
    for name in frame.columns:
        columns.append(frame[name])
        if name in _ENDS:
            ends = [places[vertex] for vertex in frame[name].to_list()]
            columns += [
                pl.Series(f"{name}_{axis}", list(along), pl.UInt32)
                for axis, along in zip(_AXES, zip(*ends, strict=True), strict=False)
            ]
    return pl.DataFrame(columns)

"""Platforms whose messages pass a mesh of routers that may fork and combine: the table `[mesh]`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from tutti.config.noc_tables import Count  # noqa: TC001 - pydantic looks at it
from tutti.config.smart import SmartMeshTable, mesh_mistake, mesh_of
from tutti.errors import TuttiError
from tutti.files.mistakes import mistake
from tutti.units import Size, Time

if TYPE_CHECKING:
    from tutti.platform import MeshFlits


class MeshTable(SmartMeshTable):
    """A mesh of several hops per cycle that messages pass, rank i at node i.

    What is left out is as in its design, but that routers which combine have a `reducer`: schedules
    carry sums.
    """

    cycle: Annotated[Time, Field(default=Time(ps=1000), description="The length of a clock cycle.")]
    flit: Annotated[
        Size, Field(default=Size(bytes=16), description="What a flit carries of a message.")
    ]
    packet: Annotated[
        Count,
        Field(default=1, description="The most flits of a packet to one node; a VC must hold it."),
    ]


_OWN = ("cycle", "flit", "packet")
"""Keys that are not about the mesh itself."""

_PLACES = {"flits of a packet": "packet", "flit": "flit", "cycle": "cycle"}

_NO_REDUCER = (
    'routers that combine what schedules send have a reducer; with `fan_in = "unicasts"` ranks do '
    "that"
)


def mesh_flits(table: MeshTable, *, source: str, key: str) -> MeshFlits:
    """The mesh that a table stands for, and how messages are cut for it.

    Raises:
        ConfigError: There is no such mesh, or messages cannot be cut so.
    """
    from tutti.platform import MeshFlits

    mesh = mesh_of(table, source=source, key=key)
    made = MeshFlits(mesh=mesh, **{name: getattr(table, name) for name in _OWN})
    try:
        made.core  # noqa: B018 - the core checks how messages are cut
    except TuttiError as error:
        what = str(error.fields.get("what", ""))
        if what in _PLACES:
            path = f"{key}.{_PLACES[what]}"
            hint = "raise `depth`, the flits of a VC" if path.endswith("packet") else error.hint
            raise mistake(error.problem, source=source, key=path, hint=hint) from None
        hint = _NO_REDUCER if what == "hpc_max" and mesh.reducer is None else ""
        raise mesh_mistake(error, source=source, key=key, hint=hint) from None
    return made

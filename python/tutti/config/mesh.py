"""Platforms whose messages pass a mesh of routers that may fork and combine: the table `[mesh]`."""

from __future__ import annotations

from tutti.config.smart import SmartMeshTable, mesh_mistake, mesh_of
from tutti.errors import TuttiError
from tutti.files.described import described_by
from tutti.files.mistakes import mistake
from tutti.platform import MeshFlits


@described_by(MeshFlits, without={"mesh"})
class MeshTable(SmartMeshTable):
    """A mesh of several hops per cycle that messages pass, rank i at node i.

    What is left out is as in its design, but that routers which combine have a `reducer`: schedules
    carry sums.
    """


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
    mesh = mesh_of(table, source=source, key=key)
    names = MeshFlits.model_fields.keys() - {"mesh"}
    made = MeshFlits(mesh=mesh, **{name: getattr(table, name) for name in names})
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

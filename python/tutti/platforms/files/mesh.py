"""The table `[mesh]` of platforms whose messages pass a mesh with multicast and reduction."""

from __future__ import annotations

from pydantic import Field

from tutti.base.errors import TuttiError
from tutti.base.files.described import described_by
from tutti.base.files.mistakes import mistake
from tutti.networks.flit.files.energy_table import single_technology_of
from tutti.networks.flit.files.tables import EnergyTable
from tutti.networks.mesh.files import SmartMeshTable, mesh_mistake, mesh_of
from tutti.platforms.contention import MeshFlits


class MeshEnergyTable(EnergyTable):
    """Energy of routers and links of a mesh; docs/models/energy.md lists the technologies."""

    link: str = Field(description="The technology of the links, such as `smart_45nm`.")


@described_by(MeshFlits, without={"mesh", "technology"})
class MeshTable(SmartMeshTable):
    """A mesh with several hops per cycle that messages pass; rank i is at node i.

    Absent keys take the value of the design, except that combining routers have a `reducer`.
    """

    energy: MeshEnergyTable | None = Field(
        default=None, description="Energy of events; if absent, energy is not reported."
    )


_PLACES = {"flits of a packet": "packet", "flit": "flit", "cycle": "cycle"}

_NO_REDUCER = (
    "routers that combine contributions of a schedule need a reducer; with "
    '`fan_in = "unicasts"` ranks combine them'
)


def mesh_flits(table: MeshTable, *, source: str, key: str) -> MeshFlits:
    """Returns the mesh that a table describes, and how messages are split into flits.

    Raises:
        ConfigError: The mesh or the flit parameters are invalid.
    """
    mesh = mesh_of(table, source=source, key=key)
    names = MeshFlits.model_fields.keys() - {"mesh", "technology"}
    technology = None
    if table.energy is not None:
        place = f"{key}.energy"
        technology = single_technology_of(table.energy, table.energy.link, source=source, key=place)
    found = MeshFlits(
        mesh=mesh, technology=technology, **{name: getattr(table, name) for name in names}
    )
    try:
        found.core  # noqa: B018 - the core checks the flit parameters
    except TuttiError as error:
        what = str(error.fields.get("what", ""))
        if what in _PLACES:
            path = f"{key}.{_PLACES[what]}"
            hint = "raise `depth`, the flits of a VC" if path.endswith("packet") else error.hint
            raise mistake(error.problem, source=source, key=path, hint=hint) from None
        hint = _NO_REDUCER if what == "hpc_max" and mesh.reducer is None else ""
        raise mesh_mistake(error, source=source, key=key, hint=hint) from None
    return found

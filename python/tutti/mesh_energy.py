"""What meshes of several hops per cycle take: the counts of their runs in joules.

The technologies and reports are those of `tutti.energy`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from tutti import _core
from tutti.energy import EnergyReport, Technology
from tutti.errors import EnergyError
from tutti.units import Length, Time

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["mesh_energy"]


class MeshSettings(Protocol):
    """What a mesh of several hops per cycle is: a `tutti.noc.SmartMesh`."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """Its settings by name, those of its design too."""
        ...


def mesh_energy(
    counts: Mapping[str, Any],
    mesh: MeshSettings,
    technology: Technology | None = None,
    *,
    flit_bits: int = 128,
    tile: str | Length = "1 mm",
    cycle: str | Time = "1 ns",
    classes: Iterable[tuple[int, int, bool]] | None = None,
) -> EnergyReport:
    """What the counts of a run on a mesh of several hops per cycle cost.

    The components are buffer writes and reads, buffers (what these leak), crossbar, allocation,
    links, requests for paths, tables of reductions, and clock.

    Args:
        counts: by name, as a run has them.
        mesh: what they were counted on.
        technology: of routers and links; without it ``smart_45nm`` for both where flits make
            several hops in a cycle, else ``dsent_45nm`` with ``dsent_45nm_spaced`` wires.
        flit_bits: bits of a flit.
        tile: how long a link is.
        cycle: the time of a clock cycle.
        classes: VCs, flits of each, and whether multicasts travel in it, of each message class;
            without it there is one, as the mesh says.

    Raises:
        EnergyError: the mesh has no routers, a count is missing, or a number cannot be.
        NocError: there cannot be such classes.
        UnitError: a length or a time cannot be read.
    """
    settings = mesh.settings
    if str(settings["design"]).startswith("fully_connected"):
        message = "a fully connected mesh has no routers that take energy: expected another design"
        raise EnergyError(message, kind="mesh", fields={"design": settings["design"]})
    missing = [name for name in _COUNTED if name not in counts]
    if missing:
        message = f"the counts lack {', '.join(missing)}: expected the counts of a run on a mesh"
        raise EnergyError(message, kind="mesh", fields={"missing": missing})
    keys = ("columns", "rows", "hpc_max", "fan_out", "fan_in", "split_vcs", "art_entries")
    given: dict[str, object] = {key: settings[key] for key in keys}
    own = [(settings["vcs"], settings["depth"], True)]
    given["classes"] = own if classes is None else list(classes)
    given["flit_bits"] = flit_bits
    given["tile_um"] = (Length.parse(tile) if isinstance(tile, str) else tile).um
    given["cycle_ps"] = (Time.parse(cycle) if isinstance(cycle, str) else cycle).ps
    core = _core.EnergyMesh(given)
    if technology is None:
        router, link = core.technology()
        technology = Technology(router=router, link=link)
    return EnergyReport.of_core(
        core.energy({name: counts[name] for name in _COUNTED}, technology.core)
    )


_COUNTED = (
    "buffer_writes",
    "buffer_reads",
    "crossings",
    "link_hops",
    "input_arbitrations",
    "output_arbitrations",
    "request_hops",
    "response_request_hops",
    "table_reads",
    "cycles",
)

"""Energy of SMART meshes, from the event counts of their runs.

The technologies and reports are those of `tutti.energy.technology`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from tutti import _core
from tutti.base.units import Length, Time
from tutti.energy.errors import EnergyError
from tutti.energy.technology import EnergyReport, Technology

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class MeshSettings(Protocol):
    """The interface of `tutti.networks.mesh.SmartMesh` that the energy model needs."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """The settings by name, including those of the design."""
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
    """Returns the energy of the event counts of a run on a SMART mesh.

    The components are buffer writes and reads, buffers (leakage), crossbar, allocation, links, path
    requests, reduction tables and clock. The default technology is ``smart_45nm`` if flits make
    several hops per cycle, otherwise ``dsent_45nm`` with ``dsent_45nm_spaced`` links.

    Args:
        counts: Counts of a run, by name.
        mesh: The mesh.
        technology: Constants of routers and links.
        flit_bits: Flit width.
        tile: Link length.
        cycle: Cycle time.
        classes: VCs, flits per VC and multicast flag of each message class.

    Raises:
        EnergyError: The mesh has no routers, a count is missing, or a number is invalid.
        NocError: The classes are invalid.
        UnitError: A length or a time cannot be parsed.
    """
    settings = mesh.settings
    if str(settings["design"]).startswith("fully_connected"):
        message = "a fully connected mesh has no routers: expected another design"
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

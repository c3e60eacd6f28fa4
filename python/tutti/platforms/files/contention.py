"""Builds the contention of a platform file: a table of the topology, or the mesh."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tutti.base.errors import TuttiError
from tutti.base.files.mistakes import mistake
from tutti.base.files.sourced import written
from tutti.platforms.contention import Flits, FlowLevel, Free, Packets
from tutti.platforms.files.flits import flits_of
from tutti.platforms.files.mesh import mesh_flits
from tutti.platforms.files.platform_file import SWITCHES

if TYPE_CHECKING:
    from tutti.platforms.contention import Contention, MeshFlits
    from tutti.platforms.files.platform_file import RawPlatform, TopologyTable
    from tutti.topologies import Routes


def contention_of(
    platform: RawPlatform, routes: Routes | None, *, source: str
) -> Contention | None:
    """Returns the contention of a platform; None for flows without parameters.

    Args:
        platform: The platform as written.
        routes: The routes of its topology.
        source: The name of the file in errors.

    Raises:
        ConfigError: The parameters are invalid or contradict each other, or a link has no length
            although energy is reported.
    """
    table = platform.topology
    if table is None or routes is None:
        return mesh_of(platform, source=source)
    place = f"platform {platform.name}: topology"
    if table.contention is Flits:
        return _flits(table, routes, source=source, place=place)
    if table.contention is Packets:
        return _packets(table, routes, source=source, place=place)
    return Free() if table.contention is Free else _flow(table)


def mesh_of(platform: RawPlatform, *, source: str) -> MeshFlits | None:
    """Returns the mesh of a platform.

    Raises:
        ConfigError: The mesh or the flit parameters are invalid.
    """
    if platform.mesh is None:
        return None
    return mesh_flits(platform.mesh, source=source, key=f"platform {platform.name}: mesh")


def _flits(table: TopologyTable, routes: Routes, *, source: str, place: str) -> Flits:
    from tutti.networks.flit.files.energy_table import check_links

    assert table.flits is not None  # noqa: S101 - the table selects flits
    flits = flits_of(table.flits, source=source, key=f"{place}.flits")
    if flits.technology is not None:
        check_links(flits.technology, routes.topology, source=source,
                    key=f"{place}.flits.energy", links=f"{place}.links")  # fmt: skip
    return flits


def _packets(table: TopologyTable, routes: Routes, *, source: str, place: str) -> Packets:
    from tutti.platforms.files.package import check_package, package_of

    assert table.packets is not None  # noqa: S101 - the table selects packets
    key = f"{place}.packets"
    values = {name: written(value) for name, value in table.packets if value is not None}
    values |= _switches(table)
    if table.packets.package is not None:
        package = package_of(table.packets.package, source=source, key=f"{key}.package")
        values["package"] = package
    try:
        packets = Packets(**values)
        packets.core  # noqa: B018 - the core checks sizes together
    except TuttiError as error:
        raise mistake(error.problem, source=source, key=key, hint=error.hint) from None
    if packets.package is not None:
        check_package(packets.package, routes.topology, source=source, key=f"{key}.package")
    return packets


def _flow(table: TopologyTable) -> FlowLevel | None:
    switches = _switches(table)
    if table.flow is None and not any(switches.values()):
        return None
    values = {name: written(value) for name, value in table.flow or () if value is not None}
    return FlowLevel(**values, **switches)


def _switches(table: TopologyTable) -> dict[str, Any]:
    """Returns which switches multicast and reduce, as parameters of flows or packets."""
    values = {name: written(getattr(table, name)) for name in SWITCHES}
    return {
        name: tuple(names) if isinstance(names, list) else names for name, names in values.items()
    }

"""The table `[topology.packets.package]`: the routers of a package."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from tutti.base.errors import TuttiError
from tutti.base.files.described import described_by
from tutti.base.files.mistakes import mistake
from tutti.base.units import Length  # noqa: TC001 - pydantic resolves it
from tutti.energy.package import Package
from tutti.networks.flit.files.energy_table import single_technology_of
from tutti.networks.flit.files.tables import EnergyTable

if TYPE_CHECKING:
    from tutti.topologies import Topology


@described_by(Package, without={"technology", "on_chip"})
class PackageTable(EnergyTable):
    """Identical routers, one per chiplet; docs/models/energy.md documents their energy and area."""

    router: str = Field(default="aries_45nm", description="The technology of the routers.")
    link: str = Field(default="muchisim_interposer", description="The technology of the links.")
    on_chip: str | None = Field(
        default=None,
        description="The technology of links inside the chiplets of a `chiplet_mesh`; that of "
        "`link` if absent.",
    )
    pitch: Length | None = Field(
        default=None,
        description="Distance between chiplets of a square grid, from which lengths of links "
        "follow; if absent, links use `length`.",
    )


def package_of(table: PackageTable, *, source: str, key: str) -> Package:
    """Returns the package that a table describes.

    Raises:
        ConfigError: The technology is unknown, or a value is invalid.
    """
    technology = single_technology_of(table, str(table.link), source=source, key=key)
    names = Package.model_fields.keys() & PackageTable.model_fields.keys() - {"on_chip"}
    values = {name: getattr(table, name) for name in names}
    on_chip = None
    if table.on_chip is not None:
        inside = table.model_copy(update={"constants": {}})
        on_chip = single_technology_of(inside, table.on_chip, source=source, key=key)
    return Package(**values, technology=technology, on_chip=on_chip)


def check_package(package: Package, topology: Topology, *, source: str, key: str) -> None:
    """Rejects topologies whose energy and area cannot be computed.

    Raises:
        ConfigError: A link has no length, or lies off the grid.
    """
    try:
        package.check(topology)
    except TuttiError as error:
        raise mistake(error.problem, source=source, key=key, hint=error.hint) from None

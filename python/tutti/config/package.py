"""The routers of a package, where packets queue: the table `[topology.packets.package]`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from tutti.config.flits import technology_of
from tutti.config.noc_tables import EnergyTable
from tutti.errors import TuttiError
from tutti.files.described import described_by
from tutti.files.mistakes import mistake
from tutti.package import Package
from tutti.units import Length  # noqa: TC001 - pydantic looks at it

if TYPE_CHECKING:
    from tutti.topology import Topology


@described_by(Package, without={"technology"})
class PackageTable(EnergyTable):
    """Equal routers, one on each chiplet; docs/models/energy.md says what they cost."""

    router: Annotated[
        str, Field(default="aries_45nm", description="The technology of the routers.")
    ]
    link: Annotated[
        str, Field(default="muchisim_interposer", description="The technology of the links.")
    ]
    pitch: Annotated[
        Length | None,
        Field(
            default=None,
            description="From chiplet to chiplet of a square grid, along which links go; if left "
            "out, links have their `length`.",
        ),
    ]


def package_of(table: PackageTable, *, source: str, key: str) -> Package:
    """The package that a table stands for.

    Raises:
        ConfigError: There is no such technology, or a value that cannot be.
    """
    technology = technology_of(table, source=source, key=key)
    names = Package.model_fields.keys() & PackageTable.model_fields.keys()
    values = {name: getattr(table, name) for name in names}
    return Package(**values, technology=technology)


def check_package(package: Package, topology: Topology, *, source: str, key: str) -> None:
    """Refuses what energy and area cannot be told of.

    Raises:
        ConfigError: A link has no length, or lies off the grid.
    """
    try:
        package.check(topology)
    except TuttiError as error:
        raise mistake(error.problem, source=source, key=key, hint=error.hint) from None

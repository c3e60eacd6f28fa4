"""The routers of a package, where packets queue: the table `[topology.packets.package]`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from tutti.config.flits import technology_of
from tutti.config.noc_tables import EnergyTable
from tutti.errors import TuttiError
from tutti.files.mistakes import mistake
from tutti.units import Length, Time

if TYPE_CHECKING:
    from tutti.package import Package
    from tutti.topology import Topology

_Positive = Annotated[int, Field(ge=1, lt=1 << 32)]


class PackageTable(EnergyTable):
    """Equal routers, one on each chiplet; docs/models/energy.md says what they cost."""

    router: Annotated[
        str, Field(default="aries_45nm", description="The technology of the routers.")
    ]
    link: Annotated[
        str, Field(default="muchisim_interposer", description="The technology of the links.")
    ]
    ports: Annotated[
        _Positive, Field(default=5, description="Inputs of a router, the local one included.")
    ]
    width: Annotated[_Positive, Field(default=128, description="Bits of a link.")]
    vcs: Annotated[_Positive, Field(default=4, description="Virtual channels of an input.")]
    vc_flits: Annotated[
        _Positive, Field(default=32, description="Flits that each has room for, as wide as a link.")
    ]
    pitch: Annotated[
        Length | None,
        Field(
            default=None,
            description="From chiplet to chiplet of a square grid, along which links go; if left "
            "out, links have their `length`.",
        ),
    ]
    circuit: Annotated[
        bool,
        Field(default=False, description="Whether what arrives for an NPU is not buffered."),
    ]
    muxes: Annotated[
        Literal["own", "sign", "any"] | None,
        Field(default=None, description="What the muxes of bypass wires can take, for the area."),
    ]
    wires: Annotated[
        int, Field(default=1, ge=1, lt=64, description="Bypass wires in each direction of a line.")
    ]
    cycle: Annotated[Time, Field(default=Time(ps=1000), description="The length of a clock cycle.")]


def package_of(table: PackageTable, *, source: str, key: str) -> Package:
    """The package that a table stands for.

    Raises:
        ConfigError: There is no such technology, or a value that cannot be.
    """
    from tutti.package import Package

    technology = technology_of(table, source=source, key=key)
    names = set(PackageTable.model_fields) - set(EnergyTable.model_fields)
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

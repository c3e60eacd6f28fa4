"""The table `[topology.flits]` of platforms whose messages are simulated flit by flit.

The keys have the names of network files (`tutti noc`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, TypeAlias

from pydantic import Field

from tutti.config.noc_tables import EnergyTable  # noqa: TC001 - pydantic resolves it
from tutti.config.sourced import sourced_table, written
from tutti.errors import TuttiError
from tutti.files.mistakes import mistake
from tutti.platform import Flits

if TYPE_CHECKING:
    from tutti.energy import Technology
    from tutti.topology import Topology


if TYPE_CHECKING:
    _Flits: TypeAlias = Flits
else:
    _Flits = sourced_table(Flits, without={"technology"})


class FlitsTable(_Flits):
    """Splits messages into packets of flits, which pass the routers cycle by cycle."""

    energy: Annotated[
        EnergyTable | None,
        Field(default=None, description="Energy of events; if absent, energy is not reported."),
    ]


def technology_of(table: EnergyTable | None, *, source: str, key: str) -> Technology | None:
    """Returns the technology that a table describes.

    Raises:
        ConfigError: The technology is unknown, or a constant is invalid.
    """
    from tutti.energy import Technology

    if table is None:
        return None
    try:
        found = Technology(router=table.router, link=table.link)
        for name, constant in table.constants.items():
            values = constant.model_dump(exclude={"value"})
            found = found.with_value(name, constant.value, **values)
    except TuttiError as error:
        raise mistake(error.problem, source=source, key=key, hint=error.hint) from None
    return found


def check_lengths(topology: Topology, *, source: str, key: str) -> None:
    """Rejects links of unknown length, for which energy cannot be computed.

    Raises:
        ConfigError: A link has no length.
    """
    for link in topology.links:
        if link.length is None:
            raise mistake(
                f"the length of the link from {link.source} to {link.target} is unknown",
                source=source,
                key=key,
                expected='a `length`, such as "1 mm", which the energy depends on',
            )


def flits_of(table: FlitsTable, *, source: str, key: str) -> Flits:
    """Returns the flit parameters that a table describes.

    Raises:
        ConfigError: The technology is unknown.
    """
    values = {name: written(value) for name, value in table if name != "energy"}
    technology = technology_of(table.energy, source=source, key=f"{key}.energy")
    return Flits(**values, technology=technology)

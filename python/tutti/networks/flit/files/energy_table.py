"""The technology that an energy table of a file describes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tutti.base.errors import TuttiError
from tutti.base.files.mistakes import mistake

if TYPE_CHECKING:
    from tutti.energy import Technology
    from tutti.networks.flit.files.tables import EnergyTable
    from tutti.topologies import Topology


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

"""The table `[topology.flits]` of platforms whose messages are simulated flit by flit.

The keys have the names of network files (`tutti noc`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from pydantic import Field

from tutti.base.files.sourced import sourced_table, written
from tutti.networks.flit.files.energy_table import technology_of
from tutti.networks.flit.files.tables import EnergyTable  # noqa: TC001 - pydantic resolves it
from tutti.platforms.contention import Flits

if TYPE_CHECKING:
    _Flits: TypeAlias = Flits
else:
    _Flits = sourced_table(Flits, without={"technology"})


class FlitsTable(_Flits):
    """Splits messages into packets of flits, which pass the routers cycle by cycle."""

    energy: EnergyTable | None = Field(
        default=None, description="Energy of events; if absent, energy is not reported."
    )


def flits_of(table: FlitsTable, *, source: str, key: str) -> Flits:
    """Returns the flit parameters that a table describes.

    Raises:
        ConfigError: The technology is unknown.
    """
    values = {name: written(value) for name, value in table if name != "energy"}
    technology = technology_of(table.energy, source=source, key=f"{key}.energy")
    return Flits(**values, technology=technology)

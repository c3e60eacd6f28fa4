"""Platforms whose messages pass routers, flit by flit: the table `[topology.flits]`.

Keys are called as in files of networks (`tutti noc`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from tutti.config.noc_tables import (
    Count,
    EnergyTable,
    IfItCanDeadlock,
    NarrowLinks,
    RouterTable,
    SpeculationTable,
)
from tutti.errors import TuttiError
from tutti.files.mistakes import mistake
from tutti.files.tables import Table
from tutti.units import Size, Time

if TYPE_CHECKING:
    from tutti.energy import Technology
    from tutti.noc import Router
    from tutti.platform import Flits
    from tutti.topology import Topology


class FlitsTable(Table):
    """Messages are cut into packets of flits, which pass the routers cycle by cycle."""

    cycle: Annotated[Time, Field(default=Time(ps=1000), description="The length of a clock cycle.")]
    flit: Annotated[Size, Field(default=Size(bytes=16), description="The size of a flit.")]
    packet: Annotated[
        Count, Field(default=4, description="The most flits of a packet, its header included.")
    ]
    header: Annotated[
        Count, Field(default=0, description="Flits of a packet that carry nothing of a message.")
    ]
    routing: Annotated[
        str | None,
        Field(
            default=None,
            description="Which way packets take, as `name` or `name:argument`; docs/models/flit.md "
            "lists them. If left out, the topology's.",
        ),
    ]
    narrow_links: NarrowLinks
    deadlock: IfItCanDeadlock
    router: Annotated[
        RouterTable, Field(default_factory=RouterTable, description="What routers are like.")
    ]
    energy: Annotated[
        EnergyTable | None,
        Field(default=None, description="What events cost; without it, energy is not told."),
    ]


def router_of(table: RouterTable) -> Router:
    """The settings that a table stands for."""
    from dataclasses import fields

    from tutti.noc import Router, Speculation

    values = {one.name: getattr(table, one.name) for one in fields(Router)}
    ahead = table.speculation
    if isinstance(ahead, SpeculationTable):
        values["speculation"] = Speculation(**ahead.model_dump())
    else:
        values["speculation"] = Speculation() if ahead else None
    return Router(**values)


def technology_of(table: EnergyTable | None, *, source: str, key: str) -> Technology | None:
    """The technology that a table stands for.

    Raises:
        ConfigError: There is no such technology, or a constant that cannot be.
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
    """Refuses links of unknown length, whose energy nobody can tell.

    Raises:
        ConfigError: There is one.
    """
    for link in topology.links:
        if link.length is None:
            raise mistake(
                f"the length of the link from {link.source} to {link.target} is not known",
                source=source,
                key=key,
                expected='a `length`, such as "1 mm", where energy is to be told',
            )


def flits_of(table: FlitsTable, *, source: str, key: str) -> Flits:
    """The flits that a table stands for.

    Raises:
        ConfigError: A technology that there is not.
    """
    from tutti.platform import Flits

    return Flits(
        cycle=table.cycle,
        flit=table.flit,
        packet=table.packet,
        header=table.header,
        routing=table.routing,
        narrow_links=table.narrow_links,
        deadlock=table.deadlock,
        router=router_of(table.router),
        technology=technology_of(table.energy, source=source, key=f"{key}.energy"),
    )

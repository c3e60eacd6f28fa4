"""`tutti energy`: energy and area of technologies and networks; energy reports of runs."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from tutti.cli import options
from tutti.cli.energy_tables import area_rows, area_table, cost_rows, cost_table
from tutti.energy.technology import Technology, technologies
from tutti.study.console import out, record_table, remark

app = options.group("Report energy and area of routers, links and networks.")


@app.command("list")
def list_() -> None:
    """List the technologies of routers and links. docs/reference/energy.md lists their constants.

    \b
    Examples:
      tutti energy list
    """
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in ("component", "technology", "summary"):
        table.add_column(name)
    for entry in technologies():
        table.add_row(entry.part, entry.name, entry.summary)
        row = {"component": entry.part, "technology": entry.name, "summary": entry.summary}
        record_table("technologies", [row])
    out().print(table)


@app.command("package")
def package_(
    side: Annotated[int, typer.Option("--side", help="Chiplets per side.", min=2, max=64)] = 4,
    router: Annotated[str, typer.Option(help="Technology of the routers.")] = "aries_45nm",
    link: Annotated[str, typer.Option(help="Technology of the links.")] = "muchisim_interposer",
) -> None:
    """Show energy per bit and router area of networks of k x k chiplets.

    Compares mesh, torus, flattened butterfly with equal pin count, and mesh with bypass wires, with
    the figures of Yin et al. 2023. A platform with `[topology.packets.package]` reports the energy
    of its traffic in `tutti run`.

    \b
    Examples:
      tutti energy package --side 8
      tutti energy package --link simba_package
    """
    technology = Technology(router=router, link=link)
    record_table("costs", lambda: cost_rows(side, technology))
    record_table("areas", lambda: area_rows(side, technology))
    out().print(cost_table(side, technology))
    out().print()
    out().print(area_table(side, technology))
    remark(
        "link lengths: in chiplets of 5 mm; simple scaling: scaled from the published router; "
        "muxes: of the bypass wires, from standard cells or as published; power: per router"
    )

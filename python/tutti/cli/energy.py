"""Energy and area in the terminal: what a run cost, and `tutti energy`, what technologies say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from tutti.cli import options
from tutti.cli.console import out, remark
from tutti.energy import Technology, technologies
from tutti.package import area_table, cost_table
from tutti.report.noc_words import power

if TYPE_CHECKING:
    from tutti.energy import AreaReport, EnergyReport

app = options.group("Energy and area: technologies of routers and links, and networks of packages.")


@app.command("list")
def list_() -> None:
    """List the technologies of routers and links; docs/reference/energy.md has their constants.

    \b
    Examples:
      tutti energy list
    """
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in ("of", "technology", "summary"):
        table.add_column(name)
    for entry in technologies():
        table.add_row(entry.part, entry.name, entry.summary)
    out().print(table)


@app.command("package")
def package_(
    side: Annotated[int, typer.Option("--side", help="Chiplets along a side.", min=2, max=64)] = 4,
    router: Annotated[str, typer.Option(help="The technology of the routers.")] = "aries_45nm",
    link: Annotated[str, typer.Option(help="The technology of links.")] = "muchisim_interposer",
) -> None:
    """Show what a bit costs on networks of k x k chiplets, and what their routers take up.

    Mesh, torus, flattened butterfly with as many pins, and a mesh with bypass wires; beside them
    what Yin et al. 2023 publish of their routers. A run with `[topology.packets.package]` in its
    platform tells what its traffic cost.

    \b
    Examples:
      tutti energy package --side 8
      tutti energy package --link simba_package
    """
    technology = Technology(router=router, link=link)
    out().print(cost_table(side, technology))
    out().print()
    out().print(area_table(side, technology))
    remark(
        "links go over so many chiplets of 5 mm; simple laws: the published router, scaled; muxes: "
        "those of bypass wires, from cells, or as published; power is that of a router"
    )


def show_energy(energy: EnergyReport, area: AreaReport, window_ps: int) -> None:
    """What a window cost, by component, its mean power, and what the hardware takes up."""
    console = out()
    console.print(energy.table())
    console.print(f"  power: {power(energy, window_ps)}", markup=False)
    low, nominal, high = (value / 1e6 for value in area.total_um2)
    console.print(f"  area: {nominal:.4g} mm2, from {low:.4g} to {high:.4g}", markup=False)

"""Tables of `tutti energy package`: area of routers and energy per bit of networks on chiplets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.table import Table

from tutti.base.units import Length, Time
from tutti.energy.package import PUBLISHED_UM2, Package, packages, scaled_um2
from tutti.energy.technology import costs

if TYPE_CHECKING:
    from tutti.energy.technology import Technology


def area_table(side: int, technology: Technology | None = None) -> Table:
    """Returns a table of router areas for k x k chiplets, next to simple scaling."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("network", no_wrap=True)
    for name in ("ports", "bits"):
        table.add_column(name, justify="right", no_wrap=True)
    for name in ("router", "simple scaling", "muxes", f"all {side * side}"):
        table.add_column(f"{name}\nmm2", justify="right", no_wrap=True)

    for row in area_rows(side, technology):
        areas = (row[f"{name}_um2"] for name in ("router", "scaled_router", "muxes"))
        cells = (f"{um2 / 1e6:.4f}" for um2 in areas)
        sizes = str(row["ports"]), str(row["bits"])
        name = row["network"].replace("_", " ")
        table.add_row(name, *sizes, *cells, f"{row['all_um2'] / 1e6:.2f}")
    return table


def area_rows(side: int, technology: Technology | None = None) -> list[dict[str, Any]]:
    """Returns the numbers of :func:`area_table`, in square micrometres."""

    def row(name: str, package: Package, router: float, muxes: float) -> dict[str, Any]:
        return {
            "network": name,
            "ports": package.ports,
            "bits": package.width,
            "router_um2": router,
            "scaled_router_um2": scaled_um2(package.ports, package.width),
            "muxes_um2": muxes,
            "all_um2": side * side * (router + muxes),
        }

    rows = []
    for name, package in packages(side, technology).items():
        muxes = package.mux_um2
        rows.append(row(name, package, package.area(1).total_um2.nominal - muxes, muxes))
    bypass = PUBLISHED_UM2["bypass"]
    published = sum(PUBLISHED_UM2.values()) - bypass
    return [*rows, row("bypass, published", Package(), published, bypass)]


def cost_table(side: int, technology: Technology | None = None) -> Table:
    """Returns a table of energy per bit and idle router power on networks of k x k chiplets."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("network", no_wrap=True)
    rows = cost_rows(side, technology)
    links = [f"link of {span}" for span in rows[0]["link_pj_per_bit"]]
    for name in ("router", "by circuit", *links):
        table.add_column(f"{name}\npJ/bit", justify="right", no_wrap=True)
    for name in ("leakage", "clock"):
        table.add_column(f"{name}\nmW", justify="right", no_wrap=True)
    for row in rows:
        circuit = row["circuit_pj_per_bit"]
        cells = [
            f"{row['router_pj_per_bit']:.3f}",
            "-" if circuit is None else f"{circuit:.3f}",
            *(f"{pj:.3f}" for pj in row["link_pj_per_bit"].values()),
            *(f"{1000 * row[name]:.1f}" for name in ("leakage_w", "clock_w")),
        ]
        table.add_row(row["network"].replace("_", " "), *cells)
    return table


def cost_rows(side: int, technology: Technology | None = None) -> list[dict[str, Any]]:
    """Returns the numbers of :func:`cost_table`; links by their length in chiplets."""
    lengths = sorted({1, side - 1} - {0})
    rows = []
    for name, package in packages(side, technology).items():
        pitch = package.pitch.um if package.pitch else 0
        given = [Length(um=span * pitch) for span in lengths]
        each = costs(package.router, package.technology, lengths=given)
        buffered = each["buffer_write"].nominal + each["buffer_read"].nominal
        moved = each["crossbar_to_1"].nominal + each["switch_allocation"].nominal
        second = package.idle(1, Time(ps=10**12))
        rows.append(
            {
                "network": name,
                "router_pj_per_bit": (buffered + moved) / package.width,
                "circuit_pj_per_bit": moved / package.width if package.circuit else None,
                "link_pj_per_bit": {
                    span: each[f"link of {length}"].nominal / package.width
                    for span, length in zip(lengths, given, strict=True)
                },
                "leakage_w": second.leakage.nominal,
                "clock_w": second.dynamic.nominal,
            }
        )
    return rows

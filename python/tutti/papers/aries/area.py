"""Figure 5: the router, by what it takes up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from tutti.package import PUBLISHED_UM2, packages, scaled_um2
from tutti.papers import Exhibit, ExhibitResult
from tutti.papers.aries.published import AREA_MORE, AREA_OF_NETWORK, compared
from tutti.papers.aries.system import SIDES

if TYPE_CHECKING:
    from pathlib import Path


def _figure_5(folder: Path) -> ExhibitResult:
    """Routers of each network, of our components and as the published one scales."""
    del folder
    mesh, bypass = packages(8)["mesh"], packages(8)["bypass"]
    parts = mesh.area(1).um2_by_component
    found = [
        (f"{name}, um2", value, parts[name].nominal)
        for name, value in PUBLISHED_UM2.items()
        if name in parts
    ]
    more = 64 * bypass.mux_um2 / 1e6
    return ExhibitResult(
        frame=pl.DataFrame(_routers()),
        published=compared(
            [
                *found,
                ("64 routers, mm2", AREA_OF_NETWORK, mesh.area(64).total_um2.nominal / 1e6),
                ("64 routers by the sum of their parts, mm2", AREA_OF_NETWORK, _sum_of_parts()),
                ("more for bypass wires, mm2", AREA_MORE, more),
            ]
        ),
        source="section V-D, at 45 nm",
        notes=(
            "components of the router are the paper's own, put in; muxes are counted from cells.",
            "scaled: crossbar by ports^2 bits^2, allocators by ports^2, buffers by ports and bits.",
        ),
    )


def _routers() -> list[dict[str, object]]:
    """A row for each network and size."""
    rows: list[dict[str, object]] = []
    for side in SIDES:
        for name, package in packages(side).items():
            muxes = package.mux_um2
            router = package.area(1).total_um2.nominal - muxes
            rows.append(
                {
                    "network": f"{name} {side}x{side}",
                    "ports": package.ports,
                    "bits": package.width,
                    "router um2": round(router),
                    "scaled um2": round(scaled_um2(package.ports, package.width)),
                    "muxes um2": round(muxes),
                    "all mm2": round(side * side * (router + muxes) / 1e6, 2),
                }
            )
    return rows


def _sum_of_parts() -> float:
    return 64 * (sum(PUBLISHED_UM2.values()) - PUBLISHED_UM2["bypass"]) / 1e6


FIGURES = {5: Exhibit(title="the router's area", make=_figure_5)}
"""The figure of this module, by number."""

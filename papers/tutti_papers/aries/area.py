"""Figure 5: area of the router by component."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from tutti.bypass.package_networks import SIDES
from tutti.energy.package import PUBLISHED_UM2, packages, scaled_um2
from tutti_papers import Exhibit, ExhibitResult, looks
from tutti_papers.aries.published import AREA_MORE, AREA_OF_NETWORK, compared
from tutti_papers.claims import verdict_line
from tutti_papers.exhibits import COLUMN, plot_bars

if TYPE_CHECKING:
    from pathlib import Path


def _figure_5(folder: Path) -> ExhibitResult:
    """Returns router areas of each network: by components, and scaled from the published one."""
    mesh, bypass = packages(8)["mesh"], packages(8)["bypass"]
    parts = mesh.area(1).um2_by_component
    found = [
        (f"{name}, um2", value, parts[name].nominal)
        for name, value in PUBLISHED_UM2.items()
        if name in parts
    ]
    more = 64 * bypass.mux_um2 / 1e6
    claims = compared(
        [
            *found,
            ("64 routers, mm2", AREA_OF_NETWORK, mesh.area(64).total_um2.nominal / 1e6),
            ("64 routers, sum of components, mm2", AREA_OF_NETWORK, _sum_of_components()),
            ("additional for bypass wires, mm2", AREA_MORE, more),
        ]
    )
    return ExhibitResult(
        frame=pl.DataFrame(_routers()),
        published=claims,
        figures=(_drawn(folder, verdict_line(claims)),),
        source="section V-D, at 45 nm",
        notes=(
            "component areas are the paper's values; muxes are counted in cells",
            "scaled: crossbar by ports^2 bits^2, allocators by ports^2, buffers by ports and bits",
        ),
    )


def _drawn(folder: Path, verdict: str) -> Path:
    """Draws the area of all routers of each network, and of its muxes."""
    groups = {}
    for side in SIDES:
        chiplets = side * side / 1e6
        groups[f"{side}x{side}"] = {
            _NAMES.get(name, name): {
                "routers": chiplets * (package.area(1).total_um2.nominal - package.mux_um2),
                "muxes": chiplets * package.mux_um2,
            }
            for name, package in packages(side).items()
        }
    return plot_bars(
        folder / "figure_5.svg", groups, y="area of all routers (mm2)", verdict=verdict,
        looks=looks.ARIES, width=COLUMN, mean=False,
        published={("8x8", "mesh"): (AREA_OF_NETWORK, "text"),
                   ("8x8", "aries"): (AREA_OF_NETWORK + AREA_MORE, "text")},
    )  # fmt: skip


_NAMES = {"bypass": "aries"}
"""The network of a package with another name."""


def _routers() -> list[dict[str, object]]:
    """Returns a row per network and size."""
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
                    "total mm2": round(side * side * (router + muxes) / 1e6, 2),
                }
            )
    return rows


def _sum_of_components() -> float:
    return 64 * (sum(PUBLISHED_UM2.values()) - PUBLISHED_UM2["bypass"]) / 1e6


FIGURES = {5: Exhibit(title="the router's area", make=_figure_5)}
"""The figure of this module, by number."""

"""Figure 5: area of the router by component."""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import TYPE_CHECKING

import polars as pl

from tutti.bypass.package_networks import SIDES
from tutti.energy.package import PUBLISHED_UM2, Package, packages, scaled_um2
from tutti_papers import Exhibit, ExhibitResult, looks
from tutti_papers.aries.published import AREA_MORE, AREA_OF_NETWORK, compared
from tutti_papers.aries.reading import DEFAULT_READING
from tutti_papers.claims import verdict_line
from tutti_papers.exhibits import COLUMN, plot_bars

if TYPE_CHECKING:
    from pathlib import Path

    from tutti.bypass import Muxes
    from tutti.energy.package import Muxes as MuxArea
    from tutti_papers.aries.reading import JointReading


def added_mm2(muxes: Muxes, wires: int) -> float:
    """Returns the area that multiplexers and latches of bypass wires add to 64 routers."""
    # Ports of one axis select from as many wires as ports of one sign.
    kind: MuxArea = "own" if muxes == "axis" else muxes
    return 64 * Package(muxes=kind, wires=wires).mux_um2 / 1e6


def _figure_5(folder: Path, reading: JointReading = DEFAULT_READING) -> ExhibitResult:
    """Returns router areas of each network: by components, and scaled from the published one."""
    mesh, its = packages(8)["mesh"], reading.assumptions
    parts = mesh.area(1).um2_by_component
    found = [
        (f"{name}, um2", value, parts[name].nominal)
        for name, value in PUBLISHED_UM2.items()
        if name in parts
    ]
    total = ("64 routers, mm2", AREA_OF_NETWORK, mesh.area(64).total_um2.nominal / 1e6)
    more = ("additional for bypass wires, mm2", AREA_MORE, added_mm2(its.muxes, its.wires))
    claims = compared([*found, total], method="input") + compared([more])
    return ExhibitResult(
        frame=pl.DataFrame(_routers()),
        published=claims,
        figures=(_drawn(folder, verdict_line(claims), added_mm2(its.muxes, its.wires)),),
        source="section V-D, at 45 nm",
        tables={"muxes": _muxes()},
        notes=(
            "component areas are the paper's values; muxes are counted in cells",
            "scaled: crossbar by ports^2 bits^2, allocators by ports^2, buffers by ports and bits",
            "muxes: the literal ones of III-B are `sign`; figure 6(c) needs `any`",
        ),
    )


def _muxes() -> pl.DataFrame:
    """Returns the area of multiplexers by the wires that a port can select."""
    return pl.DataFrame(
        [
            {
                "muxes": muxes,
                "wires": wires,
                "added mm2": round(added_mm2(muxes, wires), 3),
                "published mm2": AREA_MORE,
                "ratio": round(added_mm2(muxes, wires) / AREA_MORE, 2),
            }
            for muxes, wires in product(MUXES, (1, 2))
        ]
    )


MUXES: tuple[Muxes, ...] = ("own", "axis", "sign", "any")


def _drawn(folder: Path, verdict: str, muxes: float) -> Path:
    """Draws the area of all routers of each network, and of its muxes: `muxes` mm2 on 8x8."""
    groups = {}
    for side in SIDES:
        chiplets = side * side / 1e6
        groups[f"{side}x{side}"] = {
            _NAMES.get(name, name): {
                "routers": chiplets * (package.area(1).total_um2.nominal - package.mux_um2),
                "muxes": muxes * side * side / 64 if package.muxes else 0.0,
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


def figures(reading: JointReading) -> dict[int, Exhibit]:
    """Returns the figure of this module, by number."""
    return {5: Exhibit(title="the router's area", make=partial(_figure_5, reading=reading))}

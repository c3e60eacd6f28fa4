"""Table 4: area and power of ACE."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import polars as pl

from tutti.base.units import Size
from tutti.energy.technology import Interval
from tutti.training.endpoint import AceSettings, Npu
from tutti.training.endpoint_area import PROCESSES, cost
from tutti_papers import Exhibit, ExhibitResult
from tutti_papers.ace.conclusions import of_silicon
from tutti_papers.ace.published import AREA, POWER, SURE, compared

if TYPE_CHECKING:
    from pathlib import Path

    from tutti_papers.ace.published import Published

LINKS = 6
SENT = 300e9
"""Send rate in bytes per second: the peak of 4x4x4."""
ACCELERATOR = (815.0, 300.0)
"""mm2 and W of the accelerator that the paper's NPU resembles (V100, NVIDIA's datasheet)."""


DESIGNS = (("4 MiB", 16), ("4 MiB", 24), ("8 MiB", 24))
"""Scratchpads and FSMs: the paper's, and two larger designs of figure 9."""


def _components() -> list[tuple[str, Interval, Interval]]:
    """Returns area and power of each component, and their sums at the end."""
    found = cost(AceSettings(), Npu(), links=LINKS, bytes_per_second=SENT)
    area = power = Interval(0.0, 0.0, 0.0)
    rows = []
    for component in found.values():
        area, power = area.plus(component.area_mm2), power.plus(component.power_w)
        rows.append((component.name, component.area_mm2, component.power_w))
    return [*rows, ("all", area, power)]


def silicon_values() -> list[tuple[Published, float]]:
    """Returns the published values of table 4 and those of tutti's model."""
    _, area, power = _components()[-1]
    return [(AREA, area.nominal), (POWER, power.nominal)]


def _table_4(folder: Path) -> ExhibitResult:
    """Returns area and power per component, with bounds."""
    del folder
    *components, (_, area, power) = rows = _components()
    share = (100 * area.nominal / ACCELERATOR[0], 100 * power.nominal / ACCELERATOR[1])
    areas = {name: of_area.nominal for name, of_area, _ in components}
    return ExhibitResult(
        conclusions=of_silicon(areas, share),
        frame=pl.DataFrame(
            [
                {
                    "component": name,
                    "mm2": round(of_area.nominal, 3),
                    "mm2_bounds": f"{of_area.low:.3g} to {of_area.high:.3g}",
                    "watts": round(of_power.nominal, 3),
                    "watts_bounds": f"{of_power.low:.2g} to {of_power.high:.2g}",
                }
                for name, of_area, of_power in rows
            ]
        ),
        published=compared(silicon_values()),
        source=f"recalled values of the synthesis at 28 nm. {SURE}",
        notes=(
            "at a send rate of 300 GB/s; constants of public sources, scaled to 28 nm",
            "designs: the process `published` has the paper's synthesis per unit, recalled",
            "its sums for 4 MiB and 16 FSMs are the published ones and are not compared",
        ),
        tables={"designs": _designs()},
    )


def _designs() -> pl.DataFrame:
    """Returns area and power of designs, with tutti's constants and the recalled ones."""
    rows = []
    for process, (sram, fsms) in product(PROCESSES, DESIGNS):
        engine = AceSettings(sram=Size.parse(sram), fsms=fsms)
        found = cost(engine, Npu(), links=LINKS, bytes_per_second=SENT, process=PROCESSES[process])
        rows.append(
            {
                "process": process,
                "sram": sram,
                "fsms": fsms,
                "mm2": round(sum(one.area_mm2.nominal for one in found.values()), 3),
                "watts": round(sum(one.power_w.nominal for one in found.values()), 3),
            }
        )
    return pl.DataFrame(rows)


TABLES = {4: Exhibit(title="area and power of ACE by component", make=_table_4)}

"""Energy and area in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tutti.cli.console import out

if TYPE_CHECKING:
    from tutti.energy import AreaReport, EnergyReport


def show_energy(energy: EnergyReport, area: AreaReport, window_ps: int) -> None:
    """What a window cost, by component, its mean power, and what the hardware takes up."""
    from tutti.report.noc_words import power

    console = out()
    console.print(energy.table())
    console.print(f"  power: {power(energy, window_ps)}", markup=False)
    low, nominal, high = (value / 1e6 for value in area.total_um2)
    console.print(f"  area: {nominal:.4g} mm2, from {low:.4g} to {high:.4g}", markup=False)

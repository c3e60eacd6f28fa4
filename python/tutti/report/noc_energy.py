"""Energy and area in the report of a network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import plotly.graph_objects as go

from .figures import _layout
from .noc_words import power

if TYPE_CHECKING:
    from tutti.energy import AreaReport, EnergyReport, Technology
    from tutti.noc import NocRun

_COLOURS = {"dynamic": "#0072B2", "leakage": "#E69F00"}


def sections(
    run: NocRun, technology: Technology, charts: dict[str, go.Figure]
) -> list[dict[str, Any]]:
    """A section with what the window cost and what the hardware takes up.

    Raises:
        EnergyError: a link has no length.
    """
    energy, area = run.energy(technology), run.area(technology)
    charts["energy"] = _bars(energy)
    window_ps = run.window * run.network.cycle_ps
    lead = (
        f"What the window cost with routers as in {technology.router} and links as in "
        f"{technology.link}: {power(energy, window_ps)}. Bars reach from one bound of the sources "
        "to the other, as if all erred alike."
    )
    table = _table(energy, area)
    return [{"heading": "Energy and area", "lead": lead, "chart": "energy", "table": table}]


def _bars(energy: EnergyReport) -> go.Figure:
    figure = go.Figure()
    for name, parts in (
        ("dynamic", energy.dynamic_by_component),
        ("leakage", energy.leakage_by_component),
    ):
        values = [part.nominal * 1e9 for part in parts.values()]
        figure.add_trace(
            go.Bar(
                name=name,
                x=[_spoken(component) for component in parts],
                y=values,
                marker={"color": _COLOURS[name]},
                error_y={
                    "type": "data",
                    "array": [(part.high - part.nominal) * 1e9 for part in parts.values()],
                    "arrayminus": [(part.nominal - part.low) * 1e9 for part in parts.values()],
                    "thickness": 1.2,
                    "width": 3,
                },
                hovertemplate=f"%{{x}}, {name}: %{{y:.4g}} nJ<extra></extra>",
            )
        )
    figure.update_yaxes(title="energy of the window (nJ)", rangemode="tozero")
    figure.update_layout(_layout(height=340, hovermode="closest"), barmode="group")
    return figure


def _table(energy: EnergyReport, area: AreaReport) -> dict[str, Any]:
    columns = [
        ("component", "text"),
        ("dynamic (nJ)", "number"),
        ("leakage (nJ)", "number"),
        ("least", "number"),
        ("most", "number"),
        ("area (mm2)", "number"),
        ("least area", "number"),
        ("most area", "number"),
    ]
    rows = []
    components = [*energy.dynamic_by_component, "total"]
    for component in components:
        if component == "total":
            dynamic, leakage, um2 = energy.dynamic, energy.leakage, area.total_um2
        else:
            dynamic = energy.dynamic_by_component[component]
            leakage = energy.leakage_by_component[component]
            um2 = area.um2_by_component[component]
        both = dynamic.plus(leakage)
        values = [
            *(value * 1e9 for value in (dynamic.nominal, leakage.nominal, both.low, both.high)),
            *(value / 1e6 for value in (um2.nominal, um2.low, um2.high)),
        ]
        name = _spoken(component)
        rows.append([(name, name), *((value, f"{value:,.4g}") for value in values)])
    return {"columns": columns, "rows": rows}


def _spoken(component: str) -> str:
    return component.replace("_", " ")

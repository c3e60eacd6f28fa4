"""Runs of single-cycle meshes in a notebook: facts, and latency against load."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tutti.networks.mesh.traffic import UNITS
from tutti.networks.mesh.view import text
from tutti.networks.view import curves_svg, sorted_by_load
from tutti.view.notebook import facts_html

if TYPE_CHECKING:
    from tutti.networks.mesh import Run, Saturation


def mesh_run_html(run: Run) -> str:
    """Returns mesh, traffic, state and latency of a run."""
    mesh = ("mesh", text.describe_mesh(run.mesh))
    return facts_html([mesh, *text.facts(run)])


def mesh_saturation_html(found: Saturation) -> str:
    """Returns the saturation loads of a mesh, and its latency against load."""
    run = found.runs[0]
    parts = [line.partition(": ") for line in text.saturation(found)]
    facts = [
        ("mesh", text.describe_mesh(run.mesh)),
        *((name, value) for name, _, value in parts),
    ]
    unit = UNITS[run.traffic[0].kind]
    curve = curves_svg({run.mesh.design: sorted_by_load(found.runs)}, f"offered load, {unit}")
    return f"<div>{facts_html(facts)}{curve}</div>"

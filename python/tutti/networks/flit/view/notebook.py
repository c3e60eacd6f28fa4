"""Flit-level runs in a notebook: facts, and latency against load."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tutti.networks.flit.view import text
from tutti.networks.view import curves_svg, sorted_by_load
from tutti.view.notebook import facts_html
from tutti.view.quantity import estimate, sentence

if TYPE_CHECKING:
    from tutti.networks.flit import NocRun, Saturation

_FLITS = "flits per node and cycle"


def noc_run_html(run: NocRun) -> str:
    """Returns network, traffic, state and latency of a run."""
    facts = [
        ("network", text.describe_network(run.network)),
        *(("traffic", line) for line in text.describe_traffic(run.traffic)),
        ("state", text.ending(run)),
    ]
    if run.is_stable:
        cycle = run.network.cycle_ps
        facts += [
            ("mean latency", text.cycles(run.latency, cycle)),
            ("percentiles", ", ".join(f"p{name} {value}" for name, value in run.quantiles.items())),
            ("network latency", text.cycles(run.network_latency, cycle)),
            ("hops", f"{estimate(run.hops)} routers on the route"),
        ]
    return facts_html(facts)


def saturation_html(found: Saturation) -> str:
    """Returns the saturation load of a network, and its latency against load."""
    run = found.runs[0]
    facts = [
        ("network", text.describe_network(run.network)),
        ("saturation", sentence(text.saturation(found))),
    ]
    curve = curves_svg({run.network.routing: sorted_by_load(found.runs)}, f"offered load, {_FLITS}")
    return f"<div>{facts_html(facts)}{curve}</div>"

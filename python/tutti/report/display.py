"""Functions that display objects of lower layers, for `tutti.display`."""

from __future__ import annotations

from .bypass_graph import draw_configuration
from .notebook import run_html, schedule_html
from .topology_graph import draw_topology

__all__ = ["draw_configuration", "draw_topology", "run_html", "schedule_html"]

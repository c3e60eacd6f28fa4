"""Functions that display objects of lower layers, for `tutti.display`.

Those for notebooks are imported when they are used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .bypass_graph import draw_configuration
from .topology_graph import draw_topology

if TYPE_CHECKING:
    from .notebook import run_html
    from .notebook_noc import (
        mesh_run_html,
        mesh_saturation_html,
        noc_run_html,
        saturation_html,
    )
    from .notebook_platform import platform_html, topology_html
    from .notebook_schedule import schedule_html
    from .notebook_training import training_html

__all__ = [
    "draw_configuration", "draw_topology", "mesh_run_html", "mesh_saturation_html", "noc_run_html",
    "platform_html", "run_html", "saturation_html", "schedule_html", "topology_html",
    "training_html",
]  # fmt: skip

_MODULES = {
    "notebook": ("run_html",),
    "notebook_noc": ("mesh_run_html", "mesh_saturation_html", "noc_run_html", "saturation_html"),
    "notebook_platform": ("platform_html", "topology_html"),
    "notebook_schedule": ("schedule_html",),
    "notebook_training": ("training_html",),
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - each function has its own type
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f".{module}", __package__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

"""Reports and drawings of results: HTML, figures, traces, program graphs and tables.

Reports show the data of a run or a comparison and compute no predictions. Functions import heavy
libraries on use, so that importing this package is fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .calibration import draw_against, draw_fits
    from .coherence import write_coherence_report
    from .compared import write_report
    from .compared_plot import plot_comparison
    from .decisions import decision_map
    from .gantt import draw_timeline
    from .noc import plot_latency, write_load_report, write_noc_report
    from .notebook_noc import load_curves
    from .perfetto import write_trace
    from .program_graph import draw_program_graph
    from .smart import plot_smart, write_smart_load_report, write_smart_report
    from .swept import plot_swept
    from .training import write_training_report
    from .training_trace import write_training_trace
    from .watch import write_watch

_MODULES = {
    "calibration": ("draw_against", "draw_fits"),
    "coherence": ("write_coherence_report",),
    "compared": ("write_report",),
    "compared_plot": ("plot_comparison",),
    "decisions": ("decision_map",),
    "gantt": ("draw_timeline",),
    "noc": ("plot_latency", "write_load_report", "write_noc_report"),
    "notebook_noc": ("load_curves",),
    "perfetto": ("write_trace",),
    "program_graph": ("draw_program_graph",),
    "smart": ("plot_smart", "write_smart_load_report", "write_smart_report"),
    "swept": ("plot_swept",),
    "training": ("write_training_report",),
    "training_trace": ("write_training_trace",),
    "watch": ("write_watch",),
}

__all__ = [
    "decision_map", "draw_against", "draw_fits", "draw_program_graph", "draw_timeline",
    "load_curves", "plot_comparison", "plot_latency", "plot_smart", "plot_swept",
    "write_coherence_report", "write_load_report", "write_noc_report", "write_report",
    "write_smart_load_report", "write_smart_report", "write_trace", "write_training_report",
    "write_training_trace", "write_watch",
]  # fmt: skip


def __getattr__(name: str) -> Any:  # noqa: ANN401 - each public name has its own type
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f".{module}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

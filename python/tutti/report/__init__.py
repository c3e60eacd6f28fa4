"""Reports and drawings of results: HTML, figures, traces, program graphs and tables.

Everything here only shows what a run or a comparison holds. Heavy libraries are loaded by the
function that needs them, so importing this package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .html import write_report as write_report
    from .noc_html import write_load_report as write_load_report
    from .noc_html import write_noc_report as write_noc_report
    from .noc_plot import plot_latency as plot_latency
    from .perfetto import write_trace as write_trace
    from .plot import draw_timeline as draw_timeline
    from .plot import plot_comparison as plot_comparison
    from .program_graph import draw_program_graph as draw_program_graph
    from .swept import plot_swept as plot_swept
    from .table import comparison_table as comparison_table
    from .table import decision_table as decision_table
    from .training_html import write_training_report as write_training_report

_HOMES = {
    "comparison_table": "table",
    "decision_table": "table",
    "draw_program_graph": "program_graph",
    "draw_timeline": "plot",
    "plot_comparison": "plot",
    "plot_latency": "noc_plot",
    "plot_swept": "swept",
    "write_load_report": "noc_html",
    "write_noc_report": "noc_html",
    "write_report": "html",
    "write_trace": "perfetto",
    "write_training_report": "training_html",
}

__all__ = [
    "comparison_table",
    "decision_table",
    "draw_program_graph",
    "draw_timeline",
    "plot_comparison",
    "plot_latency",
    "plot_swept",
    "write_load_report",
    "write_noc_report",
    "write_report",
    "write_trace",
    "write_training_report",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - each public name has its own type
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)

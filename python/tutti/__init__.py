"""Collective communication: generate, verify, simulate, draw and run schedules.

Public names are imported on first use, so that ``import tutti`` is fast.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from tutti import display, errors
from tutti._core import __version__

# `search` and `sweep` are functions and modules: import the functions first.
from tutti.schedule import Schedule, algorithms, schedule
from tutti.schedule_builder import ScheduleBuilder
from tutti.search import Found, search
from tutti.search_by_size import thresholds
from tutti.simulate import Run, compare, simulate, simulate_trace
from tutti.sweep import sweep

if TYPE_CHECKING:
    from tutti.conditions import (
        Background,
        Conditions,
        Exponential,
        Fixed,
        Flow,
        Lognormal,
        Mixture,
        Noise,
        Normal,
        Pareto,
        Part,
        Periodic,
        PerRank,
        Poisson,
        Recorded,
        Trace,
        Uniform,
    )
    from tutti.language import Program, decompile
    from tutti.platform import (
        Flits,
        FlowLevel,
        LogfP,
        LogGP,
        LogP,
        LoP,
        MeshFlits,
        Packets,
        PipeliningPostal,
        Platform,
        Postal,
        Protocols,
    )
    from tutti.report.decisions import decision_map
    from tutti.results import summary
    from tutti.topology import Topology
    from tutti.units import Length, Size, Time, TimePerByte

__all__ = [
    "Background",
    "Conditions",
    "Exponential",
    "Fixed",
    "Flits",
    "Flow",
    "FlowLevel",
    "Found",
    "Length",
    "LoP",
    "LogGP",
    "LogP",
    "LogfP",
    "Lognormal",
    "MeshFlits",
    "Mixture",
    "Noise",
    "Normal",
    "Packets",
    "Pareto",
    "Part",
    "PerRank",
    "Periodic",
    "PipeliningPostal",
    "Platform",
    "Poisson",
    "Postal",
    "Program",
    "Protocols",
    "Recorded",
    "Run",
    "Schedule",
    "ScheduleBuilder",
    "Size",
    "Time",
    "TimePerByte",
    "Topology",
    "Trace",
    "Uniform",
    "__version__",
    "algorithms",
    "compare",
    "decision_map",
    "decompile",
    "errors",
    "schedule",
    "search",
    "simulate",
    "simulate_trace",
    "summary",
    "sweep",
    "thresholds",
]

_LAZY = {
    "Background": "conditions",
    "Conditions": "conditions",
    "Exponential": "conditions",
    "Fixed": "conditions",
    "Flits": "platform",
    "Flow": "conditions",
    "Length": "units",
    "LoP": "platform",
    "LogGP": "platform",
    "LogP": "platform",
    "LogfP": "platform",
    "Lognormal": "conditions",
    "MeshFlits": "platform",
    "Mixture": "conditions",
    "Noise": "conditions",
    "Normal": "conditions",
    "FlowLevel": "platform",
    "Packets": "platform",
    "Pareto": "conditions",
    "Part": "conditions",
    "PerRank": "conditions",
    "Periodic": "conditions",
    "Poisson": "conditions",
    "PipeliningPostal": "platform",
    "Platform": "platform",
    "Postal": "platform",
    "Program": "language",
    "Protocols": "platform",
    "Recorded": "conditions",
    "Size": "units",
    "Time": "units",
    "TimePerByte": "units",
    "Topology": "topology",
    "Trace": "conditions",
    "Uniform": "conditions",
    "decision_map": "report.decisions",
    "decompile": "language",
    "summary": "results",
}
"""Modules of names that are imported on first use."""

_MODULES = {"coherence", "energy", "noc", "package", "papers", "platforms", "report", "topology"}
"""Subpackages that are imported on first use."""


def _renderers() -> display.Renderers:
    from tutti.report import display as renderers

    return renderers


display.provide(_renderers)


def __getattr__(name: str) -> Any:  # noqa: ANN401 - each public name has its own type
    if name in _MODULES:
        return importlib.import_module(f"tutti.{name}")
    if name not in _LAZY:
        message = f"module 'tutti' has no attribute {name!r}"
        raise AttributeError(message)
    value = getattr(importlib.import_module(f"tutti.{_LAZY[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)

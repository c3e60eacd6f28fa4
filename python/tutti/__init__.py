"""Collective communication: schedules that are proved, timed, drawn and run.

The public names, each loaded when it is first used, so that ``import tutti`` stays quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from tutti import errors
from tutti._core import __version__

# `tutti.schedule` is a function and a module; the function must be there first.
from tutti.schedule import Schedule, ScheduleBuilder, algorithms, schedule

if TYPE_CHECKING:
    from tutti.topology import Topology
    from tutti.units import Length, Size, Time, TimePerByte

__all__ = [
    "Length",
    "Schedule",
    "ScheduleBuilder",
    "Size",
    "Time",
    "TimePerByte",
    "Topology",
    "__version__",
    "algorithms",
    "errors",
    "schedule",
]

_LAZY = {
    "Length": "tutti.units",
    "Size": "tutti.units",
    "Time": "tutti.units",
    "TimePerByte": "tutti.units",
    "Topology": "tutti.topology",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - each public name has its own type
    if name not in _LAZY:
        message = f"module 'tutti' has no attribute {name!r}"
        raise AttributeError(message)
    value = getattr(importlib.import_module(_LAZY[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)

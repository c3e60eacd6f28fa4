"""Schedules for real: plan files, the MPI library that executes them, and runs of real ranks."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tutti.mpi.communicator import Communicator
    from tutti.mpi.host import Host, find_host
    from tutti.mpi.launch import Finished, run_ranks
    from tutti.mpi.library import Built, built
    from tutti.mpi.plan import Plan, PlannedSchedule, Rule

__all__ = [
    "Built",
    "Communicator",
    "Finished",
    "Host",
    "Plan",
    "PlannedSchedule",
    "Rule",
    "built",
    "find_host",
    "run_ranks",
]

_HOMES = {
    "Built": "library",
    "Communicator": "communicator",
    "Finished": "launch",
    "Host": "host",
    "Plan": "plan",
    "PlannedSchedule": "plan",
    "Rule": "plan",
    "built": "library",
    "find_host": "host",
    "run_ranks": "launch",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - each public name has its own type
    if name not in _HOMES:
        message = f"module 'tutti.mpi' has no attribute {name!r}"
        raise AttributeError(message)
    value = getattr(importlib.import_module(f"tutti.mpi.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)

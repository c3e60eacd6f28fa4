"""Execution of schedules over MPI: plan files, libtutti_mpi, and benchmarks."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tutti.mpi.communicator import Communicator
    from tutti.mpi.launch import Finished, run_ranks
    from tutti.mpi.library import Built, built
    from tutti.mpi.plan import CollectivePlan, PlannedSchedule, Rule
    from tutti.mpi.underneath import Mpi, find_mpi

__all__ = [
    "Built",
    "CollectivePlan",
    "Communicator",
    "Finished",
    "Mpi",
    "PlannedSchedule",
    "Rule",
    "built",
    "find_mpi",
    "run_ranks",
]

_HOMES = {
    "Built": "library",
    "Communicator": "communicator",
    "Finished": "launch",
    "Mpi": "underneath",
    "CollectivePlan": "plan",
    "PlannedSchedule": "plan",
    "Rule": "plan",
    "built": "library",
    "find_mpi": "underneath",
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

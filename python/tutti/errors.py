"""Every error that tutti raises, and the exit codes of the command line.

A user's mistake is always a :class:`TuttiError`. Its message states what is wrong, where, and what
was expected. A hint follows, and the anchor of its entry in ``docs/reference/errors.md``, which is
generated from these classes. The values that the message names are also attributes.

Each package defines its errors in its module ``errors``; this module imports a class on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tutti.base.errors import TuttiError

_HOMES = {
    "base": (
        "ExitCode", "Kind", "TuttiError", "UnitError", "ConfigError", "SimulationError",
        "DeadlockError",
    ),
    "topologies": ("TopologyError",),
    "schedules": (
        "LayoutError", "AlgorithmError", "ScheduleError", "TextError", "VerificationError",
        "ProgramError",
    ),
    "platforms": ("ModelError", "NoiseError"),
    "energy": ("EnergyError",),
    "bypass": ("BypassError",),
    "networks": ("NocError", "TrafficError", "CoherenceError", "CoherenceRunError"),
    "workloads": ("WorkloadError", "TraceError"),
    "training": ("EndpointError",),
    "mpi": ("PlanError", "MpiError", "LaunchError", "MpiCallError", "BenchError"),
    "measured": ("CalibrationError", "TuningError", "ProofError"),
    "sweeps": ("CacheError", "ExecutorError", "WorkerError"),
    "explore": ("ExploreError",),
    "view": ("ReportError",),
}  # fmt: skip
"""The classes of each package, in the order of the reference page."""

__all__ = ["all_errors"]
__all__ += [name for names in _HOMES.values() for name in names]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - each class has its own type
    for package, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"tutti.{package}.errors"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def all_errors() -> list[type[TuttiError]]:
    """Returns every error class, in the order of the reference page."""
    from tutti.base.errors import TuttiError

    found = [__getattr__(name) for names in _HOMES.values() for name in names]
    return [kind for kind in found if issubclass(kind, TuttiError)]

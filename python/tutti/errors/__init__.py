"""Every error that tutti raises, and the exit codes of the command line.

A user's mistake is always a :class:`TuttiError`. Its message states what is wrong, where, and what
was expected. A hint follows, and the anchor of its entry in ``docs/reference/errors.md``, which is
generated from the tables in this folder. The values that the message names are also attributes.
"""

from __future__ import annotations

from tutti.errors import base, coherence, inputs, mpi, noc, programs, runs, training, tuning
from tutti.errors.base import (
    ExitCode,
    Kind,
    TuttiError,
)
from tutti.errors.coherence import CoherenceError, CoherenceRunError
from tutti.errors.inputs import (
    AlgorithmError,
    BypassError,
    ConfigError,
    EnergyError,
    LayoutError,
    ModelError,
    NoiseError,
    ScheduleError,
    TextError,
    TopologyError,
    UnitError,
)
from tutti.errors.mpi import BenchError, LaunchError, MpiCallError, MpiError, PlanError
from tutti.errors.noc import NocError, TrafficError
from tutti.errors.programs import ProgramError
from tutti.errors.runs import (
    CacheError,
    DeadlockError,
    ExecutorError,
    ExploreError,
    ReportError,
    SimulationError,
    VerificationError,
    WorkerError,
)
from tutti.errors.training import EndpointError, TraceError, WorkloadError
from tutti.errors.tuning import CalibrationError, ProofError, TuningError

__all__ = [
    "AlgorithmError",
    "BenchError",
    "BypassError",
    "CacheError",
    "CalibrationError",
    "CoherenceError",
    "CoherenceRunError",
    "ConfigError",
    "DeadlockError",
    "EndpointError",
    "EnergyError",
    "ExecutorError",
    "ExitCode",
    "ExploreError",
    "Kind",
    "LaunchError",
    "LayoutError",
    "ModelError",
    "MpiCallError",
    "MpiError",
    "NocError",
    "NoiseError",
    "PlanError",
    "ProgramError",
    "ProofError",
    "ReportError",
    "ScheduleError",
    "SimulationError",
    "TextError",
    "TopologyError",
    "TraceError",
    "TrafficError",
    "TuningError",
    "TuttiError",
    "UnitError",
    "VerificationError",
    "WorkerError",
    "WorkloadError",
    "all_errors",
]


def all_errors() -> list[type[TuttiError]]:
    """Returns every error class, in the order of the files."""
    return [
        value
        for file in (base, inputs, programs, noc, coherence, runs, training, mpi, tuning)
        for value in vars(file).values()
        if isinstance(value, type)
        and issubclass(value, TuttiError)
        and value.__module__ == file.__name__
    ]

"""Workloads: models as lists of layers, with their computation and communication.

Examples:
    >>> model = build("resnet50")
    >>> model.parameters
    25502912
    >>> len(model.layers)
    54
"""

from __future__ import annotations

from tutti.workload.compute import Chiplet, MeasuredCompute, Roofline, Systolic, read_measured
from tutti.workload.model import Gemm, Model, ModelLayer, Tables, Work
from tutti.workload.parallel import LayerTransfers, Parallelism
from tutti.workload.registry import WorkloadEntry, build, models
from tutti.workload.timed import TimedLayer, recorded, recorded_models, timed

__all__ = [
    "Chiplet",
    "Gemm",
    "LayerTransfers",
    "MeasuredCompute",
    "Model",
    "ModelLayer",
    "Parallelism",
    "Roofline",
    "Systolic",
    "Tables",
    "TimedLayer",
    "Work",
    "WorkloadEntry",
    "build",
    "models",
    "read_measured",
    "recorded",
    "recorded_models",
    "timed",
]

"""Workloads: models as lists of layers, and what they ask of an NPU and of the network.

>>> model = build("resnet50")
>>> model.parameters
25502912
>>> len(model.layers)
54
"""

from __future__ import annotations

from tutti.workload.compute import Measured, Roofline, Systolic, read_measured
from tutti.workload.model import Gemm, Model, ModelLayer, Tables, Work
from tutti.workload.parallel import LayerTransfers, Parallelism
from tutti.workload.registry import ModelEntry, build, models

__all__ = [
    "Gemm",
    "LayerTransfers",
    "Measured",
    "Model",
    "ModelEntry",
    "ModelLayer",
    "Parallelism",
    "Roofline",
    "Systolic",
    "Tables",
    "Work",
    "build",
    "models",
    "read_measured",
]

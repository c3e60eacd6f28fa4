"""Layers with times: what a pass over each takes, and the gradients that it leaves.

Either a model's layers, timed by a way of computing (:func:`timed`), or the layers of ASTRA-sim's
public workloads, whose cycles are recorded in ``astrasim.csv`` (:func:`recorded`).

>>> layers = recorded("resnet50")
>>> str(layers[0].gradients), str(layers[0].forward)
('37632 B', '13.003 us')
>>> sum(layer.compute.ps for layer in layers) // 1000
1095314
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

from tutti.errors import WorkloadError
from tutti.units import Frequency, Size, Time, TimePerByte
from tutti.workload.compute import Roofline
from tutti.workload.model import PASSES

if TYPE_CHECKING:
    from tutti.workload.compute import ComputeModel
    from tutti.workload.model import Model

__all__ = ["RECORDED_SOURCE", "TimedLayer", "recorded", "recorded_models", "timed"]

RECORDED_SOURCE = (
    "ASTRA-sim (MIT), text workloads Resnet50_DataParallel, Transformer_HybridParallel "
    "(examples/text_converter/text_workloads, commit 9d8bad5) and DLRM_HybridParallel "
    "(inputs/workload/ASTRA-sim-1.0, commit 15935da): cycles of each pass and bytes of each "
    "all-reduce of weight gradients. ResNet-50 has 4 B for each weight, DLRM 2 B; the "
    "transformer's file divides it among 4 NPUs. Collectives of activations and the times of "
    "updates are left out; batches are not said"
)

_CLOCK = "1 GHz"


@dataclass(frozen=True, kw_only=True)
class TimedLayer:
    """A layer, as far as time is concerned.

    Attributes:
        name: Its name.
        forward: Of the forward pass.
        input_gradient: Of the pass that makes the gradient of its inputs.
        weight_gradient: Of the pass that makes the gradient of its weights.
        gradients: What an all-reduce of its weights' gradients carries.
    """

    name: str
    forward: Time
    input_gradient: Time
    weight_gradient: Time
    gradients: Size

    @property
    def compute(self) -> Time:
        """All three passes."""
        return Time(ps=sum(getattr(self, which).ps for which in PASSES))


def timed(
    model: Model,
    compute: ComputeModel,
    samples: int,
    *,
    element: int = 4,
    left: tuple[int, TimePerByte] | None = None,
) -> tuple[TimedLayer, ...]:
    """The layers of a model, each pass over `samples` samples of an NPU.

    Args:
        model: The model.
        compute: How long an NPU takes.
        samples: Its batch.
        element: Bytes of an activation, a weight, a gradient (FP32: 4).
        left: What it has to compute with, operations a second and memory; a roofline needs it.

    Raises:
        WorkloadError: There are no samples, a roofline has nothing to compute with, or no times of
            a layer are known.
    """
    if samples < 1:
        message = f"{samples} samples are no batch: expected at least 1"
        raise WorkloadError(message, kind="no_samples", fields={"samples": samples})
    if left is None and isinstance(compute, Roofline):
        message = "a roofline needs what an NPU computes with: operations a second, and memory"
        raise WorkloadError(message, kind="nothing_left")
    having = left or (0, TimePerByte.parse("1 B/s"))
    return tuple(
        TimedLayer(
            name=layer.name,
            **{
                which: Time(ps=compute.time(layer, which, samples, element, having))
                for which in PASSES
            },
            gradients=Size(bytes=layer.parameters * element),
        )
        for layer in model.layers
    )


def recorded_models() -> tuple[str, ...]:
    """The models of which ASTRA-sim's cycles are recorded."""
    return tuple(_rows())


def recorded(name: str, *, clock: str | Frequency = _CLOCK) -> tuple[TimedLayer, ...]:
    """The layers of one of ASTRA-sim's workloads, data parallel.

    Args:
        name: `resnet50`, `dlrm_small` or `transformer`.
        clock: Of the cycles.

    Raises:
        WorkloadError: No cycles of that model are recorded.
        UnitError: The clock is none.
    """
    rows = _rows().get(name)
    if rows is None:
        known = ", ".join(recorded_models())
        message = f"no cycles of `{name}` are recorded: expected one of {known}"
        raise WorkloadError(message, kind="unknown_model", fields={"name": name})
    ticks = Frequency.of_any(clock)
    return tuple(
        TimedLayer(
            name=row["layer"],
            **{which: ticks.cycles(int(row[which])) for which in PASSES},
            gradients=Size(bytes=int(row["gradient_bytes"])),
        )
        for row in rows
    )


@cache
def _rows() -> dict[str, list[dict[str, str]]]:
    text = resources.files("tutti.workload").joinpath("astrasim.csv").read_text("utf-8")
    found: dict[str, list[dict[str, str]]] = {}
    for row in csv.DictReader(text.splitlines()):
        found.setdefault(row["model"], []).append(row)
    return found

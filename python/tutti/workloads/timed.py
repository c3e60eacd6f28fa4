"""Layers with the times of their passes and the sizes of their gradients.

:func:`timed` applies a compute model to the layers of a model. :func:`recorded` returns the layers
of ASTRA-sim's public workloads, with the cycles of ``astrasim.csv``.

Examples:
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

from tutti.base.units import Frequency, Size, Time, TimePerByte
from tutti.workloads.compute import Roofline
from tutti.workloads.errors import WorkloadError
from tutti.workloads.model import PASSES

if TYPE_CHECKING:
    from tutti.workloads.compute import ComputeModel
    from tutti.workloads.model import Model

RECORDED_SOURCE = (
    "ASTRA-sim (MIT), text workloads Resnet50_DataParallel, Transformer_HybridParallel "
    "(examples/text_converter/text_workloads, commit 9d8bad5) and DLRM_HybridParallel "
    "(inputs/workload/ASTRA-sim-1.0, commit 15935da): cycles of each pass and bytes of each "
    "all-reduce of weight gradients. ResNet-50 has 4 B for each weight, DLRM 2 B; the "
    "transformer's file divides it among 4 NPUs. Collectives of activations and the times of "
    "updates are left out; batch sizes are not stated"
)

_CLOCK = "1 GHz"


@dataclass(frozen=True, kw_only=True)
class TimedLayer:
    """The times of a layer.

    Attributes:
        name: The name.
        forward: The time of the forward pass.
        input_gradient: The time of the input gradient.
        weight_gradient: The time of the weight gradient.
        gradients: The size of the all-reduce of the weight gradients.
    """

    name: str
    forward: Time
    input_gradient: Time
    weight_gradient: Time
    gradients: Size

    @property
    def compute(self) -> Time:
        """The sum of all three passes."""
        return Time(ps=sum(getattr(self, which).ps for which in PASSES))


def timed(
    model: Model,
    compute: ComputeModel,
    samples: int,
    *,
    element: int = 4,
    left: tuple[int, TimePerByte] | None = None,
) -> tuple[TimedLayer, ...]:
    """Returns the layers of a model with times for `samples` samples per NPU.

    Args:
        model: The model.
        compute: The compute model.
        samples: The batch size of an NPU.
        element: Bytes per activation, weight and gradient (FP32: 4).
        left: Operations per second and memory bandwidth, which a roofline requires.

    Raises:
        WorkloadError: `samples` is 0, a roofline has no `left`, or a layer has no times.
    """
    if samples < 1:
        message = f"a batch of {samples} samples: expected at least 1"
        raise WorkloadError(message, kind="no_samples", fields={"samples": samples})
    if left is None and isinstance(compute, Roofline):
        message = "a roofline requires `left`: operations per second and memory bandwidth"
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
    """Returns the models with recorded cycles of ASTRA-sim."""
    return tuple(_rows())


def recorded(name: str, *, clock: str | Frequency = _CLOCK) -> tuple[TimedLayer, ...]:
    """Returns the layers of a data-parallel workload of ASTRA-sim.

    Args:
        name: `resnet50`, `dlrm_small` or `transformer`.
        clock: The clock frequency.

    Raises:
        WorkloadError: The model has no recorded cycles.
        UnitError: The clock is not a frequency.
    """
    rows = _rows().get(name)
    if rows is None:
        known = ", ".join(recorded_models())
        message = f"no recorded cycles of `{name}`: expected one of {known}"
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
    text = resources.files("tutti.workloads").joinpath("astrasim.csv").read_text("utf-8")
    found: dict[str, list[dict[str, str]]] = {}
    for row in csv.DictReader(text.splitlines()):
        found.setdefault(row["model"], []).append(row)
    return found

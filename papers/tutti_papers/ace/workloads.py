"""The trained workloads, and the readings of what the paper leaves open about them.

`resnet50`, `gnmt` and `dlrm` have MLPerf's layers and a roofline. `resnet50_libra` and `dlrm_libra`
are the workloads that the authors' group published with LIBRA (arXiv 2109.11762, the year of the
paper): `inputs/workload/ResNet_50.txt` and `DLRM.txt` of github.com/astra-sim/libra at ff225aa.

- ResNet-50: 1,095,314 cycles of computing, those of ASTRA-sim's public workload, and an all-reduce
  of 51,005,824 B: 2 B for each of 25,502,912 weights. ASTRA-sim's own file has 4 B.
- DLRM: bottom 1600-1024x6-64, top 4160-2048x11-1, 2 B for each of 57,411,584 weights. Every pass
  of an a x b layer takes 2 * 512 * a * b operations at 60 TFLOP/s. An all-to-all has 4,194,304 B:
  512 samples, 64 tables, rows of 64 elements, 2 B. A lookup takes 419,431 cycles: 2^25 B at
  80 GB/s, the rate of an SM; the gradient of the rows takes 300 cycles, their update 10.

These decode to round numbers if a cycle takes 1 ns. LIBRA sends all gradients of a model at once;
here each layer sends its own, as the paper states.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

from tutti.base.units import Frequency, Size, Time
from tutti.training.endpoint import Npu
from tutti.workloads import Model, Tables, TimedLayer, build, recorded
from tutti.workloads.compute import Roofline, roofline
from tutti.workloads.model import PASSES, linear

if TYPE_CHECKING:
    from tutti.base.units import TimePerByte
    from tutti.workloads import ModelLayer
    from tutti.workloads.compute import ComputeModel
    from tutti.workloads.model import Pass

Scaling = Literal["fixed", "sms", "memory", "bounding"]
SCALINGS: dict[Scaling, str] = {
    "fixed": "recorded times for any resources",
    "sms": "in proportion to the SMs left to compute",
    "memory": "in proportion to the memory bandwidth left to compute",
    "bounding": "by the resource that bounds the layer in a roofline",
}

BATCH = {"resnet50": 32, "resnet50_libra": 32, "gnmt": 128, "dlrm": 512, "dlrm_libra": 512}
"""Samples per NPU (R); 512 also follows from LIBRA's DLRM."""
RECORDED = ("resnet50_libra", "dlrm_libra")
"""The workloads with recorded times."""

FP16 = 2
"""Bytes of an activation and of a gradient (S)."""
_BOTTOM = (1600, *(1024,) * 6, 64)
_TOP = (4160, *(2048,) * 11, 1)
_TABLES, _DIMENSION, _LOOKUPS = 64, 64, 7
"""Seven rows read and their sum written for each table and sample are 2^25 B."""
_FLOPS_PER_NS = 60_000
_LOOKUP, _UPDATE = 419_431, 310


@dataclass(frozen=True)
class Reading:
    """A joint reading of the recorded workloads.

    Attributes:
        clock: The clock of the recorded cycles.
        gradient: Bytes per gradient of ResNet-50.
        scaling: How the time of a layer depends on the resources that are left to compute.
    """

    clock: str = "1 GHz"
    gradient: int = FP16
    scaling: Scaling = "bounding"


@dataclass(frozen=True)
class Recorded:
    """Recorded times of passes on a complete NPU, scaled to the resources left to compute.

    Attributes:
        layers: The recorded layers.
        scaling: How times depend on resources.
        npu: The complete NPU.
    """

    layers: tuple[TimedLayer, ...]
    scaling: Scaling
    npu: Npu

    def time(
        self,
        layer: ModelLayer,
        which: Pass,
        samples: int,
        element: int,
        left: tuple[int, TimePerByte],
    ) -> int:
        """Returns the time of a pass in picoseconds."""
        recorded_times = next(one for one in self.layers if one.name == layer.name)
        time: Time = getattr(recorded_times, which)
        return round(time.ps * self._slowdown(layer, which, samples, element, left))

    def _slowdown(
        self,
        layer: ModelLayer,
        which: Pass,
        samples: int,
        element: int,
        left: tuple[int, TimePerByte],
    ) -> float:
        """Returns the time of a pass over its time on a complete NPU."""
        full = self.npu.without(0, None)
        match self.scaling:
            case "fixed":
                return 1.0
            case "sms":
                return full[0] / left[0]
            case "memory":
                return full[1].core.bytes_per_second / left[1].core.bytes_per_second
            case "bounding":
                # The recorded input gradient of the first layer is as its weight gradient.
                counted: Pass = "weight_gradient" if layer.first else which
                work = layer.work(counted, samples, element)
                return roofline(work, left) / roofline(work, full)


@cache
def model_of(name: str, clock: str) -> Model:
    """Returns the layers of a workload."""
    if name == "resnet50_libra":
        return build("resnet50")
    return _dlrm(Frequency.parse(clock)) if name == "dlrm_libra" else build(name)


def compute_of(name: str, reading: Reading) -> ComputeModel:
    """Returns the times of the layers of a workload."""
    if name not in RECORDED:
        return Roofline()
    return Recorded(_layers(name, reading.clock), reading.scaling, Npu())


@cache
def _layers(name: str, clock: str) -> tuple[TimedLayer, ...]:
    if name == "resnet50_libra":
        return recorded("resnet50", clock=clock)
    return tuple(_timed(layer, Frequency.parse(clock)) for layer in model_of(name, clock).layers)


def _timed(layer: ModelLayer, clock: Frequency) -> TimedLayer:
    time = clock.cycles(round(2 * BATCH["dlrm_libra"] * layer.macs / _FLOPS_PER_NS))
    gradients = Size(bytes=FP16 * layer.parameters)
    return TimedLayer(name=layer.name, **dict.fromkeys(PASSES, time), gradients=gradients)


def _dlrm(clock: Frequency) -> Model:
    layers: list[ModelLayer] = []
    for part, widths in (("bottom", _BOTTOM), ("top", _TOP)):
        for index, (inputs, outputs) in enumerate(pairwise(widths), start=1):
            layers.append(linear(f"{part}_{index}", inputs, outputs, first=not layers))
    times: tuple[Time, Time] = (clock.cycles(_LOOKUP), clock.cycles(_UPDATE))
    return Model(
        name="dlrm_libra",
        source="LIBRA, inputs/workload/DLRM.txt at ff225aa",
        layers=tuple(layers),
        samples="samples",
        tables=Tables(
            tables=_TABLES,
            dimension=_DIMENSION,
            lookups=_LOOKUPS,
            bottom=len(_BOTTOM) - 1,
            times=times,
        ),
    )

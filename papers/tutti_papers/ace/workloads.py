"""The trained workloads, and the readings of what the paper leaves open about them.

`resnet50`, `gnmt` and `dlrm` have MLPerf's layers and a roofline. `resnet50_libra` and `dlrm_libra`
are the workloads of the authors' group. Their public files:

- ResNet-50: `Resnet50_DataParallel.txt` of ASTRA-sim 1, 1,095,314 cycles of computing and 4 B for
  each of 25,502,912 weights. The cycles are those of one image: the input gradient of the first
  layer takes 12,864 = 12,544 + 320 cycles, and 12,544 = 112 squared rows are an image's pixels.
  LIBRA (arXiv 2109.11762, the year of the paper) has the same cycles and 2 B for each weight:
  `inputs/workload/ResNet_50.txt` of github.com/astra-sim/libra at ff225aa.
- DLRM: `inputs/workload/medium_DLRM.txt` of github.com/yleintel/astra-sim at 81607f2; LIBRA's
  `DLRM.txt` has the same cycles and one all-reduce of all gradients. Bottom 1600-1024x6-64, top
  4160-2048x11-1, 2 B for each of 57,411,584 weights. Every pass of an a x b layer takes
  2 * 512 * a * b operations at 60 TFLOP/s. An all-to-all has 4,194,304 B: 512 samples, 64 tables,
  rows of 64 elements, 2 B. A lookup takes 419,431 cycles: 2^25 B at 80 GB/s, the rate of an SM; the
  gradient of the rows takes 300 cycles, their update 10. Each layer sends its own gradients.

These decode to round numbers if a cycle takes 1 ns. No public file of GNMT was found. Its cells are
those of `data/model/gnmt_gemm_empty.m` of github.com/maestro-project/maestro at 4d3c181, of the
same group: nine products of 2048 or 3072 by 4096, a cell's inputs and state together.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import pairwise, product
from typing import TYPE_CHECKING, Literal

from tutti.base.units import Frequency, Size
from tutti.training.endpoint import Npu
from tutti.workloads import MeasuredCompute, Model, Tables, TimedLayer, build, recorded
from tutti.workloads.compute import Roofline, roofline
from tutti.workloads.model import PASSES, linear

if TYPE_CHECKING:
    from tutti.base.units import TimePerByte
    from tutti.workloads import ModelLayer
    from tutti.workloads.compute import ComputeModel
    from tutti.workloads.model import Pass

Scaling = Literal["memory", "bounding", "sms", "fixed"]
SCALINGS: dict[Scaling, str] = {
    "memory": "in inverse proportion to the memory bandwidth left to compute",
    "bounding": "by the resource that bounds the layer in a roofline",
    "sms": "in inverse proportion to the SMs left to compute",
    "fixed": "times of a complete NPU for any resources",
}
Lookups = Literal["left", "recorded"]
Cells = Literal["unrolled", "batched"]

BATCH = {"resnet50": 32, "resnet50_libra": 32, "gnmt": 128, "dlrm": 512, "dlrm_libra": 512}
"""Samples per NPU (R); 512 also follows from the file of DLRM, 128 from the rows of MAESTRO's."""
RECORDED = ("resnet50_libra", "dlrm_libra")
"""The workloads with recorded times."""

FP16 = 2
"""Bytes of an activation and of a gradient (S)."""
GNMT_PART = 0.25
"""The compute of GNMT over its roofline, fitted to a conclusion: of 1, 1/2, 1/4, ... the largest
part with which ACE is faster than every baseline on every size, as the text states."""
_BOTTOM = (1600, *(1024,) * 6, 64)
_TOP = (4160, *(2048,) * 11, 1)
_TABLES, _DIMENSION, _LOOKUPS = 64, 64, 7
"""Seven rows read and their sum written for each table and sample are 2^25 B."""
_FLOPS_PER_NS = 60_000
_LOOKUP, _UPDATE = 419_431, 310


@dataclass(frozen=True)
class Reading:
    """A joint reading of the workloads. The defaults are those of the exhibits.

    Attributes:
        clock: The clock of the recorded cycles.
        gradient: Bytes per gradient of ResNet-50.
        scaling: How the time of a layer depends on the resources that are left to compute.
        lookups: Whether a lookup of DLRM takes the time of its bytes at the memory bandwidth left,
            or the recorded one, which is that of an SM.
        cells: Whether a time step of GNMT's cells is one product, which reads all weights, or the
            inputs of all steps are one product.
        part: The compute of GNMT over its roofline.
        dlrm_clock: The clock of DLRM's cycles; that of all by default.
    """

    clock: str = "1 GHz"
    gradient: int = 4
    scaling: Scaling = "memory"
    lookups: Lookups = "left"
    cells: Cells = "unrolled"
    part: float = GNMT_PART
    dlrm_clock: str = ""

    def clock_of(self, name: str) -> str:
        """Returns the clock of a workload's recorded cycles."""
        return self.dlrm_clock or self.clock if name == "dlrm_libra" else self.clock


@dataclass(frozen=True)
class Scaled:
    """Times of a compute model on a complete NPU, scaled to the resources left to compute.

    Attributes:
        times: The compute model.
        scaling: How times depend on resources.
        npu: The complete NPU.
        part: A factor of all times.
    """

    times: ComputeModel
    scaling: Scaling
    npu: Npu
    part: float = 1.0

    def time(
        self,
        layer: ModelLayer,
        which: Pass,
        samples: int,
        element: int,
        left: tuple[int, TimePerByte],
    ) -> int:
        """Returns the time of a pass in picoseconds."""
        full = self.npu.without(0, None)
        time = self.times.time(layer, which, samples, element, full)
        return round(time * self.part * self._slowdown(layer, which, samples, element, left))

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


def model_of(name: str, reading: Reading) -> Model:
    """Returns the layers of a workload."""
    if name == "dlrm_libra":
        return _dlrm(reading.clock_of(name), reading.lookups)
    if name == "gnmt":
        return build("gnmt:25,unrolled" if reading.cells == "unrolled" else "gnmt")
    return build("resnet50" if name == "resnet50_libra" else name)


def compute_of(name: str, reading: Reading) -> ComputeModel:
    """Returns the times of the layers of a workload."""
    times = _recorded(name, reading.clock_of(name)) if name in RECORDED else Roofline()
    part = reading.part if name == "gnmt" else 1.0
    return Scaled(times, reading.scaling, Npu(), part)


def slowdown_of(name: str, left: tuple[int, TimePerByte]) -> float:
    """Returns the roofline's time of an iteration with the resources left over a complete NPU's."""
    reading = Reading(scaling="bounding")
    compute = compute_of(name, reading)
    layers = model_of(name, reading).layers

    def time(resources: tuple[int, TimePerByte]) -> int:
        passes = product(layers, PASSES)
        return sum(compute.time(one, which, BATCH[name], FP16, resources) for one, which in passes)

    return time(left) / time(Npu().without(0, None))


def gradient_of(name: str, reading: Reading) -> int:
    """Returns the bytes of a gradient of a workload."""
    return reading.gradient if name.startswith("resnet50") else FP16


@cache
def _recorded(name: str, clock: str) -> MeasuredCompute:
    layers = recorded("resnet50", clock=clock) if name == "resnet50_libra" else _timed(clock)
    return MeasuredCompute(
        {one.name: {which: getattr(one, which) for which in PASSES} for one in layers}, name
    )


def _timed(clock: str) -> tuple[TimedLayer, ...]:
    """Returns the layers of DLRM with their recorded times."""
    ticks, samples = Frequency.parse(clock), BATCH["dlrm_libra"]
    found = []
    for layer in _dlrm(clock, "recorded").layers:
        time = ticks.cycles(round(2 * samples * layer.macs / _FLOPS_PER_NS))
        gradients = Size(bytes=FP16 * layer.parameters)
        found.append(
            TimedLayer(name=layer.name, **dict.fromkeys(PASSES, time), gradients=gradients)
        )
    return tuple(found)


@cache
def _dlrm(clock: str, lookups: Lookups) -> Model:
    layers: list[ModelLayer] = []
    for part, widths in (("bottom", _BOTTOM), ("top", _TOP)):
        for index, (inputs, outputs) in enumerate(pairwise(widths), start=1):
            layers.append(linear(f"{part}_{index}", inputs, outputs, first=not layers))
    ticks = Frequency.parse(clock)
    return Model(
        name="dlrm_libra",
        source="inputs/workload/medium_DLRM.txt of yleintel/astra-sim at 81607f2",
        layers=tuple(layers),
        samples="samples",
        tables=Tables(
            tables=_TABLES,
            dimension=_DIMENSION,
            lookups=_LOOKUPS,
            bottom=len(_BOTTOM) - 1,
            lookup_time=ticks.cycles(_LOOKUP) if lookups == "recorded" else None,
            update_time=ticks.cycles(_UPDATE),
        ),
    )

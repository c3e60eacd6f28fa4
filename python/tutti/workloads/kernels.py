"""Times of the kernels of decoders on GPUs: amounts at published peaks, and coefficients.

The time of a pass over a layer is a sum of terms. Each is an amount, which follows from the shape
and the published peaks, times a coefficient, which measurements determine
(:mod:`tutti.training.plan.efficiency`). docs/models/measured-steps.md has the table.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from tutti.base.units import TimePerByte
    from tutti.platforms.npus import NpuPeaks
    from tutti.workloads.model import ModelLayer, Pass

    Array = NDArray[np.float64]
    Work = tuple[ModelLayer, Pass]

Precision = Literal["bf16", "fp8", "mxfp8", "nvfp4"]
PRECISIONS: tuple[Precision, ...] = get_args(Precision)

Dispatcher = Literal["alltoall", "flex", "fused", "dropping"]
DISPATCHERS: tuple[Dispatcher, ...] = get_args(Dispatcher)

Graph = Literal["eager", "partial", "full"]
GRAPHS: tuple[Graph, ...] = get_args(Graph)

TERMS = (
    "products",
    "grouped",
    "attention",
    "classifier",
    "memory",
    "copies",
    "weights",
    "kernels",
    "routing",
)
"""The terms of a pass.

`products`, `grouped`: FLOPs of matrix products, and of those of experts, at the peak of the
precision. `attention`, `classifier`: FLOPs at the peak of BF16. `memory`, `copies`: bytes of
activations, and of the copies of tokens that experts process, at the memory bandwidth. `weights`:
bytes of weights and gradients. `kernels`, `routing`: passes over layers, and over experts.
"""

_WEIGHT = {"bf16": 2.0, "fp8": 1.0, "mxfp8": 1 + 1 / 32, "nvfp4": 0.5 + 1 / 16}
"""Bytes of a weight that a product reads. MXFP8 has a scale of 1 B per 32 elements, NVFP4 one of
1 B per 16 (OCP, Microscaling formats 1.0; NVIDIA, Transformer Engine)."""
_ACTIVATION = 2
"""Bytes of an activation between kernels: BF16 in all recipes."""


@dataclass(frozen=True)
class Rates:
    """Peaks of a GPU at a precision.

    Attributes:
        flops: Operations per second of matrix products.
        bf16: Operations per second of BF16.
        memory: Bytes per second of the memory.
        weight: Bytes of a weight that a product reads.
    """

    flops: float
    bf16: float
    memory: float
    weight: float

    @classmethod
    def of(cls, npu: NpuPeaks, precision: Precision) -> Rates | None:
        """Returns the peaks of a GPU; None if it does not have the precision."""
        # Tensor cores scale blocks of 32 elements since those that have FP4 (OCP MX).
        peaks = {
            "bf16": npu.bf16_flops,
            "fp8": npu.fp8_flops,
            "mxfp8": npu.fp8_flops if npu.fp4_flops else None,
            "nvfp4": npu.fp4_flops,
        }
        flops = peaks[precision]
        if flops is None:
            return None
        memory = npu.memory_bandwidth.core.bytes_per_second
        return cls(flops.per_second, npu.bf16_flops.per_second, memory, _WEIGHT[precision])


def amounts(layer: ModelLayer, which: Pass, samples: int, rates: Rates) -> list[float]:
    """Returns the amount of each term of a pass over the part of a layer on a GPU.

    Seconds at the peaks; counts for `kernels` and `routing`. A layer without weights is the
    attention that the backward pass computes again: it adds no traffic.
    """
    found = dict.fromkeys(TERMS, 0.0)
    if which == "input_gradient" and layer.first:
        return list(found.values())
    is_expert = "_expert" in layer.name or layer.experts > 1
    inside = sum(gemm.macs for gemm in layer.gemms if not gemm.weights)
    found["attention"] = 2 * inside * samples / rates.bf16
    if inside and not layer.parameters:
        return list(found.values())
    flops = 2 * (layer.macs - inside) * samples
    if layer.name == "classifier":
        found["classifier"] = flops / rates.bf16
    else:
        found["grouped" if is_expert else "products"] = flops / rates.flops
    moved = _ACTIVATION * (layer.inputs + layer.outputs) * samples / rates.memory
    found["copies" if is_expert else "memory"] = moved
    if layer.gemms:
        # The weight gradient is added to an accumulator of FP32 or BF16.
        size = 2 * _ACTIVATION if which == "weight_gradient" else rates.weight
        found["weights"] = layer.parameters * size / rates.memory
        found["routing" if is_expert else "kernels"] = 1.0
    return list(found.values())


OVERLAP = 3.0
"""Exponent of the norm that combines the time of the GPU and that of launches: 1 adds them, a large
one takes the longer. Launches run ahead of the GPU, except where the host waits for it."""

HOST = 2
"""The last terms, which the host needs."""


def pass_seconds(amounts: Array, coefficients: Array) -> Array:
    """Returns the seconds of passes with amounts of :data:`TERMS` in the last axis."""
    parts = amounts * coefficients
    gpu, host = parts[..., :-HOST].sum(axis=-1), parts[..., -HOST:].sum(axis=-1)
    found: Array = (gpu**OVERLAP + host**OVERLAP) ** (1 / OVERLAP)
    return found


@dataclass(frozen=True)
class Kernels:
    """The compute model of a GPU: amounts times coefficients.

    Attributes:
        rates: The peaks.
        coefficients: A coefficient per term of :data:`TERMS`.
        shares: Factors on the time of the GPU and on that of launches, in forward and in backward
            passes of a step; None combines them in each pass over a layer.
    """

    rates: Rates
    coefficients: tuple[float, ...]
    shares: tuple[tuple[float, float], tuple[float, float]] | None = None

    def within(
        self,
        forward: Iterable[Work],
        backward: Iterable[Work],
        samples: int,
        left: tuple[int, TimePerByte],
    ) -> Kernels:
        """Returns the model for the passes of a step, which together take their combined time.

        Launches run ahead of the GPU across layers, so measured steps determine the combination of
        complete passes. As :func:`pass_seconds` is homogeneous, its gradient there divides the time
        among the layers exactly (Euler's theorem).

        Args:
            forward: The layers of the forward pass, and the passes over them.
            backward: Those of the backward pass, with what it computes again.
            samples: Samples of a pass.
            left: As in :meth:`time`.
        """
        found = []
        for works in (forward, backward):
            parts = sum(self._parts(layer, which, samples, left) for layer, which in works)
            gpu, host = (float(np.sum(of)) for of in np.split(parts, [-HOST]))
            both = (gpu**OVERLAP + host**OVERLAP) ** (1 / OVERLAP) or 1.0
            power = OVERLAP - 1
            found.append(((gpu / both) ** power, (host / both) ** power))
        return replace(self, shares=(found[0], found[1]))

    def in_backward(self) -> Kernels:
        """Returns the model for forward passes that the backward pass repeats."""
        return replace(self, shares=self.shares and (self.shares[1],) * 2)

    def _parts(
        self, layer: ModelLayer, which: Pass, samples: int, left: tuple[int, TimePerByte]
    ) -> Array:
        """Returns the seconds of each term."""
        per_second, memory = left
        slower = self.rates.flops / per_second
        slower_memory = self.rates.memory / memory.core.bytes_per_second
        factors = (*[slower] * 4, *[slower_memory] * 3, 1.0, 1.0)
        found = np.array(amounts(layer, which, samples, self.rates)) * factors
        parts: Array = found * np.array(self.coefficients)
        return parts

    def time(
        self,
        layer: ModelLayer,
        which: Pass,
        samples: int,
        element: int,
        left: tuple[int, TimePerByte],
    ) -> int:
        """Returns picoseconds of a pass.

        Bytes per element are those of the precision. `left` slows operations and memory by the
        share that is not left.
        """
        del element
        parts = self._parts(layer, which, samples, left)
        if self.shares is None:
            return round(1e12 * float(pass_seconds(parts, np.ones(len(parts)))))
        gpu, host = self.shares[which != "forward"]
        return round(1e12 * float(gpu * parts[:-HOST].sum() + host * parts[-HOST:].sum()))

"""Times of captured operators on a GPU: the terms of the model of a step, operator by operator.

Products and attention take their FLOPs at the peak of their datatype, times a fitted coefficient
(:mod:`tutti.training.plan.efficiency`). Other operators take their bytes at the memory bandwidth.

The fitted coefficient of the bytes of products is the time of the operators between them, in steps
that fuse these operators. It replaces them if the program is compiled. If it is not, they have
their own time, and products take the longer of their FLOPs and their bytes. Where Llama 3.1 8B was
measured with and without a compiler (TorchTitan, benchmarks/llama3_h100_202412_torchtitan.md, H100
with 2.4 TB/s), the difference is 386 ms on 8 GPUs and 408 ms on 128.

With a precision below BF16, products of weights in numbered blocks have its rate, as layers of
recipes do; the coefficients of that precision have the casts. Others, such as the classifier, keep
their datatype. Products in FP8 of the program have the rate of FP8 with any precision.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from tutti.training.plan.efficiency import coefficients, rates_of
from tutti.workloads.kernels import OVERLAP, TERMS, Rates

if TYPE_CHECKING:
    from tutti.base.units import TimePerByte
    from tutti.platforms.npus import NpuPeaks
    from tutti.training.capture.measured import MeasuredTimes
    from tutti.training.capture.record import Operator
    from tutti.training.plan.calibrated import Calibrated
    from tutti.training.plan.efficiency import Setting

__all__ = ["SEPARATE", "KernelTimes"]

_NUMBERED = re.compile(r"(^|\.)\d+(\.|$)")
"""The names of modules in a numbered block, such as `layers.3.up`."""
_HALF = frozenset({"bfloat16", "float16"})
_HALF_BYTES = 2

_MODEL_SHARE = 4 / 5
"""Share of the FLOPs of the backward pass of attention that the coefficient counts: a kernel
computes five products, of which the first repeats the scores (Dao et al. 2022, section 3.1)."""
SEPARATE = ("aten.embedding", "fsdp.", "aten._foreach_copy_", "c10d.")
"""Operators that a compiler does not fuse with their neighbours."""


@dataclass(frozen=True, kw_only=True)
class KernelTimes:
    """Times of operators on a GPU.

    Attributes:
        peaks: The published peaks.
        setting: The GPU, the precision and the model, which select coefficients.
        efficiency: The fraction of the peak of products and attention, instead of the fitted one.
        calibrated: Factors on the coefficients, from measured steps.
        fused: Whether a compiler fuses operators between products.
        measured: Times of operators that were measured on a GPU.
    """

    peaks: NpuPeaks
    setting: Setting
    efficiency: float | None = None
    calibrated: Calibrated | None = None
    fused: bool = False
    measured: MeasuredTimes | None = None

    @cached_property
    def rates(self) -> Rates:
        """The peaks at the precision of the setting."""
        return rates_of(self.peaks, self.setting.precision)

    @property
    def used(self) -> MeasuredTimes | None:
        """The measured times, unless they are of another GPU or an efficiency replaces them."""
        is_used = self.measured and self.measured.gpu == self.peaks.name and not self.efficiency
        return self.measured if is_used else None

    def times(self, operators: tuple[Operator, ...], left: tuple[int, TimePerByte]) -> list[int]:
        """Returns the picoseconds of each operator; 0 for collectives and messages.

        Args:
            operators: The operators.
            left: Operations per second and memory bandwidth that are left to compute.
        """
        fitted = coefficients(self.setting, self.efficiency, self.calibrated)
        factors = dict(zip(TERMS, map(float, fitted), strict=False))
        memory = left[1].core.bytes_per_second
        slower = max(1.0, self.peaks.bf16_flops.per_second / left[0])
        cache: dict[tuple[object, ...], int] = {}
        times = []
        for one in operators:
            key = (one.kind, one.phase, one.name, one.flops, one.bytes, one.weight, one.dtype,
                   self.reduces(one), one.shapes if self.measured else "")  # fmt: skip
            if key not in cache:
                cache[key] = round(1e12 * self._seconds(one, factors, memory, slower))
            times.append(cache[key])
        return times

    def reduces(self, one: Operator) -> bool:
        """Returns whether a product has the precision of the setting instead of its datatype."""
        if self.setting.precision == "bf16" or one.kind != "product" or not one.weight:
            return False
        return one.dtype in _HALF and _NUMBERED.search(one.module) is not None

    def _seconds(
        self, one: Operator, factors: dict[str, float], memory: float, slower: float
    ) -> float:
        if one.exchange is not None:
            return 0.0
        if self.fused and one.kind == "memory" and _fuses(one):
            return 0.0
        found = self.used.seconds(one) if self.used and not self.reduces(one) else None
        if found is not None:
            return found * slower
        if one.kind == "memory":
            return one.bytes / memory
        if one.kind == "attention":
            share = _MODEL_SHARE if "backward" in one.name else 1.0
            return factors["attention"] * share * one.flops / (self._peak(one.dtype) / slower)
        name, peak = self._rate(one)
        gpu, moved = factors[name] * one.flops / (peak / slower), (one.bytes - one.weight) / memory
        gpu = gpu + factors["memory"] * moved if self.fused else max(gpu, moved)
        gpu += factors["weights"] * self._weights(one) / memory
        return float((gpu**OVERLAP + factors["kernels"] ** OVERLAP) ** (1 / OVERLAP))

    def _rate(self, one: Operator) -> tuple[str, float]:
        """Returns the coefficient of a product, and the operations per second of a complete GPU."""
        if self.reduces(one):
            return "products", self.rates.flops
        keeps = self.setting.precision != "bf16" and not one.dtype.startswith("float8")
        return "classifier" if keeps else "products", self._peak(one.dtype)

    def _weights(self, one: Operator) -> float:
        """Returns the bytes of the weights of a product: in the forward pass, of its precision."""
        is_cast = self.reduces(one) and one.phase in {"forward", "recompute"}
        return one.weight * (self.rates.weight / _HALF_BYTES if is_cast else 1.0)

    def _peak(self, dtype: str) -> float:
        """Returns operations per second; FP32 has those of TF32, half of BF16's."""
        bf16 = float(self.peaks.bf16_flops.per_second)
        if dtype.startswith("float8"):
            rates = Rates.of(self.peaks, "fp8")
            return rates.flops if rates else bf16
        return bf16 / 2 if dtype in {"float32", "float64"} else bf16


def _fuses(one: Operator) -> bool:
    return one.phase != "optimizer" and not one.name.startswith(SEPARATE)

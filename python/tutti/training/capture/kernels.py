"""Times of captured operators on a GPU: the terms of the model of a step, operator by operator.

Products and attention take their FLOPs at the peak of their datatype, products also their bytes,
each times its fitted coefficient (:mod:`tutti.training.plan.efficiency`). Other operators take
their bytes at the memory bandwidth. The coefficient of the bytes of products was fitted to steps
whose operators between products are fused, so these take no more time if the program is compiled.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tutti.training.plan.efficiency import coefficients
from tutti.workloads.kernels import OVERLAP, TERMS, Rates

if TYPE_CHECKING:
    from tutti.base.units import TimePerByte
    from tutti.platforms.npus import NpuPeaks
    from tutti.training.capture.measured import MeasuredTimes
    from tutti.training.capture.record import Operator
    from tutti.training.plan.calibrated import Calibrated
    from tutti.training.plan.efficiency import Setting

__all__ = ["SEPARATE", "KernelTimes"]

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
                   one.shapes if self.measured else "")  # fmt: skip
            if key not in cache:
                cache[key] = round(1e12 * self._seconds(one, factors, memory, slower))
            times.append(cache[key])
        return times

    def _seconds(
        self, one: Operator, factors: dict[str, float], memory: float, slower: float
    ) -> float:
        if one.exchange is not None:
            return 0.0
        if one.kind == "memory":
            return 0.0 if self.fused and _fuses(one) else one.bytes / memory
        found = self.used.seconds(one) if self.used else None
        if found is not None:
            return found * slower
        peak = self._peak(one.dtype) / slower
        if one.kind == "attention":
            share = _MODEL_SHARE if "backward" in one.name else 1.0
            return factors["attention"] * share * one.flops / peak
        gpu = factors["products"] * one.flops / peak
        gpu += factors["memory"] * (one.bytes - one.weight) / memory
        gpu += factors["weights"] * one.weight / memory
        return float((gpu**OVERLAP + factors["kernels"] ** OVERLAP) ** (1 / OVERLAP))

    def _peak(self, dtype: str) -> float:
        """Returns operations per second; FP32 has those of TF32, half of BF16's."""
        bf16 = float(self.peaks.bf16_flops.per_second)
        if dtype.startswith("float8"):
            rates = Rates.of(self.peaks, "fp8")
            return rates.flops if rates else bf16
        return bf16 / 2 if dtype in {"float32", "float64"} else bf16


def _fuses(one: Operator) -> bool:
    return one.phase != "optimizer" and not one.name.startswith(SEPARATE)

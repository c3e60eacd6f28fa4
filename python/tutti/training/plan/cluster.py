"""The GPUs of a plan: peaks, links and efficiency."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from tutti.base.units import OpRate
from tutti.training.endpoint import Npu
from tutti.workloads.errors import WorkloadError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tutti.platforms.machine import Platform
    from tutti.platforms.npus import NpuPeaks
    from tutti.topologies import Routes

EFFICIENCY = 0.6
"""Fraction of the peak that kernels reach. Fitted: with it and four model chunks per stage, the MFU
is within 2.5 percentage points of three runs of Llama 3 405B (Grattafiori et al. 2024, table 4). It
includes norms, activation functions and the optimizer, which are not modelled."""

_BYTES = 1 << 30

USABLE = 0.9
"""Fraction of the memory for states and activations. Assumed: contexts, buffers of NCCL and
fragmentation take 10 %."""


@dataclass(frozen=True)
class Link:
    """Bandwidth in bytes per second and latency in seconds of a GPU towards others."""

    rate: float
    latency: float


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """The GPUs.

    Attributes:
        platform: A platform with a topology of as many NPUs as GPUs.
        npu: The published peaks of a GPU.
        precision: The precision of matrix products.
        efficiency: The fraction of the peak that kernels reach.
        usable: The fraction of the memory for states and activations.
        smaller: Returns the platform with fewer GPUs, for faster simulations; it raises a
            :class:`TuttiError` for impossible numbers.
    """

    platform: Platform
    npu: NpuPeaks
    precision: Literal["bf16", "fp8"] = "bf16"
    efficiency: float = EFFICIENCY
    usable: float = USABLE
    smaller: Callable[[int], Platform] | None = None

    @property
    def gpus(self) -> int:
        """The number of GPUs."""
        return self._routes.topology.ranks

    @property
    def _routes(self) -> Routes:
        routes = self.platform.routes
        if routes is None:
            message = f"platform {self.platform.name} has no topology: expected one with GPUs"
            raise WorkloadError(message, kind="no_flows")
        return routes

    @property
    def peak(self) -> int:
        """Operations per second of a GPU at the precision.

        Raises:
            WorkloadError: The GPU does not have the precision.
        """
        found = self.npu.bf16_flops if self.precision == "bf16" else self.npu.fp8_flops
        if found is None:
            message = f"{self.npu.name} has no {self.precision}: expected bf16"
            raise WorkloadError(message, kind="no_precision")
        return found.per_second

    @property
    def capacity(self) -> int:
        """Bytes of a GPU for states and activations."""
        return int(self.npu.memory_bytes.bytes * self.usable)

    @cached_property
    def engine(self) -> Npu:
        """The parameters of the engine: the peak is reduced by the efficiency."""
        achieved = int(self.peak * self.efficiency)
        return Npu(
            arithmetic=OpRate.parse(f"{achieved} FLOP/s"),
            sms=self.npu.sms,
            memory=self.npu.memory_bandwidth,
        )

    @property
    def launch(self) -> float:
        """Seconds of the launch of a collective."""
        return self.platform.model.launch.ps * 1e-12

    @cached_property
    def domain(self) -> int:
        """The number of first GPUs that reach each other at the rate of the first two."""
        routes, gpus = self._routes, self.gpus
        first = routes.pair(0, min(1, gpus - 1)).bottleneck
        slower = (at for at in range(2, gpus) if routes.pair(0, at).bottleneck != first)
        return next(slower, gpus)

    @cached_property
    def inner(self) -> Link:
        """The links inside a scale-up domain."""
        return self._link(min(1, self.gpus - 1))

    @cached_property
    def outer(self) -> Link:
        """The links between domains, at the largest distance."""
        return self._link(self.gpus - 1)

    def _link(self, target: int) -> Link:
        wire = self._routes.pair(0, target)
        ps = wire.bottleneck.core.of(_BYTES)
        return Link(rate=_BYTES * 1e12 / max(ps, 1), latency=wire.latency.ps * 1e-12)

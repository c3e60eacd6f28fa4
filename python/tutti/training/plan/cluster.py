"""The GPUs of a plan: peaks, links and efficiency."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from tutti.base.units import OpRate
from tutti.platforms.nodes import domain_of
from tutti.training.endpoint import Npu
from tutti.training.plan.efficiency import coefficients, kernels_of, rates_of, setting_of
from tutti.workloads.errors import WorkloadError
from tutti.workloads.transfers import Elements

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from tutti.platforms.library import Library
    from tutti.platforms.machine import Platform
    from tutti.platforms.npus import NpuPeaks
    from tutti.topologies import Routes
    from tutti.training.plan.calibrated import Calibrated
    from tutti.training.plan.efficiency import Setting
    from tutti.workloads.kernels import Dispatcher, Graph, Kernels, Precision, Rates
    from tutti.workloads.model import Model

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
        efficiency: The fraction of the peak that matrix products and attention reach; None for
            the fitted ones of the GPU and the precision.
        dispatcher: The kernels of experts, as in :class:`Setting`; None for those that recipes use.
        overlapped: Whether dispatch and combine overlap with another micro-batch.
        graph: What CUDA graphs launch, as in :class:`Setting`; None for those that recipes use.
        gradients: Bytes of a reduced gradient. FP32 by default (Grattafiori et al. 2024, section
            3.3.2).
        count: The number of GPUs, if the platform has more.
        usable: The fraction of the memory for states and activations.
        calibrated: Factors on the coefficients, from measured steps of this GPU.
        smaller: Returns the platform with fewer GPUs, for faster simulations; it raises a
            :class:`TuttiError` for impossible numbers.
    """

    platform: Platform
    npu: NpuPeaks
    precision: Precision = "bf16"
    efficiency: float | None = None
    dispatcher: Dispatcher | None = None
    overlapped: bool = False
    graph: Graph | None = None
    gradients: int = 4
    count: int | None = None
    usable: float = USABLE
    calibrated: Calibrated | None = None
    smaller: Callable[[int], Platform] | None = None

    @property
    def gpus(self) -> int:
        """The number of GPUs."""
        return self.count or self._ranks

    @property
    def _ranks(self) -> int:
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
        return int(self.rates.flops)

    @cached_property
    def rates(self) -> Rates:
        """The peaks of a GPU at the precision.

        Raises:
            WorkloadError: The GPU does not have the precision.
        """
        return rates_of(self.npu, self.precision)

    def coefficients(self, model: Model) -> NDArray[np.float64]:
        """Returns the coefficients of :data:`tutti.training.plan.efficiency.NAMES`."""
        return coefficients(self.setting(model), self.efficiency, self.calibrated)

    def setting(self, model: Model) -> Setting:
        """Returns what the coefficients of a model depend on."""
        given = (self.npu, model, self.precision, self.dispatcher)
        return setting_of(*given, overlapped=self.overlapped, graph=self.graph)

    def compute(self, model: Model) -> Kernels:
        """Returns the compute model of a GPU."""
        return kernels_of(self.npu, self.setting(model), self.efficiency, self.calibrated)

    @property
    def elements(self) -> Elements:
        """Bytes of communicated weights and gradients. FP8 weights are gathered in FP8."""
        return Elements(weights=2 if self.precision == "bf16" else 1, gradients=self.gradients)

    @property
    def capacity(self) -> int:
        """Bytes of a GPU for states and activations."""
        return int(self.npu.memory_bytes.bytes * self.usable)

    @cached_property
    def engine(self) -> Npu:
        """The parameters of the engine, at the peak; :meth:`compute` has the efficiency."""
        return Npu(
            arithmetic=OpRate.parse(f"{self.peak} FLOP/s"),
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
        return domain_of(self._routes)

    @cached_property
    def pairwise_library(self) -> Library | None:
        """The platform's library if links join pairs of GPUs of a domain, instead of a switch."""
        library = self.platform.library
        is_direct = self._ranks > 2 and self._routes.pair(0, 1).hops == 1
        return library if is_direct and library and library.system else None

    @cached_property
    def inner(self) -> Link:
        """The links inside a scale-up domain."""
        return self._link(min(1, self._ranks - 1))

    @cached_property
    def outer(self) -> Link:
        """The links between domains, at the largest distance."""
        return self._link(self._ranks - 1)

    def _link(self, target: int) -> Link:
        wire = self._routes.pair(0, target)
        ps = wire.bottleneck.core.of(_BYTES)
        return Link(rate=_BYTES * 1e12 / max(ps, 1), latency=wire.latency.ps * 1e-12)

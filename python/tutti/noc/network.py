"""A network of routers, made of a topology; and the registries of what it can be told."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tutti import _core
from tutti.errors import NocError
from tutti.noc.settings import Router, Trace, Traffic
from tutti.units import Size, Time

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.topology import Topology

Supply = Traffic | tuple[Traffic, ...] | Trace
"""Traffic of one class, of several, or recorded."""


@dataclass(frozen=True, kw_only=True)
class Network:
    """Everything but the traffic.

    Every switch and router of the topology is a router, and so is every NPU, unless it hangs on one
    switch or router by one link each way: then it injects and ejects over that link.

    Attributes:
        topology: The graph. Latencies are rounded up to whole cycles; a link whose rate is less
            than a flit per cycle is busy with each flit for as long as that takes.
        routing: Which way packets take, as `name` or `name:argument`; `routings` lists them.
        router: What routers are like.
        cycle: The length of a clock cycle, such as ``"1 ns"``.
        flit: The size of a flit, such as ``"16 B"``.
        grid: The nodes along each dimension, for patterns along a grid; that of a mesh or torus if
            it is left out.
        seed: Of everything that is random.
    """

    topology: Topology
    routing: str = "shortest_path"
    router: Router = field(default_factory=Router)
    cycle: str | Time = "1 ns"
    flit: str | Size = "16 B"
    grid: tuple[int, ...] | None = None
    seed: int = 1

    @property
    def cycle_ps(self) -> int:
        """The length of a cycle in picoseconds."""
        return Time.of_any(self.cycle).ps

    def core(self, classes: Sequence[tuple[int, int] | None]) -> _core.FlitNetwork:
        """What the core works with.

        Args:
            classes: For each class of traffic its first and its last VC; None is all.

        Raises:
            NocError: Settings are out of range or clash, or the routing does not fit.
        """
        if not 0 <= self.seed < 1 << 64:
            message = f"{self.seed} is no seed: expected a whole number from 0 to 2^64 - 1"
            raise NocError(message, kind="out_of_range")
        every = (0, max(self.router.vcs - 1, 0))
        ranges = [every if given is None else given for given in classes]
        return _core.FlitNetwork(
            self.topology.core,
            self.routing,
            self.router.core_settings(ranges, self.seed),
            cycle_ps=self.cycle_ps,
            flit=Size.of_any(self.flit).bytes,
            port_latency=self.router.port_latency,
            grid=None if self.grid is None else list(self.grid),
        )


def classes_of(traffic: Supply) -> list[tuple[int, int] | None]:
    """For each class of traffic its first and its last VC."""
    if isinstance(traffic, Trace):
        return [None] if traffic.vcs is None else list(traffic.vcs)
    loads = (traffic,) if isinstance(traffic, Traffic) else traffic
    return [load.vcs for load in loads]


def routings() -> list[_core.FlitRegistryEntry]:
    """Every routing, with what may follow its colon and a sentence."""
    return _core.flit_routings()


def patterns() -> list[_core.FlitRegistryEntry]:
    """Every traffic pattern, with what follows its colon and a sentence."""
    return _core.flit_patterns()

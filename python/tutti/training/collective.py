"""Simulates a single collective with an endpoint model, and its lower bound.

Examples:
    >>> from tutti.training.endpoint import Ring, configurations
    >>> from tutti.base.units import Time, TimePerByte
    >>> rings = (Ring("local", 4, TimePerByte.parse("200 GB/s"), Time.parse("72 ns")),)
    >>> alone = Alone(size=Size.parse("1 MiB"), rings=rings)
    >>> run = alone.run(configurations()["ideal"])
    >>> run.limit.time <= run.time
    True
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tutti import _core
from tutti.base.units import Size, Time
from tutti.training.endpoint import Efficiency, Npu
from tutti.training.fabric import StepNetwork

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tutti.platforms.machine import Platform
    from tutti.schedules.ir import Schedule
    from tutti.training.endpoint import Configuration, Ring
    from tutti.training.fabric import Channels, Dimension


@dataclass(frozen=True)
class Limit:
    """The lower bound of a collective's time, computed without simulation.

    Attributes:
        time: The largest of the parts.
        latency: The latency of the shortest chunk without contention.
        servers: The work of each server of the endpoint.
        links: The work of each link of an NPU; on a torus two per ring, one per direction.
    """

    time: Time
    latency: Time
    servers: dict[str, Time]
    links: tuple[Time, ...]


@dataclass(frozen=True, kw_only=True)
class Alone:
    """A single collective among all NPUs of a torus or a platform.

    Attributes:
        size: Bytes of each NPU.
        rings: The rings of the torus, starting with the ring inside a package; or the dimensions of
            the NPUs of `platform`, innermost first.
        platform: A platform with a topology, instead of a torus.
        algorithms: The algorithm of the collective, as in :class:`StepNetwork`.
        collective: The name of the collective.
        npu: The parameters of all NPUs.
        efficiency: The fraction of link bandwidth that carries data.
        chunk: The largest chunk of the collective, in bytes.
        message: The largest message of software or DMA, in bytes.
    """

    size: Size
    rings: tuple[Ring, ...] | tuple[Dimension, ...]
    platform: Platform | None = None
    algorithms: Mapping[str, str | Schedule | Channels] = field(default_factory=dict)
    collective: str = "all_reduce"
    npu: Npu = field(default_factory=Npu)
    efficiency: Efficiency = 1.0
    chunk: Size = field(default_factory=lambda: Size.parse("64 KiB"))
    message: Size = field(default_factory=lambda: Size.parse("8 KiB"))

    def run(self, configuration: Configuration) -> AloneResult:
        """Simulates the collective with an endpoint configuration.

        Raises:
            EndpointError: The endpoint is invalid, or its scratchpad is smaller than a chunk.
            TopologyError: The torus is invalid.
            SimulationError: The collective has no plan on a torus.
        """
        fabric, endpoint, settings = self._parts(configuration)
        program = _core.TrainingProgram.alone(self._transfer())
        record = _core.simulate_training([program], fabric, endpoint, settings)
        return AloneResult(alone=self, record=record, limit=self.limit(configuration))

    def limit(self, configuration: Configuration) -> Limit:
        """Returns the lower bound of the time of the collective.

        Raises:
            EndpointError: As :meth:`run`.
        """
        limit = _core.collective_limit(self._transfer(), *self._parts(configuration))
        return Limit(
            time=Time(ps=limit.time_ps),
            latency=Time(ps=limit.latency_ps),
            servers={name: Time(ps=busy) for name, busy in limit.servers_ps.items()},
            links=tuple(Time(ps=busy) for busy in limit.links_ps),
        )

    def _transfer(self) -> _core.Transfer:
        return _core.Transfer(self.collective, (1 << len(self.rings)) - 1, self.size.bytes)

    def _parts(
        self, configuration: Configuration
    ) -> tuple[_core.StepFabric, _core.Endpoint, _core.FabricSettings]:
        transfers = [self._transfer()]
        network = StepNetwork(
            rings=self.rings,
            efficiency=self.efficiency,
            platform=self.platform,
            algorithms=self.algorithms,
        )

        def settings(fabric: _core.StepFabric) -> _core.FabricSettings:
            return _core.FabricSettings(
                chunk=self.chunk.bytes,
                message=self.message.bytes,
                every_npu=not network.acts_alike(fabric, transfers),
                launch_ps=configuration.launch(self.platform).ps,
            )

        def endpoint(fabric: _core.StepFabric) -> _core.Endpoint:
            sizes = {"chunk": self.chunk, "message": self.message}
            return configuration.endpoint(self.npu, fabric, transfers=transfers, **sizes)

        def run(fabric: _core.StepFabric, program: _core.TrainingProgram) -> int:
            of = fabric, endpoint(fabric), settings(fabric)
            return _core.simulate_training([program], *of).end_ps

        fabric = network.fabric(transfers, run)
        return fabric, endpoint(fabric), settings(fabric)


@dataclass(frozen=True, kw_only=True)
class AloneResult:
    """The result of a single collective.

    Attributes:
        alone: The simulated collective.
        record: The record of the core.
        limit: The lower bound.
    """

    alone: Alone
    record: _core.TrainingRecord
    limit: Limit

    @property
    def time(self) -> Time:
        """The time from issue to completion."""
        return Time(ps=self.record.end_ps)

    @property
    def sent(self) -> int:
        """Bytes that an NPU sends on its links."""
        return sum(link.bytes for link in self.record.links())

    @property
    def read(self) -> int:
        """Bytes that the endpoint reads from the memory of an NPU."""
        return next((used.bytes for used in self.record.servers() if used.name == "memory"), 0)

    @property
    def rate(self) -> float:
        """Bytes per second that an NPU sends."""
        return self.sent / self.record.end_ps * 1e12

    @property
    def stalls(self) -> dict[str, Time]:
        """Total stall times of chunks and messages, by cause; servers by name."""
        causes = {stall.cause: Time(ps=stall.waited_ps) for stall in self.record.stalls()}
        servers = {used.name: Time(ps=used.waited_ps) for used in self.record.servers()}
        return causes | servers

"""What a measurement found, as plain data and frames."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from tutti.errors import NocError
from tutti.noc.events import Powered, channel_frame, events_of

if TYPE_CHECKING:
    import polars as pl

    from tutti import _core
    from tutti.energy import AreaReport, EnergyReport, Technology
    from tutti.noc.events import Events
    from tutti.noc.network import Network, Supply
    from tutti.noc.settings import MeasurementPlan

Ending = Literal["stable", "saturated", "deadlocked"]

QUANTILES = ("50", "90", "99", "99.9")
"""In per cent, of the latencies."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean, with the half width of its 95 % confidence interval."""

    mean: float
    half_width: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What was measured of a class of traffic, or of all; times in cycles.

    Attributes:
        offered: Flits created in the window, per node and cycle.
        accepted: Flits that arrived in it, per node and cycle.
        accepted_extremes: The least and the most that a node accepted.
        latency: From a packet's creation to its last flit's arrival.
        latency_extremes: The least and the most.
        network_latency: From its first flit's injection to its last one's arrival.
        hops: Routers passed through.
        packets: Packets that these are the means of.
        quantiles: For 50, 90, 99 and 99.9 per cent of the packets: they took no longer.
    """

    offered: float
    accepted: Estimate
    accepted_extremes: tuple[float, float]
    latency: Estimate
    latency_extremes: tuple[int, int]
    network_latency: Estimate
    hops: Estimate
    packets: int
    quantiles: dict[str, int]

    @classmethod
    def of_core(cls, given: dict[str, Any]) -> Measured:
        """As the core gives it."""
        means = ("accepted", "latency", "network_latency", "hops")
        estimates = {name: Estimate(*given[name]) for name in means}
        quantiles = dict(zip(QUANTILES, given["quantiles"], strict=True))
        return cls(**{**given, **estimates, "quantiles": quantiles})


@dataclass(frozen=True, slots=True, kw_only=True)
class Stalls:
    """Why flits that were first in their VC stood, each time buffers were looked at.

    Attributes:
        busy: Input VCs that held flits; the others are parts of it.
        routing: Heads that were being routed.
        no_vc: Heads that waited for a VC.
        no_credit: Flits that waited for a credit.
        switch: Flits that were asking for the switch.
    """

    busy: int
    routing: int
    no_vc: int
    no_credit: int
    switch: int


@dataclass(frozen=True, kw_only=True, eq=False)
class NocRun:
    """The result of a run; times in cycles, rates in flits per node and cycle.

    Attributes:
        network: What was run.
        traffic: What ran on it.
        plan: For how long.
        ending: `stable`; or `saturated`: queues grew, and latencies say nothing but how long the
            run was; or `deadlocked`: nothing moved any more.
        cycles: How many the run took, warm-up and drain included.
        window: How many were measured.
        all: What was measured of all classes together.
        classes: Of each class.
        buffered: Flits in all buffers, each time they were looked at.
        stalls: Why flits stood.
        load: Flits per node and cycle that were asked for; None for a trace.
        deadlock_cycle: The VCs of a cyclic dependency, each waiting for the next and the last for
            the first; empty unless the run deadlocked.
    """

    network: Network
    traffic: Supply
    plan: MeasurementPlan
    ending: Ending
    cycles: int
    window: int
    all: Measured
    classes: tuple[Measured, ...]
    buffered: tuple[int, ...]
    stalls: Stalls
    load: float | None
    deadlock_cycle: tuple[str, ...]
    _made: _core.FlitNetwork = field(repr=False)
    _given: dict[str, Any] = field(repr=False)

    @classmethod
    def of_core(
        cls,
        core: _core.FlitNetwork,
        given: dict[str, Any],
        *,
        network: Network,
        traffic: Supply,
        plan: MeasurementPlan,
        load: float | None,
    ) -> NocRun:
        """As the core gives it."""
        return cls(
            network=network,
            traffic=traffic,
            plan=plan,
            ending=given["ending"],
            cycles=given["cycles"],
            window=given["window"],
            all=Measured.of_core(given["all"]),
            classes=tuple(Measured.of_core(one) for one in given["classes"]),
            buffered=tuple(memoryview(given["buffered"]).cast("Q")),
            stalls=Stalls(**given["stalls"]),
            load=load,
            deadlock_cycle=tuple(given["deadlock_cycle"]),
            _made=core,
            _given=given,
        )

    @property
    def is_stable(self) -> bool:
        """Whether all that was offered was accepted, so that latencies mean something."""
        return self.ending == "stable"

    @property
    def latency(self) -> Estimate:
        """From a packet's creation to its last flit's arrival."""
        return self.all.latency

    @property
    def network_latency(self) -> Estimate:
        """From a packet's injection to its last flit's arrival."""
        return self.all.network_latency

    @property
    def accepted(self) -> Estimate:
        """Flits that arrived, per node and cycle."""
        return self.all.accepted

    @property
    def offered(self) -> float:
        """Flits created, per node and cycle."""
        return self.all.offered

    @property
    def hops(self) -> Estimate:
        """Routers passed through."""
        return self.all.hops

    @property
    def quantiles(self) -> dict[str, int]:
        """For 50, 90, 99 and 99.9 per cent of the packets: they took no longer."""
        return self.all.quantiles

    @cached_property
    def channels(self) -> pl.DataFrame:
        """A row per channel: kind (injection, link or ejection), the names of its ends, flits sent
        in the window, utilisation (1: never idle), latency in cycles, cycles_per_flit, length_um.
        """
        cycle = self.network.cycle_ps
        return channel_frame(self._made, self._given["sent"], cycle=cycle, window=self.window)

    @cached_property
    def occupancy(self) -> pl.DataFrame:
        """A row per input VC: router, what its port comes from, vc, mean flits in its buffer.

        Empty if buffers were never looked at.
        """
        import polars as pl

        means = memoryview(self._given["occupancy"]).cast("d")
        vcs = self.network.router.vcs
        channels = self.channels
        ports = self._made.inputs() if means else []
        targets, sources = channels["target"].to_list(), channels["source"].to_list()
        kinds = channels["kind"].to_list()
        names = [
            (targets[channel], sources[channel], kinds[channel] == "injection")
            for channel in ports
            for _ in range(vcs)
        ]
        return pl.DataFrame(
            {
                "router": [name[0] for name in names],
                "source": [name[1] for name in names],
                "injection": [name[2] for name in names],
                "vc": [vc for _ in ports for vc in range(vcs)],
                "flits": list(means),
            },
            schema={
                "router": pl.String,
                "source": pl.String,
                "injection": pl.Boolean,
                "vc": pl.UInt32,
                "flits": pl.Float64,
            },
        )

    @cached_property
    def vcs(self) -> pl.DataFrame:
        """A row per VC of each channel: kind, the names of its ends, vc, flits sent in the window,
        utilisation (1: the channel is never idle, and all flits are of this VC).

        Empty if buffers were never looked at.
        """
        import polars as pl

        sent = memoryview(self._given["sent_by_vc"]).cast("Q")
        ends = self.channels.select("kind", "source", "target", "cycles_per_flit")
        vcs = self.network.router.vcs
        if not sent:
            ends = ends.clear()
        each = ends.select(pl.all().repeat_by(vcs).explode(empty_as_null=False))
        counts = {"vc": list(range(vcs)) * ends.height, "flits": list(sent)}
        schema = {"vc": pl.UInt32, "flits": pl.UInt64}
        busy = pl.col("flits") * pl.col("cycles_per_flit") / self.window
        found = each.hstack(pl.DataFrame(counts, schema=schema))
        return found.with_columns(utilisation=busy).drop("cycles_per_flit")

    @property
    def look_times(self) -> range:
        """The cycles, counted from the start of the window, after which buffers were looked at."""
        sample = self.plan.sample
        return range(sample, sample * len(self.buffered) + 1, max(sample, 1))

    @cached_property
    def buffered_by_vc(self) -> pl.DataFrame:
        """A row per look at the buffers and VC number: cycle of the window, vc, flits in the
        buffers of all VCs of that number.
        """
        import polars as pl

        vcs = self.network.router.vcs
        times = self.look_times
        return pl.DataFrame(
            {
                "cycle": [time for time in times for _ in range(vcs)],
                "vc": list(range(vcs)) * len(times),
                "flits": list(memoryview(self._given["buffered_by_vc"]).cast("Q")),
            },
            schema={"cycle": pl.UInt64, "vc": pl.UInt32, "flits": pl.UInt64},
        )

    def vcs_over_time(self, source: str, target: str) -> pl.DataFrame:
        """A row per look at the buffers and VC of a channel into a router: cycle of the window, vc,
        flits in its buffer, flits sent since the look before.

        Args:
            source: What the channel comes from; of an NPU at a router of its own its name.
            target: The router it leads to.

        Raises:
            NocError: The plan did not keep VCs, or no such channel leads to a router.
        """
        import polars as pl

        if not self.plan.keep_vcs:
            message = "VCs were not kept: expected a plan with keep_vcs"
            raise NocError(message, kind="not_kept")
        pairs = self.channels.select("source", "target", "kind").rows()
        found = [n for n, pair in enumerate(pairs) if pair[:2] == (source, target)]
        ports = self._made.inputs()
        if not found or found[0] not in ports:
            message = f"no channel leads from `{source}` to a router `{target}`"
            raise NocError(message, kind="unknown_channel")
        vcs, channel, port = self.network.router.vcs, found[0], ports.index(found[0])
        looks = len(self.buffered)
        buffers = memoryview(self._given["vc_occupancy"]).cast("H")
        sent = memoryview(self._given["vc_sent"]).cast("H")

        def rows(values: memoryview[int], place: int, places: int) -> list[int]:
            firsts = ((look * places + place) * vcs for look in range(looks))
            return [value for first in firsts for value in values[first : first + vcs]]

        return pl.DataFrame(
            {
                "cycle": [time for time in self.look_times for _ in range(vcs)],
                "vc": list(range(vcs)) * looks,
                "flits": rows(buffers, port, len(ports)),
                "sent": rows(sent, channel, len(pairs)),
            },
            schema={"cycle": pl.UInt64, "vc": pl.UInt32, "flits": pl.UInt32, "sent": pl.UInt32},
        )

    @cached_property
    def events(self) -> Events:
        """What happened in the window, for energy."""
        return events_of(self.channels, self._given["vc_grants"])

    def energy(self, technology: Technology) -> EnergyReport:
        """What the events of the window cost, and what leaked in it.

        Args:
            technology: What routers and links cost.

        Raises:
            EnergyError: A link has no length.
        """
        return self._powered.energy(technology)

    def area(self, technology: Technology) -> AreaReport:
        """What routers and links take up.

        Args:
            technology: What routers and links are made of.

        Raises:
            EnergyError: A link has no length.
        """
        return self._powered.area(technology)

    @property
    def _powered(self) -> Powered:
        return Powered(self.network, self._made, self.channels, self.window, self.events.vc_grants)

    def __repr__(self) -> str:
        load = "a trace" if self.load is None else f"load {self.load:g}"
        found = f"latency {self.latency.mean:.4g} cycles" if self.is_stable else self.ending
        return f"<NocRun {self.network.topology.name}, {load}: {found}>"

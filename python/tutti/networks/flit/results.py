"""Results of a flit-level run, as plain data and data frames."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from tutti.networks.errors import NocError
from tutti.networks.flit.events import Powered, Sent, channel_frame, events_of, sent_by_channel
from tutti.networks.flit.settings import Trace
from tutti.networks.loads import too_short
from tutti.view.quantity import counted, plural

if TYPE_CHECKING:
    import polars as pl

    from tutti import _core
    from tutti.energy.link_classes import Technologies
    from tutti.energy.technology import AreaReport, EnergyReport
    from tutti.networks.flit.events import Events
    from tutti.networks.flit.network import Network, Supply
    from tutti.networks.flit.settings import MeasurementPlan

Ending = Literal["stable", "saturated", "undecided", "deadlocked", "empty"]

QUANTILES = ("50", "90", "99", "99.9")
"""Percentiles of packet latency, in per cent."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean, with its 95 % CI half-width."""

    mean: float
    half_width: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundTrips:
    """Requests of the window, from their creation to the arrival of their replies, in cycles.

    Attributes:
        latency: The mean.
        extremes: The lowest and the highest.
        quantiles: The 50th, 90th, 99th and 99.9th percentile.
        requests: Number of requests measured.
    """

    latency: Estimate
    extremes: tuple[int, int]
    quantiles: dict[str, int]
    requests: int

    @classmethod
    def of_core(cls, result: _core.FlitRoundTrips) -> RoundTrips:
        """Converts a result of the core."""
        return cls(
            latency=Estimate(*result.latency),
            extremes=result.extremes,
            quantiles=dict(zip(QUANTILES, result.quantiles, strict=True)),
            requests=result.requests,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FlitMeasurement:
    """Measured values of a traffic class, or of all classes; times in cycles.

    Attributes:
        offered: Offered load: flits created in the window, per node and cycle.
        accepted: Accepted throughput: flits ejected in the window, per node and cycle.
        accepted_extremes: The lowest and the highest accepted throughput of a node.
        latency: Packet latency, from creation to arrival of the tail flit.
        latency_extremes: The lowest and the highest packet latency.
        network_latency: Latency from injection of the head flit to arrival of the tail flit.
        hops: Routers on the route.
        packets: Number of packets measured.
        quantiles: The 50th, 90th, 99th and 99.9th percentile of packet latency.
        round_trips: Requests until their replies; `None` for a class without.
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
    round_trips: RoundTrips | None = None

    @classmethod
    def of_core(
        cls, result: _core.FlitClassResult, round_trips: _core.FlitRoundTrips | None = None
    ) -> FlitMeasurement:
        """Converts a result of the core."""
        return cls(
            offered=result.offered,
            accepted=Estimate(*result.accepted),
            accepted_extremes=result.accepted_extremes,
            latency=Estimate(*result.latency),
            latency_extremes=result.latency_extremes,
            network_latency=Estimate(*result.network_latency),
            hops=Estimate(*result.hops),
            packets=result.packets,
            quantiles=dict(zip(QUANTILES, result.quantiles, strict=True)),
            round_trips=RoundTrips.of_core(round_trips) if round_trips else None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Stalls:
    """Causes of stalls of the first flit of each VC, summed over all samples of the buffers.

    Attributes:
        busy: Input VCs with flits; the sum of the other counts.
        routing: Head flits in route computation.
        no_vc: Head flits waiting for a VC.
        no_credit: Flits waiting for a credit.
        switch: Flits requesting the switch.
    """

    busy: int
    routing: int
    no_vc: int
    no_credit: int
    switch: int

    @classmethod
    def of_core(cls, stalls: _core.FlitStalls) -> Stalls:
        """Converts the counts of the core."""
        return cls(
            busy=stalls.busy,
            routing=stalls.routing,
            no_vc=stalls.no_vc,
            no_credit=stalls.no_credit,
            switch=stalls.switch,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class NocRun:
    """The result of a run; times in cycles, rates in flits per node and cycle.

    Attributes:
        network: The network.
        traffic: The traffic.
        plan: The phases of the run.
        ending: `stable`; `saturated`: queues grew, so latencies depend on the length of the run;
            `undecided`: less was accepted than offered, but not less than chance explains in such a
            short window; `deadlocked`: no flit moved; or `empty`: no packet was created in the
            window.
        long_enough: If undecided, the cycles of a window that decides; else `None`.
        cycles: Simulated cycles, with warm-up and drain.
        window: Cycles of the measurement window. That of a batch or trace ends with the last
            arrival, unless `plan` has a warm-up or its window omits packets of the trace.
        all: Measured values of all classes together.
        classes: Measured values of each class.
        buffered: Flits in all buffers at each sample.
        stalls: Causes of stalls.
        load: Requested load in flits per node and cycle, without replies; `None` for a trace.
        last_arrival: The last cycle in which a packet arrived: the makespan of a batch or a trace.
        deadlock_cycle: The VCs of a cyclic dependency, each waiting for the next and the last for
            the first; empty unless the run deadlocked.
    """

    network: Network
    traffic: Supply
    plan: MeasurementPlan
    ending: Ending
    long_enough: int | None
    cycles: int
    window: int
    all: FlitMeasurement
    classes: tuple[FlitMeasurement, ...]
    buffered: tuple[int, ...]
    stalls: Stalls
    load: float | None
    last_arrival: int
    deadlock_cycle: tuple[str, ...]
    _made: _core.FlitNetwork = field(repr=False)
    _result: _core.FlitResult = field(repr=False)

    @classmethod
    def of_core(
        cls,
        core: _core.FlitNetwork,
        result: _core.FlitResult,
        *,
        network: Network,
        traffic: Supply,
        plan: MeasurementPlan,
        load: float | None,
    ) -> NocRun:
        """Converts a result of the core."""
        answered = {each.request_class: each for each in result.round_trips}
        only = next(iter(answered.values())) if len(answered) == 1 else None
        return cls(
            network=network,
            traffic=traffic,
            plan=plan,
            ending="empty"
            if result.ending == "stable" and not result.all.packets
            else result.ending,
            long_enough=result.long_enough,
            cycles=result.cycles,
            window=result.window,
            all=FlitMeasurement.of_core(result.all, only),
            classes=tuple(
                FlitMeasurement.of_core(each, answered.get(number))
                for number, each in enumerate(result.classes)
            ),
            buffered=tuple(memoryview(result.buffered).cast("Q")),
            stalls=Stalls.of_core(result.stalls),
            load=load,
            last_arrival=result.last_arrival,
            deadlock_cycle=tuple(result.deadlock_cycle),
            _made=core,
            _result=result,
        )

    @property
    def is_stable(self) -> bool:
        """Whether the network accepted the offered load; latencies are only valid if it did."""
        return self.ending == "stable"

    @property
    def too_short(self) -> str:
        """If undecided, the packets of the window and how long it has to be; else empty."""
        return too_short(plural(self.all.packets, "packet"), self.long_enough)

    @property
    def makespan(self) -> int | None:
        """The cycle in which the last packet arrived; `None` unless all packets are known.

        A trace, and traffic of which each class has `requests`, end.
        """
        return self.last_arrival if self.has_end and self.is_stable else None

    @property
    def has_end(self) -> bool:
        """Whether the number of packets is known: that of a trace or a batch."""
        from tutti.networks.flit.network import is_batch

        return isinstance(self.traffic, Trace) or is_batch(self.traffic)

    @property
    def latency(self) -> Estimate:
        """Packet latency, from creation to arrival of the tail flit.

        Unless the run is stable, only of the packets that ended: it depends on the run's length.
        """
        return self.all.latency

    @property
    def network_latency(self) -> Estimate:
        """Latency from injection of the head flit to arrival of the tail flit."""
        return self.all.network_latency

    @property
    def accepted(self) -> Estimate:
        """Accepted throughput: flits ejected, per node and cycle."""
        return self.all.accepted

    @property
    def offered(self) -> float:
        """Offered load: flits created, per node and cycle."""
        return self.all.offered

    @property
    def hops(self) -> Estimate:
        """Routers on the route."""
        return self.all.hops

    @property
    def quantiles(self) -> dict[str, int]:
        """The 50th, 90th, 99th and 99.9th percentile of packet latency."""
        return self.all.quantiles

    @cached_property
    def channels(self) -> pl.DataFrame:
        """A row per channel.

        The columns are kind (injection, link or ejection), source, target, flits sent in the
        window, utilisation (0 to 1), latency in cycles, cycles_per_flit and length_um.
        """
        return channel_frame(self.sent)

    @cached_property
    def sent(self) -> list[Sent]:
        """The rows of `channels`."""
        cycle = self.network.cycle_ps
        return sent_by_channel(self._made, self._result.sent, cycle=cycle, window=self.window)

    @cached_property
    def occupancy(self) -> pl.DataFrame:
        """A row per input VC: router, source, injection, vc and mean flits in its buffer.

        Empty if the plan takes no samples.
        """
        import polars as pl

        means = memoryview(self._result.occupancy).cast("d")
        vcs = self.network.router.vcs
        ports = self._made.inputs() if means else []
        names = [
            (sent.target, sent.source, sent.kind == "injection")
            for sent in map(self.sent.__getitem__, ports)
            for _ in range(vcs)
        ]
        own = [set(made.vc_numbers) for made in self._made.channels()] if means else []
        exists = [vc in own[channel] for channel in ports for vc in range(vcs)]
        found = pl.DataFrame(
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
        return found.filter(pl.Series(exists, dtype=pl.Boolean))

    @cached_property
    def buffer_capacity(self) -> int:
        """Flits that the buffers of all routers hold."""
        channels = self._made.channels()
        return sum(channels[port].vcs * channels[port].buffer for port in self._made.inputs())

    @cached_property
    def vcs(self) -> pl.DataFrame:
        """A row per VC of each channel: kind, source, target, vc, flits and utilisation.

        The utilisation is that of the channel by the flits of the VC. Empty if the plan takes no
        samples.
        """
        import polars as pl

        sent = memoryview(self._result.sent_by_vc).cast("Q")
        ends = self.channels.select("kind", "source", "target", "cycles_per_flit")
        vcs = self.network.router.vcs
        if not sent:
            ends = ends.clear()
        each = ends.select(pl.all().repeat_by(vcs).explode(empty_as_null=False))
        counts = {"vc": list(range(vcs)) * ends.height, "flits": list(sent)}
        schema = {"vc": pl.UInt32, "flits": pl.UInt64}
        busy = pl.col("flits") * pl.col("cycles_per_flit") / self.window
        found = each.hstack(pl.DataFrame(counts, schema=schema))
        own = [set(made.vc_numbers) for made in self._made.channels()] if sent else []
        exists = [vc in numbers for numbers in own for vc in range(vcs)]
        found = found.filter(pl.Series(exists, dtype=pl.Boolean))
        return found.with_columns(utilisation=busy).drop("cycles_per_flit")

    @property
    def look_times(self) -> range:
        """The cycles of the window after which buffers were sampled."""
        sample = self.plan.sample
        return range(sample, sample * len(self.buffered) + 1, max(sample, 1))

    @cached_property
    def buffered_by_vc(self) -> pl.DataFrame:
        """A row per sample and VC number: cycle of the window, vc, and flits in all such VCs."""
        import polars as pl

        vcs = self.network.router.vcs
        times = self.look_times
        return pl.DataFrame(
            {
                "cycle": [time for time in times for _ in range(vcs)],
                "vc": list(range(vcs)) * len(times),
                "flits": list(memoryview(self._result.buffered_by_vc).cast("Q")),
            },
            schema={"cycle": pl.UInt64, "vc": pl.UInt32, "flits": pl.UInt64},
        )

    def vcs_over_time(self, source: str, target: str) -> pl.DataFrame:
        """Returns the occupancy of the VCs of a channel over time.

        Args:
            source: The source of the channel; for an injection channel the name of the NPU.
            target: The router at the end of the channel.

        Returns:
            A row per sample and VC: cycle of the window, vc, flits in the buffer, and flits sent
            since the previous sample.

        Raises:
            NocError: The plan has no `keep_vcs`, or there is no such channel into a router.
        """
        import polars as pl

        if not self.plan.keep_vcs:
            message = "VCs were not recorded: expected a measurement plan with `keep_vcs = true`"
            raise NocError(message, kind="not_recorded")
        pairs = [(sent.source, sent.target) for sent in self.sent]
        found = [n for n, pair in enumerate(pairs) if pair == (source, target)]
        ports = self._made.inputs()
        if not found or found[0] not in ports:
            message = f"no channel leads from `{source}` to a router `{target}`"
            raise NocError(message, kind="unknown_channel")
        vcs, channel, port = self.network.router.vcs, found[0], ports.index(found[0])
        samples = len(self.buffered)
        buffers = memoryview(self._result.vc_occupancy).cast("H")
        sent = memoryview(self._result.vc_sent).cast("H")

        own = self._made.channels()[channel].vc_numbers

        def rows(values: memoryview[int], index: int, count: int) -> list[int]:
            firsts = ((sample * count + index) * vcs for sample in range(samples))
            return [values[first + vc] for first in firsts for vc in own]

        return pl.DataFrame(
            {
                "cycle": [time for time in self.look_times for _ in own],
                "vc": own * samples,
                "flits": rows(buffers, port, len(ports)),
                "sent": rows(sent, channel, len(pairs)),
            },
            schema={"cycle": pl.UInt64, "vc": pl.UInt32, "flits": pl.UInt32, "sent": pl.UInt32},
        )

    @cached_property
    def events(self) -> Events:
        """Event counts of the window, for energy models."""
        return events_of(self.sent, self._result.vc_grants)

    def energy(self, technology: Technologies) -> EnergyReport:
        """Returns the dynamic and leakage energy of the window.

        Args:
            technology: The energy model of routers and links; with one per link class, each class
                is a component.

        Raises:
            EnergyError: A link has no length.
        """
        return self._powered.energy(technology)

    def area(self, technology: Technologies) -> AreaReport:
        """Returns the area of routers and links.

        Args:
            technology: The area model of routers and links.

        Raises:
            EnergyError: A link has no length.
        """
        return self._powered.area(technology)

    @property
    def _powered(self) -> Powered:
        return Powered(self.network, self._made, self.sent, self.window, self.events.vc_grants)

    def __repr__(self) -> str:
        load = "a trace" if self.load is None else f"load {self.load:g}"
        latency = counted(f"{self.latency.mean:.4g}", "cycle")
        found = f"latency {latency}" if self.is_stable else self.ending
        return f"<NocRun {self.network.topology.name}, {load}: {found}>"

    def _repr_html_(self) -> str:
        """The HTML for notebooks: network, traffic, state and latency."""
        from tutti.networks.flit.view.run import run_view
        from tutti.view.notebook import view_html

        return view_html(run_view(self))

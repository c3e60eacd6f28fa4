"""What a measurement found, as plain data and frames."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import polars as pl

    from tutti import _core
    from tutti.noc.network import Network, Supply
    from tutti.noc.settings import Plan

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
        return cls(
            offered=given["offered"],
            accepted=Estimate(*given["accepted"]),
            accepted_extremes=given["accepted_extremes"],
            latency=Estimate(*given["latency"]),
            latency_extremes=given["latency_extremes"],
            network_latency=Estimate(*given["network_latency"]),
            hops=Estimate(*given["hops"]),
            packets=given["packets"],
            quantiles=dict(zip(QUANTILES, given["quantiles"], strict=True)),
        )


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Events:
    """What happened in the window, counted as flits are sent: what energy models multiply.

    Attributes:
        buffer_writes: Flits sent to buffers of routers.
        buffer_reads: Flits that left them.
        crossbar_traversals: Flits that passed through a switch.
        vc_grants: VCs given to packets by routers, for packets that arrived in the window.
        link_flits: Flits sent between routers.
        link_flit_mm: The same times the length of the link in mm; None unless all are known.
    """

    buffer_writes: int
    buffer_reads: int
    crossbar_traversals: int
    vc_grants: int
    link_flits: int
    link_flit_mm: float | None


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
    """

    network: Network
    traffic: Supply
    plan: Plan
    ending: Ending
    cycles: int
    window: int
    all: Measured
    classes: tuple[Measured, ...]
    buffered: tuple[int, ...]
    stalls: Stalls
    load: float | None
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
        plan: Plan,
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
        import polars as pl

        cycle = self.network.cycle_ps
        ends = (self._made.node_names(), self._made.router_names())
        sent = memoryview(self._given["sent"]).cast("Q")
        rows = []
        for (a, b, latency, _, flit_ps, length), flits in zip(
            self._made.channels(), sent, strict=True
        ):
            kind = "injection" if a[0] == "node" else "ejection" if b[0] == "node" else "link"
            source, target = (ends[end[0] == "router"][end[1]] for end in (a, b))
            each = max(flit_ps / cycle, 1.0)
            busy = flits * each / self.window
            rows.append((kind, source, target, flits, busy, latency, each, length))
        schema = {
            "kind": pl.String,
            "source": pl.String,
            "target": pl.String,
            "flits": pl.UInt64,
            "utilisation": pl.Float64,
            "latency": pl.UInt32,
            "cycles_per_flit": pl.Float64,
            "length_um": pl.UInt64,
        }
        return pl.DataFrame(rows, schema=schema, orient="row")

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
    def events(self) -> Events:
        """What happened in the window, for energy."""
        import polars as pl

        by_kind = dict(self.channels.group_by("kind").agg(pl.col("flits").sum()).iter_rows())
        links = self.channels.filter(pl.col("kind") == "link")
        into = by_kind.get("injection", 0)
        between = by_kind.get("link", 0)
        out = by_kind.get("ejection", 0)
        known = links["length_um"].null_count() == 0
        mm = float((links["flits"] * links["length_um"]).sum()) / 1000 if known else None
        return Events(
            buffer_writes=into + between,
            buffer_reads=between + out,
            crossbar_traversals=between + out,
            vc_grants=self._given["vc_grants"],
            link_flits=between,
            link_flit_mm=mm,
        )

    def __repr__(self) -> str:
        load = "a trace" if self.load is None else f"load {self.load:g}"
        found = f"latency {self.latency.mean:.4g} cycles" if self.is_stable else self.ending
        return f"<NocRun {self.network.topology.name}, {load}: {found}>"

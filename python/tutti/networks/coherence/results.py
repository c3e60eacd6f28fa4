"""Results of a run of a kernel on a chip."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tutti.view.quantity import plural

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tutti import _core
    from tutti.networks.coherence.runs import Case


@dataclass(frozen=True, slots=True)
class Mean:
    """The mean and maximum of `count` values; 0 if `count` is 0."""

    count: int
    mean: float
    most: int

    @classmethod
    def of_core(cls, mean: _core.CoherenceMean) -> Mean:
        """Converts a mean of the core."""
        return cls(mean.count, mean.mean, mean.most)


@dataclass(frozen=True, slots=True, kw_only=True)
class Misses:
    """Misses of a kind, of all cores; times in cycles.

    Attributes:
        kind: `read`, `write`, or `upgrade`: write permission for a cached line.
        latency: Miss latency, from the access to its completion.
        parts: Mean components of the latency; they add up to its mean.
        from_caches: Misses served by another cache.
        from_memory: Misses served by memory.
    """

    kind: str
    latency: Mean
    parts: dict[str, float]
    from_caches: int
    from_memory: int


@dataclass(frozen=True, slots=True)
class FlowCount:
    """Number of flows of a kind; flows within a node are not counted.

    Attributes:
        kind: Message type.
        message_class: Message class.
        cast: `unicast`, `broadcast`, or `responses`.
        count: Number of flows.
    """

    kind: str
    message_class: int
    cast: str
    count: int


@dataclass(frozen=True, kw_only=True, eq=False)
class CoherenceRun:
    """The result of a run in its region of interest; times in cycles.

    The kernel's result equals that of the serial program; otherwise the run raises.

    Attributes:
        case: The case.
        chip: All settings of the chip, by file key.
        cores: Number of cores with a thread.
        cycles: Length of the region of interest: the kernel's runtime.
        total_cycles: Simulated cycles, with initialisation and termination.
        instructions: Instructions of all cores; a memory access, a cycle of work and a spin are one
            instruction each.
        accesses: Memory accesses, including the reads of spins.
        l1_misses: L1 misses, including writes without write permission.
        misses: Misses that go to the network: reads, writes and upgrades.
        spun: Cycles in which cores spin on an unchanged copy, summed over cores.
        broadcasts: Broadcast latency, from creation to the last arrival (1-to-M).
        reductions: Reduction latency, from the creation of the broadcast to the arrival of the
            last response (M-to-1).
        response_packets: Response packets that arrived.
        open_reductions: Mean number of reductions in flight.
        table_occupancy: Mean number of aggregation table entries in use, per router.
        flows: Flows by kind.
        reissues: With tc: reissued requests.
        persistent: With tc: persistent requests.
        memory_reads: Lines read from memory.
        memory_writes: Lines written to memory.
        stall: Share of core time stalled on misses.
        network_stall: Share of core time stalled on the network.
        counts: Event counts of the mesh; names as in the core.
    """

    case: Case
    chip: dict[str, Any] = field(repr=False)
    cores: int
    cycles: int
    total_cycles: int
    instructions: int
    accesses: int
    l1_misses: int
    misses: tuple[Misses, ...]
    spun: int
    broadcasts: Mean
    reductions: Mean
    response_packets: int
    open_reductions: float
    table_occupancy: float
    flows: tuple[FlowCount, ...]
    reissues: int
    persistent: int
    memory_reads: int
    memory_writes: int
    stall: float
    network_stall: float
    counts: dict[str, Any] = field(repr=False)

    @property
    def ipc(self) -> float:
        """Instructions per cycle and core."""
        return _ratio(self.instructions, self.cycles * self.cores)

    @property
    def l1_mpki(self) -> float:
        """L1 misses per thousand instructions."""
        return 1000 * _ratio(self.l1_misses, self.instructions)

    @property
    def mpki(self) -> float:
        """Misses that go to the network, including upgrades, per thousand instructions."""
        return 1000 * _ratio(self.misses_of_all, self.instructions)

    @property
    def misses_of_all(self) -> int:
        """Number of misses that go to the network."""
        return sum(one.latency.count for one in self.misses)

    @property
    def miss_latency(self) -> float:
        """Mean latency of misses that go to the network."""
        return _ratio(sum(self.parts.values()), self.misses_of_all)

    @property
    def parts(self) -> dict[str, float]:
        """Cycles of all misses, by component of the latency."""
        names = self.misses[0].parts
        return {
            name: sum(one.parts[name] * one.latency.count for one in self.misses) for name in names
        }

    @property
    def cache_to_cache(self) -> float:
        """Share of read and write misses served by another cache."""
        caches = sum(one.from_caches for one in self.misses)
        return _ratio(caches, caches + sum(one.from_memory for one in self.misses))

    @property
    def broadcasts_per_kilo_instruction(self) -> float:
        """Broadcasts per thousand instructions."""
        return 1000 * _ratio(_flows_of(self.flows, "broadcast"), self.instructions)

    @property
    def responses_per_flow(self) -> float:
        """Response packets that arrive per reduction; 1 if routers combine all responses."""
        return _ratio(self.response_packets, self.reductions.count)

    def share_of(self, cast: str) -> float:
        """Returns the share of flows of a cast: `unicast`, `broadcast` or `responses`."""
        return _ratio(_flows_of(self.flows, cast), sum(one.count for one in self.flows))

    @classmethod
    def of_core(
        cls, case: Case, chip: dict[str, Any], result: _core.CoherenceResult
    ) -> CoherenceRun:
        """Converts a result of the core."""
        return cls(
            case=case,
            chip=chip,
            cycles=result.cycles,
            total_cycles=result.total_cycles,
            cores=result.cores,
            instructions=result.instructions,
            accesses=result.accesses,
            l1_misses=result.l1_misses,
            misses=tuple(_misses(each) for each in result.misses),
            spun=result.spun,
            broadcasts=Mean.of_core(result.broadcasts),
            reductions=Mean.of_core(result.reductions),
            response_packets=result.response_packets,
            open_reductions=result.open_reductions,
            table_occupancy=result.table_occupancy,
            flows=tuple(
                FlowCount(each.kind, each.message_class, each.cast, each.count)
                for each in result.flows
            ),
            reissues=result.reissues,
            persistent=result.persistent,
            memory_reads=result.memory_reads,
            memory_writes=result.memory_writes,
            stall=result.stall,
            network_stall=result.network_stall,
            counts=result.counts,
        )

    def __repr__(self) -> str:
        case = self.case
        where = f"{case.protocol}, {case.mesh.design}"
        return f"<CoherenceRun {case.kernel}, {where}: {plural(self.cycles, 'cycle')}>"

    def _repr_html_(self) -> str:
        """The HTML for notebooks: chip, runtime, misses and flows."""
        from tutti.networks.coherence.view.run import runs_view
        from tutti.view.notebook import view_html

        return view_html(runs_view([self]))


def _misses(result: _core.MissResult) -> Misses:
    latency = Mean.of_core(result.latency)
    parts = {name: _ratio(cycles, latency.count) for name, cycles in result.parts}
    return Misses(
        kind=result.kind,
        latency=latency,
        parts=parts,
        from_caches=result.from_caches,
        from_memory=result.from_memory,
    )


def _flows_of(flows: Iterable[FlowCount], cast: str) -> int:
    return sum(one.count for one in flows if one.cast == cast)


def _ratio(one: float, other: float) -> float:
    return one / other if other else 0.0

"""What a run of a kernel on a chip was like."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tutti.coherence.runs import Case


@dataclass(frozen=True, slots=True)
class Mean:
    """The mean of so many; 0 of none."""

    count: int
    mean: float
    most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Misses:
    """Misses of a kind, of all cores; times in cycles.

    Attributes:
        kind: `read`, `write`, or `upgrade`: the right to write a line that was there.
        latency: From the access to its end.
        parts: What that was spent on, on average; together they are its mean.
        from_caches: How many got the line from another cache.
        from_memory: How many from memory.
    """

    kind: str
    latency: Mean
    parts: dict[str, float]
    from_caches: int
    from_memory: int


@dataclass(frozen=True, slots=True)
class FlowCount:
    """How many flows of a kind there were; those within a node are not among them.

    Attributes:
        kind: Of the messages.
        message_class: Theirs.
        cast: `unicast`, `broadcast`, or `answers`.
        count: How many.
    """

    kind: str
    message_class: int
    cast: str
    count: int


@dataclass(frozen=True, kw_only=True, eq=False)
class CoherenceRun:
    """A kernel on a chip, from the beginning of its region of interest to the end; times in cycles.

    The kernel has computed what its serial program computes: a run that has not raises.

    Attributes:
        case: What was run.
        chip: All settings of the chip, by the names of files.
        cores: How many had a thread.
        cycles: The region's length: the kernel's runtime.
        total_cycles: With what came before and after.
        instructions: Of all cores: an access is one, a cycle of work is one, a spin is one.
        accesses: To memory; a spin is as many as it needs to look.
        l1_misses: Those not found in the first cache, or not to be written there.
        misses: Those that went to the network: to read, to write, for the right to write.
        spun: Cycles in which cores spun on a copy that did not change, of all cores.
        broadcasts: From a broadcast's creation to its last arrival (1-to-M).
        reductions: From the first answer's turn to the last one's arrival (M-to-1).
        answer_packets: Packets of answers that arrived.
        open_reductions: Reductions under way, on average.
        table_occupancy: Entries of a router's table of reductions in use, on average.
        flows: By kind.
        reissues: With tc: requests sent again.
        persistent: With tc: persistent requests.
        memory_reads: Lines read from memory.
        memory_writes: Lines written to it.
        stall: The share of the cores' time in which they waited for misses.
        network_stall: That in which they waited for the network.
        counts: What happened in the mesh; names as in the core.
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
    answer_packets: int
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
        """Misses in first caches per thousand instructions."""
        return 1000 * _ratio(self.l1_misses, self.instructions)

    @property
    def mpki(self) -> float:
        """Misses that went to the network per thousand instructions, upgrades too."""
        return 1000 * _ratio(self.misses_of_all, self.instructions)

    @property
    def misses_of_all(self) -> int:
        """Misses that went to the network."""
        return sum(one.latency.count for one in self.misses)

    @property
    def miss_latency(self) -> float:
        """Of those, the mean."""
        return _ratio(sum(self.parts.values()), self.misses_of_all)

    @property
    def parts(self) -> dict[str, float]:
        """Cycles of all misses, by what they were spent on."""
        names = self.misses[0].parts
        return {
            name: sum(one.parts[name] * one.latency.count for one in self.misses) for name in names
        }

    @property
    def cache_to_cache(self) -> float:
        """The share of misses that needed a line and got it from another cache."""
        caches = sum(one.from_caches for one in self.misses)
        return _ratio(caches, caches + sum(one.from_memory for one in self.misses))

    @property
    def broadcasts_per_kilo_instruction(self) -> float:
        """Broadcasts per thousand instructions."""
        return 1000 * _ratio(_flows_of(self.flows, "broadcast"), self.instructions)

    @property
    def answers_per_flow(self) -> float:
        """Packets of answers that arrived per reduction; 1 where all were combined."""
        return _ratio(self.answer_packets, self.reductions.count)

    def share_of(self, cast: str) -> float:
        """The share of all flows that are of a cast: `unicast`, `broadcast` or `answers`."""
        return _ratio(_flows_of(self.flows, cast), sum(one.count for one in self.flows))

    @classmethod
    def of_core(cls, case: Case, chip: dict[str, Any], found: dict[str, Any]) -> CoherenceRun:
        """As the core gives it."""
        kept = dict(found)
        misses = tuple(_misses(one) for one in kept.pop("misses"))
        flows = tuple(FlowCount(*one) for one in kept.pop("flows"))
        means: dict[str, Any] = {
            name: Mean(*kept.pop(name)) for name in ("broadcasts", "reductions")
        }
        return cls(case=case, chip=chip, misses=misses, flows=flows, **means, **kept)

    def __repr__(self) -> str:
        case = self.case
        where = f"{case.protocol}, {case.mesh.design}"
        return f"<CoherenceRun {case.kernel}, {where}: {self.cycles} cycles>"


def _misses(found: dict[str, Any]) -> Misses:
    latency = Mean(*found["latency"])
    parts = {name: _ratio(cycles, latency.count) for name, cycles in found["parts"]}
    return Misses(
        kind=found["kind"],
        latency=latency,
        parts=parts,
        from_caches=found["from_caches"],
        from_memory=found["from_memory"],
    )


def _flows_of(flows: Iterable[FlowCount], cast: str) -> int:
    return sum(one.count for one in flows if one.cast == cast)


def _ratio(one: float, other: float) -> float:
    return one / other if other else 0.0

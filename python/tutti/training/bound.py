"""Lower bounds of the time of a training step, for any algorithms of its collectives.

The bound is the largest of two kinds of times. **Critical path:** the tasks of an NPU in the order
of their dependencies, with the least time of each collective. **Load:** the busy time of a resource
that all algorithms use, from the earliest start of the collectives that need it.

NPUs need not start or complete a collective together, so the critical path is found twice. Along
the earliest NPU, a collective takes the time from the first start to the first completion. Along
the latest NPU, it takes the time from the last start to the last completion. Neither is the time
of the collective alone: until the first NPU completes, the others may have received nothing.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from tutti import _core
from tutti.base.units import Size, Time, TimePerByte
from tutti.training.cuts import Cuts, Needs
from tutti.training.endpoint import fabric_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tutti.training.endpoint import Configuration, Npu
    from tutti.training.fabric import StepNetwork, Transfer

_PATH = "critical path"


@dataclass(frozen=True)
class StepBound:
    """A lower bound of the time of a step.

    Attributes:
        parts: The bound by the critical path, and by each resource.
    """

    parts: dict[str, Time]

    @property
    def time(self) -> Time:
        """The bound: the largest part."""
        return max(self.parts.values(), key=lambda part: part.ps)

    @property
    def by(self) -> str:
        """The name of the largest part; the critical path if several are equal."""
        return max(self.parts, key=lambda name: self.parts[name].ps)


class _Started(NamedTuple):
    """A collective, its earliest start on an NPU in ps, and the share of such NPUs."""

    start: int
    transfer: Transfer
    share: float


@dataclass(frozen=True, kw_only=True)
class Costs:
    """What collectives cost at least, on a network with an endpoint.

    Attributes:
        network: The network; its algorithms are ignored.
        configuration: The endpoint configuration.
        npu: The parameters of the NPUs.
    """

    network: StepNetwork
    configuration: Configuration
    npu: Npu

    @property
    def launch(self) -> int:
        """The time in ps from the issue of a collective until its start on an NPU."""
        return self.configuration.launch(self.network.platform).ps

    @cached_property
    def _cuts(self) -> Cuts:
        return Cuts(self.network)

    def _needs(self, transfer: Transfer) -> Needs:
        collective, mask, size, _ = transfer
        return Needs.of(collective, self._cuts.ranks(self._cuts.within(mask)), size)

    def first(self, transfer: Transfer) -> int:
        """Returns the least time in ps from the first start to the first completion."""
        enters = self._needs(transfer).enters
        return self._at_least(transfer, enters, self._cuts.entry(transfer[1]), self._into(enters))

    def last(self, transfer: Transfer) -> int:
        """Returns the least time in ps from the last start to the last completion."""
        leaves = self._needs(transfer).leaves
        # A rank sends what it has reduced completely without reading it.
        read = 0 if transfer[0] == "all_reduce" else leaves
        served = self._out(leaves, read)
        return self._at_least(transfer, leaves, self._cuts.exit(transfer[1]), served)

    def _at_least(
        self, transfer: Transfer, size: float, rate: float, served: dict[str, float]
    ) -> int:
        mask = transfer[1]
        if not self._cuts.within(mask):
            return 0
        latency = self._cuts.eccentricity(mask)
        work = max(latency, self._cuts.nearest(mask) + size / rate, *served.values(), 0)
        return self.launch + int(work)

    def message(self, size: int) -> int:
        """Returns the least time in ps of a message."""
        mask = (1 << len(self.network.sizes)) - 1
        if not self._cuts.within(mask):
            return 0
        links = self._cuts.nearest(mask) + size / self._cuts.exit(mask)
        served = [*self._out(size, size).values(), *self._into(size).values()]
        return int(max(links, *served)) if served else int(links)

    def loads(self, transfer: Transfer) -> Iterator[tuple[str, float]]:
        """Yields the busy time in ps of resources; of an NPU's, that of the average NPU."""
        if not self._cuts.within(transfer[1]):
            return
        yield from self._cuts.loads(transfer)
        needs = self._needs(transfer)
        if self.configuration.kind == "baseline":
            yield from self._out(needs.sends, needs.reads).items()
            yield from self._into(needs.sends).items()
        else:
            yield from self._out(needs.leaves, needs.leaves).items()
            yield from self._into(needs.enters).items()

    def _out(self, size: float, read: float) -> dict[str, float]:
        """Returns the busy time of servers between memory and links, in ps."""
        if self.configuration.kind == "ideal":
            return {}
        served = {"bus out": size * _cost(self.npu.bus)}
        if self.configuration.kind == "ace":
            return served | {"memory reads": size * _cost(self._memory)}
        sms = self.configuration.sms if self.configuration.overlap else self.npu.sms
        served["memory reads"] = read * _cost(self._memory)
        return served | {"SMs": read * _cost(self.npu.per_sm) / max(1, sms)}

    def _into(self, size: float) -> dict[str, float]:
        """Returns the busy time of servers between links and memory, in ps."""
        if self.configuration.kind == "ideal":
            return {}
        served = {"bus in": size * _cost(self.npu.bus)}
        if self.configuration.kind == "ace":
            served["memory writes"] = size * _cost(self._memory)
        return served

    @property
    def _memory(self) -> TimePerByte:
        return self.configuration.memory or self.npu.memory


def _cost(rate: TimePerByte) -> float:
    return rate.core.ps_per_byte


class Programs(NamedTuple):
    """The programs of a step, on NPUs that suffice if transfers take fixed times.

    Attributes:
        programs: The programs.
        sizes: The dimensions of the NPU numbers.
        numbers: The number of the program of each NPU; empty if there is one.
        are_alike: Whether the NPUs of a group compute alike.
    """

    programs: list[_core.TrainingProgram]
    sizes: list[int]
    numbers: list[int]
    are_alike: bool


def step_bound(given: Programs, costs: Costs) -> StepBound:
    """Returns the lower bound of a step.

    If NPUs of a group compute differently, collectives take no time after the last NPU starts them.
    """
    earliest = _least(given, costs.first if given.are_alike else _nothing)
    latest = _least(given, costs.last) if given.are_alike else earliest
    first = _with_fixed_times(given, costs, earliest)
    # The times are equal where no server lies between memory and links, and exits equal entries.
    last = first if latest == earliest else _with_fixed_times(given, costs, latest)
    numbers = given.numbers or [0]
    started = []
    for number, program in enumerate(given.programs):
        transfers = {task: (name, mask, size, 0) for task, name, mask, size in program.issued}
        share = numbers.count(number) / len(numbers)
        started += [
            _Started(span.start_ps if given.are_alike else 0, transfers[span.task], share)
            for span in first.spans(numbers.index(number))
            if span.task in transfers
        ]
    return _bound(max(first.end_ps, last.end_ps), started, costs)


def _nothing(_: Transfer) -> int:
    return 0


def _least(given: Programs, least: Callable[[Transfer], int]) -> list[tuple[Transfer, int]]:
    """Returns the least time in ps of each transfer of the programs."""
    transfers = sorted({one for program in given.programs for one in program.transfers})
    return [(transfer, least(transfer)) for transfer in transfers]


def _with_fixed_times(
    given: Programs, costs: Costs, times: list[tuple[Transfer, int]]
) -> _core.TrainingRecord:
    """Runs the programs with a fixed time for each transfer and without contention."""
    issued = {(name, size) for program in given.programs for _, name, _, size in program.issued}
    messages = sorted({size for name, size in issued if name in ("send", "recv")})
    fabric = _core.StepFabric.isolated(
        given.sizes,
        times,
        [(size, costs.message(size)) for size in messages],
        concurrent=True,
    )
    most = Size(bytes=1 << 60)
    settings = fabric_settings(most, most, every_npu=True)
    endpoint = _core.Endpoint.ideal({"packet": 1 << 60, "cycle": 0, "chunks": (1, 1)})
    return _core.simulate_training(given.programs, fabric, endpoint, settings, given.numbers)


def _bound(path: int, started: Sequence[_Started], costs: Costs) -> StepBound:
    """Returns the larger of the critical path and the loads.

    Collectives that start at `start` or later use a resource after their launch only.
    """
    latest: dict[str, float] = defaultdict(float)
    busy: dict[str, float] = defaultdict(float)
    # Iterations and layers repeat transfers.
    transfers = {one.transfer for one in started}
    loads = {transfer: list(costs.loads(transfer)) for transfer in transfers}
    for start, transfer, share in sorted(started, reverse=True):
        for resource, time in loads[transfer]:
            busy[resource] += time * share
            latest[resource] = max(latest[resource], start + costs.launch + busy[resource])
    parts = {_PATH: Time(ps=path)}
    return StepBound(parts | {name: Time(ps=int(end)) for name, end in latest.items()})

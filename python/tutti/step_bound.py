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
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

from tutti import _core
from tutti.endpoint import fabric_settings
from tutti.step_cuts import Cuts, Needs
from tutti.units import Size, Time, TimePerByte

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tutti.endpoint import Configuration, Npu
    from tutti.step_fabric import StepNetwork, Transfer
    from tutti.workload.trace import Task

__all__ = ["Costs", "StepBound", "bound_of_loop", "bound_of_tasks"]

_PATH = "critical path"
_ALL = (1 << 8) - 1
_LEAST_DELAY = 2
"""The least time in ps of a collective that has a fixed time."""

_ASYNCHRONOUS = ("before_forward", "before_backward", "after_weight_gradient")
"""The collectives of a layer that run while other layers compute."""


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
    """A collective of a program, and the earliest time in ps at which an NPU starts it."""

    start: int
    transfer: Transfer


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
        if transfer[0] == "shift":
            return int(max(self._cuts.nearest(mask) + size / rate, *served.values(), 0))
        latency = self._cuts.eccentricity(mask)
        return int(max(latency, self._cuts.nearest(mask) + size / rate, *served.values(), 0))

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


def bound_of_loop(loop: dict[str, Any], costs: Costs) -> StepBound:
    """Returns the lower bound of a training loop.

    Args:
        loop: The arguments of the core's program.
        costs: The costs of its collectives.
    """
    loop = _without_buckets(loop)
    transfers = sorted(set(_transfers(loop)))
    numbers = {transfer: number for number, transfer in enumerate(transfers)}
    numbered = _program(loop, lambda transfer, _: 1 + numbers[transfer]).tasks
    kinds = {index: transfers[row[4] - 1] for index, row in enumerate(numbered) if row[0] == _SENT}
    for index, row in enumerate(numbered):
        if row[0] == _EXCHANGED:
            kinds[index] = transfers[row[4] // 2 - 1]
    first = _with_fixed_times(loop, costs.first)
    last = _with_fixed_times(loop, costs.last)
    slack = _LEAST_DELAY * len(kinds)
    started = [
        _Started(max(0, start - slack), kinds[task])
        for task, start, _ in first.spans()
        if task in kinds
    ]
    return _bound(max(first.end_ps, last.end_ps) - slack, started, costs)


def bound_of_tasks(tasks: Sequence[Sequence[Task]], costs: Costs) -> StepBound:
    """Returns the lower bound of recorded tasks of each NPU, or of one if all are equal.

    If NPUs compute differently, collectives may take no time on an NPU that starts them late.
    """
    longest, started = 0, []
    for of_rank in tasks:
        for least in (costs.first, costs.last):
            path = _ends(of_rank, least if len(tasks) == 1 else lambda _: 0)
            computing = sum(ps for _, (ps, on_cpu), sent, _ in of_rank if not (sent or on_cpu))
            longest = max(longest, computing, *(end for _, end in path))
    path = _ends(tasks[0], costs.first)
    for (start, _), (_, _, transfer, _) in zip(path, tasks[0], strict=True):
        if transfer is not None:
            started.append(_Started(start if len(tasks) == 1 else 0, transfer))
    return _bound(longest, started, costs)


def _ends(tasks: Sequence[Task], least: Callable[[Transfer], int]) -> list[tuple[int, int]]:
    """Returns the earliest start and end of each task."""
    found: list[tuple[int, int]] = []
    for _, (ps, _), transfer, after in tasks:
        start = max((found[task][1] for task in after), default=0)
        found.append((start, start + (ps if transfer is None else least(transfer))))
    return found


def _bound(path: int, started: Sequence[_Started], costs: Costs) -> StepBound:
    """Returns the larger of the critical path and the loads.

    Collectives that start at `start` or later use a resource after `start` only.
    """
    latest: dict[str, float] = defaultdict(float)
    busy: dict[str, float] = defaultdict(float)
    for start, transfer in sorted(started, reverse=True):
        for resource, time in costs.loads(transfer):
            busy[resource] += time
            latest[resource] = max(latest[resource], start + busy[resource])
    parts = {_PATH: Time(ps=path)}
    return StepBound(parts | {name: Time(ps=int(end)) for name, end in latest.items()})


_SENT = "shift"
_EXCHANGED = "all_to_all"


def _is_transfer(part: object) -> TypeGuard[Transfer]:
    return isinstance(part, tuple) and len(part) == 4 and isinstance(part[0], str)


def _transfers(part: object) -> Iterator[Transfer]:
    """Yields the collectives of a loop or a part of it."""
    if _is_transfer(part):
        yield part
    elif isinstance(part, dict):
        if "lookup" in part:
            yield _lookups(part)
        for one in part.values():
            yield from _transfers(one)
    elif isinstance(part, list | tuple):
        for one in part:
            yield from _transfers(one)


def _lookups(embedding: dict[str, Any]) -> Transfer:
    """Returns the all-to-all of embedding tables."""
    return _EXCHANGED, _ALL, embedding["bytes"], 1


def _program(loop: dict[str, Any], time: Callable[[Transfer, bool], int]) -> _core.TrainingProgram:
    """Returns a program of the loop whose collectives take a fixed time.

    Args:
        loop: The arguments of the core's program.
        time: Returns the time of a collective in ps, less one. Its second argument is whether other
            layers compute at the same time.
    """
    kinds = sorted({(name, mask, level) for name, mask, _, level in _transfers(loop)})

    def fixed(part: object, *, is_asynchronous: bool = False) -> Any:  # noqa: ANN401 - of a loop
        if _is_transfer(part):
            name, mask, _, level = part
            # Gradients of one kind share a bucket.
            kind = kinds.index((name, mask, level))
            return _SENT, 1, max(1, time(part, is_asynchronous)), kind
        if isinstance(part, dict):
            found = {k: fixed(v, is_asynchronous=k in _ASYNCHRONOUS) for k, v in part.items()}
            if "lookup" in part:
                found["bytes"] = 2 * max(1, time(_lookups(part), False))
            return found
        if isinstance(part, list | tuple):
            return type(part)(fixed(one) for one in part)
        return part

    return _core.TrainingProgram(**fixed(loop))


def _with_fixed_times(
    loop: dict[str, Any], least: Callable[[Transfer], int]
) -> _core.TrainingRecord:
    """Runs the loop with a fixed time for each collective and without contention.

    The other stages of a pipeline take as long as the measured one. Its collectives that run while
    layers compute take no time, as a wait for them may be shorter in a slower run.
    """
    pipelined = loop["pipeline"] is not None

    def time(transfer: Transfer, is_asynchronous: bool) -> int:
        return 0 if pipelined and is_asynchronous else least(transfer) - 1

    most = Size(bytes=1 << 60)
    settings = fabric_settings(most, most)
    # Two NPUs: a message takes the latency of the link, and 1 ps per byte in a switch.
    free, one = (TimePerByte.parse(text).core for text in ("0 ps/B", "1 ps/B"))
    fabric = _core.StepFabric.torus([(2, free, 1)], relays=[one])
    chunks = (1 << 32) - 1
    endpoint = _core.Endpoint.ideal({"packet": 1 << 60, "cycle": 0, "chunks": (chunks, chunks)})
    return _core.simulate_training(_program(loop, time), fabric, endpoint, settings)


def _without_buckets(loop: dict[str, Any]) -> dict[str, Any]:
    """Returns the loop with the collective of each bucket at the layer that completes it.

    The next forward pass starts with this layer, so the other layers of the bucket need not wait
    for the collective themselves.
    """
    bucket = (loop["bucket"] or 0) if loop["overlap"] else None
    layers = [dict(layer) for layer in loop["layers"]]
    open_: dict[tuple[str, int, int], tuple[int, int]] = {}
    for at in reversed(range(len(layers))):
        gradients = layers[at]["after_weight_gradient"]
        if gradients is None:
            continue
        layers[at]["after_weight_gradient"] = None
        name, mask, size, level = gradients
        kind = (name, mask, level)
        open_[kind] = at, size + open_.get(kind, (at, 0))[1]
        if bucket is not None and open_[kind][1] >= bucket:
            layers[at]["after_weight_gradient"] = (name, mask, open_.pop(kind)[1], level)
    for (name, mask, level), (at, size) in open_.items():
        layers[at]["after_weight_gradient"] = (name, mask, size, level)
    return {**loop, "layers": layers, "bucket": None}

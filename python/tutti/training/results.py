"""The result of a training step."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeVar

from tutti import _core
from tutti.base.units import Time

if TYPE_CHECKING:
    from collections.abc import Callable

    from tutti.training.endpoint import Configuration
    from tutti.training.step import Step

T = TypeVar("T")

_RECORDED = 64
"""Runs of more NPUs have detailed results for the first NPU of each program."""
_CACHED = 32
"""Cached values of NPUs: enough for the drawn ones; those of all NPUs of a run can take GB."""


@dataclass(frozen=True, kw_only=True)
class StepBound:
    """A lower bound of the time of a step.

    Attributes:
        parts: The bound by the critical path, and by each resource.
        time: The bound: the largest part.
        by: The name of the largest part; the critical path if several are equal.
    """

    parts: dict[str, Time]
    time: Time
    by: str

    @classmethod
    def of(cls, bound: _core.StepBound) -> StepBound:
        """Returns the bound of the core."""
        parts = {name: Time(ps=ps) for name, ps in bound.parts_ps}
        return cls(parts=parts, time=Time(ps=bound.time_ps), by=bound.by)


@dataclass(frozen=True, kw_only=True)
class TrainingResult:
    """The result of a training step.

    Attributes:
        step: The step.
        configuration: The endpoint configuration.
        record: The record of the core.
    """

    step: Step
    configuration: Configuration
    record: _core.TrainingRecord

    @property
    def _programs(self) -> list[_core.TrainingProgram]:
        return self.step.programs(self.configuration)

    def once(self, compute: Callable[[TrainingResult, int], T], npu: int = 0) -> T:
        """Returns what a function computes of an NPU's program and times, cached.

        Several views show it, and NPUs with one program and equal times share it.
        """
        npu = self._alike[npu] if 0 <= npu < len(self._alike) else npu
        key = compute, npu
        if key in self._cached:
            return self._cached[key]  # type: ignore[no-any-return] # the value of the function
        value = compute(self, npu)
        if len(self._cached) < _CACHED:
            self._cached[key] = value
        return value

    @cached_property
    def _cached(self) -> dict[tuple[Callable[[TrainingResult, int], Any], int], Any]:
        return {}

    @cached_property
    def _alike(self) -> list[int]:
        """For each simulated NPU, the first one with its program and its times."""
        several = len(self._programs) > 1
        first: dict[tuple[int, int], int] = {}
        return [
            first.setdefault((alike, self._numbers[npu] if several else 0), npu)
            for npu, alike in enumerate(self.record.first_alike())
        ]

    def program_of(self, npu: int = 0) -> _core.TrainingProgram:
        """Returns the program of a simulated NPU."""
        return self._programs[self._numbers[npu] if len(self._programs) > 1 else 0]

    @cached_property
    def _numbers(self) -> list[int]:
        return self.step.numbers(self.configuration)

    @property
    def recorded(self) -> list[int]:
        """The NPUs with detailed results: all of a few, or the first of each program."""
        npus = self.record.npus
        if npus <= _RECORDED:
            return list(range(npus))
        if len(self._programs) == 1:
            return [0]
        return [self._numbers.index(number) for number in range(len(self._programs))]

    @property
    def total(self) -> Time:
        """The time of all iterations."""
        return Time(ps=self.record.end_ps)

    @cached_property
    def bound(self) -> StepBound:
        """The lower bound of the time of all iterations, for any algorithms."""
        return self.step.bound(self.configuration)

    @property
    def of_bound(self) -> float:
        """The lower bound divided by the time; at 1, no algorithm is faster."""
        return self.bound.time.ps / self.total.ps

    @property
    def iterations(self) -> int:
        """The number of simulated iterations."""
        return len(self.record.iterations())

    @property
    def period(self) -> Time:
        """The time of the last iteration, from the end of the previous one."""
        return Time(ps=self._periods[-1])

    @property
    def is_stable(self) -> bool:
        """Whether the last two iterations differ by at most a thousandth."""
        last = self._periods[-2:]
        return len(self._periods) > 2 and 1000 * abs(last[1] - last[0]) <= last[1]

    @property
    def _periods(self) -> list[int]:
        ends = self.record.iterations()
        return [end - start for start, end in pairwise([0, *ends])]

    @property
    def compute(self) -> int:
        """Picoseconds in which the processor was busy."""
        parts = self.record.breakdown()
        return parts.compute_ps + parts.overlap_ps

    @cached_property
    def complete_compute(self) -> int:
        """Picoseconds in which the processor would be busy if communication reserved nothing."""
        programs = self.step.programs(self.configuration, "all")
        of_first = programs[self._numbers[0] if len(programs) > 1 else 0]
        return sum(task.amount for task in of_first.tasks if task.kind == "compute")

    @property
    def reservation_cost(self) -> int:
        """Picoseconds by which reserved SMs and memory bandwidth lengthen computation.

        A work-conserving reservation costs only what the endpoint uses of it.
        """
        reserves = self.configuration.kind != "ideal" and self.configuration.overlap
        return self.compute - self.complete_compute if reserves else 0

    @property
    def exposed(self) -> int:
        """Picoseconds of communication that computation does not hide."""
        return self.record.breakdown().exposed_ps

    @property
    def overlap(self) -> int:
        """Picoseconds in which an NPU computed and communicated."""
        return self.record.breakdown().overlap_ps

    @property
    def idle(self) -> int:
        """Picoseconds in which an NPU did neither."""
        return self.record.breakdown().idle_ps

    @property
    def sent(self) -> int:
        """Bytes that an NPU sent on its links."""
        return sum(link.bytes for link in self.record.links())

    @property
    def read(self) -> int:
        """Bytes that communication read from the memory of an NPU."""
        return next((used.bytes for used in self.record.servers() if used.name == "memory"), 0)

    @property
    def network_rate(self) -> float:
        """Bytes per second that an NPU sent while it communicated."""
        parts = self.record.breakdown()
        communicating = parts.overlap_ps + parts.exposed_ps
        return self.sent / communicating * 1e12 if communicating else 0.0

    def __repr__(self) -> str:
        name = f"{self.step.model.name}, {self.configuration.name}"
        compute, exposed = (_core.format_time(ps) for ps in (self.compute, self.exposed))
        return f"<TrainingResult {name}: {self.total}, {compute} compute, {exposed} exposed>"

    def _repr_html_(self) -> str:
        """The HTML for notebooks: a bar of compute and communication, and a timeline."""
        from tutti.training.view.page import steps_view
        from tutti.view.notebook import view_html

        return view_html(steps_view([self]))

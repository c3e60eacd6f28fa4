"""Captured steps as programs of the engine of training steps.

Consecutive operators of a stream become one task where no other stream waits in between, so that a
step has a few tasks per block and stream.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tutti import _core
from tutti.training.capture.assignment import Assignment
from tutti.training.capture.summary import peak
from tutti.training.errors import CaptureError
from tutti.training.fabric import Dimension

if TYPE_CHECKING:
    from tutti.base.units import TimePerByte
    from tutti.training.capture.grid import Grid
    from tutti.training.capture.kernels import KernelTimes
    from tutti.training.capture.record import CapturedStep, Exchange, Operator, Role
    from tutti.view.tables import ReportTable

__all__ = ["CapturedWork", "Task"]

_TRANSFERS = {
    "all_reduce": "all_reduce",
    "all_gather": "all_gather",
    "reduce_scatter": "reduce_scatter",
    "all_to_all": "all_to_all",
    # A pipelined ring moves as many bytes over each link.
    "broadcast": "all_gather",
    "reduce": "reduce_scatter",
}
"""The collective of the engine of each captured one."""
_BLOCK = re.compile(r"^(.*?\.?\d+)(\.|$)")


@dataclass(frozen=True, kw_only=True)
class CapturedWork:
    """A captured step with the times of its operators.

    Attributes:
        step: The step.
        kernels: The times of operators.
    """

    step: CapturedStep
    kernels: KernelTimes

    @cached_property
    def assignment(self) -> Assignment:
        """The captured role of each rank."""
        return Assignment(self.step.world_size, self.step.roles)

    @property
    def grid(self) -> Grid:
        """The dimensions that the process groups span.

        Raises:
            CaptureError: The groups do not fit into a grid.
        """
        return self.assignment.grid

    @property
    def dimensions(self) -> tuple[Dimension, ...]:
        """The dimensions of the ranks, innermost first, with the names of their groups."""
        names: dict[int, str] = {}
        for role in self.step.roles:
            for group in role.groups:
                if group.ranks in self.assignment.apart:
                    continue
                mask = self.grid.mask(group.ranks)
                if mask.bit_count() == 1:
                    names.setdefault(mask.bit_length() - 1, _name_of(group.name))
        taken: Counter[str] = Counter()
        found = []
        for place, digit in enumerate(self.grid.digits):
            name = names.get(place) or f"dimension {place}"
            taken[name] += 1
            found.append(Dimension(name if taken[name] == 1 else f"{name} {taken[name]}",
                                   digit.nodes))  # fmt: skip
        return tuple(found)

    @property
    def peak_bytes(self) -> int:
        """The largest memory of a captured rank."""
        return max(peak(role).bytes for role in self.step.roles)

    def memory_tables(self) -> list[ReportTable[Any]]:
        """Returns tables of the memory at its peak, by kind and by module."""
        from tutti.training.capture.view import memory_tables

        return list(memory_tables(self.step))

    def numbers(self) -> list[int]:
        """Returns the number of the role of each rank.

        Raises:
            CaptureError: A rank has no captured role.
        """
        return self.assignment.numbers()

    def programs(
        self, left: tuple[int, TimePerByte], slowdown: float = 1.0
    ) -> list[_core.TrainingProgram]:
        """Returns the program of each role.

        Args:
            left: Operations per second and memory bandwidth that are left to compute.
            slowdown: The factor on the time of each operator.

        Raises:
            CaptureError: A collective is not one of the engine.
            WorkloadError: The tasks of a role are not a valid program.
        """
        found = []
        for role in self.step.roles:
            times = [round(one * slowdown) for one in self.kernels.times(role.operators, left)]
            tasks = _Tasks(self, role, times)
            found.append(_core.TrainingProgram.of_tasks(tasks.all()))
        return found

    def tasks(self, role: Role, left: tuple[int, TimePerByte]) -> list[Task]:
        """Returns the tasks of a role: consecutive operators of a stream, and exchanges."""
        return _Tasks(self, role, self.kernels.times(role.operators, left)).merged()

    def exchange(self, role: Role, one: Exchange) -> _core.Transfer | _core.Message:
        """Returns a collective or message of the engine.

        Raises:
            CaptureError: The engine does not have the collective.
        """
        if one.peer is not None:
            world = self.step.world_size
            every = (1 << len(self.grid.digits)) - 1
            ahead = (one.peer - role.rank) % world
            size, tag = max(one.bytes, 1), one.tag & 0xFFFF_FFFF
            return _core.Message(one.collective, every, ahead=ahead, size=size, tag=tag)
        name = _TRANSFERS.get(one.collective)
        if name is None:
            message = f"rank {role.rank} calls {one.collective}: expected one of "
            raise CaptureError(message + ", ".join(_TRANSFERS), kind="collective")
        mask = self.grid.mask(role.groups[one.group].ranks)
        return _core.Transfer(name, mask, max(one.bytes, 1))


def _name_of(group: str) -> str:
    """Returns the name of a dimension of a device mesh, which PyTorch calls `mesh_NAME`."""
    return group.removeprefix("mesh_").removeprefix("default_pg") or "world"


@dataclass
class Task:
    """Operators of a stream that are one task, or an exchange.

    Attributes:
        name: The block, and the phase or collective.
        after: The tasks that it waits for.
        time: Its time in ps; 0 for an exchange.
        stream: The number of its stream.
        exchange: What it exchanges.
    """

    name: str
    after: set[int]
    time: int
    stream: int
    exchange: Exchange | None


@dataclass
class _Tasks:
    """Merges the operators of a role to tasks.

    Attributes:
        work: The captured step.
        role: The role.
        times: The time of each operator in ps.
    """

    work: CapturedWork
    role: Role
    times: list[int]
    _of: list[tuple[int, ...]] = field(default_factory=list)
    _open: dict[int, int] = field(default_factory=dict)

    def all(self) -> list[_core.TraceTask]:
        """Returns the tasks of the engine; each waits for earlier ones only."""
        return [self._made(task) for task in self.merged()]

    def merged(self) -> list[Task]:
        """Returns the tasks; each waits for earlier ones only."""
        ends = self._awaited()
        tasks: list[Task] = []
        for number, one in enumerate(self.role.operators):
            after = {task for before in one.after for task in self._of[before]}
            name, at = _label(one), self._open.get(one.stream)
            if one.exchange is None and at is not None and after <= {at} and tasks[at].name == name:
                tasks[at].time += self.times[number]
                self._of.append((at,))
            else:
                parts = self.work.assignment.parts(self.role, one.exchange)
                self._of.append(tuple(range(len(tasks), len(tasks) + len(parts))))
                tasks += [Task(name, set(after), self.times[number], one.stream, to)
                          for to in parts]  # fmt: skip
            closes = one.exchange is not None or number in ends
            if closes:
                self._open.pop(one.stream, None)
            else:
                self._open[one.stream] = self._of[-1][-1]
        return tasks

    def _made(self, task: Task) -> _core.TraceTask:
        of = self.work.exchange(self.role, task.exchange) if task.exchange else None
        side = of is None and task.stream != self._main
        return _core.TraceTask(
            task.name, after=sorted(task.after), time_ps=task.time, background=side, exchange=of
        )

    @cached_property
    def _main(self) -> int:
        """The stream whose operators take longest: those of others run concurrently.

        FSDP2 copies shards on another stream, which would otherwise wait for a block.
        """
        totals: Counter[int] = Counter()
        for one, time in zip(self.role.operators, self.times, strict=True):
            if one.exchange is None:
                totals[one.stream] += time
        return max(totals, key=lambda stream: (totals[stream], -stream), default=0)

    def _awaited(self) -> set[int]:
        """Returns the operators that another stream waits for."""
        operators = self.role.operators
        return {
            before
            for one in operators
            for before in one.after
            if operators[before].stream != one.stream
        }


def _label(one: Operator) -> str:
    """Returns the name of a task: the block of the module, and the phase or collective."""
    match = _BLOCK.match(one.module)
    block = match[1] if match else one.module.partition(".")[0]
    what = one.exchange.collective if one.exchange else one.phase
    return f"{block} {what}" if block else what

"""Overlap of gradient all-reduces with computation, for known times of the all-reduces.

The training engine runs the passes of :mod:`tutti.training.step` without a network. The times of
all-reduces come from separate simulations, and a queue of all-reduces replaces contention. The next
forward pass waits for the gradients of all layers, or of each layer.

Examples:
    >>> from tutti.base.units import TimePerByte
    >>> from tutti.workloads import recorded
    >>> link = TimePerByte.parse("68 GB/s")
    >>> step = Overlap(recorded("resnet50")).run(link.of)
    >>> str(step.iteration), str(step.compute), str(step.exposed)
    ('1.889429322 ms', '1.095314 ms', '794.115322 us')
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import polars as pl

from tutti import _core
from tutti.base.units import Size, Time
from tutti.workloads.errors import WorkloadError
from tutti.workloads.model import PASSES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tutti.workloads.timed import TimedLayer

Waits = Literal["all", "own"]
Order = Literal["fifo", "lifo"]

_QUEUE = _core.Transfer("barrier", 1, 1)
"""A collective of 0 ps before each all-reduce. The network performs it while simultaneous
all-reduces are queued, so that `lifo` starts with the newest of them."""


@dataclass(frozen=True, slots=True)
class OverlapLayer:
    """Times of a layer's gradients, from the start of the backward pass.

    Attributes:
        layer: The layer.
        ready: The weight gradient is computed, and its all-reduce is queued.
        start: The all-reduce starts.
        end: The all-reduce ends; equals `ready` for a layer without gradients.
        forward: The next forward pass of the layer starts.
        waited: The time that this pass waited for gradients.
    """

    layer: TimedLayer
    ready: Time
    start: Time
    end: Time
    forward: Time
    waited: Time


@dataclass(frozen=True, slots=True)
class Overlapped:
    """An iteration, from the start of a backward pass to the start of the next.

    Attributes:
        layers: The layers, first to last.
        iteration: The time of the iteration.
    """

    layers: tuple[OverlapLayer, ...]
    iteration: Time

    @property
    def compute(self) -> Time:
        """The time of all passes of all layers."""
        return Time(ps=sum(row.layer.compute.ps for row in self.layers))

    @property
    def communication(self) -> Time:
        """The time of all all-reduces."""
        return Time(ps=sum(row.end.ps - row.start.ps for row in self.layers))

    @property
    def exposed(self) -> Time:
        """Communication that computation does not hide: the iteration minus computation."""
        return Time(ps=self.iteration.ps - self.compute.ps)

    @property
    def frame(self) -> pl.DataFrame:
        """A row per layer, first to last: bytes, times of passes, and times of events."""
        return pl.DataFrame(
            [
                {
                    "layer": row.layer.name,
                    "gradient_bytes": row.layer.gradients.bytes,
                    **{f"{which}_ps": getattr(row.layer, which).ps for which in PASSES},
                    "ready_ps": row.ready.ps,
                    "start_ps": row.start.ps,
                    "end_ps": row.end.ps,
                    "next_forward_ps": row.forward.ps,
                    "waited_ps": row.waited.ps,
                }
                for row in self.layers
            ]
        )


@dataclass(frozen=True)
class Overlap:
    """Layers whose gradients are all-reduced during the backward pass.

    Attributes:
        layers: The layers, first to last, from :func:`tutti.workloads.timed` or
            :func:`tutti.workloads.recorded`.
        waits: The gradients that the next forward pass of a layer waits for: those of `all` layers,
            or its `own`. All gradients are complete when the next backward pass starts, so one
            iteration determines the steady state.
        order: The order of queued all-reduces: the oldest first (`fifo`) or the newest (`lifo`).
            With `fifo` the first layer is last, so that `own` seldom helps.
    """

    layers: Sequence[TimedLayer]
    waits: Waits = "all"
    order: Order = "fifo"

    def run(self, all_reduce: Callable[[Size], Time]) -> Overlapped:
        """Returns an iteration.

        Args:
            all_reduce: Returns the time of an all-reduce among all NPUs; called once per size, and
                never for 0 B.

        Raises:
            WorkloadError: There are no layers, or the time of an all-reduce is negative.
        """
        takes = self._times(all_reduce)
        barrier = self.waits == "all"
        program = _core.TrainingProgram(self._rows(), iterations=2, overlap=True, barrier=barrier)
        times = [(_all_reduce(size), ps) for size, ps in takes.items()]
        fabric = _core.StepFabric.isolated([2], [(_QUEUE, 0), *times], [])
        endpoint = _core.Endpoint.ideal(packet=1, cycle_ps=0, chunks_at_once=(1, 1))
        settings = _core.FabricSettings(chunk=1, message=1, order=self.order, every_npu=True)
        record = _core.simulate_training([program], fabric, endpoint, settings)
        tasks = program.tasks
        ends = {_key(tasks[span.task]): span.end_ps for span in record.spans()}
        return self._overlapped(ends, takes)

    def _times(self, all_reduce: Callable[[Size], Time]) -> dict[Size, int]:
        """Returns the time of an all-reduce of each size, in picoseconds."""
        sizes = {layer.gradients for layer in self.layers if layer.gradients.bytes}
        takes = {size: all_reduce(size).ps for size in sorted(sizes)}
        for size, ps in takes.items():
            if ps < 0:
                message = f"an all-reduce of {size} takes {ps} ps: expected at least 0"
                raise WorkloadError(message, kind="negative_time", fields={"size": str(size)})
        return takes

    def _rows(self) -> list[_core.TrainingLayer]:
        """Returns two rows per layer; backward passes start with the second, which has `_QUEUE`."""
        rows = []
        for index, layer in enumerate(self.layers):
            has = bool(layer.gradients.bytes)
            first = _core.TrainingLayer(
                str(index),
                forward_ps=layer.forward.ps,
                input_gradient_ps=layer.input_gradient.ps,
                after_weight_gradient=_all_reduce(layer.gradients) if has else None,
            )
            second = _core.TrainingLayer(
                "",
                weight_gradient_ps=layer.weight_gradient.ps,
                after_weight_gradient=_QUEUE if has else None,
            )
            rows += [first, second]
        return rows

    def _overlapped(
        self, ends: Mapping[tuple[str, str, str, int], int], takes: Mapping[Size, int]
    ) -> Overlapped:
        """Returns the iteration between the first and the second backward pass of a program."""
        offset = sum(layer.forward.ps for layer in self.layers)
        now = sum(layer.compute.ps for layer in self.layers)
        rows = []
        for index, layer in enumerate(self.layers):
            ready = ends["compute", str(index), "weight_gradient", 0]
            end = ends.get(("all_reduce", str(index), "weight_gradient", 0), ready)
            passed = ends["compute", str(index), "forward", 1]
            events = (ready, end - takes.get(layer.gradients, 0), end, passed - layer.forward.ps)
            times = [ps - offset for ps in events] + [events[-1] - now]
            rows.append(OverlapLayer(layer, *(Time(ps=ps) for ps in times)))
            now = passed
        return Overlapped(tuple(rows), Time(ps=now - offset))


def _all_reduce(size: Size) -> _core.Transfer:
    return _core.Transfer("all_reduce", 1, size.bytes)


def _key(task: _core.ProgramTask) -> tuple[str, str, str, int]:
    return task.kind, task.layer, task.during, task.iteration

"""Overlap of gradient all-reduces with computation, for known times of the all-reduces.

The backward pass visits layers from the last: it computes the weight gradient, queues its
all-reduce, and computes the input gradient. All-reduces run sequentially during computation, the
oldest first. The next forward pass waits for the gradients of all layers, or of each layer. The
times of all-reduces come from separate simulations; :mod:`tutti.training` simulates communication
and computation together on tori.

Examples:
    >>> from tutti.units import TimePerByte
    >>> from tutti.workload import recorded
    >>> link = TimePerByte.parse("68 GB/s")
    >>> step = Overlap(recorded("resnet50")).run(link.of)
    >>> str(step.iteration), str(step.compute), str(step.exposed)
    ('1.889429322 ms', '1.095314 ms', '794.115322 us')
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import polars as pl

from tutti.errors import WorkloadError
from tutti.units import Size, Time

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tutti.workload.timed import TimedLayer

__all__ = ["Overlap", "OverlapLayer", "Overlapped"]

Waits = Literal["all", "own"]
Order = Literal["fifo", "lifo"]


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
                    "forward_ps": row.layer.forward.ps,
                    "input_gradient_ps": row.layer.input_gradient.ps,
                    "weight_gradient_ps": row.layer.weight_gradient.ps,
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
        layers: The layers, first to last, from :func:`tutti.workload.timed` or
            :func:`tutti.workload.recorded`.
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
        if not self.layers:
            raise WorkloadError("the iteration has no layers", kind="no_layers")
        takes = self._times(all_reduce)
        ready = [0] * len(self.layers)
        now = 0
        for index in reversed(range(len(self.layers))):
            now += self.layers[index].weight_gradient.ps
            ready[index] = now
            now += self.layers[index].input_gradient.ps
        start = self._queue(ready, takes)
        end = [
            at + takes.get(layer.gradients, 0) for at, layer in zip(start, self.layers, strict=True)
        ]
        return self._forward(list(zip(ready, start, end, strict=True)), now)

    def _times(self, all_reduce: Callable[[Size], Time]) -> dict[Size, int]:
        """Returns the time of an all-reduce of each size, in picoseconds."""
        sizes = {layer.gradients for layer in self.layers if layer.gradients.bytes}
        takes = {size: all_reduce(size).ps for size in sorted(sizes)}
        for size, ps in takes.items():
            if ps < 0:
                message = f"an all-reduce of {size} takes {ps} ps: expected at least 0"
                raise WorkloadError(message, kind="negative_time", fields={"size": str(size)})
        return takes

    def _queue(self, ready: Sequence[int], takes: Mapping[Size, int]) -> list[int]:
        """Returns the start of each layer's all-reduce; `ready` for a layer without gradients."""
        start = list(ready)
        coming = [i for i, layer in enumerate(self.layers) if layer.gradients.bytes]
        waiting: list[int] = []
        free = 0
        while coming or waiting:
            if not waiting:
                free = max(free, ready[coming[-1]])
            while coming and ready[coming[-1]] <= free:
                waiting.append(coming.pop())
            index = waiting.pop(0 if self.order == "fifo" else -1)
            start[index] = free
            free += takes[self.layers[index].gradients]
        return start

    def _forward(self, spans: Sequence[tuple[int, int, int]], now: int) -> Overlapped:
        """Returns the iteration, whose backward pass ended at `now`."""
        ends = [end for *_, end in spans]
        if self.waits == "all":
            ends = [max(ends)] * len(ends)
        rows = []
        for layer, span, needed in zip(self.layers, spans, ends, strict=True):
            waited = max(0, needed - now)
            now += waited
            times = (*span, now, waited)
            rows.append(OverlapLayer(layer, *(Time(ps=ps) for ps in times)))
            now += layer.forward.ps
        return Overlapped(tuple(rows), Time(ps=now))

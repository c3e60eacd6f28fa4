"""What of an all-reduce of gradients a training step hides, when the time of each one is known.

The backward pass goes from the last layer: weight gradient, whose all-reduce queues at once, then
input gradient. All-reduces go one at a time beside computing, the oldest first. The forward pass
that follows waits for the gradients: of all layers, or each layer's for its own. For networks whose
all-reduces are simulated by themselves; :mod:`tutti.training` simulates both together on tori.

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
    """When a layer's gradients were ready and on their way, since the backward pass began.

    Attributes:
        layer: The layer.
        ready: Its weight gradient is computed; its all-reduce queues.
        begin: Its all-reduce begins.
        end: Its all-reduce ends; `ready` where there is none.
        forward: Its next forward pass begins.
        waited: How long that pass waited for gradients, with nothing to compute.
    """

    layer: TimedLayer
    ready: Time
    begin: Time
    end: Time
    forward: Time
    waited: Time


@dataclass(frozen=True, slots=True)
class Overlapped:
    """What an iteration came to: from the begin of a backward pass to that of the next.

    Attributes:
        layers: Each layer, first to last.
        iteration: How long it took.
    """

    layers: tuple[OverlapLayer, ...]
    iteration: Time

    @property
    def compute(self) -> Time:
        """All passes of all layers."""
        return Time(ps=sum(row.layer.compute.ps for row in self.layers))

    @property
    def communication(self) -> Time:
        """All all-reduces."""
        return Time(ps=sum(row.end.ps - row.begin.ps for row in self.layers))

    @property
    def exposed(self) -> Time:
        """Communication that computing does not hide: what the iteration takes beyond computing."""
        return Time(ps=self.iteration.ps - self.compute.ps)

    @property
    def frame(self) -> pl.DataFrame:
        """A row per layer, first to last: bytes, times of its passes, and when what happened."""
        return pl.DataFrame(
            [
                {
                    "layer": row.layer.name,
                    "gradient_bytes": row.layer.gradients.bytes,
                    "forward_ps": row.layer.forward.ps,
                    "input_gradient_ps": row.layer.input_gradient.ps,
                    "weight_gradient_ps": row.layer.weight_gradient.ps,
                    "ready_ps": row.ready.ps,
                    "begin_ps": row.begin.ps,
                    "end_ps": row.end.ps,
                    "next_forward_ps": row.forward.ps,
                    "waited_ps": row.waited.ps,
                }
                for row in self.layers
            ]
        )


@dataclass(frozen=True)
class Overlap:
    """Layers whose gradients are all-reduced beside the backward pass.

    Attributes:
        layers: First to last, as :func:`tutti.workload.timed` and :func:`tutti.workload.recorded`
            say them.
        waits: What the next forward pass of a layer waits for: the gradients of `all` layers (an
            iteration ends when computing and the queue are done), or its `own`. As all gradients
            are there when the next backward pass begins, one iteration tells the pace of all.
        order: Which of the all-reduces that wait goes next: the oldest (`fifo`) or the newest. The
            oldest first, that of the first layer is the last, so that `own` seldom helps.
    """

    layers: Sequence[TimedLayer]
    waits: Waits = "all"
    order: Order = "fifo"

    def run(self, all_reduce: Callable[[Size], Time]) -> Overlapped:
        """An iteration.

        Args:
            all_reduce: The time of an all-reduce of so many bytes, of all NPUs together; asked once
                for each size, and never for 0 B.

        Raises:
            WorkloadError: There are no layers, or an all-reduce takes less than no time.
        """
        if not self.layers:
            raise WorkloadError("an iteration over no layers does nothing", kind="no_layers")
        takes = self._times(all_reduce)
        ready = [0] * len(self.layers)
        now = 0
        for index in reversed(range(len(self.layers))):
            now += self.layers[index].weight_gradient.ps
            ready[index] = now
            now += self.layers[index].input_gradient.ps
        begin = self._queue(ready, takes)
        end = [
            at + takes.get(layer.gradients, 0) for at, layer in zip(begin, self.layers, strict=True)
        ]
        return self._forward(list(zip(ready, begin, end, strict=True)), now)

    def _times(self, all_reduce: Callable[[Size], Time]) -> dict[Size, int]:
        """What an all-reduce of each size takes, in picoseconds."""
        sizes = {layer.gradients for layer in self.layers if layer.gradients.bytes}
        takes = {size: all_reduce(size).ps for size in sorted(sizes)}
        for size, ps in takes.items():
            if ps < 0:
                message = f"an all-reduce of {size} takes {ps} ps: expected no less than 0"
                raise WorkloadError(message, kind="negative_time", fields={"size": str(size)})
        return takes

    def _queue(self, ready: Sequence[int], takes: Mapping[Size, int]) -> list[int]:
        """When the all-reduce of each layer begins; at once where there is none."""
        begin = list(ready)
        coming = [i for i, layer in enumerate(self.layers) if layer.gradients.bytes]
        waiting: list[int] = []
        free = 0
        while coming or waiting:
            if not waiting:
                free = max(free, ready[coming[-1]])
            while coming and ready[coming[-1]] <= free:
                waiting.append(coming.pop())
            index = waiting.pop(0 if self.order == "fifo" else -1)
            begin[index] = free
            free += takes[self.layers[index].gradients]
        return begin

    def _forward(self, spans: Sequence[tuple[int, int, int]], now: int) -> Overlapped:
        """The forward pass after a backward pass that ended at `now`."""
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

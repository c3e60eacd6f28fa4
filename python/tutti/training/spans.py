"""The tasks of a training step over time: when each pass and each collective of an NPU ran."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.training.results import TrainingResult

BUBBLE = "bubble"
"""The kind of a task that waits for other pipeline stages."""

_LANES = {"compute": "compute", "background": "background"}


class Span(NamedTuple):
    """A task of an NPU, from its start to its end; a collective starts when it is issued.

    Attributes:
        task: The number of the task in the program.
        lane: `compute` for the main lane, or `background`; empty for collectives and bubbles.
        kind: The pass, such as `forward`; for collectives the collective; or `bubble`.
        during: The pass; of a collective, the pass that issues or awaits it.
        layer: The layer, or the node of a trace.
        iteration: The iteration, from 0.
        group: The process group of a collective, as the dimensions that it spans; else empty.
        bytes: The payload of a collective; else 0.
        start_ps: The start, in picoseconds.
        end_ps: The end, in picoseconds.
    """

    task: int
    lane: str
    kind: str
    during: str
    layer: str
    iteration: int
    group: str
    bytes: int
    start_ps: int
    end_ps: int

    @property
    def duration_ps(self) -> int:
        """The duration in picoseconds."""
        return self.end_ps - self.start_ps

    @property
    def is_collective(self) -> bool:
        """Whether the task is a collective, or a send between pipeline stages."""
        return not self.lane and self.kind != BUBBLE


def group_name(run: TrainingResult, dimensions: int) -> str:
    """Returns the dimensions of a process group, such as `local x vertical`.

    Args:
        run: The run, whose step names the dimensions.
        dimensions: A bit per dimension.
    """
    sizes = [(ring.name, ring.nodes) for ring in run.step.rings]
    spanned = [size for at, size in enumerate(sizes) if dimensions >> at & 1]
    return " x ".join(name for name, nodes in spanned if nodes > 1 or len(spanned) == 1)


def communication(run: TrainingResult) -> set[tuple[str, str]]:
    """Returns the collectives of all simulated NPUs and their process groups."""
    programs = {id(one): one for one in map(run.program_of, run.recorded)}
    used = {(each.kind, each.mask) for program in programs.values() for each in program.issued}
    return {(kind, group_name(run, mask)) for kind, mask in used}


def groups(run: TrainingResult, npu: int = 0) -> list[str]:
    """Returns the process groups of an NPU's collectives, the innermost dimensions first."""
    masks = {each.mask for each in run.program_of(npu).issued}
    return list(dict.fromkeys(group_name(run, mask) for mask in sorted(masks)))


def spans(run: TrainingResult, npu: int = 0) -> list[Span]:
    """Returns the tasks of an NPU in the order of their starts; the list is shared.

    Raises:
        WorkloadError: The NPU was not simulated.
    """
    return run.once(_spans, npu)


def _spans(run: TrainingResult, npu: int) -> list[Span]:
    recorded = run.record.spans(npu)
    program = run.program_of(npu)
    tasks = program.tasks
    masks = {each.task: each.mask for each in program.issued}
    names = {mask: group_name(run, mask) for mask in set(masks.values())}
    found = []
    for recorded_span in recorded:
        number = recorded_span.task
        task = tasks[number]
        lane = _LANES.get(task.kind, "")
        group = names[masks[number]] if number in masks else ""
        size = task.amount if number in masks else 0
        shown = task.during if lane else task.kind
        labels = (lane, shown, task.during, task.layer, task.iteration, group, size)
        found.append(Span(number, *labels, recorded_span.start_ps, recorded_span.end_ps))
    return sorted(found, key=lambda one: (one.start_ps, one.end_ps, one.task))


def task_frame(run: TrainingResult, npus: Sequence[int] = (0,)) -> pl.DataFrame:
    """Returns a row per task of the NPUs, in the order of their starts.

    Columns: ``configuration``, ``npu``, and the attributes of :class:`Span`.

    Raises:
        WorkloadError: An NPU was not simulated.
    """
    schema = {
        "configuration": pl.String,
        "npu": pl.Int64,
        "task": pl.Int64,
        "lane": pl.String,
        "kind": pl.String,
        "during": pl.String,
        "layer": pl.String,
        "iteration": pl.Int64,
        "group": pl.String,
        "bytes": pl.Int64,
        "start_ps": pl.Int64,
        "end_ps": pl.Int64,
    }
    name = run.configuration.name
    attributes = list(schema)[2:]
    rows = [
        (name, npu, *(getattr(one, attribute) for attribute in attributes))
        for npu in npus
        for one in spans(run, npu)
    ]
    return pl.DataFrame(rows, schema=schema, orient="row")

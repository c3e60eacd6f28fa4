"""The tracks of an NPU in a training step: computation, exposed communication, process groups."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

from tutti.training.exposed import Exposed, exposed_on
from tutti.training.spans import BUBBLE, groups, spans
from tutti.view.errors import ReportError
from tutti.view.track_events import lanes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.training.results import TrainingResult
    from tutti.training.spans import Span

COMPUTE, BACKGROUND = "compute", "background"
"""The tracks of the two lanes of the processor."""
MOST_NPUS = 8
"""Maximum number of NPUs with a timeline in a report."""

_ENDS = (attrgetter("start_ps"), attrgetter("end_ps"))


def check_npus(npus: Sequence[int], run: TrainingResult) -> None:
    """Checks the NPUs of timelines.

    Raises:
        ReportError: An NPU was not simulated or is repeated, or there are more than `MOST_NPUS`.
    """
    if len(npus) > MOST_NPUS or len(set(npus)) < len(npus):
        given = ", ".join(map(str, npus))
        message = f"timelines of the NPUs {given}: expected up to {MOST_NPUS} different NPUs"
        raise ReportError(message, kind="npus")
    count = run.record.npus
    for npu in npus:
        if not 0 <= npu < count:
            expected = (
                f"an NPU from 0 to {count - 1}" if count > 1 else "NPU 0, which represents all"
            )
            message = f"NPU {npu} was not simulated: expected {expected}"
            raise ReportError(message, kind="npus")


def tracks(run: TrainingResult, npu: int) -> dict[str, list[list[Span]]]:
    """Returns the tracks of an NPU by name, each with as many lanes as tasks overlap.

    The first two tracks are those of the processor, `background` only if it has tasks. Pipeline
    bubbles are in the track of the main lane. Each process group has one track.

    Raises:
        WorkloadError: The NPU was not simulated.
    """
    found: dict[str, list[Span]] = {name: [] for name in (COMPUTE, BACKGROUND, *groups(run, npu))}
    for one in spans(run, npu):
        name = one.lane or (COMPUTE if one.kind == BUBBLE else one.group)
        found[name].append(one)
    return {name: lanes(tasks, *_ENDS) for name, tasks in found.items() if tasks or name == COMPUTE}


def waits(run: TrainingResult, npu: int) -> list[Exposed]:
    """Returns the exposed communication of an NPU, each uninterrupted interval as one.

    Raises:
        WorkloadError: The NPU was not simulated.
    """
    found: list[list[Exposed]] = []
    for one in exposed_on(run, npu):
        if found and found[-1][-1].end_ps == one.start_ps:
            found[-1].append(one)
        else:
            found.append([one])
    return [
        Exposed(
            ones[0].start_ps, ones[-1].end_ps, tuple(part for one in ones for part in one.parts)
        )
        for ones in found
    ]

"""Perfetto traces of training steps: computation and collectives of NPUs.

Each configuration and NPU has a track, with tracks below it for the main lane, the background lane,
the exposed communication and each process group. The arguments of a slice have the exact
picoseconds.
"""

from __future__ import annotations

import heapq
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING

from tutti.view.track_events import END, START, Event, Track, write_events

from .text import collective
from .tracks import COMPUTE, check_npus, tracks, waits

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tutti.training.exposed import Exposed
    from tutti.training.results import TrainingResult
    from tutti.training.spans import Span


def write_training_trace(
    path: str | Path, runs: Sequence[TrainingResult], npus: Sequence[int] = (0,)
) -> Path:
    """Writes the trace of training steps to `path` (conventionally `.pftrace`).

    Args:
        path: The file to write; its folder must exist.
        runs: The runs.
        npus: Up to 8 NPUs of each run.

    Returns:
        The path written.

    Raises:
        ReportError: An NPU was not simulated or is repeated, or there are too many.
    """
    made: list[Track] = []
    streams: list[list[Event]] = []
    for run in runs:
        check_npus(npus, run)
        for npu in npus:
            _add(made, streams, run, npu)
    # Each stream is sorted, and the merge is stable.
    return write_events(path, made, list(heapq.merge(*streams, key=itemgetter(0))))


def _add(made: list[Track], streams: list[list[Event]], run: TrainingResult, npu: int) -> None:
    """Adds the tracks of an NPU, and their events."""
    home = Track(len(made) + 1, f"{run.configuration.name}, NPU {npu}", None, len(made))
    made.append(home)

    def below(name: str) -> int:
        track = Track(len(made) + 1, name, home.uuid, len(made))
        made.append(track)
        return track.uuid

    for name, lanes in tracks(run, npu).items():
        for number, lane in enumerate(lanes or [[]]):
            track = below(name if len(lanes) < 2 else f"{name} {number}")
            streams.append([event for one in lane for event in _task(track, one)])
        if name == COMPUTE:
            track = below("exposed communication")
            exposed = (_wait(track, one) for one in waits(run, npu))
            streams.append(list(chain.from_iterable(exposed)))


def _task(track: int, one: Span) -> tuple[Event, Event]:
    arguments: list[tuple[str, int | str]] = [
        ("layer", one.layer),
        ("pass", one.during),
        ("iteration", one.iteration),
        ("task", one.task),
    ]
    if one.is_collective:
        arguments += [("group", one.group), ("bytes", one.bytes)]
    name = f"{collective(one.kind)} {one.layer}".strip()
    category = "collective" if one.is_collective else one.lane or one.kind
    return _slice(track, one, arguments, (category, name))


def _wait(track: int, one: Exposed) -> tuple[Event, Event]:
    parts = [
        (f"{collective(kind)} on {group} (ps)", ps)
        for (kind, group), ps in one.by_collective().items()
    ]
    return _slice(track, one, parts, ("exposed", "exposed"))


def _slice(
    track: int,
    one: Span | Exposed,
    arguments: Sequence[tuple[str, int | str]],
    category_and_name: tuple[str, str],
) -> tuple[Event, Event]:
    """Returns start and end of a slice, whose last arguments are its times."""
    given = (*arguments, ("start_ps", one.start_ps), ("end_ps", one.end_ps))
    return (
        Event(one.start_ps, track, START, *category_and_name, given),
        Event(one.end_ps, track, END),
    )

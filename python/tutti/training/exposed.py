"""Exposed communication of a training step, by collective and process group.

While the main lane does not compute, the communication in flight is exposed. This time belongs to
the collective that the next pass waits for, if the run shows which one it is:

- The next pass starts when the last task that it waits for ends. If exactly one collective ends at
  that time, the pass waits for it, and the time since its issue belongs to it.
- If exactly one collective ends when that one is issued, the same holds for the time before, and
  so on.
- All other exposed time is divided equally among the collectives in flight.

The parts add up exactly to the exposed time of the NPU.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from tutti.training.spans import BUBBLE, spans

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tutti.training.results import TrainingResult
    from tutti.training.spans import Span


@dataclass(frozen=True, slots=True)
class Exposed:
    """An interval of exposed communication.

    Attributes:
        start_ps: The start, in picoseconds.
        end_ps: The end, in picoseconds.
        parts: The collectives to which the interval belongs, and the picoseconds of each.
    """

    start_ps: int
    end_ps: int
    parts: tuple[tuple[Span, int], ...]

    def by_collective(self) -> dict[tuple[str, str], int]:
        """Returns the picoseconds of each collective and process group."""
        found: dict[tuple[str, str], int] = defaultdict(int)
        for one, ps in self.parts:
            found[one.kind, one.group] += ps
        return dict(found)


class CollectiveTime(NamedTuple):
    """The collectives of a kind on a process group of an NPU.

    Attributes:
        run: The run.
        npu: The NPU.
        collective: The collective; `shift` is a send between pipeline stages.
        group: The dimensions of the process group.
        number: The number of collectives.
        bytes: Their payload.
        in_flight_ps: The time in which at least one was in flight, in picoseconds.
        exposed_ps: Their exposed time; the sum over all rows is the exposed time of the NPU.
    """

    run: TrainingResult
    npu: int
    collective: str
    group: str
    number: int
    bytes: int
    in_flight_ps: int
    exposed_ps: int


@dataclass(frozen=True, slots=True)
class _Piece:
    """An interval without computation in which the same collectives are in flight."""

    start: int
    end: int
    flying: tuple[Span, ...]


def exposed_on(run: TrainingResult, npu: int = 0) -> list[Exposed]:
    """Returns the exposed communication of an NPU in order of time; the list is shared.

    Raises:
        WorkloadError: The NPU was not simulated.
    """
    return run.once(_exposed_on, npu)


def _exposed_on(run: TrainingResult, npu: int) -> list[Exposed]:
    return exposed(spans(run, npu))


def exposed(tasks: Sequence[Span]) -> list[Exposed]:
    """Returns the exposed communication of an NPU in order of time.

    Args:
        tasks: The tasks of the NPU, as returned by :func:`tutti.training.spans.spans`.
    """
    ending: dict[int, list[Span]] = defaultdict(list)
    for one in tasks:
        if one.lane != "compute" and one.end_ps > one.start_ps:
            ending[one.end_ps].append(one)
    found: list[Exposed] = []
    for gap in _gaps(tasks):
        found += _attributed(gap, ending)[::-1]
    return found


def _gaps(tasks: Sequence[Span]) -> Iterator[list[_Piece]]:
    """Yields the pieces of each interval in which the main lane does not compute."""
    changes: dict[int, list[tuple[bool, Span]]] = defaultdict(list)
    for one in tasks:
        _, lane, kind, _, _, _, _, _, start, end = one
        if end > start and (lane == "compute" if lane else kind != BUBBLE):
            changes[start].append((True, one))
            changes[end].append((False, one))
    computing = 0
    flying: dict[int, Span] = {}
    gap: list[_Piece] = []
    for now, until in pairwise(sorted(changes)):
        for starts, one in changes[now]:
            if one.lane:
                computing += 1 if starts else -1
            elif starts:
                flying[one.task] = one
            else:
                del flying[one.task]
        if not computing:
            gap.append(_Piece(now, until, tuple(flying.values())))
        elif gap:
            yield gap
            gap = []
    if gap:
        yield gap


def _attributed(gap: Sequence[_Piece], ending: dict[int, list[Span]]) -> list[Exposed]:
    """Attributes the pieces of a gap, from the last to the first."""

    def awaited(time: int) -> Span | None:
        return ending[time][0] if len(ending.get(time, ())) == 1 else None

    found = []
    waited = awaited(gap[-1].end)
    for piece in reversed(gap):
        if waited is not None and waited.start_ps == piece.end:
            waited = awaited(piece.end)
        if not piece.flying:
            continue
        span = piece.end - piece.start
        known = waited is not None and waited in piece.flying
        parts = _divided(span, (waited,) if waited and known else piece.flying)
        found.append(Exposed(piece.start, piece.end, parts))
    return found


def _divided(span: int, flying: Sequence[Span]) -> tuple[tuple[Span, int], ...]:
    """Divides picoseconds equally; the first collectives get the remainder."""
    if len(flying) == 1:  # most intervals, of steps with many
        return ((flying[0], span),)
    each, left = divmod(span, len(flying))
    return tuple((one, each + (place < left)) for place, one in enumerate(flying))


def exposed_parts(run: TrainingResult, npus: Sequence[int] | None = None) -> list[CollectiveTime]:
    """Returns the collectives and process groups of simulated NPUs, the most exposed first.

    Args:
        run: The run.
        npus: The NPUs; by default all simulated ones.

    Raises:
        WorkloadError: An NPU was not simulated.
    """
    return [
        CollectiveTime(run, npu, *row)
        for npu in (run.recorded if npus is None else npus)
        for row in run.once(_rows, npu)
    ]


def _rows(run: TrainingResult, npu: int) -> list[tuple[str, str, int, int, int, int]]:
    belongs: dict[tuple[str, str], int] = defaultdict(int)
    for interval in exposed_on(run, npu):
        for one, ps in interval.parts:
            belongs[one.kind, one.group] += ps
    issued: dict[tuple[str, str], list[Span]] = defaultdict(list)
    for one in spans(run, npu):
        if one.is_collective:
            issued[one.kind, one.group].append(one)
    rows = [
        (*key, len(ones), sum(one.bytes for one in ones), _in_flight(ones), belongs[key])
        for key, ones in issued.items()
    ]
    return sorted(rows, key=lambda row: (-row[-1], row))


def _in_flight(ones: Sequence[Span]) -> int:
    """Returns the picoseconds in which at least one of the tasks, sorted by start, runs."""
    total = done = 0
    for one in ones:
        total += max(one.end_ps - max(one.start_ps, done), 0)
        done = max(done, one.end_ps)
    return total

"""The section of a training report with the timeline of NPUs: tracks of passes and collectives."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tutti.training.spans import BUBBLE
from tutti.view.charts import Axis, bars, chart
from tutti.view.page import Chart, Choice, Section
from tutti.view.palette import BLUE, FAINT, GREY, PURPLE, RED, SKY
from tutti.view.quantity import format_size, format_time, plural, time_unit

from .text import collective, communication_colours
from .tracks import BACKGROUND, COMPUTE, check_npus, tracks, waits

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tutti.training.exposed import Exposed
    from tutti.training.results import TrainingResult
    from tutti.training.spans import Span
    from tutti.view.charts import Figure

_MOST_BARS = 2000
"""Bars of a configuration; short tasks are merged until there are at most as many."""
_MOST_LANES = 32
"""Lanes of a track."""
_EXPOSED = "exposed communication"
_PASSES = {
    "forward": BLUE,
    "input_gradient": SKY,
    "weight_gradient": PURPLE,
    "update": GREY,
    BUBBLE: FAINT,
    _EXPOSED: RED,
}
_ROW, _LANE, _GAP, _BETWEEN = 22, 7, 8, 14
"""Heights in pixels: a track, a lane of a track with several, gaps between tracks and NPUs."""
_WRAP = 16
"""Characters of the name of a track on one line."""


@dataclass(frozen=True, slots=True)
class TaskBar:
    """A task or several short ones; `name` is its entry in the legend."""

    start: int
    end: int
    name: str
    colour: str
    text: str
    tasks: int = 1


_Colours = Mapping[tuple[str, str], str]
_Lanes = list[list[TaskBar]]
Rows = dict[tuple[int, str], _Lanes]
"""The lanes of each track, by NPU and name."""


def timeline_section(runs: Sequence[TrainingResult], npus: Sequence[int]) -> Section:
    """Returns the section with the tracks of the NPUs.

    Raises:
        ReportError: An NPU was not simulated or is repeated, or there are too many.
    """
    for run in runs:
        check_npus(npus, run)
    colours = communication_colours(runs)
    full = [task_rows(run, npus, colours) for run in runs]
    drawn = [fewer_bars(rows, run.total.ps) for rows, run in zip(full, runs, strict=True)]
    found = [_limited(rows) for rows, _ in drawn]
    notes = [
        note
        for run, every, (rows, limit), shown in zip(runs, full, drawn, found, strict=True)
        for note in _notes(run, (every, rows, shown), limit)
    ]
    lead = (
        "Passes on the processor, and below them the collectives of each process group, from issue "
        "to completion. Collectives in flight at the same time are drawn below each other. "
        f"{' '.join([*notes, 'trace.pftrace opens in Perfetto, with all tasks.'])}"
    )
    drawn_tasks = Chart(
        _chart(runs, found),
        f"Horizontal: time ({time_unit(max(run.total.ps for run in runs))[1]}). Vertical: "
        "processor and process groups of an NPU. Drag to zoom.",
        "exposed communication on the processor, and the collective below it that it waits for.",
        "bars",
    )
    choice = None
    if len(runs) > 1:
        names = [(index, run.configuration.name) for index, run in enumerate(runs)]
        choice = Choice("tasks", "Configuration", names, 0, "")
    return Section("Timeline", lead, {"tasks": drawn_tasks}, choice=choice, source="trace.pftrace")


def task_rows(run: TrainingResult, npus: Sequence[int], colours: _Colours) -> Rows:
    """Returns the bars of the NPUs; exposed communication is in the track of the main lane."""
    rows: Rows = {}
    for npu in npus:
        for name, lanes in tracks(run, npu).items():
            rows[npu, name] = [
                [_task(one, colours) for one in lane if one.duration_ps] for lane in lanes
            ]
        computed = [bar for lane in rows[npu, COMPUTE] for bar in lane]
        waited = [_wait(one) for one in waits(run, npu)]
        rows[npu, COMPUTE] = [sorted(computed + waited, key=lambda bar: bar.start)]
    return rows


def _task(one: Span, colours: _Colours) -> TaskBar:
    where = f"layer {one.layer}, " if one.layer else ""
    when = f"{format_time(one.start_ps)} to {format_time(one.end_ps)}"
    took = format_time(one.duration_ps)
    if not one.is_collective:
        text = f"<b>{_spoken(one.kind)}</b><br>{where}iteration {one.iteration}<br>{when}, {took}"
        colour = _PASSES.get(one.kind, GREY)
        return TaskBar(one.start_ps, one.end_ps, _spoken(one.kind), colour, text)
    name = f"{collective(one.kind)} on {one.group}"
    text = (
        f"<b>{name}</b>, {format_size(one.bytes)}<br>{_spoken(one.during)}, {where}iteration "
        f"{one.iteration}<br>issued {format_time(one.start_ps)}, completed "
        f"{format_time(one.end_ps)}, {took}"
    )
    return TaskBar(one.start_ps, one.end_ps, name, colours[one.kind, one.group], text)


def _wait(one: Exposed) -> TaskBar:
    parts = [
        f"{format_time(ps)} {collective(kind)} on {group}"
        for (kind, group), ps in one.by_collective().items()
    ]
    text = f"<b>{_EXPOSED}</b>, {format_time(one.end_ps - one.start_ps)}<br>{'<br>'.join(parts)}"
    return TaskBar(one.start_ps, one.end_ps, _EXPOSED, RED, text)


def _spoken(name: str) -> str:
    return name.replace("_", " ")


# --- fewer bars -----------------------------------------------------------------------------------


def fewer_bars(rows: Rows, total: int, most: int | None = None) -> tuple[Rows, int]:
    """Returns the rows with short tasks merged, and the limit in picoseconds; 0 if none are."""
    found, limit = rows, 0
    while _count(found) > (most or _MOST_BARS) and limit < total:
        limit = 2 * limit or max(total // 2000, 1)
        found = {key: [list(_merged(lane, limit)) for lane in lanes] for key, lanes in rows.items()}
    return found, limit


def _count(rows: Rows) -> int:
    return sum(len(lane) for lanes in rows.values() for lane in lanes)


def _merged(lane: Sequence[TaskBar], limit: int) -> Iterator[TaskBar]:
    """Merges adjacent tasks shorter than a limit to bars of about this length."""
    group: list[TaskBar] = []
    for bar in lane:
        joins = group and bar.start - group[-1].end < limit and bar.end - bar.start < limit
        if joins and bar.start - group[0].start < limit and group[-1].end - group[-1].start < limit:
            group.append(bar)
            continue
        if group:
            yield _joined(group)
        group = [bar]
    if group:
        yield _joined(group)


def _joined(group: Sequence[TaskBar]) -> TaskBar:
    if len(group) == 1:
        return group[0]
    times: Counter[tuple[str, str]] = Counter()
    for bar in group:
        times[bar.name, bar.colour] += bar.end - bar.start
    most = times.most_common()
    first, last = group[0].start, max(bar.end for bar in group)
    parts = "<br>".join(f"{format_time(ps)} {name}" for (name, _), ps in most)
    text = f"<b>{len(group)} tasks</b><br>{parts}<br>{format_time(first)} to {format_time(last)}"
    return TaskBar(first, last, *most[0][0], text, len(group))


def _limited(rows: Rows) -> Rows:
    return {key: lanes[:_MOST_LANES] for key, lanes in rows.items()}


def _notes(run: TrainingResult, found: tuple[Rows, Rows, Rows], limit: int) -> Iterator[str]:
    """Yields sentences on merged and omitted tasks."""
    full, merged, shown = found
    of = f"With {run.configuration.name}, "
    if limit:
        yield (
            f"{of}adjacent tasks shorter than {format_time(limit)} share a bar in the colour of "
            f"most of its time ({_count(merged):,} instead of {_count(full):,} bars)."
        )
    tasks = [
        sum(bar.tasks for lanes in rows.values() for lane in lanes for bar in lane)
        for rows in (merged, shown)
    ]
    if tasks[1] < tasks[0]:
        omitted = plural(tasks[0] - tasks[1], "collective")
        yield f"{of}{omitted} beyond {_MOST_LANES} in flight are omitted."


# --- drawing --------------------------------------------------------------------------------------


def _chart(runs: Sequence[TrainingResult], found: Sequence[Rows]) -> Figure:
    """Returns the tracks of all configurations, of which a selector shows one."""
    longest = max(run.total.ps for run in runs)
    factor, unit = time_unit(longest)
    places, height = _places(found)
    colours = _colours(found)
    traces: list[Any] = []
    for index, rows in enumerate(found):
        traces += _bars(index, rows, places, colours, factor)
    ticks = ([middle for middle, _ in places.values()], [_label(*key) for key in places])
    more = {"showgrid": False, "zeroline": False, "automargin": True, "range": [-height, _GAP]}
    y = Axis(ticks=ticks, more=more)
    x = Axis("time", unit, more={"range": [0, longest / factor]})
    return chart(traces, x, y, height + 120, barmode="overlay",
                 margin={"b": 84}, showlegend=True)  # fmt: skip


def _places(found: Sequence[Rows]) -> tuple[dict[tuple[int, str], tuple[float, int]], int]:
    """Returns middle and height of each track in pixels, from the top down, and the total."""
    lanes: dict[tuple[int, str], int] = {}
    for rows in found:
        for key, of in rows.items():
            lanes[key] = max(lanes.get(key, 1), len(of))
    # Only some configurations have tasks in the background.
    order = {COMPUTE: 0, BACKGROUND: 1}
    npus = list(dict.fromkeys(npu for npu, _ in lanes))
    keys = sorted(lanes, key=lambda key: (npus.index(key[0]), order.get(key[1], 2)))
    places: dict[tuple[int, str], tuple[float, int]] = {}
    top, last = 0, None
    for npu, name in keys:
        top += _BETWEEN if last not in {None, npu} else 0
        high = max(_ROW, _LANE * lanes[npu, name])
        places[npu, name] = (-(top + high / 2), high)
        top, last = top + high + _GAP, npu
    return places, top


def _label(npu: int, name: str) -> str:
    lines = [""]
    for word in name.split(" "):
        fits = not lines[-1] or len(f"{lines[-1]} {word}") <= _WRAP
        lines = [*lines[:-1], f"{lines[-1]} {word}".strip()] if fits else [*lines, word]
    return ("<b>NPU " + str(npu) + "</b><br>" if name == COMPUTE else "") + "<br>".join(lines)


def _colours(found: Sequence[Rows]) -> dict[str, str]:
    """Returns the colours of passes, in their order, and those of collectives by name."""
    colours = {
        bar.name: bar.colour
        for rows in found
        for lanes in rows.values()
        for lane in lanes
        for bar in lane
    }
    order = {_spoken(name): place for place, name in enumerate(_PASSES)}
    names = sorted(colours, key=lambda name: (order.get(name, len(order)), name))
    return {name: colours[name] for name in names}


def _bars(
    index: int,
    rows: Rows,
    places: Mapping[tuple[int, str], tuple[float, int]],
    colours: Mapping[str, str],
    factor: int,
) -> Iterator[Any]:
    """Yields a trace per pass and collective of a configuration."""
    drawn: dict[str, list[tuple[TaskBar, float, float]]] = defaultdict(list)
    for key, lanes in rows.items():
        middle, high = places[key]
        each = high / max(len(lanes), 1)
        for number, lane in enumerate(lanes):
            at = middle + high / 2 - each * (number + 0.5)
            for bar in lane:
                drawn[bar.name].append((bar, at, each * 0.86))
    for name, colour in colours.items():
        if name not in drawn:
            continue
        ones, ats, highs = zip(*drawn[name], strict=True)
        yield bars(
            ats, [(bar.end - bar.start) / factor for bar in ones], colour, across=True,
            base=[bar.start / factor for bar in ones], width=list(highs), name=name,
            customdata=[bar.text for bar in ones], marker={"line": {"width": 0}},
            meta=index, visible=index == 0,
        )  # fmt: skip

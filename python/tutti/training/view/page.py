"""The report page of a training step: time breakdown, utilisation, layers."""

from __future__ import annotations

from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from tutti.training.parts import layers, windows
from tutti.view.charts import Axis, bars, chart, line
from tutti.view.errors import ReportError
from tutti.view.page import SORTING, Chart, Section, page_of
from tutti.view.palette import BLUE, RED
from tutti.view.quantity import format_share, format_time, time_unit
from tutti.view.tables import ReportTable, frame_of, of_scope
from tutti.view.view import Data, Fact, View, results

from . import reservation
from . import text as words
from .endpoint import endpoint_sections
from .exposed import exposed_section, first_parts
from .links import links_section
from .notebook import drawn
from .quantities import EXPOSED, LAYERS, PARTS, QUANTITIES, TABLES, frame
from .timeline import timeline_section
from .trace import write_training_trace

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tutti.training.results import TrainingResult
    from tutti.view.charts import Figure

CONVENTIONS = (
    "Times are predictions for NPU 0; all NPUs of a stage execute the same program. The total is "
    "the sum of compute only, overlap (computation and communication), exposed communication and "
    "idle time. "
    "A link or server is busy while it transfers bytes. Link utilisation is the average over both "
    "directions of all rings. No algorithm of the collectives takes less than the lower bound; its "
    "share is the bound divided by the total. GB is 10^9 bytes, GiB 2^30 bytes."
)
_CAPTION = (
    "time: all iterations = compute + exposed + idle; exposed, hidden: communication without, with "
    "concurrent compute; sent: injection rate; read: memory reads of communication"
)
_EXPOSED = "exposed, of NPU 0: by the collective that the next pass waits for; share: of the time"
_BUSY = (
    (attrgetter("links"), "link utilisation", RED, "tozeroy"),
    (attrgetter("compute"), "compute utilisation", BLUE, None),
)


def write_training_report(
    path: str | Path, runs: Sequence[TrainingResult], title: str = "", npus: Sequence[int] = (0,)
) -> Path:
    """Writes the page of :func:`steps_view` to a file of an existing folder; returns its path.

    Raises:
        ReportError: `runs` is empty, or an NPU was not simulated.
    """
    return page_of(steps_view(runs, title, npus)).write(path)


def steps_view(
    runs: Sequence[TrainingResult],
    title: str = "",
    npus: Sequence[int] = (0,),
    more: Sequence[Fact] = (),
) -> View:
    """Returns what a training step with one or more endpoint configurations shows.

    Args:
        runs: Runs of one step; their windows, if any, give utilisation over time.
        title: The title of the experiment.
        npus: Up to 8 NPUs whose timelines are drawn and exported.
        more: Further facts.

    Raises:
        ReportError: `runs` is empty.
    """
    if not runs:
        raise ReportError("no runs of a training step to report", kind="frame")
    first = runs[0]
    exposed = [row for row in first_parts(runs) if row.exposed_ps]
    return View(
        kind="training",
        kicker="training steps",
        title=title,
        question=f"How much of a training step of {first.step.model.name} is exposed "
        "communication?",
        answer=words.answer(runs),
        headline=Fact("training step", words.headline(first), "iterations", first.iterations),
        inputs=words.inputs(first.step),
        facts=[*words.times(runs), *more, *reservation.facts(runs)],
        tables=[
            ReportTable(of_scope(QUANTITIES, "runs"), runs, caption=_CAPTION),
            *([ReportTable(of_scope(EXPOSED, "runs"), exposed, caption=_EXPOSED)] * bool(exposed)),
            *(first.step.captured.memory_tables() if first.step.captured else ()),
        ],
        data=_data(runs),
        drawings={"trace.pftrace": lambda path: write_training_trace(path, runs, npus)},
        inline=partial(drawn, first) if len(runs) == 1 else None,
        sections=partial(_sections, runs, npus),
        findings=_findings(runs),
        log=[*words.remarks(runs), *reservation.losses(runs)],
        conventions=CONVENTIONS,
    )


def _findings(runs: Sequence[TrainingResult]) -> list[tuple[str, list[str]]]:
    losses = [f"{text[0].upper()}{text[1:]}." for text in reservation.losses(runs)]
    several = [("", words.summary(runs))] if len(runs) > 1 else []
    return several + ([("Endpoints that cost more than they hide", losses)] if losses else [])


def _data(runs: Sequence[TrainingResult]) -> list[Data]:
    parts = [part for part in TABLES if part != "results"]
    return [
        results(QUANTITIES, runs),
        Data("exposed", lambda: frame_of(EXPOSED, first_parts(runs))),
        *(Data("", partial(frame, runs, part), [f"{part}.parquet"]) for part in parts),
    ]


def _sections(runs: Sequence[TrainingResult], npus: Sequence[int]) -> list[Section]:
    return [
        _time_section(runs),
        *exposed_section(runs),
        timeline_section(runs, npus),
        *_over_time(runs),
        links_section(runs),
        *endpoint_sections(runs),
        _layers(runs),
    ]


def _time_section(runs: Sequence[TrainingResult]) -> Section:
    drawn = Chart(
        _breakdown(runs),
        f"Horizontal: time per NPU ({_unit(runs)}). Vertical: configuration.",
        "exposed communication and idle time, in which the NPU does not compute.",
        "bars",
    )
    lead = (
        "Sum over all iterations, one bar per endpoint configuration. Memory reads are those of "
        "communication. The send rate is the average over the time with communication in flight."
    )
    table = ReportTable(of_scope(QUANTITIES, "runs"), runs)
    return Section("Time per NPU", lead, {"breakdown": drawn}, table)


def _breakdown(runs: Sequence[TrainingResult]) -> Figure:
    """Returns the time breakdown, a stacked bar per configuration."""
    factor, unit = time_unit(max(run.total.ps for run in runs))
    names = [run.configuration.name for run in runs][::-1]
    traces = []
    for part, colour in PARTS:
        times = [part.get(run) for run in runs][::-1]
        texts = [
            f"<b>{run.configuration.name}</b>: {part.name}<br>"
            f"{format_time(ps)}, {format_share(ps / run.total.ps)}"
            for ps, run in zip(times, reversed(runs), strict=True)
        ]
        traces.append(bars(names, [ps / factor for ps in times], colour, across=True,
                           name=part.name, customdata=texts,
                           marker={"line": {"width": 0}}))  # fmt: skip
    return chart(
        traces, Axis("time per NPU", unit, zero=True),
        Axis(category=True, more={"automargin": True}), 130 + 44 * len(runs),
        barmode="stack", bargap=0.35, margin={"b": 84}, legend={"traceorder": "normal"},
    )  # fmt: skip


def _over_time(runs: Sequence[TrainingResult]) -> list[Section]:
    watched = [run for run in runs if run.step.window is not None]
    if not watched:
        return []
    width = format_time(watched[0].step.window.ps)  # type: ignore[union-attr]
    lead = (
        "Link utilisation, averaged over all links of an NPU, and compute utilisation, in windows "
        f"of {width}."
    )
    chart = Chart(
        _utilisation(watched),
        f"Horizontal: time ({_unit(runs)}). Vertical: utilisation in per cent, a row per endpoint "
        "configuration.",
        "intervals with busy links and an idle processor, which are exposed communication.",
        "windows",
    )
    return [Section("Utilisation over time", lead, {"over_time": chart}, source="windows.parquet")]


def _unit(runs: Sequence[TrainingResult]) -> str:
    return time_unit(max(run.total.ps for run in runs))[1]


def _utilisation(runs: Sequence[TrainingResult]) -> Figure:
    """Returns link and compute utilisation per window, a row per configuration."""
    several = [windows(run) for run in runs]
    factor, unit = time_unit(max(rows[-1].start_ps for rows in several) or 1)
    count, gap = len(several), 0.03
    height = (1 - gap * (count - 1)) / count
    traces: list[Any] = []
    axes: dict[str, Any] = {}
    for row, parts in enumerate(several, start=1):
        name, number = parts[0].run.configuration.name, "" if row == 1 else str(row)
        for share_of, what, colour, fill in _BUSY:
            shares = [share_of(part) for part in parts]
            hover = f"<b>{name}</b>, {what} from %{{x:.4g}} {unit}: %{{customdata}}<extra></extra>"
            traces.append(
                line([part.start_ps / factor for part in parts], shares, colour, hover,
                     name=what, legendgroup=what, showlegend=row == 1, line={"shape": "hv"},
                     fill=fill, customdata=[format_share(share) for share in shares],
                     xaxis=f"x{number}", yaxis=f"y{number}")
            )  # fmt: skip
        low = (count - row) * (height + gap)
        y = Axis(name, share=True, more={"range": [0, 1.05], "domain": [low, low + height],
                                         "anchor": f"x{number}"})  # fmt: skip
        x: dict[str, Any] = {"anchor": f"y{number}"}
        x |= {"matches": f"x{count}", "showticklabels": False} if row < count else {}
        axes |= {f"yaxis{number}": y.plotly, f"xaxis{number}": Axis(more=x).plotly}
    axes[f"xaxis{count if count > 1 else ''}"] |= {"title": {"text": f"time ({unit})"}}
    return chart(traces, Axis(), Axis(), 110 + 110 * count, margin={"b": 84}, **axes)


def _layers(runs: Sequence[TrainingResult]) -> Section:
    rows = [row for run in runs for row in layers(run)]
    unused = {name for name in rows[0].values if not any(row.values[name] for row in rows)}
    columns = [
        column for column in of_scope(LAYERS, "runs") if column.key not in unused - {"bytes"}
    ]
    waited = sum(row.values["waited_ps"] for row in rows) / sum(run.total.ps for run in runs)
    lead = (
        f"Sum over all iterations. {SORTING} Wait time, {format_share(waited)} of the total, is "
        "listed at the next computed layer. Gradients of a bucket are listed at the last layer of "
        "the bucket. Rows named (none) hold time outside layers, such as the wait for the last "
        "collectives."
    )
    table = ReportTable(columns, rows)
    return Section("Time per layer", lead, table=table, source="layers.parquet")

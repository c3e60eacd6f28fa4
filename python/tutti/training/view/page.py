"""The report page of a training step: time breakdown, utilisation, layers."""

from __future__ import annotations

from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from tutti.training.frames import layer_frame, window_frame
from tutti.view.charts import Axis, bars, chart, line
from tutti.view.errors import ReportError
from tutti.view.page import SORTING, Chart, Page, Section
from tutti.view.palette import BLUE, FAINT, RED, SKY
from tutti.view.quantity import format_share, format_size, format_time, time_unit
from tutti.view.tables import Column, ReportTable

from . import text as words
from .endpoint import endpoint_sections
from .exposed import exposed_section
from .links import links_section
from .timeline import timeline_section

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    import polars as pl

    from tutti import _core
    from tutti.training.step import TrainingResult
    from tutti.view.charts import Figure

CONVENTIONS = (
    "Times are predictions for NPU 0; all NPUs of a stage execute the same program. The total is "
    "the sum of compute only, overlap (computation and communication), exposed communication and "
    "idle time. "
    "A link or server is busy while it transfers bytes. Link utilisation is the average over both "
    "directions of all rings. No algorithm of the collectives takes less than the lower bound; its "
    "share is the bound divided by the total. GB is 10^9 bytes, GiB 2^30 bytes."
)
PARTS: tuple[tuple[str, str, Callable[[_core.Breakdown], int]], ...] = (
    ("compute only", BLUE, lambda parts: parts.compute_ps),
    ("overlap", SKY, lambda parts: parts.overlap_ps),
    ("exposed communication", RED, lambda parts: parts.exposed_ps),
    ("idle", FAINT, lambda parts: parts.idle_ps),
)
"""The breakdown of the time of an NPU: names, colours, and times in ps."""
_BUSY = (
    ("links", "link utilisation", RED, "tozeroy"),
    ("compute", "compute utilisation", BLUE, None),
)
_OF_LAYERS = {
    "forward": "forward_ps",
    "input gradient": "input_gradient_ps",
    "weight gradient": "weight_gradient_ps",
    "other": "other_ps",
    "wait before the layer": "waited_ps",
    "collective time": "carried_ps",
}


def write_training_report(
    path: str | Path, runs: Sequence[TrainingResult], title: str = "", npus: Sequence[int] = (0,)
) -> Path:
    """Writes the report of a training step with one or more endpoint configurations.

    Args:
        path: The file to write; its folder must exist.
        runs: Runs of one step; their windows, if any, give utilisation over time.
        title: The title of the experiment, above the question of the page.
        npus: Up to 8 NPUs whose timeline is drawn.

    Returns:
        The path written.

    Raises:
        ReportError: `runs` is empty, or an NPU was not simulated.
    """
    if not runs:
        raise ReportError("no runs of a training step to report", kind="frame")
    name = runs[0].step.model.name
    page = Page(
        kind="training",
        kicker="training steps",
        title=title,
        question=f"How much of a training step of {name} is exposed communication?",
        answer=words.answer(runs),
        facts=words.facts(runs),
        findings=[("", words.summary(runs))] if len(runs) > 1 else [],
        sections=[
            _time_section(runs),
            *exposed_section(runs),
            timeline_section(runs, npus),
            *_over_time(runs),
            links_section(runs),
            *endpoint_sections(runs),
            _layers(runs),
        ],
        conventions=CONVENTIONS,
    )
    return page.write(path)


def _time_section(runs: Sequence[TrainingResult]) -> Section:
    drawn = Chart(
        _breakdown(runs),
        f"Horizontal: time per NPU ({_unit(runs)}). Vertical: configuration.",
        "exposed communication and idle time, in which the NPU does not compute.",
        "bars",
    )
    lead = "Sum over all iterations, one bar per endpoint configuration."
    return Section("Time per NPU", lead, {"breakdown": drawn}, _times(runs))


def _times(runs: Sequence[TrainingResult]) -> ReportTable[TrainingResult]:
    columns: list[Column[TrainingResult]] = [
        Column("configuration", lambda run: run.configuration.name),
        Column("total", lambda run: run.total.ps, format_time),
        *(Column(name, partial(_part, time_of), format_time) for name, _, time_of in PARTS),
        Column("lower bound", lambda run: run.bound.time.ps, format_time),
        Column("bound / total", lambda run: run.of_bound, format_share),
        Column("bounded by", lambda run: run.bound.by),
    ]
    return ReportTable(columns, runs)


def _part(time_of: Callable[[_core.Breakdown], int], run: TrainingResult) -> int:
    return time_of(run.record.breakdown())


def _breakdown(runs: Sequence[TrainingResult]) -> Figure:
    """Returns the time breakdown, a stacked bar per configuration."""
    factor, unit = time_unit(max(run.total.ps for run in runs))
    names = [run.configuration.name for run in runs][::-1]
    traces = []
    for name, colour, time_of in PARTS:
        times = [_part(time_of, run) for run in runs][::-1]
        texts = [
            f"<b>{run.configuration.name}</b>: {name}<br>"
            f"{format_time(ps)}, {format_share(ps / run.total.ps)}"
            for ps, run in zip(times, reversed(runs), strict=True)
        ]
        traces.append(bars(names, [ps / factor for ps in times], colour, across=True, name=name,
                           customdata=texts, marker={"line": {"width": 0}}))  # fmt: skip
    return chart(
        traces, Axis("time per NPU", unit, zero=True),
        Axis(category=True, more={"automargin": True}), 130 + 44 * len(runs),
        barmode="stack", bargap=0.35, margin={"b": 84}, legend={"traceorder": "normal"},
    )  # fmt: skip


def _over_time(runs: Sequence[TrainingResult]) -> list[Section]:
    import polars as pl

    watched = [run for run in runs if run.step.window is not None]
    if not watched:
        return []
    windows = pl.concat(window_frame(run) for run in watched)
    width = format_time(watched[0].step.window.ps)  # type: ignore[union-attr]
    lead = (
        "Link utilisation, averaged over all links of an NPU, and compute utilisation, in windows "
        f"of {width}."
    )
    chart = Chart(
        _utilisation(windows),
        f"Horizontal: time ({_unit(runs)}). Vertical: utilisation in per cent, a row per endpoint "
        "configuration.",
        "intervals with busy links and an idle processor, which are exposed communication.",
        "windows",
    )
    return [Section("Utilisation over time", lead, {"over_time": chart}, source="windows.parquet")]


def _unit(runs: Sequence[TrainingResult]) -> str:
    return time_unit(max(run.total.ps for run in runs))[1]


def _utilisation(windows: pl.DataFrame) -> Figure:
    """Returns link and compute utilisation per window, a row per configuration."""
    parts = windows.partition_by("configuration", maintain_order=True)
    factor, unit = time_unit(int(windows["start_ps"].max() or 1))  # type: ignore[arg-type]
    count, gap = len(parts), 0.03
    height = (1 - gap * (count - 1)) / count
    traces: list[Any] = []
    axes: dict[str, Any] = {}
    for row, part in enumerate(parts, start=1):
        name, number = part["configuration"][0], "" if row == 1 else str(row)
        for quantity, what, colour, fill in _BUSY:
            shares = part[quantity].to_list()
            hover = f"<b>{name}</b>, {what} from %{{x:.4g}} {unit}: %{{customdata}}<extra></extra>"
            traces.append(
                line([start / factor for start in part["start_ps"]], shares, colour, hover,
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
    import polars as pl

    found = pl.concat(layer_frame(run) for run in runs)
    columns: list[Column[dict[str, Any]]] = [
        Column("configuration", lambda row: row["configuration"]),
        # Sorted in the order of the model.
        Column("layer", lambda row: (row["place"], row["layer"]), lambda v: v[1], kind="text"),
        *(
            Column[Any](name, itemgetter(of), format_time)
            for name, of in _OF_LAYERS.items()
            if found[of].sum()
        ),
        Column("bytes communicated", lambda row: row["bytes"], format_size),
    ]
    waited = int(found["waited_ps"].sum()) / sum(run.total.ps for run in runs)
    table = ReportTable(columns, found.with_row_index("place").to_dicts())
    lead = (
        f"Sum over all iterations. {SORTING} Wait time, {format_share(waited)} of the total, is "
        "listed at the next computed layer. Gradients of a bucket are listed at the last layer of "
        "the bucket. Rows named (none) hold time outside layers, such as the wait for the last "
        "collectives."
    )
    return Section("Time per layer", lead, table=table, source="layers.parquet")

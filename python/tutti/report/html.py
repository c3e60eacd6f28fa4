"""The HTML report: one file that answers the question, with its charts, table and assumptions.

It holds everything it needs (plotly.js too) and opens from disk without a network. The same input
gives the same bytes: charts have fixed ids, and nothing reads a clock.
"""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import comparison as reading
from . import figures, words
from .breakable import MARKS
from .facts import platform_facts, ps_per_byte
from .palette import styles
from .quantity import format_limit, format_rate, format_size, format_time
from .timeline import Picture, picture

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import plotly.graph_objects as go
    import polars as pl
    from markupsafe import Markup

    from .comparison import Case, Measured

MOST_ROWS = 3000
"""Rows that a table of results holds at most; the frame itself has all of them."""

CONVENTIONS = (
    "Times are predictions of the model named above, not measurements. Size: all_reduce, broadcast "
    "and reduce count one rank's buffer; all_gather, reduce_scatter, gather and scatter the total; "
    "all_to_all what one rank sends, its own part included. algbw is the size over the completion "
    "time; busbw is algbw times 2(n-1)/n for all_reduce, (n-1)/n for all_gather, reduce_scatter, "
    "gather, scatter and all_to_all, and 1 otherwise, as in nccl-tests. The limit is a lower bound "
    "of the time: at 100 % no schedule can be better. GB is 10^9 bytes, GiB 2^30."
)


def write_report(  # noqa: PLR0917 - all but the first three are named in practice
    path: str | Path,
    comparison: pl.DataFrame,
    platform: object,
    timeline: pl.DataFrame | None = None,
    messages: pl.DataFrame | None = None,
    title: str | None = None,
    notes: Sequence[str] = (),
) -> Path:
    """Writes the report of a comparison to `path`.

    Args:
        path: where to; the folder must exist.
        comparison: the frame of `tutti.compare`, a row per measurement.
        platform: the platform compared on, or a mapping with its `name`, `model` and `parameters`.
        timeline: the timeline frame of one run, for the Gantt chart.
        messages: the message frame of the same run, for its arrows.
        title: the question; by default it is made from the comparison.
        notes: sentences for the header, such as what the run in the timeline is.

    Returns:
        The path written.

    Raises:
        ReportError: when a frame lacks columns or has nothing to show.
    """
    page = render(comparison, platform, timeline, messages, title, notes)
    target = Path(path)
    target.write_text(page, encoding="utf-8", newline="\n")
    return target


def render(  # noqa: PLR0917 - as write_report
    comparison: pl.DataFrame,
    platform: object,
    timeline: pl.DataFrame | None = None,
    messages: pl.DataFrame | None = None,
    title: str | None = None,
    notes: Sequence[str] = (),
) -> str:
    """The report of [`write_report`][tutti.report.write_report] as text."""
    import jinja2
    from plotly.offline import get_plotlyjs

    cases = reading.cases(comparison)
    drawn = (
        picture(timeline, messages, most_ranks=32, most_arrows=500)
        if timeline is not None
        else None
    )
    charts: dict[str, go.Figure] = {}
    per_byte = ps_per_byte(platform)
    sections = [_section(f"case{i}", case, charts, per_byte) for i, case in enumerate(cases)]
    if drawn is not None:
        charts["timeline"] = figures.gantt(drawn)
    names = {name for case in cases for name in case.algorithms}
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    environment.filters["breakable"] = _breakable
    template = environment.from_string(_asset("report.html.j2"))
    return template.render(
        title=title or question(cases),
        version=reading.one_value(comparison, "version"),
        sections=sections,
        notes=list(notes),
        facts=_facts(comparison, cases),
        colours={name: style.colour for name, style in styles(names).items()},
        timeline=_timeline_text(drawn),
        assumptions=platform_facts(platform),
        conventions=CONVENTIONS,
        provenance=[
            (name.replace("_", " "), reading.one_value(comparison, name))
            for name in ("version", "commit", "config_hash", "model")
        ],
        figures=embedded(charts),
        plotly=get_plotlyjs(),
        css=_asset("report.css"),
        script=_asset("report.js"),
    )


def question(cases: Sequence[Case]) -> str:
    """The question a comparison answers, for the title."""
    platforms = sorted({case.platform for case in cases})
    collectives = sorted({case.collective for case in cases})
    what = " and ".join(collectives)
    return f"On {', '.join(platforms)}, which {what} is fastest, by how much, and why?"


def embedded(charts: Mapping[str, go.Figure]) -> str:
    """The figures as JSON that is safe inside a script element."""
    plain = {name: json.loads(figure.to_json()) for name, figure in charts.items()}
    text = json.dumps(plain, separators=(",", ":"), ensure_ascii=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _section(
    name: str, case: Case, charts: dict[str, go.Figure], per_byte: float | None
) -> dict[str, Any]:
    charts[f"{name}-map"] = figures.decision_map(case)
    curves = []
    if any(size > 0 for size in case.sizes):
        charts[f"{name}-time"] = figures.curves(case, "time", "size")
        charts[f"{name}-busbw"] = figures.curves(case, "busbw", "size")
        curves.append(_over_size(name, case))
    if len(case.ranks) > 1:
        charts[f"{name}-ranks"] = figures.curves(case, "time", "ranks")
        curves.append(_over_ranks(name, case))
    return {
        "id": name,
        "heading": f"{case.collective} of {case.datatype} on {case.platform} ({case.model})",
        "answer": words.answer(case, per_byte),
        "regions": words.region_rows(case, per_byte),
        "curves": curves,
        "table": _table(case),
    }


def _over_size(name: str, case: Case) -> dict[str, Any]:
    return {
        "id": f"{name}-size",
        "heading": "Time and bus bandwidth against size",
        "choice": "Ranks",
        "options": [(count, f"{count:,}") for count in case.ranks],
        "first": figures.default_choice(case.ranks, "size"),
        "hint": "Each line is an algorithm with its fastest schedule at each size.",
        "charts": [f"{name}-time", f"{name}-busbw"],
    }


def _over_ranks(name: str, case: Case) -> dict[str, Any]:
    return {
        "id": f"{name}-scale",
        "heading": "Time against ranks",
        "choice": "Size",
        "options": [(size, format_size(size)) for size in case.sizes],
        "first": figures.default_choice(case.sizes, "ranks"),
        "hint": "Each line is an algorithm with its fastest schedule at each rank count.",
        "charts": [f"{name}-ranks"],
    }


_SPREAD = (("least", "number"), ("lower quartile", "number"), ("upper quartile", "number"))
"""Columns that only repetitions have."""

_COLUMNS = (
    ("ranks", "number"),
    ("size", "number"),
    ("schedule", "text"),
    ("time", "number"),
    *_SPREAD,
    ("to the fastest", "number"),
    ("% of the limit", "number"),
    ("algbw", "number"),
    ("busbw", "number"),
    ("messages", "number"),
    ("closed form", "number"),
)


def _table(case: Case) -> dict[str, Any]:
    rows = sorted(case.measured, key=lambda m: (m.ranks, m.size_bytes, m.time_ps, m.schedule))
    fastest: dict[tuple[int, int], int] = {}
    for one in rows:
        fastest.setdefault((one.ranks, one.size_bytes), one.time_ps)
    colours = {name: style.colour for name, style in styles(case.algorithms).items()}
    lead = "Every schedule that was compared; a heading sorts. Bold: the fastest of its point."
    if any(one.repetitions > 1 for one in rows):
        lead += " Times are medians over the repetitions; least and quartiles stand beside them."
    if len(rows) > MOST_ROWS:
        lead += f" The first {MOST_ROWS:,} of {len(rows):,} rows; the results file has all."
    shown = rows[:MOST_ROWS]
    repeated = any(one.repetitions > 1 for one in rows)
    columns = [column for column in _COLUMNS if repeated or column not in _SPREAD]
    return {
        "lead": lead,
        "columns": columns,
        "rows": [
            _row(one, fastest[(one.ranks, one.size_bytes)], colours, columns) for one in shown
        ],
    }


def _row(
    one: Measured, best_ps: int, colours: Mapping[str, str], columns: Sequence[tuple[str, str]]
) -> dict[str, Any]:
    ratio = one.time_ps / best_ps if best_ps else 1.0
    closed = one.closed_form_ps
    spread = (one.least_ps, one.lower_quartile_ps, one.upper_quartile_ps)
    cells = (
        (one.ranks, f"{one.ranks:,}"),
        (one.size_bytes, format_size(one.size_bytes)),
        (one.schedule, one.schedule),
        (one.time_ps, format_time(one.time_ps)),
        *((ps, format_time(ps)) for ps in spread),
        (ratio, f"{ratio:.2f}"),
        (one.of_limit or 0, format_limit(one.of_limit)),
        (one.algbw, format_rate(one.algbw)),
        (one.busbw, format_rate(one.busbw)),
        (one.messages or 0, f"{one.messages:,}" if one.messages is not None else "-"),
        (closed or 0, format_time(closed) if closed is not None else "-"),
    )
    return {
        "wins": one.time_ps == best_ps,
        "cells": [
            {
                "kind": kind,
                "value": value,
                "text": text,
                "colour": colours[one.algorithm] if name == "schedule" else None,
            }
            for (value, text), (name, kind) in zip(cells, _COLUMNS, strict=True)
            if (name, kind) in columns
        ],
    }


def _facts(comparison: pl.DataFrame, cases: Sequence[Case]) -> list[tuple[str, str]]:
    ranks = [count for case in cases for count in case.ranks]
    sizes = [size for case in cases for size in case.sizes]
    schedules = {one.schedule for case in cases for one in case.measured}
    return [
        ("platform", ", ".join(sorted({case.platform for case in cases}))),
        ("model", ", ".join(sorted({case.model for case in cases}))),
        ("collective", ", ".join(sorted({case.collective for case in cases}))),
        ("datatype", ", ".join(sorted({case.datatype for case in cases}))),
        ("ranks", words.span_text(ranks)),
        ("sizes", words.span_text(sizes, size=True)),
        ("schedules", f"{len(schedules):,}"),
        ("measurements", f"{comparison.height:,}"),
    ]


def _timeline_text(drawn: Picture | None) -> dict[str, str] | None:
    if drawn is None:
        return None
    lead = (
        "Each bar is an op of a rank; a line leads from a message's sender when it sends to its "
        f"receiver when it arrives. Complete after {format_time(drawn.complete_ps)}."
    )
    return {"lead": " ".join([lead, *drawn.notes])}


def _breakable(text: str) -> Markup:
    """The text with places at which a narrow column may break it: after a name's marks."""
    from markupsafe import Markup, escape

    return Markup(MARKS.sub(r"\1<wbr>", str(escape(text))))  # noqa: S704 - escaped first


def _asset(name: str) -> str:
    return resources.files(__package__).joinpath("assets", name).read_text(encoding="utf-8")

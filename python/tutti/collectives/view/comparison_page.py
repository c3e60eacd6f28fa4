"""The report page of a comparison: summary, decision map, curves, results and assumptions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tutti.platforms.view.facts import platform_facts, ps_per_byte
from tutti.view.page import MOST_SENTENCES, SORTING, Chart, Choice, Finding, Page, Section
from tutti.view.palette import styles
from tutti.view.quantity import (
    count,
    format_limit,
    format_rate,
    format_share,
    format_size,
    format_time,
    span,
    time_unit,
)
from tutti.view.tables import Column, ReportTable

from . import comparison as reading
from . import comparison_charts as compared_charts
from . import summary as words
from .gantt import gantt
from .timeline import picture

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    import polars as pl

    from .comparison import Comparison, Measurement

CONVENTIONS = (
    "Times are predictions of the model named above, not measurements. Size: one rank's buffer for "
    "all_reduce, broadcast and reduce; the total for all_gather, reduce_scatter, gather and "
    "scatter; the data that one rank sends, including to itself, for all_to_all. algbw is size / "
    "completion time. busbw is algbw x 2(n-1)/n for all_reduce, algbw x (n-1)/n for all_gather, "
    "reduce_scatter, gather, scatter and all_to_all, and algbw otherwise, as in nccl-tests. % of "
    "the lower bound is lower bound / completion time. Slowdown is the completion time divided by "
    "that of the fastest schedule at the same ranks and size. "
    "GB is 10^9 bytes, GiB 2^30 bytes."
)
_MAP_CAPTION = (
    (
        "Horizontal: size. Vertical: ranks. Colour: the fastest algorithm. Number: additional time "
        "of the runner-up, the fastest of the slower algorithms, in per cent. Point at a cell to "
        "see both times."
    ),
    "the sizes at which the colour changes, and small numbers, where the choice matters little.",
)
_CAPTIONS = {
    "time": (
        "Horizontal: size in bytes, logarithmic. Vertical: completion time, logarithmic.",
        "the lowest line at each size; the best algorithm changes where lines cross.",
    ),
    "busbw": (
        "Horizontal: size in bytes, logarithmic. Vertical: busbw in bytes per second, logarithmic.",
        "the highest line at large sizes, and the size at which it levels off.",
    ),
    "ranks": (
        "Horizontal: ranks, logarithmic. Vertical: completion time, logarithmic.",
        "the slope: flat lines scale well, and lines that rise with the ranks do not.",
    ),
}
_STAGES = (
    "Stages: the number of times that the critical path waits for other ranks; steps if a "
    "schedule has no closed form. Bytes per rank: bytes that a rank sends sequentially."
)
_FASTEST = "One line per algorithm, with its fastest schedule at each"
_RESULTS = f"All compared schedules. Bold: the fastest at its ranks and size. {SORTING}"
_MEDIANS = " Completion times are medians over the repetitions, with minimum and quartiles."


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
        path: The file to write. Its folder must exist.
        comparison: The frame of `tutti.compare`, a row per measurement.
        platform: The platform, or a mapping with its `name`, `model` and `parameters`.

        timeline: The timeline frame of one run, for the Gantt chart.
        messages: The message frame of the same run, for its arrows.
        title: The title of the experiment, above the question of the page.
        notes: Sentences for the header, such as the description of the run in the timeline.

    Returns:
        The path written.

    Raises:
        ReportError: A frame lacks columns or has nothing to show.
    """
    cases = reading.cases(comparison)
    findings, sections = _parts(cases, platform)
    page = Page(
        kind="comparison",
        kicker="collective communication", title=title or "",
        question=words.question(cases), answer=words.answer(cases, MOST_SENTENCES),
        notes=[*notes, *_unverified(comparison)], findings=findings,
        facts=_facts(comparison, cases),
        sections=[*sections, *_timeline(timeline, messages), _assumptions(platform)],
        provenance=_provenance(comparison),
    )  # fmt: skip
    return page.write(path)


def _parts(
    cases: Sequence[Comparison], platform: object
) -> tuple[list[tuple[str, list[Finding]]], list[Section]]:
    """Returns summary and sections of each case."""
    named = styles(name for case in cases for name in case.algorithms)
    colours = {name: style.colour for name, style in named.items()}
    per_byte = ps_per_byte(platform)
    headings = [_heading(case) if len(cases) > 1 else "" for case in cases]
    sections = [
        section
        for number, (case, heading) in enumerate(zip(cases, headings, strict=True))
        for section in _sections(f"case{number}", case, heading, per_byte, colours)
    ]
    summaries = [words.summary(case, per_byte, colours) for case in cases]
    return list(zip(headings, summaries, strict=True)), sections


def _heading(case: Comparison) -> str:
    return f"{case.collective} of {case.datatype} on {case.platform} ({case.model})"


def _provenance(comparison: pl.DataFrame) -> list[tuple[str, str]]:
    names = ("version", "commit", "config_hash", "model")
    return [(name.replace("_", " "), reading.one_value(comparison, name)) for name in names]


def _unverified(comparison: pl.DataFrame) -> list[str]:
    """Returns a sentence on schedules that were timed but not verified, if any."""
    if "verified" not in comparison.columns:
        return []
    keys = ["schedule", "ranks"]
    skipped = comparison.filter(verified=False).select(keys).unique()
    if skipped.is_empty():
        return []
    total = comparison.select(keys).n_unique()
    return [f"{skipped.height:,} of {total:,} schedules were timed without verification."]


def _sections(
    name: str, case: Comparison, heading: str, per_byte: float | None, colours: Mapping[str, str]
) -> Iterator[Section]:
    yield Section(
        "Fastest algorithm by ranks and size",
        "",
        {f"{name}-map": Chart(compared_charts.decision_map(case), *_MAP_CAPTION, "cells")},
        _regions(case, per_byte, colours),
        note=_STAGES,
        part=heading,
    )
    if sum(size > 0 for size in case.sizes) > 1:
        yield Section(
            "Completion time and busbw against size",
            charts={
                f"{name}-{quantity}": Chart(
                    compared_charts.curves(case, quantity, "size"), *_CAPTIONS[quantity]
                )
                for quantity in ("time", "busbw")
            },
            choice=Choice(f"{name}-size", "Ranks", [(one, count(one)) for one in case.ranks],
                          compared_charts.default_choice(case.ranks, "size"), f"{_FASTEST} size."),
        )  # fmt: skip
    if len(case.ranks) > 1:
        yield Section(
            "Completion time against ranks",
            charts={
                f"{name}-ranks": Chart(
                    compared_charts.curves(case, "time", "ranks"), *_CAPTIONS["ranks"]
                )
            },
            choice=Choice(
                f"{name}-scale", "Size", [(one, format_size(one)) for one in case.sizes],
                compared_charts.default_choice(case.sizes, "ranks"), f"{_FASTEST} rank count.",
            ),
        )  # fmt: skip
    table = _results(case)
    repeated = any(one.repetitions > 1 for one in case.measured)
    yield Section("Results", _RESULTS + _MEDIANS * repeated, table=table)


def _regions(
    case: Comparison, per_byte: float | None, colours: Mapping[str, str]
) -> ReportTable[dict[str, Any]]:
    columns: list[Column[dict[str, Any]]] = [
        Column("ranks", lambda row: row["ranks"], count),
        Column("sizes", lambda row: row["sizes"], kind="nowrap"),
        Column("fastest", lambda row: row["schedules"], kind="wrap",
               colour=lambda row: colours[row["winner"]],
               soft=lambda row: row["level"] and f"tied with {row['level']}"),
        Column("lead over runner-up", lambda row: row["margin"], kind="wrap",
               soft=lambda row: row["runner_up"]),
        Column("fastest vs. runner-up (largest lead)", lambda row: row["difference"],
               kind="reason"),
        Column("smallest size", lambda row: row["size_bytes"][0], format_size, kind="hidden"),
        Column("largest size", lambda row: row["size_bytes"][1], format_size, kind="hidden"),
        Column("smallest lead", lambda row: row["leads"][0], format_share, kind="hidden"),
        Column("largest lead", lambda row: row["leads"][1], format_share, kind="hidden"),
    ]  # fmt: skip
    return ReportTable(columns, words.region_rows(case, per_byte), look="regions")


def _results(case: Comparison) -> ReportTable[Measurement]:
    rows = sorted(case.measured, key=lambda m: (m.ranks, m.size_bytes, m.time_ps, m.schedule))
    fastest: dict[tuple[int, int], int] = {}
    for one in rows:
        fastest.setdefault((one.ranks, one.size_bytes), one.time_ps)
    colours = styles(case.algorithms)

    def slowdown(one: Measurement) -> float:
        best = fastest[one.ranks, one.size_bytes]
        return one.time_ps / best if best else 1.0

    spread: list[Column[Measurement]] = [
        Column("minimum", lambda one: one.least_ps, format_time),
        Column("lower quartile", lambda one: one.lower_quartile_ps, format_time),
        Column("upper quartile", lambda one: one.upper_quartile_ps, format_time),
    ]
    columns: list[Column[Measurement]] = [
        Column("ranks", lambda one: one.ranks, count),
        Column("size", lambda one: one.size_bytes, format_size),
        Column("schedule", lambda one: one.schedule, colour=lambda m: colours[m.algorithm].colour),
        Column("completion time", lambda one: one.time_ps, format_time),
        *(spread if any(one.repetitions > 1 for one in rows) else []),
        Column("slowdown", slowdown, "{:.2f}".format),
        Column(
            "% of the lower bound", lambda one: one.of_limit, format_limit, exported="as a fraction"
        ),
        Column("algbw", lambda one: one.algbw, format_rate),
        Column("busbw", lambda one: one.busbw, format_rate),
        Column("messages", lambda one: one.messages, count),
        Column("closed-form time", lambda one: one.closed_form_ps, format_time),
    ]
    return ReportTable(columns, rows, bold=lambda m: m.time_ps == fastest[m.ranks, m.size_bytes])


def _facts(comparison: pl.DataFrame, cases: Sequence[Comparison]) -> list[tuple[str, str]]:
    schedules = {one.schedule for case in cases for one in case.measured}
    return [
        *(
            (name, ", ".join(sorted({getattr(case, name) for case in cases})))
            for name in ("platform", "model", "collective", "datatype")
        ),
        ("ranks", span([count for case in cases for count in case.ranks])),
        ("sizes", span([size for case in cases for size in case.sizes], format_size)),
        ("schedules", count(len(schedules))),
        ("runs", count(comparison.height)),
    ]


def _timeline(timeline: pl.DataFrame | None, messages: pl.DataFrame | None) -> list[Section]:
    if timeline is None:
        return []
    drawn = picture(timeline, messages, most_ranks=32, most_arrows=500)
    lead = " ".join([f"Completion time {format_time(drawn.complete_ps)}.", *drawn.notes])
    axes = (
        f"Horizontal: time ({time_unit(drawn.end_ps)[1]}). Vertical: rank. Bars are ops of a rank. "
        "Lines are messages, from the time of the send at the sender to the time of arrival at "
        "the receiver."
    )
    look = "long waits, and the last rank to finish, which sets the completion time."
    chart = Chart(gantt(drawn), axes, look, "ops and messages")
    return [Section("Timeline of one run", lead, {"timeline": chart}, source="the trace")]


def _assumptions(platform: object) -> Section:
    columns: list[Column[Any]] = [
        Column("assumption", lambda row: row["name"], kind="plain"),
        Column("value", lambda row: row["value"], kind="nowrap"),
        Column("source", lambda row: row["source"], kind="reason"),
    ]
    table = ReportTable(columns, platform_facts(platform), look="plain")
    return Section("Assumptions", table=table, note=CONVENTIONS)

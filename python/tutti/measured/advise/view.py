"""The report page of an advice: decision map, ranges of sizes, predictions and measurements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tutti.collectives.view.comparison_charts import stepped
from tutti.collectives.view.quantities import shorten
from tutti.view.charts import TEXT, Axis, chart, heat, legend_entry
from tutti.view.page import MOST_SENTENCES, SORTING, Chart, Finding, Page, Section
from tutti.view.palette import styles
from tutti.view.quantity import count, format_share, format_size, format_time, plural, span
from tutti.view.tables import Column, ReportTable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from tutti.measured.advise import Advice, Decision, SizeRange
    from tutti.view.charts import Figure

_PS_PER_US = 10**6
_MAP = (
    (
        "Horizontal: size. Vertical: ranks. Colour: the algorithm with the shortest predicted "
        "time, or one that is up to 2 % slower and joins ranges of sizes. Number: confidence in "
        "per cent, the probability that it is within 5 % of the fastest. Point at "
        "a cell to see times and runner-up."
    ),
    "low numbers: measure there before you decide.",
)
_CONVENTIONS = (
    "Times are predictions of a model that was calibrated on the measurements, with 90 % "
    "intervals. Sizes: one rank's buffer for all_reduce, broadcast and reduce; the total for the "
    "other collectives. Gain: how much longer the library's default takes. The ratio of its time "
    "to that of the fastest algorithm measured is carried over to the larger job."
)


def write_advice_report(path: str | Path, advice: Advice) -> Path:
    """Writes the report of an advice.

    Args:
        path: the file to write; its folder must exist.
        advice: the decisions, and what they are based on.

    Returns:
        The path written.
    """
    names = advice.predictions["algorithm"].unique().sort().to_list()
    colours = {name: style.colour for name, style in styles(names).items()}
    collectives = list(dict.fromkeys(one.collective for one in advice.decisions))
    page = Page(
        kind="advice",
        kicker="collective communication",
        question=_question(advice, collectives),
        answer=_answer(advice, collectives),
        findings=[(one, _findings(one, advice, colours)) for one in collectives],
        facts=_facts(advice, collectives),
        sections=[section for one in collectives for section in _sections(one, advice, colours)],
        conventions=_CONVENTIONS,
    )
    return page.write(path)


def _question(advice: Advice, collectives: Sequence[str]) -> str:
    largest = max(one.ranks for one in advice.decisions)
    system = advice.scope.system or "this system"
    if len(collectives) == 1:
        return f"Which {collectives[0]} algorithm is fastest on {count(largest)} ranks of {system}?"
    return f"Which algorithms are fastest on {count(largest)} ranks of {system}?"


def _answer(advice: Advice, collectives: Sequence[str]) -> list[str]:
    """Returns the algorithms of the largest job, with the lowest confidence of each collective."""
    shown = collectives if len(collectives) <= MOST_SENTENCES else collectives[:-1]
    lines = [_best(one, advice, named=len(collectives) > 1) for one in shown[:MOST_SENTENCES]]
    if len(collectives) > len(lines):
        rest = len(collectives) - len(lines) + 1
        lines[-1] = f"The findings list {plural(rest, 'more collective')}."
    return lines


def _best(collective: str, advice: Advice, *, named: bool) -> str:
    found = [one for one in advice.ranges if one.first.collective == collective]
    largest = max(one.first.ranks for one in found)
    last = [one for one in found if one.first.ranks == largest]
    parts = [f"{one.first.algorithm} for {_sizes(one)}" for one in last]
    least = min(one.least_certain.confidence for one in last)
    name = f"{collective}: " if named else ""
    return f"{name}{shorten(parts, 3, ', ')}, with a confidence of {_percent(least)} or more."


def _findings(collective: str, advice: Advice, colours: Mapping[str, str]) -> list[str | Finding]:
    """Returns the ranges of the largest job."""
    found = [one for one in advice.ranges if one.first.collective == collective]
    largest = max(one.first.ranks for one in found)
    return [
        Finding(
            one.first.algorithm,
            f"{_sizes(one)} on {count(largest)} ranks",
            f"confidence {_percent(one.least_certain.confidence)} or more",
            colours[one.first.algorithm],
        )
        for one in found
        if one.first.ranks == largest
    ]


def _facts(advice: Advice, collectives: Sequence[str]) -> list[tuple[str, str]]:
    measured = sorted({one for each in advice.extrapolations for one in each.measured})
    predicted = sorted({one.ranks for one in advice.extrapolations})
    factor = max(one.factor for one in advice.extrapolations)
    return [
        ("machine", advice.scope.description),
        ("collectives", ", ".join(collectives)),
        ("measurements used", count(advice.usage.used)),
        ("ranks measured", ", ".join(count(one) for one in measured)),
        ("ranks predicted", ", ".join(count(one) for one in predicted)),
        ("extrapolation", f"up to {factor:.3g} times the ranks measured"),
        ("sizes", span([one.size_bytes for one in advice.decisions], format_size)),
    ]


def _sections(collective: str, advice: Advice, colours: Mapping[str, str]) -> Iterator[Section]:
    mine = [one for one in advice.decisions if one.collective == collective]
    found = [one for one in advice.ranges if one.first.collective == collective]
    yield Section(
        "Fastest algorithm by ranks and size",
        charts={f"{collective}-map": Chart(_decision_map(mine, colours), *_MAP, "cells")},
        table=_regions(found, colours),
        part=collective,
    )
    rows = advice.predictions.filter(collective=collective).to_dicts()
    table = _predictions(rows, colours)
    lead = f"{plural(len(rows), 'prediction')}. Bold: the fastest at its ranks and size. {SORTING}"
    yield Section("Predictions", lead, table=table, source="advice.csv")


def _decision_map(found: Sequence[Decision], colours: Mapping[str, str]) -> Figure:
    sizes = sorted({one.size_bytes for one in found})
    jobs = list(dict.fromkeys((one.ranks, one.shape) for one in found))
    cell = {(one.ranks, one.shape, one.size_bytes): one for one in found}
    cells = [[cell.get((*job, size)) for size in sizes] for job in jobs]
    names = sorted({one.algorithm for one in found})
    shown = heat(
        x=[format_size(size) for size in sizes],
        y=[f"{ranks:,}" + (f" ({shape})" if shape else "") for ranks, shape in jobs],
        z=[[names.index(one.algorithm) if one else None for one in row] for row in cells],
        zmin=-0.5,
        zmax=len(names) - 0.5,
        colorscale=stepped([colours[name] for name in names]),
        showscale=False,
        xgap=2,
        ygap=2,
        text=[[f"{100 * one.confidence:.0f}" if one else "" for one in row] for row in cells],
        texttemplate="%{text}",
        textfont={"size": 11},
        customdata=[[_text(one) if one else "not predicted" for one in row] for row in cells],
        hovertemplate=TEXT,
    )
    legend = [legend_entry(name, colours[name]) for name in names]
    x, y = (Axis(title, category=True, more={"showgrid": False}) for title in ("size", "ranks"))
    # A narrow screen lists the names below each other.
    height = 130 + max(34 * len(jobs), 60) + 20 * len(names)
    fixed = {"itemclick": False, "itemdoubleclick": False}
    return chart([shown, *legend], x, y, height, legend=fixed)


def _text(one: Decision) -> str:
    lines = [
        f"<b>{one.ranks:,} ranks, {format_size(one.size_bytes)}</b>",
        f"fastest: {one.algorithm}, {_time(one.predicted_us)}",
        f"90 % interval: {_interval(one)}",
        f"confidence: {_percent(one.confidence)}",
    ]
    if one.runner_up_us is not None:
        lines.append(f"runner-up: {one.runner_up}, {_time(one.runner_up_us)}")
    if one.default_us is not None:
        lines.append(f"library's default: {_time(one.default_us)}")
    return "<br>".join(lines)


def _regions(found: Sequence[SizeRange], colours: Mapping[str, str]) -> ReportTable[SizeRange]:
    columns: list[Column[SizeRange]] = [
        Column("ranks", lambda one: one.first.ranks, count, soft=lambda one: one.first.shape or ""),
        Column("sizes", _sizes, kind="nowrap", soft=_least_certain_at),
        Column("smallest size", lambda one: one.first.size_bytes, format_size, kind="hidden"),
        Column("largest size", lambda one: one.last.size_bytes, format_size, kind="hidden"),
        Column("fastest", lambda one: one.first.algorithm, kind="wrap",
               colour=lambda one: colours[one.first.algorithm]),
        Column("time", lambda one: one.least_certain.predicted_us, _time,
               soft=lambda one: _interval(one.least_certain), exported="us"),
        Column("runner-up", lambda one: one.least_certain.runner_up, kind="wrap"),
        Column("gain", lambda one: one.least_certain.gain, _signed, exported="fraction"),
        Column("confidence", lambda one: one.least_certain.confidence, _percent,
               exported="fraction"),
    ]  # fmt: skip
    return ReportTable(columns, found, look="regions")


def _predictions(
    rows: Sequence[dict[str, Any]], colours: Mapping[str, str]
) -> ReportTable[dict[str, Any]]:
    columns: list[Column[dict[str, Any]]] = [
        Column("ranks", lambda row: row["ranks"], count),
        Column("size", lambda row: row["size_bytes"], format_size),
        Column("algorithm", lambda row: row["algorithm"],
               colour=lambda row: colours[row["algorithm"]]),
        Column("predicted time", lambda row: row["predicted_us"], _time, exported="us"),
        Column("90 % interval, from", lambda row: row["low_us"], _time, exported="us"),
        Column("to", lambda row: row["high_us"], _time, exported="us"),
        Column("probability to be within 5 % of the fastest", lambda row: row["near_fastest"],
               _percent, exported="fraction"),
    ]  # fmt: skip
    return ReportTable(columns, rows, bold=lambda row: row["place"] == 1)


def _least_certain_at(one: SizeRange) -> str:
    """States the size of the figures, if there are several."""
    sizes = {each.size_bytes for each in one.decisions}
    return f"at {format_size(one.least_certain.size_bytes)}" if len(sizes) > 1 else ""


def _sizes(one: SizeRange) -> str:
    return span([one.first.size_bytes, one.last.size_bytes], format_size)


def _interval(one: Decision) -> str:
    return f"{_time(one.low_us)} to {_time(one.high_us)}"


def _time(us: float) -> str:
    return format_time(us * _PS_PER_US)


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _signed(gain: float) -> str:
    return format_share(gain) if gain >= 0 else f"-{format_share(-gain)}"

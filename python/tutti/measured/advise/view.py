"""What an advice shows: ranges of sizes, decision map, predictions, what to measure next."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from tutti.base.errors import capped
from tutti.collectives.view.comparison_charts import stepped
from tutti.collectives.view.quantities import shorten
from tutti.view.charts import TEXT, Axis, chart, heat, legend_entry
from tutti.view.page import MOST_SENTENCES, SORTING, Chart, Finding, Section
from tutti.view.palette import styles
from tutti.view.quantity import (
    count,
    format_share,
    format_size,
    plural,
    span,
)
from tutti.view.tables import Column, ReportTable, frame_of, of_scope
from tutti.view.view import Data, Fact, View

from .advice import FARTHEST, FEWEST_RANK_COUNTS
from .next import UNDECIDED
from .rules_view import RULES, rule_tables, ruled_sizes, signed, time_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from tutti.formats.measurements import Measurements
    from tutti.measured.advise import (
        Advice,
        Decision,
        Extrapolation,
        NextMeasurement,
        SizeRange,
        Usage,
        WrittenRules,
    )
    from tutti.view.charts import Figure

_MOST_REASONS = 8
_MAP = (
    (
        "Horizontal: size. Vertical: ranks. Colour: the algorithm with the shortest predicted "
        "time, or one that is up to 2 % slower and joins ranges of sizes. Number: confidence in "
        "per cent, the probability that it is within 5 % of the fastest. Point at "
        "a cell to see times and runner-up."
    ),
    "low numbers: measure there before you decide.",
)
_NEXT = "undecided: choices that need the measurement; factor: it is predicted within that"
_CONVENTIONS = (
    "Times are predictions of a model that was calibrated on the measurements, with 90 % "
    "intervals. Sizes: one rank's buffer for all_reduce, broadcast and reduce; the total for the "
    "other collectives. Gain: how much longer the library's default takes. The ratio of its time "
    "to that of the fastest algorithm measured is carried over to the larger job."
)


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def advice_view(
    advice: Advice, rows: Measurements | None = None, written: Sequence[WrittenRules] = ()
) -> View:
    """Returns what an advice shows.

    Args:
        advice: The decisions, and what they are based on.
        rows: The measurements, to count those that are not used.
        written: The files of rules, to show what they gain.
    """
    ruled = ruled_sizes(written)
    names = advice.predictions["algorithm"].unique().sort().to_list()
    colours = {name: style.colour for name, style in styles(names).items()}
    collectives = list(dict.fromkeys(row.collective for row in advice.decisions))
    return View(
        kind="advice",
        kicker="collective communication",
        question=_question(advice, collectives),
        answer=_answer(advice, collectives),
        findings=[(name, _findings(name, advice, colours)) for name in collectives],
        headline=Fact("machine", advice.scope.description, "scope", advice.scope.description),
        inputs=_inputs(advice, collectives),
        facts=[*_hardware(advice), *_usage(advice.usage, rows), *_facts(advice)],
        tables=[*_tables(advice, collectives), *rule_tables(ruled)],
        data=[
            Data("", lambda: advice.predictions, ["advice.parquet", "advice.csv"]),
            Data("decisions", lambda: advice.frame, ["decisions.csv"]),
            Data("measure_next", lambda: frame_of(NEXT, advice.next)),
            *([Data("rules", lambda: frame_of(RULES, ruled))] if ruled else []),
        ],
        sections=lambda: [
            section for name in collectives for section in _sections(name, advice, colours)
        ],
        log=[*_log(advice, collectives), *(_log_of_rows(advice.usage, rows) if rows else ())],
        conventions=_CONVENTIONS,
    )  # fmt: skip


def _question(advice: Advice, collectives: Sequence[str]) -> str:
    largest = max(each.ranks for each in advice.decisions)
    system = advice.scope.system or "this system"
    if len(collectives) == 1:
        return f"Which {collectives[0]} algorithm is fastest on {count(largest)} ranks of {system}?"
    return f"Which algorithms are fastest on {count(largest)} ranks of {system}?"


def _answer(advice: Advice, collectives: Sequence[str]) -> list[str]:
    """Returns the algorithms of the largest job, with the lowest confidence of each collective."""
    shown = collectives if len(collectives) <= MOST_SENTENCES else collectives[:-1]
    lines = [_best(each, advice, named=len(collectives) > 1) for each in shown[:MOST_SENTENCES]]
    if len(collectives) > len(lines):
        rest = len(collectives) - len(lines) + 1
        lines[-1] = f"The findings list {plural(rest, 'more collective')}."
    return lines


def _best(collective: str, advice: Advice, *, named: bool) -> str:
    ranges = _of(advice, collective)
    largest = max(each.first.ranks for each in ranges)
    last = [each for each in ranges if each.first.ranks == largest]
    parts = [f"{each.first.algorithm} for {_sizes(each)}" for each in last]
    name = f"{collective}: " if named else ""
    return f"{name}{shorten(parts, 3, ', ')}, {_confidence(last)}."


def _confidence(ranges: Sequence[SizeRange]) -> str:
    """Returns the lowest confidence of ranges of sizes, or why there is none."""
    stated = [each.least_certain.stated_confidence for each in ranges]
    if None in stated:
        least = next(each.least_certain for each in ranges
                     if each.least_certain.stated_confidence is None)  # fmt: skip
        return _without_confidence(least)
    return f"with a confidence of {_percent(min(share for share in stated if share))} or more"


def _without_confidence(least: Decision) -> str:
    if least.runner_up is None:
        return "no other candidate, no confidence"
    if least.observations > 1:
        return "not measured with these ranks per node, no confidence"
    return f"{'one observation' if least.observations else 'not measured'}, no confidence"


def _findings(collective: str, advice: Advice, colours: Mapping[str, str]) -> list[str | Finding]:
    """Returns the ranges of the largest job."""
    ranges = _of(advice, collective)
    largest = max(each.first.ranks for each in ranges)
    return [
        Finding(
            each.first.algorithm,
            f"{_sizes(each)} on {count(largest)} ranks",
            _confidence([each]).removeprefix("with a "),
            colours[each.first.algorithm],
        )
        for each in ranges
        if each.first.ranks == largest
    ]


def _inputs(advice: Advice, collectives: Sequence[str]) -> list[Fact]:
    measured = sorted({ranks for each in advice.extrapolations for ranks in each.measured})
    predicted = sorted({each.ranks for each in advice.extrapolations})
    factor = max(each.factor for each in advice.extrapolations)
    return [
        Fact("collectives", ", ".join(collectives)),
        Fact("measurements used", count(advice.usage.used)),
        Fact("ranks measured", _listed(measured)),
        Fact("ranks predicted", _listed(predicted)),
        Fact("extrapolation", f"up to {factor:.3g} times the ranks measured"),
        Fact("sizes", span([row.size_bytes for row in advice.decisions], format_size)),
    ]


def _hardware(advice: Advice) -> list[Fact]:
    """Returns what the calibration started from."""
    known = advice.hardware
    return [
        Fact("hardware", known.description, "hardware", known.description),
        Fact("", "", "platform", known.platform),
    ]


def _usage(usage: Usage, rows: Measurements | None) -> list[Fact]:
    """Returns how many rows were used."""
    if rows is None:
        return []
    unused = sum(usage.unused.values())
    of_default = f", {usage.defaults:,} of the library's default" if usage.defaults else ""
    read, left_out = len(rows.rows), len(rows.omitted)
    text = f"{usage.used:,} used{of_default}, {unused:,} not used; {left_out:,} left out"
    return [
        Fact("rows", f"{plural(read, 'row')} read: {text}", "rows", read),
        Fact("", "", "rows_used", usage.used),
        Fact("", "", "rows_of_default", usage.defaults),
        Fact("", "", "rows_unused", usage.unused),
        Fact("", "", "rows_left_out", left_out),
    ]


def _facts(advice: Advice) -> list[Fact]:
    """Returns the number of undecided choices."""
    undecided = sum((row.stated_confidence or 0.0) < UNDECIDED for row in advice.decisions)
    verb = "has" if undecided == 1 else "have"
    text = f"{undecided:,} of {plural(len(advice.decisions), 'decision')} {verb}"
    return [Fact("confidence", f"{text} less than {format_share(UNDECIDED)} confidence")]


def _legend(advice: Advice) -> str:
    """Returns the basis of the figures and of the gain."""
    text = "figures: for the size with the lowest confidence; times with 90 % intervals"
    if all(row.gain is None for row in advice.decisions):
        return text
    ranks = _listed(sorted({ratio.ranks for ratio in advice.ratios.values()}))
    return (
        f"{text}; gain: how much longer the library's default takes than the algorithm of the "
        "rules, 0 where the default stays. Its ratio to the fastest algorithm measured, on "
        f"{ranks} ranks, is carried over."
    )


def _tables(advice: Advice, collectives: Sequence[str]) -> list[ReportTable[Any]]:
    """Returns the ranges of sizes of each collective, and what to measure next."""
    tables: list[ReportTable[Any]] = []
    for name in collectives:
        jobs = [each for each in advice.extrapolations if each.collective == name]
        factors = ", ".join(f"{each.ranks:,} ({each.factor:.3g}x)" for each in jobs)
        on = f"measured on {_listed(jobs[0].measured)} ranks; predicted on {factors}"
        tables.append(replace(_region_table(_of(advice, name)), heading=f"{name}: {on}"))
    tables[-1] = replace(tables[-1], caption=_legend(advice))
    if advice.next:
        tables.append(ReportTable(of_scope(NEXT, "run"), advice.next, heading="measure next:",
                                  caption=_NEXT))  # fmt: skip
    return tables


def _of(advice: Advice, collective: str) -> list[SizeRange]:
    return [each for each in advice.ranges if each.first.collective == collective]


def _log(advice: Advice, collectives: Sequence[str]) -> Iterator[str]:
    """Yields warnings where predictions have little basis, and what is missing."""
    yield from map(capped, (*advice.scope.remarks, *advice.hardware.remarks))
    for name in collectives:
        if all(row.runner_up is None for row in advice.decisions if row.collective == name):
            yield f"warning: {name}: only one algorithm was measured: nothing to choose among"
        yield from _far(name, [each for each in advice.extrapolations if each.collective == name])
        yield from _few(name, advice)
    yield from advice.scope.cautions(max(each.ranks for each in advice.extrapolations))
    slower = sum(row.gain is not None and row.gain < 0 for row in advice.decisions)
    if slower:
        decisions = plural(slower, "decision")
        yield f"{decisions} with a negative gain: the default is predicted to be faster"
    yield from _missing(advice)


def _few(collective: str, advice: Advice) -> Iterator[str]:
    """Names choices without a confidence, since they have too few measurements."""
    few = {
        row.algorithm: row
        for row in advice.decisions
        if row.collective == collective
        and (row.observations < 2 or not row.is_placed)
        and row.runner_up is not None
    }
    for name, row in few.items():
        yield f"{collective} by {name}: {_without_confidence(row)}"


def _far(collective: str, farther: Sequence[Extrapolation]) -> Iterator[str]:
    """Yields a warning on few measured rank counts, and on far or near predictions."""
    counts = farther[0].measured
    if len(counts) < FEWEST_RANK_COUNTS:
        yield (
            f"warning: {collective}: only {plural(len(counts), 'rank count')} measured: the growth "
            f"with the rank count is uncertain; measure {FEWEST_RANK_COUNTS} or more"
        )
    for job in farther:
        if job.factor > FARTHEST:
            yield (
                f"warning: {collective} on {job.ranks:,} ranks: {job.factor:.3g} times the largest "
                f"measured rank count: decisions beyond {FARTHEST} times are a hypothesis"
            )
        elif job.factor <= 1:
            yield (
                f"{collective} on {job.ranks:,} ranks: not larger than the measured {counts[-1]:,} "
                "ranks: a measurement there is better than this prediction"
            )


def _missing(advice: Advice) -> Iterator[str]:
    """Names candidates that do not exist on a number of ranks."""
    missing: dict[tuple[str, int], list[str]] = {}
    for collective, name, ranks in advice.missing:
        missing.setdefault((collective, ranks), []).append(name)
    same: dict[tuple[str, tuple[str, ...]], list[int]] = {}
    for (collective, ranks), names in missing.items():
        same.setdefault((collective, tuple(names)), []).append(ranks)
    for (collective, left), counts in same.items():
        yield (
            f"{collective} on {_listed(counts)} ranks: without candidates that may not exist "
            f"there, as they were not measured on such a rank count: {', '.join(left)}"
        )


def _log_of_rows(usage: Usage, rows: Measurements) -> Iterator[str]:
    """Yields the reasons why rows are of no use."""
    reasons = sorted(usage.unused.items(), key=lambda reason: (-reason[1], reason[0]))
    for why, lines in reasons[:_MOST_REASONS]:
        yield capped(f"not used: {plural(lines, 'row')}: {why}")
    others = sum(lines for _, lines in reasons[_MOST_REASONS:])
    if others:
        yield f"not used: {plural(others, 'row')} for other reasons"
    if usage.assumed:
        assumed = plural(usage.assumed, "row")
        yield (
            f"{assumed} without a number of nodes: --ranks-per-node, or else that of the platform, "
            "or 1, is assumed"
        )
    if rows.rows["emulated"].any():
        yield "distance was emulated: no network was measured"


def _sections(collective: str, advice: Advice, colours: Mapping[str, str]) -> Iterator[Section]:
    mine = [each for each in advice.decisions if each.collective == collective]
    yield Section(
        "Fastest algorithm by ranks and size",
        charts={f"{collective}-map": Chart(_decision_map(mine, colours), *_MAP, "cells")},
        table=_region_table(_of(advice, collective), colours),
        part=collective,
    )
    rows = advice.predictions.filter(collective=collective).to_dicts()
    table = _predictions(rows, colours)
    lead = f"{plural(len(rows), 'prediction')}. Bold: the fastest at its ranks and size. {SORTING}"
    yield Section("Predictions", lead, table=table, source="advice.csv")


def _decision_map(decisions: Sequence[Decision], colours: Mapping[str, str]) -> Figure:
    sizes = sorted({each.size_bytes for each in decisions})
    jobs = list(dict.fromkeys((each.ranks, each.shape) for each in decisions))
    cell = {(each.ranks, each.shape, each.size_bytes): each for each in decisions}
    cells = [[cell.get((*job, size)) for size in sizes] for job in jobs]
    names = sorted({each.algorithm for each in decisions})
    shown = heat(
        x=[format_size(size) for size in sizes],
        y=[f"{ranks:,}" + (f" ({shape})" if shape else "") for ranks, shape in jobs],
        z=[[names.index(each.algorithm) if each else None for each in row] for row in cells],
        zmin=-0.5,
        zmax=len(names) - 0.5,
        colorscale=stepped([colours[name] for name in names]),
        showscale=False,
        xgap=2,
        ygap=2,
        text=[[_percentage(each) for each in row] for row in cells],
        texttemplate="%{text}",
        textfont={"size": 11},
        customdata=[[_text(each) if each else "not predicted" for each in row] for row in cells],
        hovertemplate=TEXT,
    )
    legend = [legend_entry(name, colours[name]) for name in names]
    x, y = (Axis(title, category=True, more={"showgrid": False}) for title in ("size", "ranks"))
    # A narrow screen lists the names below each other.
    height = 130 + max(34 * len(jobs), 60) + 20 * len(names)
    fixed = {"itemclick": False, "itemdoubleclick": False}
    return chart([shown, *legend], x, y, height, legend=fixed)


def _percentage(each: Decision | None) -> str:
    share = each.stated_confidence if each else None
    return "" if share is None else f"{100 * share:.0f}"


def _text(each: Decision) -> str:
    lines = [
        f"<b>{each.ranks:,} ranks, {format_size(each.size_bytes)}</b>",
        f"fastest: {each.algorithm}, {time_text(each.predicted_us)}",
        f"90 % interval: {_interval(each)}",
        f"confidence: {_percent(each.stated_confidence)}" if each.stated_confidence is not None
        else _without_confidence(each),
    ]  # fmt: skip
    if each.runner_up_us is not None:
        lines.append(f"runner-up: {each.runner_up}, {time_text(each.runner_up_us)}")
    if each.default_us is not None:
        lines.append(f"library's default: {time_text(each.default_us)}")
    return "<br>".join(lines)


def regions(colours: Mapping[str, str] = MappingProxyType({})) -> list[Column[SizeRange]]:
    """Returns the quantities of a range of sizes, with the figures of its least certain size.

    Args:
        colours: The colour of each algorithm.
    """
    return [
        Column("collective", lambda row: row.first.collective, key="collective", scope="file"),
        Column("ranks", lambda row: row.first.ranks, count, key="ranks",
               soft=lambda row: row.first.shape or "", short="ranks\n"),
        Column("shape", lambda row: row.first.shape, key="shape", scope="file"),
        Column("sizes", _sizes, kind="nowrap", soft=_least_certain_at, short="sizes\n[dim]size[/]"),
        Column("smallest size", lambda row: row.first.size_bytes, format_size, kind="hidden",
               key="first_bytes"),
        Column("largest size", lambda row: row.last.size_bytes, format_size, kind="hidden",
               key="last_bytes"),
        Column("fastest", lambda row: row.first.algorithm, kind="wrap", key="algorithm",
               colour=lambda row: colours[row.first.algorithm], soft=_runner_up,
               short="fastest algorithm\n[dim]runner-up[/]"),
        Column("size", lambda row: row.least_certain.size_bytes, format_size, key="size_bytes",
               scope="file"),
        Column("time", lambda row: row.least_certain.predicted_us, time_text, exported="us",
               key="predicted_us", soft=lambda row: _interval(row.least_certain),
               short="time\n[dim]interval[/]"),
        Column("from", lambda row: row.least_certain.low_us, time_text, key="low_us", scope="file"),
        Column("to", lambda row: row.least_certain.high_us, time_text, key="high_us", scope="file"),
        Column("confidence", lambda row: row.least_certain.stated_confidence, _percent,
               exported="fraction", key="confidence", short="confi-\ndence"),
        Column("runner-up", lambda row: row.least_certain.runner_up, key="runner_up",
               scope="file"),
        Column("its time", lambda row: row.least_certain.runner_up_us, time_text,
               key="runner_up_us", scope="file"),
        Column("default", lambda row: row.least_certain.default_us, time_text, key="default_us",
               scope="file"),
        Column("gain", lambda row: row.least_certain.gain, signed, exported="fraction",
               key="gain", short="gain\n"),
    ]  # fmt: skip


NEXT: tuple[Column[NextMeasurement], ...] = (
    Column("collective", lambda row: row.collective, key="collective"),
    Column("algorithm", lambda row: row.algorithm, kind="wrap", key="algorithm"),
    Column("ranks", lambda row: row.ranks, count, key="ranks"),
    Column("size", lambda row: row.size_bytes, format_size, key="size_bytes"),
    Column("undecided choices", lambda row: row.cells, count, key="cells", short="undecided"),
    Column("within a factor of", lambda row: row.factor, "{:.2g}".format, key="factor",
           short="factor"),
    Column("probable mistakes", lambda row: row.wrong, "{:.3g}".format, key="wrong", scope="file"),
)  # fmt: skip
"""The quantities of a measurement that makes decisions more certain."""


def _region_table(
    ranges: Sequence[SizeRange], colours: Mapping[str, str] = MappingProxyType({})
) -> ReportTable[SizeRange]:
    """Returns the table of ranges, without gains if no default was measured."""
    has_gain = any(row.least_certain.gain is not None for row in ranges)
    columns = of_scope(regions(colours), "run")
    shown = columns if has_gain else columns[:-1]
    return ReportTable(shown, ranges, look="regions", has_second_lines=True)


def _predictions(
    rows: Sequence[dict[str, Any]], colours: Mapping[str, str]
) -> ReportTable[dict[str, Any]]:
    columns: list[Column[dict[str, Any]]] = [
        Column("ranks", lambda row: row["ranks"], count),
        Column("size", lambda row: row["size_bytes"], format_size),
        Column("algorithm", lambda row: row["algorithm"],
               colour=lambda row: colours[row["algorithm"]]),
        Column("predicted time", lambda row: row["predicted_us"], time_text, exported="us"),
        Column("90 % interval, from", lambda row: row["low_us"], time_text, exported="us"),
        Column("to", lambda row: row["high_us"], time_text, exported="us"),
        Column("probability to be within 5 % of the fastest", lambda row: row["near_fastest"],
               _percent, exported="fraction"),
    ]  # fmt: skip
    return ReportTable(columns, rows, bold=lambda row: row["place"] == 1)


def _least_certain_at(row: SizeRange) -> str:
    """States the size of the figures, if there are several."""
    sizes = {each.size_bytes for each in row.decisions}
    return f"at {format_size(row.least_certain.size_bytes)}" if len(sizes) > 1 else ""


def _runner_up(row: SizeRange) -> str:
    """Returns the runner-up and its time."""
    least = row.least_certain
    time = "" if least.runner_up_us is None else f", {time_text(least.runner_up_us)}"
    return f"{least.runner_up or 'no other'}{time}"


def _sizes(row: SizeRange) -> str:
    return span([row.first.size_bytes, row.last.size_bytes], format_size)


def _listed(counts: Iterable[int]) -> str:
    return ", ".join(map(count, counts))


def _interval(row: Decision) -> str:
    low, high = time_text(row.low_us), time_text(row.high_us)
    shared = low.split()[1:] == high.split()[1:]
    return f"{low.split()[0] if shared else low} to {high}"

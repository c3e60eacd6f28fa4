"""What a comparison shows: the fastest algorithms, curves over sizes and ranks, and all results."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from tutti.collectives import comparison as reading
from tutti.collectives.columns import BASELINE
from tutti.platforms.view.facts import platform_facts, ps_per_byte
from tutti.view.page import MOST_SENTENCES, SORTING, Chart, Choice, Section
from tutti.view.palette import styles
from tutti.view.quantity import count, format_size, format_time, span, time_unit
from tutti.view.tables import Column, ReportTable, of_scope, records_of
from tutti.view.view import Data, Fact, View, results

from . import comparison_charts as compared_charts
from . import summary as words
from .gantt import gantt
from .perfetto import write_trace
from .quantities import ENERGIES, MEASURED, PRUNED, REGIONS, Lead, Point, Ranking
from .summary import Reasons
from .timeline import picture

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import polars as pl

    from tutti.collectives.comparison import Comparison
    from tutti.collectives.energy import ScheduleEnergy
    from tutti.collectives.experiment import ExperimentPlan
    from tutti.collectives.pruning import Pruned

    Drawn = Callable[[], tuple[pl.DataFrame, pl.DataFrame | None]]

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
_STEPS = (
    "Steps: the number of times that the critical path waits for other ranks; without a closed "
    "form, the most steps of a rank. Bytes per rank: bytes that a rank sends sequentially."
)
_PRUNED = (
    "Large schedules whose lower bound exceeds the time of the second-fastest algorithm: they "
    "change neither the fastest algorithm nor its lead."
)
_ENERGY = (
    "Energy of routers and links until the last rank ends: of events and of leakage. Bold: the "
    "least at its ranks and size."
)
_FASTEST = "One line per algorithm, with its fastest schedule at each"
_RESULTS = f"All compared schedules. Bold: the fastest at its ranks and size. {SORTING}"
_MEDIANS = " Completion times are medians over the repetitions, with minimum and quartiles."


def comparison_view(
    comparison: pl.DataFrame,
    platform: object,
    *,
    cases: Sequence[Comparison] | None = None,
    plan: ExperimentPlan | None = None,
    run: Drawn | None = None,
    title: str = "",
    remarks: Sequence[str] = (),
    top: int = 0,
    report: bool = True,
    energies: Sequence[ScheduleEnergy] = (),
) -> View:
    """Returns what a comparison shows.

    Args:
        comparison: The frame of `tutti.compare`, a row per measurement.
        platform: The platform, or a mapping with its `name`, `model` and `parameters`.
        cases: Its comparable parts, if the caller has them.
        plan: The measured schedules, from which the reasons follow; None to generate them by name.
        run: Returns the timeline and the messages of the run that the report draws.
        title: The title of the experiment.
        remarks: Sentences below the answer.
        top: The number of regions in the terminal, largest lead first; 0 for all by rank count.
        report: Whether there is a page, and a trace of the drawn run.
        energies: The energy of each schedule, on platforms with energy.

    Raises:
        ReportError: The frame lacks columns or has nothing to show.
    """
    cases = cases or reading.cases(comparison)
    named = styles(name for case in cases for name in case.algorithms)
    colours = {name: style.colour for name, style in named.items()}
    reasons = Reasons(plan.experiment.ps_per_byte if plan else ps_per_byte(platform), plan)
    leads = [words.leads(case, reasons, colours) for case in cases]
    headings = [_heading(case) if len(cases) > 1 else "" for case in cases]
    inputs = _inputs(comparison, cases, plan)
    every = [lead for each in leads for lead in each]
    ranking = _ranking(every, top)
    pruned = plan.pruned if plan else ()
    rest = len(every) - len(ranking.rows)
    names = {fact.key: fact.value for fact in inputs}
    where = f"{names['collective']} on {names['platform']}, model {names['model']}"
    view = View(
        kind="comparison",
        kicker="collective communication",
        title=title,
        remarks=[*remarks, *_unverified(comparison)],
        headline=Fact("", f"{where}: fastest by rank count and size"),
        inputs=inputs,
        tables=[ranking, *_repetitions(ranking), *_energies(energies, top),
                *([_not_simulated(pruned)] if pruned else [])],
        data=_data(comparison, every, energies, pruned),
        below=[f"{rest} more rows with smaller leads; --top 0 shows all"] if rest else [],
        sections=partial(
            _all_sections, cases, headings, leads, platform, run, pruned=pruned, energies=energies
        ),
        provenance=_provenance(comparison),
    )  # fmt: skip
    if not report:
        return view
    summaries = [words.summary(case, reasons, colours) for case in cases]
    return replace(
        view,
        question=words.question(cases),
        answer=words.answer(cases, MOST_SENTENCES),
        findings=list(zip(headings, summaries, strict=True)),
        drawings={"winner.pftrace": lambda path: write_trace(path, *run())} if run else {},
    )


def _data(
    comparison: pl.DataFrame,
    leads: Sequence[Lead],
    energies: Sequence[ScheduleEnergy],
    pruned: Sequence[Pruned],
) -> list[Data]:
    found = [Data("results", lambda: comparison, ["results.parquet", "results.csv"]),
             Data("fastest", lambda: records_of(REGIONS, leads))]  # fmt: skip
    if energies:
        found.append(results(ENERGIES, energies, "energy", [".parquet", ".csv"]))
    if pruned:
        found.append(Data("not_simulated", lambda: records_of(PRUNED, pruned)))
    return found


def _ranking(leads: Sequence[Lead], top: int) -> Ranking:
    """Returns the regions for the terminal: the `top` largest leads, or all by rank count."""
    shown = sorted(leads, key=lambda lead: lead.margins[1] or 0.0, reverse=True) if top else leads
    order = "largest lead first" if top else "by rank count"
    title = f"{order}; figures are for the size with the largest lead"
    return Ranking(REGIONS, shown[: top or None], title=title)


def _repetitions(ranking: Ranking) -> list[ReportTable[Point]]:
    """Returns the spread of the repetitions of winners and runners-up, if there are any."""
    decisions = [lead.region.clearest for lead in ranking.rows]
    pairs = [one for each in decisions for one in (each.winner, each.runner_up) if one is not None]
    most = max((one.repetitions for one in pairs), default=1)
    if most == 1:
        return []
    columns = [column if column.show else replace(column, kind="wrap")
               for column in of_scope(MEASURED, "runs")]  # fmt: skip
    points = [Point(one, one.time_ps) for one in pairs]
    return [ReportTable(columns, points, caption=f"over {most:,} repetitions")]


def _energies(energies: Sequence[ScheduleEnergy], top: int) -> list[ReportTable[ScheduleEnergy]]:
    """Returns the energy of the first `top` schedules, or of all, if there is any."""
    if not energies:
        return []
    shown = energies[: top or None]
    rest = len(energies) - len(shown)
    more = f"; {rest} more rows in energy.csv, or with --top 0" if rest else ""
    caption = f"bold: the least at its ranks and size; energy includes leakage{more}"
    return [ReportTable(ENERGIES, shown, bold=_is_least(energies), heading="energy by schedule",
                        caption=caption)]  # fmt: skip


def _is_least(energies: Sequence[ScheduleEnergy]) -> Callable[[ScheduleEnergy], bool]:
    """Returns whether a schedule takes the least energy at its ranks and size."""
    least: dict[tuple[int, int], float] = {}
    for one in energies:
        key = one.ranks, one.size_bytes
        least[key] = min(one.total.nominal, least.get(key, one.total.nominal))
    return lambda one: one.total.nominal == least[one.ranks, one.size_bytes]


def _not_simulated(pruned: Sequence[Pruned]) -> ReportTable[Pruned]:
    return ReportTable(PRUNED, pruned, caption=f"{_PRUNED} --all simulates them.")


def _all_sections(
    cases: Sequence[Comparison],
    headings: Sequence[str],
    leads: Sequence[Sequence[Lead]],
    platform: object,
    run: Drawn | None,
    *,
    pruned: Sequence[Pruned],
    energies: Sequence[ScheduleEnergy],
) -> list[Section]:
    return [
        *(section
          for number, (case, heading, rows) in enumerate(zip(cases, headings, leads, strict=True))
          for section in _sections(f"case{number}", case, heading, rows)),
        *([Section("Energy", f"{_ENERGY} {SORTING}",
                   table=ReportTable(ENERGIES, energies, bold=_is_least(energies)))]
          if energies else []),
        *([Section("Schedules that are not simulated", _PRUNED, table=_not_simulated(pruned))]
          if pruned else []),
        *(_timeline(*run()) if run else []),
        _assumptions(platform),
    ]  # fmt: skip


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
    measured = comparison.filter(comparison["verified"].is_not_null())
    skipped = measured.filter(verified=False).select(keys).unique()
    if skipped.is_empty():
        return []
    total = measured.select(keys).n_unique()
    return [f"{skipped.height:,} of {total:,} schedules were timed without verification"]


def _sections(
    name: str, case: Comparison, heading: str, leads: Sequence[Lead]
) -> Iterator[Section]:
    yield Section(
        "Fastest algorithm by ranks and size",
        "",
        {f"{name}-map": Chart(compared_charts.decision_map(case), *_MAP_CAPTION, "cells")},
        ReportTable(_regions(leads), leads, look="regions"),
        note=_STEPS,
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
    repeated = any(one.repetitions > 1 for one in case.measured)
    yield Section("Results", _RESULTS + _MEDIANS * repeated, table=_results(case, repeated))


def _regions(leads: Sequence[Lead]) -> list[Column[Lead]]:
    """Returns the columns of regions, with that of the library if the platform has one."""
    columns = of_scope(REGIONS, "runs")
    if any(lead.baseline for lead in leads):
        return columns
    return [column for column in columns if column.scope != "runs"]


def _results(case: Comparison, repeated: bool) -> ReportTable[Point]:
    rows = sorted(
        (*case.measured, *case.baselines),
        key=lambda m: (m.ranks, m.size_bytes, m.time_ps, m.schedule),
    )
    fastest: dict[tuple[int, int], int] = {}
    for one in rows:
        if one.algorithm != BASELINE:
            fastest.setdefault((one.ranks, one.size_bytes), one.time_ps)
    swatches = {name: style.colour for name, style in styles(case.algorithms).items()}
    points = [
        Point(one, fastest[one.ranks, one.size_bytes], swatches.get(one.algorithm, ""))
        for one in rows
    ]
    columns = of_scope(MEASURED, "runs" if repeated else "run")
    return ReportTable(columns, points, bold=lambda point: point.slowdown == 1.0)


def _inputs(
    comparison: pl.DataFrame, cases: Sequence[Comparison], plan: ExperimentPlan | None
) -> list[Fact]:
    """Returns what was compared, with the numbers that the terminal prints before it."""
    model = plan.experiment.model if plan else ""
    # Schedules on several rank counts, and of a library for several sizes, are several.
    named = {(one.schedule, one.ranks) for case in cases for one in case.measured}
    schedules = len(plan.cases) if plan else len(named)
    runs = comparison.filter(comparison["algorithm"] != BASELINE).height
    texts = {
        name: ", ".join(sorted({getattr(case, name) for case in cases}))
        for name in ("platform", "model", "collective", "datatype")
    }
    return [
        *(Fact(name, text, name, model or text if name == "model" else text)
          for name, text in texts.items()),
        Fact("ranks", span([count for case in cases for count in case.ranks])),
        Fact("sizes", span([size for case in cases for size in case.sizes], format_size)),
        Fact("schedules", count(schedules)),
        Fact("runs", count(runs)),
    ]  # fmt: skip


def _timeline(timeline: pl.DataFrame, messages: pl.DataFrame | None) -> list[Section]:
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

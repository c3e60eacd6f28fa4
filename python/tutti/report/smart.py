"""Pages of meshes of several hops per cycle: one run, and latency against load."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from tutti.errors import ReportError
from tutti.noc.smart import UNITS, ideal

from . import smart_words as words
from .charts import Axis, Curve, LoadChart, draw_loads
from .noc import events_section, load_sections
from .page import Page, Section
from .palette import styles
from .quantity import count, estimate, format_share, mean, number, sentence, three
from .tables import Column, ReportTable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tutti.noc import Estimate
    from tutti.noc.smart import Measured, Run, Saturation, Traffic

    Kind = tuple[Traffic, Measured]

CONVENTIONS = (
    "Times are in clock cycles. The latency of a broadcast or multicast is from its creation to "
    "the last of its deliveries, that of a reduction from its beginning until the answers of all "
    "have arrived, of messages created in the measured window; waiting at the source is part of "
    "it. What is accepted is counted by deliveries and answers in the window. ± is the 95 % CI "
    "half-width over independent seeds. A mesh is saturated where less than 97 % of what is "
    "offered is accepted, or where not all ends in time. docs/models/smart.md describes what "
    "happens in a cycle."
)
_KICKER = "meshes of several hops per cycle"

Quantity = Literal["latency", "accepted", "answers", "active"]
_AXES: dict[str, Axis] = {
    "latency": Axis("mean latency", "cycles", zero=True),
    "accepted": Axis("accepted", "messages per cycle", zero=True),
    "answers": Axis("answers for each reduction", zero=True),
    "active": Axis("reductions under way", zero=True),
}


def write_smart_report(path: str | Path, run: Run, title: str = "") -> Path:
    """Writes the report of a run: latencies, what was accepted, tables, events.

    Args:
        path: where to; the folder must exist.
        run: the run.
        title: the question; by default it is made from the mesh.

    Returns:
        The path written.
    """
    sections = []
    if run.ending != "deadlocked":
        lead = "In the windows of all seeds: the events that cost energy."
        sections = [
            Section("Latency and throughput", "A row per kind of traffic.", table=_kinds(run)),
            events_section(lead, _events(run)),
        ]
    answer = [words.describe_mesh(run.mesh) + ".", sentence(words.ending(run))]
    heading = title or f"{run.mesh.design} under {run.traffic[0].kind} traffic"
    return _page(heading, answer, run, sections).write(path)


def write_smart_load_report(
    path: str | Path,
    runs: Sequence[Run],
    found: Saturation | None = None,
    title: str = "",
) -> Path:
    """Writes the report of latency against load.

    Args:
        path: where to; the folder must exist.
        runs: of one mesh and traffic, at one load or more.
        found: the saturation load, if it was searched.
        title: the question; by default it is made from the mesh.

    Returns:
        The path written.
    """
    every = {run.load: run for run in [*(found.runs if found else ()), *runs]}
    ordered = [every[load] for load in sorted(every)]
    first = ordered[0]
    lines = {first.mesh.design: ordered}
    sections = load_sections("mesh", _chart(lines, "latency"), _chart(lines, "accepted"))
    if first.traffic[0].kind == "reduction":
        lead = "Packets that arrived for a reduction; one where all were combined."
        answers = _chart(lines, "answers").figure()
        sections.append(Section("Answers that arrive", lead, {"answers": answers}))
    sections.append(Section("Every run", "A heading sorts.", table=loads_table(ordered)))
    answer = [sentence(text) for text in words.saturation(found)] if found else []
    bound = ideal(first.mesh, first.traffic[0])
    if bound is not None:
        unit = UNITS[first.traffic[0].kind]
        answer.append(f"No mesh of this size can take more than {number(bound.load)} {unit}.")
    heading = title or f"{first.mesh.design}: latency under load"
    return _page(heading, answer, first, sections).write(path)


def _page(title: str, answer: list[str], run: Run, sections: list[Section]) -> Page:
    plan = run.plan
    measured = f"{plan.measure:,} cycles after {plan.warmup:,}, at most {plan.drain:,} to end"
    facts = [
        ("mesh", words.describe_mesh(run.mesh)),
        ("buffers", words.describe_buffers(run.mesh)),
        *(("traffic", words.describe_traffic(one)) for one in run.traffic),
        ("measured", measured),
        ("seeds", f"{plan.seeds}, from {plan.seed}"),
    ]
    return Page(kicker=_KICKER, title=title, answers=[("", answer)], facts=facts,
                sections=sections, conventions=CONVENTIONS)  # fmt: skip


def _kinds(run: Run) -> ReportTable[Kind]:
    def stable(_: Kind) -> bool:
        return run.is_stable

    columns: list[Column[Kind]] = [
        Column("traffic", lambda row: row[0].kind),
        Column("offered", lambda row: row[1].offered, estimate),
        Column("accepted", lambda row: row[1].accepted, estimate),
        Column("of what was offered", lambda row: row[1].share, format_share),
        Column("latency", lambda row: row[1].latency, estimate, when=stable),
        Column("50 %", lambda row: row[1].quantiles["50"], number, when=stable),
        Column("99 %", lambda row: row[1].quantiles["99"], number, when=stable),
        Column("most", lambda row: row[1].latency_extremes[1], count, when=stable),
        Column("of a delivery", lambda row: row[1].part_latency, estimate, when=stable),
        Column("arrivals", lambda row: row[1].arrivals, estimate),
        Column("under way", lambda row: row[1].active, estimate),
    ]
    return ReportTable(columns, list(zip(run.traffic, run.loads, strict=True)))


_EVENTS = {
    "injected": "flits injected",
    "ejected": "flits ejected",
    "buffer_writes": "flits written to buffers",
    "buffer_reads": "flits read from them",
    "bypasses": "passages without a stop",
    "link_hops": "links crossed",
    "input_arbitrations": "arbitrations at inputs",
    "output_arbitrations": "arbitrations at outputs",
    "requests": "requests for paths",
    "request_hops": "links along which they went",
    "response_requests": "requests for paths of answers",
    "response_request_hops": "links along which these went",
    "table_reads": "looks into tables of reductions",
    "merged": "answers dropped or merged",
}


def _events(run: Run) -> list[tuple[str, int]]:
    crossings = enumerate(run.counts["crossings"], start=1)
    return [
        *((name, run.counts[key]) for key, name in _EVENTS.items()),
        *((f"crossbar passages to {n} output{'s' * (n > 1)}", value) for n, value in crossings),
    ]


def loads_table(runs: Sequence[Run]) -> ReportTable[Run]:
    """A row per load, of the first traffic, for a page or for the terminal."""
    reduced = runs[0].traffic[0].kind == "reduction"
    # The load of a reduction is what is offered.
    offered, arrivals = (False, three) if reduced else (three, False)

    def moved(run: Run) -> bool:
        return run.ending != "deadlocked"

    def stable(run: Run) -> bool:
        return run.is_stable

    def first(run: Run) -> Measured:
        return run.loads[0]

    columns: list[Column[Run]] = [
        Column("load", lambda run: run.load, number),
        Column("ending", lambda run: run.ending),
        Column("offered", lambda run: first(run).offered, estimate, when=moved, terminal=offered),
        Column("accepted", lambda run: first(run).accepted, estimate, when=moved, terminal=three),
        Column("latency", lambda run: first(run).latency, estimate, when=stable),
        Column("50 %", lambda run: first(run).quantiles["50"], number, when=stable, terminal=three),
        Column("99 %", lambda run: first(run).quantiles["99"], number, when=stable, terminal=three),
        Column("arrivals", lambda run: first(run).arrivals, mean, when=moved, terminal=arrivals),
        Column("under way", lambda run: first(run).active, mean, when=moved, terminal=three),
        Column("entries", lambda run: run.table_entries, mean, when=moved,
               terminal=arrivals),
        Column("flows buffered", lambda run: run.buffered_flows, mean, when=moved, terminal=False),
    ]  # fmt: skip
    return ReportTable(columns, runs)


def plot_smart(
    path: str | Path,
    lines: Mapping[str, Sequence[Run]],
    shown: Sequence[Quantity] = ("latency", "accepted"),
    *,
    most: Mapping[str, float] | None = None,
) -> Path:
    """Draws quantities against load, side by side.

    Bars are 95 % confidence intervals over seeds. A line of latency ends at the last stable load;
    the lower bound of every mesh is dashed.

    Args:
        path: where to; `.svg`, `.png` or `.pdf`.
        lines: by name, the runs of a mesh at several loads.
        shown: which quantities.
        most: where the vertical axis ends, by quantity.

    Returns:
        The path written.

    Raises:
        ReportError: when there is no run.
    """
    by_name = {name: sorted(runs, key=lambda run: run.load) for name, runs in lines.items()}
    if not any(by_name.values()):
        raise ReportError("there are no runs to draw", kind="frame")
    return draw_loads(path, [_chart(by_name, what, (most or {}).get(what)) for what in shown])


def _chart(
    lines: Mapping[str, Sequence[Run]], what: Quantity, top: float | None = None
) -> LoadChart:
    chosen = styles(lines)
    every = [run for runs in lines.values() for run in runs]
    traffic = every[0].traffic[0]
    bound = ideal(every[0].mesh, traffic) if what == "latency" else None
    reference, limit, most = None, None, max(run.load for run in every)
    if bound is not None:
        ends = [0.0, min(bound.load, most)]
        reference = ("lower bound of every mesh", ends, [bound.latency] * 2)
        limit = bound.load if bound.load <= most else None
    curves = [Curve(name, _points(runs, what), chosen[name]) for name, runs in lines.items()]
    x = Axis("load", UNITS[traffic.kind], zero=True)
    return LoadChart(curves, x, _AXES[what], reference, limit, top, most)


def _points(runs: Sequence[Run], what: Quantity) -> list[tuple[float, Estimate]]:
    moved = [run for run in runs if run.ending != "deadlocked"]
    if what == "latency":
        return [(run.load, run.latency) for run in moved if run.is_stable]
    if what == "accepted":
        return [(run.load, run.loads[0].accepted) for run in moved]
    return [
        (r.load, r.loads[0].arrivals if what == "answers" else r.loads[0].active) for r in moved
    ]

"""Report pages of meshes with multi-hop bypass: one run, and latency against load."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from tutti.networks.flit.view.page import SORTING, events_section, load_sections
from tutti.networks.mesh import UNITS, ideal
from tutti.view.charts import Axis, Curve, LoadChart, draw_loads
from tutti.view.errors import ReportError
from tutti.view.page import MOST_SENTENCES, Page, Section
from tutti.view.palette import styles_with
from tutti.view.quantity import count, estimate, format_share, mean, number, sentence, span, three
from tutti.view.tables import Column, ReportTable

from . import text as words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tutti.networks.flit import Estimate
    from tutti.networks.mesh import Measured, Run, Saturation, Traffic
    from tutti.view.palette import Style

    Kind = tuple[Traffic, Measured]

CONVENTIONS = (
    "Times are in clock cycles. Latency covers messages created in the measurement window and "
    "includes the time in the source queue. A broadcast or multicast ends with its last delivery, "
    "a reduction with the arrival of the last response. Accepted throughput counts deliveries and "
    "responses in the window. ± is the 95 % CI half-width over independent seeds. A mesh is "
    "saturated if accepted throughput is below 97 % of offered load, or if messages are in flight "
    "after the drain phase. docs/models/smart.md describes the model."
)
_UNITS = (
    "Latencies in cycles; measured offered load and accepted throughput in messages per cycle. p99 "
    "is the 99th percentile."
)
_KICKER = "SMART meshes (single-cycle multi-hop)"

Quantity = Literal["latency", "accepted", "answers", "active"]
_AXES: dict[str, Axis] = {
    "latency": Axis("mean latency", "cycles", zero=True),
    "accepted": Axis("accepted throughput", "messages per cycle", zero=True),
    "answers": Axis("responses per reduction", zero=True),
    "active": Axis("reductions in flight", zero=True),
}


def write_smart_report(path: str | Path, run: Run, title: str = "") -> Path:
    """Writes the report of a run: latency, accepted throughput, tables, events.

    Args:
        path: The file to write; its folder must exist.
        run: The run.
        title: The title of the experiment, above the question of the page.

    Returns:
        The path written.
    """
    sections = []
    if run.ending != "deadlocked":
        lead = "Events of the energy model, in the windows of all seeds."
        lead_kinds = f"One row per traffic kind. {_UNITS}"
        sections = [
            Section("Latency and throughput", lead_kinds, table=_kinds(run)),
            events_section(lead, _events(run)),
        ]
    question = (
        f"Is {run.mesh.design} stable under {words.kinds(run)} traffic, and what is its latency?"
    )
    return _page("smart", title, question, words.answer(run), run, sections).write(path)


def write_smart_load_report(
    path: str | Path,
    runs: Sequence[Run],
    found: Saturation | None = None,
    title: str = "",
) -> Path:
    """Writes the report of latency against load.

    Args:
        path: The file to write; its folder must exist.
        runs: Runs of one mesh and traffic, at one or more loads.
        found: The result of the saturation search, if any.
        title: The title of the experiment, above the question of the page.

    Returns:
        The path written.
    """
    every = {run.load: run for run in [*(found.runs if found else ()), *runs]}
    ordered = [every[load] for load in sorted(every)]
    first = ordered[0]
    lines = {first.mesh.design: ordered}
    sections = load_sections("mesh", smart_chart(lines, "latency"), smart_chart(lines, "accepted"))
    if first.traffic[0].kind == "reduction":
        lead = "Response packets that arrive per reduction; 1 if the mesh combines all of them."
        responses = smart_chart(lines, "answers").captioned(
            "a value of 1, where the mesh combines all responses of a reduction."
        )
        sections.append(Section("Responses per reduction", lead, {"answers": responses}))
    lead = f"Offered load in {UNITS[first.traffic[0].kind]}. {_UNITS} {SORTING}"
    sections.append(Section("All runs", lead, table=loads_table(ordered)))
    summary = [sentence(text) for text in words.saturation(found)] if found else []
    bound = ideal(first.mesh, first.traffic[0])
    if bound is not None:
        load = words.rate(bound.load, first.traffic[0].kind)
        summary.append(f"Throughput bound of a mesh of this size: {load}.")
    question = f"At which {first.traffic[0].kind} load does {first.mesh.design} saturate?"
    shown = (summary or [words.load_answer(ordered)])[:MOST_SENTENCES]
    rest = summary[MOST_SENTENCES:]
    return _page("smart_load", title, question, shown, first, sections, rest).write(path)


def _page(  # noqa: PLR0917 - all parts of the page
    kind: str,
    title: str,
    question: str,
    answer: list[str],
    run: Run,
    sections: list[Section],
    notes: Sequence[str] = (),
) -> Page:
    plan = run.plan
    measured = (
        f"{plan.measure:,} cycles after {plan.warmup:,} cycles of warm-up; at most {plan.drain:,} "
        "cycles of drain"
    )
    facts = [
        ("mesh", words.describe_mesh(run.mesh)),
        ("buffers", words.describe_buffers(run.mesh)),
        *(("traffic", words.describe_traffic(one)) for one in run.traffic),
        ("measured", measured),
        ("seeds", span([plan.seed, plan.seed + plan.seeds - 1], str)),
    ]
    return Page(kind=kind, kicker=_KICKER, title=title, question=question, answer=answer,
                notes=notes, facts=facts, sections=sections, conventions=CONVENTIONS)  # fmt: skip


def _kinds(run: Run) -> ReportTable[Kind]:
    def stable(_: Kind) -> bool:
        return run.is_stable

    per, cycles = "messages per cycle", "cycles"
    columns: list[Column[Kind]] = [
        Column("traffic", lambda row: row[0].kind),
        Column("measured offered load", lambda row: row[1].offered, estimate, exported=per),
        Column("accepted throughput", lambda row: row[1].accepted, estimate, exported=per),
        Column("accepted share", lambda row: row[1].share, format_share),
        Column("mean latency", lambda row: row[1].latency, estimate, when=stable, exported=cycles),
        Column("p50 latency", lambda row: row[1].quantiles["50"], number, when=stable,
               exported=cycles),
        Column("p99 latency", lambda row: row[1].quantiles["99"], number, when=stable,
               exported=cycles),
        Column("maximum latency", lambda row: row[1].latency_extremes[1], count, when=stable,
               exported=cycles),
        Column("delivery latency", lambda row: row[1].part_latency, estimate, when=stable,
               exported=cycles),
        Column("arrivals per message", lambda row: row[1].arrivals, estimate),
        Column("messages in flight", lambda row: row[1].active, estimate),
    ]  # fmt: skip
    return ReportTable(columns, list(zip(run.traffic, run.loads, strict=True)))


_EVENTS = {
    "injected": "flits injected",
    "ejected": "flits ejected",
    "buffer_writes": "buffer writes",
    "buffer_reads": "buffer reads",
    "bypasses": "bypasses of a router",
    "link_hops": "link traversals",
    "input_arbitrations": "input arbitrations",
    "output_arbitrations": "output arbitrations",
    "requests": "path requests (SSRs)",
    "request_hops": "link traversals of path requests",
    "response_requests": "path requests of responses",
    "response_request_hops": "link traversals of path requests of responses",
    "table_reads": "reads of reduction tables",
    "merged": "responses combined or dropped",
}


def _events(run: Run) -> list[tuple[str, int]]:
    crossings = enumerate(run.counts["crossings"], start=1)
    return [
        *((name, run.counts[key]) for key, name in _EVENTS.items()),
        *((f"crossbar traversals to {n} output{'s' * (n > 1)}", value) for n, value in crossings),
    ]


def loads_table(runs: Sequence[Run]) -> ReportTable[Run]:
    """Returns a table with a row per load, of the first traffic, for a page or the terminal."""
    reduced = runs[0].traffic[0].kind == "reduction"
    # For reductions, the offered load is the swept load.
    offered, arrivals = (False, three) if reduced else (three, False)

    def moved(run: Run) -> bool:
        return run.ending != "deadlocked"

    def stable(run: Run) -> bool:
        return run.is_stable

    def first(run: Run) -> Measured:
        return run.loads[0]

    columns: list[Column[Run]] = [
        Column("offered load", lambda run: run.load, number, short="load",
               exported=UNITS[runs[0].traffic[0].kind]),
        Column("state", lambda run: run.ending),
        Column("measured offered load", lambda run: first(run).offered, estimate, when=moved,
               short="offered", terminal=offered, exported="messages per cycle"),
        Column("accepted throughput", lambda run: first(run).accepted, estimate, when=moved,
               short="accepted", terminal=three, exported="messages per cycle"),
        Column("mean latency", lambda run: first(run).latency, estimate, when=stable,
               short="latency", exported="cycles"),
        Column("p50 latency", lambda run: first(run).quantiles["50"], number, when=stable,
               short="p50", terminal=three, exported="cycles"),
        Column("p99 latency", lambda run: first(run).quantiles["99"], number, when=stable,
               short="p99", terminal=three, exported="cycles"),
        Column("arrivals per message", lambda run: first(run).arrivals, mean, when=moved,
               short="arrivals", terminal=arrivals),
        Column("messages in flight", lambda run: first(run).active, mean, when=moved,
               short="in flight", terminal=three),
        Column("table entries per router", lambda run: run.table_entries, mean, when=moved,
               short="entries", terminal=arrivals),
        Column("buffered flows", lambda run: run.buffered_flows, mean, when=moved, terminal=False),
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

    Bands are 95 % confidence intervals over seeds. A latency curve ends at the last stable load;
    other curves have hollow markers at saturated loads. The lower bound of any mesh is dashed.

    Args:
        path: The file to write; `.svg`, `.png` or `.pdf`.
        lines: The runs of each mesh at several loads, by mesh name.
        shown: The quantities.
        most: The upper end of the vertical axis, by quantity.

    Returns:
        The path written.

    Raises:
        ReportError: `lines` has no runs.
    """
    return draw_loads(path, [smart_chart(lines, what, (most or {}).get(what)) for what in shown])


def smart_chart(
    lines: Mapping[str, Sequence[Run]],
    what: Quantity,
    top: float | None = None,
    looks: Mapping[str, Style] | None = None,
) -> LoadChart:
    """Returns the chart of a quantity against load.

    Args:
        lines: The runs of each mesh at several loads, by mesh name.
        what: The quantity.
        top: The upper end of the vertical axis.
        looks: The style of each mesh; others get a free one.

    Raises:
        ReportError: `lines` has no runs.
    """
    by_name = {name: sorted(runs, key=lambda run: run.load) for name, runs in lines.items()}
    every = [run for runs in by_name.values() for run in runs]
    if not every:
        raise ReportError("no runs to draw", kind="frame")
    chosen = styles_with(looks or {}, by_name)
    traffic = every[0].traffic[0]
    bound = ideal(every[0].mesh, traffic) if what == "latency" else None
    reference, limit, largest = None, None, max(run.load for run in every)
    if bound is not None:
        ends = [0.0, min(bound.load, largest)]
        reference = ("lower bound", ends, [bound.latency] * 2)
        limit = bound.load if bound.load <= largest else None
    curves = [
        Curve(name, _points(runs, what), chosen[name], saturated=_saturated(runs))
        for name, runs in by_name.items()
    ]
    x = Axis("offered load", UNITS[traffic.kind], zero=True)
    return LoadChart(curves, x, _AXES[what], reference, limit, top, largest)


def _saturated(runs: Sequence[Run]) -> frozenset[float]:
    return frozenset(run.load for run in runs if not run.is_stable)


def _points(runs: Sequence[Run], what: Quantity) -> list[tuple[float, Estimate]]:
    moved = [run for run in runs if run.ending != "deadlocked"]
    if what == "latency":
        return [(run.load, run.latency) for run in moved if run.is_stable]
    if what == "accepted":
        return [(run.load, run.loads[0].accepted) for run in moved]
    return [
        (r.load, r.loads[0].arrivals if what == "answers" else r.loads[0].active) for r in moved
    ]

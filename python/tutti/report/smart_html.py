"""The HTML reports of meshes of several hops per cycle: of one run, and of latency against load."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tutti.noc.smart import UNITS, ideal

from . import smart_figures, smart_words
from .noc_words import estimate, number
from .page import write_page
from .quantity import format_share

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import plotly.graph_objects as go

    from tutti.noc.smart import Run, Saturation

CONVENTIONS = (
    "Times are in clock cycles. The latency of a broadcast or multicast is from its creation to "
    "the last of its deliveries, that of a reduction from its beginning until the answers of all "
    "have arrived, of messages created in the measured window; waiting at the source is part of "
    "it. What is accepted is counted by deliveries and answers in the window. ± is the half width "
    "of the 95 % confidence interval over independent seeds. A mesh is saturated where less than "
    "97 % of what is offered is accepted, or where not all ends in time. docs/models/smart.md says "
    "what happens in a cycle."
)

_KICKER = "meshes of several hops per cycle"


def write_smart_report(path: str | Path, run: Run, title: str = "") -> Path:
    """Writes the report of a run: latencies, what was accepted, tables, events.

    Args:
        path: where to; the folder must exist.
        run: the run.
        title: the question; by default it is made from the mesh.

    Returns:
        The path written.
    """
    answer = [smart_words.describe_mesh(run.mesh) + "."]
    answer.append(_sentence(smart_words.ending(run)))
    sections = []
    if run.ending != "deadlocked":
        sections = [
            {
                "heading": "Latency and throughput",
                "lead": "A row per kind of traffic.",
                "table": _kinds(run),
            },
            {
                "heading": "Events",
                "lead": "In the windows of all seeds: what energy is made of.",
                "table": _events(run),
            },
        ]
    heading = title or f"{run.mesh.design} under {run.traffic[0].kind} traffic"
    return _write(path, title=heading, answer=answer, facts=_facts(run), sections=sections,
                  charts={})  # fmt: skip


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
        found: where it saturates, if that was searched.
        title: the question; by default it is made from the mesh.

    Returns:
        The path written.
    """
    every = {run.load: run for run in [*(found.runs if found else ()), *runs]}
    ordered = [every[load] for load in sorted(every)]
    first = ordered[0]
    lines = {first.mesh.design: ordered}
    charts: dict[str, go.Figure] = {
        "latency": smart_figures.latency_curves(lines),
        "throughput": smart_figures.throughput_curves(lines),
    }
    sections: list[dict[str, Any]] = [
        {
            "heading": "Latency against load",
            "lead": "Bars are 95 % confidence intervals; the curve ends where the mesh is stable "
            "last. Dashed: every message in a cycle, until a link or port is always busy.",
            "chart": "latency",
        },
        {
            "heading": "Throughput against load",
            "lead": "What the mesh accepts of what it is offered.",
            "chart": "throughput",
        },
    ]
    if first.traffic[0].kind == "reduction":
        charts["answers"] = smart_figures.answers_curves(lines)
        sections.append(
            {
                "heading": "Answers that arrive",
                "lead": "Packets that arrived for a reduction; one where all were combined.",
                "chart": "answers",
            }
        )
    sections.append({"heading": "Every run", "lead": "A heading sorts.", "table": _every(ordered)})
    answer = [_sentence(text) for text in smart_words.saturation(found)] if found else []
    bound = ideal(first.mesh, first.traffic[0])
    if bound is not None:
        unit = UNITS[first.traffic[0].kind]
        answer.append(f"No mesh of this size can take more than {number(bound.load)} {unit}.")
    heading = title or f"{first.mesh.design}: latency under load"
    return _write(path, title=heading, answer=answer, facts=_facts(first), sections=sections,
                  charts=charts)  # fmt: skip


def _write(path: str | Path, **shown: Any) -> Path:  # noqa: ANN401 - as write_page has them
    return write_page(path, kicker=_KICKER, conventions=CONVENTIONS, **shown)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."


def _facts(run: Run) -> list[tuple[str, str]]:
    plan = run.plan
    facts = [
        ("mesh", smart_words.describe_mesh(run.mesh)),
        ("buffers", smart_words.describe_buffers(run.mesh)),
    ]
    facts += [("traffic", smart_words.describe_traffic(one)) for one in run.traffic]
    measured = f"{plan.measure:,} cycles after {plan.warmup:,}, at most {plan.drain:,} to end"
    return [*facts, ("measured", measured), ("seeds", f"{plan.seeds}, from {plan.seed}")]


def _kinds(run: Run) -> dict[str, Any]:
    columns = [
        ("traffic", "text"),
        ("offered", "number"),
        ("accepted", "number"),
        ("of what was offered", "number"),
        ("latency", "number"),
        ("50 %", "number"),
        ("99 %", "number"),
        ("most", "number"),
        ("of a delivery", "number"),
        ("arrivals", "number"),
        ("under way", "number"),
    ]
    rows = []
    for traffic, one in zip(run.traffic, run.loads, strict=True):
        times = [
            (one.latency.mean, estimate(one.latency)),
            (one.quantiles["50"], number(one.quantiles["50"])),
            (one.quantiles["99"], number(one.quantiles["99"])),
            (one.latency_extremes[1], f"{one.latency_extremes[1]:,}"),
            (one.part_latency.mean, estimate(one.part_latency)),
        ]
        rows.append(
            [
                (traffic.kind, traffic.kind),
                (one.offered.mean, estimate(one.offered)),
                (one.accepted.mean, estimate(one.accepted)),
                (one.share, format_share(one.share)),
                *(times if run.is_stable else [(0, "-") for _ in times]),
                (one.arrivals.mean, estimate(one.arrivals)),
                (one.active.mean, estimate(one.active)),
            ]
        )
    return {"columns": columns, "rows": rows}


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
    "answer_requests": "requests for paths of answers",
    "answer_request_hops": "links along which these went",
    "table_reads": "looks into tables of reductions",
    "merged": "answers dropped or merged",
}


def _events(run: Run) -> dict[str, Any]:
    counts = {name: run.counts[key] for key, name in _EVENTS.items()}
    outputs = enumerate(run.counts["crossings"], start=1)
    counts |= {f"crossbar passages to {n} output{'s' * (n > 1)}": value for n, value in outputs}
    rows = [[(name, name), (value, f"{value:,}")] for name, value in counts.items()]
    return {"columns": [("event", "text"), ("count", "number")], "rows": rows}


def _every(runs: Sequence[Run]) -> dict[str, Any]:
    columns = [
        ("load", "number"),
        ("ending", "text"),
        ("offered", "number"),
        ("accepted", "number"),
        ("latency", "number"),
        ("50 %", "number"),
        ("99 %", "number"),
        ("arrivals", "number"),
        ("under way", "number"),
        ("table entries", "number"),
        ("flows buffered", "number"),
    ]
    rows = []
    for run in runs:
        one = run.loads[0]
        if run.ending == "deadlocked":
            blank = [(0, "-") for _ in columns[2:]]
            rows.append([(run.load, number(run.load)), (run.ending, run.ending), *blank])
            continue
        times = [
            (one.latency.mean, estimate(one.latency)),
            (one.quantiles["50"], number(one.quantiles["50"])),
            (one.quantiles["99"], number(one.quantiles["99"])),
        ]
        rows.append(
            [
                (run.load, number(run.load)),
                (run.ending, run.ending),
                (one.offered.mean, estimate(one.offered)),
                (one.accepted.mean, estimate(one.accepted)),
                *(times if run.is_stable else [(0, "-") for _ in times]),
                (one.arrivals.mean, number(one.arrivals.mean)),
                (one.active.mean, number(one.active.mean)),
                (run.table_entries.mean, number(run.table_entries.mean)),
                (run.buffered_flows.mean, number(run.buffered_flows.mean)),
            ]
        )
    return {"columns": columns, "rows": rows}

"""What a run of a mesh shows."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tutti.networks.view import events_section
from tutti.view.page import Section
from tutti.view.quantity import plural, sentence, span
from tutti.view.tables import ReportTable, of_scope
from tutti.view.view import Fact, View, facts_of, results

from .quantities import (
    Part,
    latency,
    of_case,
    of_run,
    of_traffic,
    parts,
    quantities,
    share,
    state,
)
from .text import describe_buffers, describe_mesh, describe_traffic

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.networks.mesh import MeshRun

KICKER = "SMART meshes (single-cycle multi-hop)"
UNITS = (
    "Latencies in cycles; measured offered load and accepted throughput in messages per cycle. p99 "
    "is the 99th percentile."
)
CONVENTIONS = (
    "Times are in clock cycles. Latency covers messages created in the measurement window and "
    "includes the time in the source queue. A broadcast or multicast ends with its last delivery, "
    "a reduction with the arrival of the last response. Accepted throughput counts deliveries and "
    "responses in the window. ± is the 95 % CI half-width over independent seeds. A mesh is "
    "saturated if accepted throughput is below 97 % of offered load, by more than chance explains, "
    "or if messages are in flight after the drain phase. docs/models/smart.md describes the model."
)
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


def run_view(run: MeshRun, *, title: str = "", remarks: Sequence[str] = ()) -> View:
    """Returns what a run shows: latency, accepted throughput, tables, events.

    Args:
        run: The run.
        title: The title of the experiment.
        remarks: Sentences below the answer.
    """
    kinds = " and ".join(dict.fromkeys(traffic.kind for traffic in run.traffic))
    return View(
        kind="smart",
        kicker=KICKER,
        title=title,
        question=f"Is {run.mesh.design} stable under {kinds} traffic, and what is its latency?",
        answer=_answer(run),
        remarks=remarks,
        headline=Fact("mesh", describe_mesh(run.mesh)),
        inputs=inputs(run),
        facts=_facts(run),
        data=[results(quantities(run.traffic[0].kind), parts(run))],
        sections=partial(_sections, run),
        conventions=CONVENTIONS,
    )


def inputs(run: MeshRun) -> list[Fact]:
    """Returns buffers, traffic and phases of a run."""
    plan = run.plan
    measured = (
        f"{plural(plan.measure, 'cycle')} after {plural(plan.warmup, 'cycle')} of warm-up; at "
        f"most {plural(plan.drain, 'cycle')} of drain"
    )
    return [
        Fact("buffers", describe_buffers(run.mesh)),
        *(Fact("traffic", describe_traffic(traffic)) for traffic in run.traffic),
        Fact("measured", measured),
        Fact("seeds", span([plan.seed, plan.seed + plan.seeds - 1], str)),
    ]


def _facts(run: MeshRun) -> list[Fact]:
    first, kind = parts(run)[0], run.traffic[0].kind
    facts = facts_of(of_case(kind), first)
    for part in parts(run):
        name = f"{part.traffic.kind} " if len(run.traffic) > 1 else ""
        facts += [
            Fact(f"{name}{fact.name}", fact.text) for fact in facts_of(of_traffic(kind), part)
        ]
    facts += facts_of(of_run(kind), first)
    return facts if run.ending == "deadlocked" else [*facts, Fact("events", _main_events(run))]


def _main_events(run: MeshRun) -> str:
    """Returns the counts of the main events, on one line."""
    counts = run.counts
    events = (
        ("buffer writes", counts["buffer_writes"]),
        ("buffer reads", counts["buffer_reads"]),
        ("crossbar traversals", sum(counts["crossings"])),
        ("bypasses", counts["bypasses"]),
        ("link traversals", counts["link_hops"]),
        ("path requests (SSRs)", counts["requests"] + counts["response_requests"]),
        ("responses combined or dropped", counts["merged"]),
    )
    return ", ".join(f"{value:,} {name}" for name, value in events)


def _answer(run: MeshRun) -> list[str]:
    """Returns state, latency and throughput of a run in sentences."""
    lines = [sentence(state(run))]
    if run.ending == "deadlocked":
        return lines

    def name(part: Part) -> str:
        return f"{part.traffic.kind} " if len(run.traffic) > 1 else ""

    if run.is_stable:
        latencies = [f"{name(part)}{latency(part.measured)}" for part in parts(run)]
        lines.append(f"Mean latency: {'; '.join(latencies)}.")
    if run.ending == "empty":
        return lines
    shares = [f"{name(part)}{share(part.measured)}" for part in parts(run)]
    return [*lines, f"Accepted share of the offered load: {', '.join(shares)}."]


def _sections(run: MeshRun) -> list[Section]:
    if run.ending == "deadlocked":
        return []
    columns = of_scope(quantities(run.traffic[0].kind), "run")
    crossings = enumerate(run.counts["crossings"], start=1)
    events = [
        *((name, run.counts[key]) for key, name in _EVENTS.items()),
        *((f"crossbar traversals to {n} output{'s' * (n > 1)}", value) for n, value in crossings),
    ]
    return [
        Section("Latency and throughput", f"One row per traffic kind. {UNITS}",
                table=ReportTable(columns, parts(run))),
        events_section("Events of the energy model, in the windows of all seeds.", events),
    ]  # fmt: skip

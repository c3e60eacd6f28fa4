"""A mesh of several hops per cycle and a run of it, in words."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tutti.noc.smart import UNITS

from .quantity import counted, estimate, format_share, number, plural

if TYPE_CHECKING:
    from tutti.noc.smart import Measured, Run, Saturation, SmartMesh, Traffic

_DEADLOCKED = "deadlocked: packets were under way, and none moved; nothing was measured"
_SATURATED = (
    "saturated: less than 97 % of what was offered was accepted, or not all ended in time, and "
    "latencies would say how long the run was"
)


def describe_mesh(mesh: SmartMesh) -> str:
    """A mesh in a line."""
    found = mesh.settings
    size = f"{found['columns']} x {found['rows']}"
    if mesh.design.startswith("fully_connected"):
        return f"{mesh.design}, {size}"
    parts = [
        f"{plural(found['hpc_max'], 'hop')} per cycle",
        f"{found['priority']} first",
        f"multicasts {found['fan_out']}",
        f"answers {found['fan_in']}",
    ]
    return f"{mesh.design}, {size}: {', '.join(parts)}"


def describe_buffers(mesh: SmartMesh) -> str:
    """What VCs a mesh has."""
    found = mesh.settings
    each = "shared out to the stages of a broadcast" if found["split_vcs"] else "of each class"
    if found["fan_out"] not in {"unicasts", "greedy:svt"} and not found["split_vcs"]:
        each = "of each class and stage of a broadcast"
    return (
        f"{plural(found['vcs'], 'VC')} {each}, of {plural(found['depth'], 'flit')}; a credit takes "
        f"{plural(found['credit_delay'], 'cycle')}"
    )


def describe_traffic(traffic: Traffic) -> str:
    """Traffic in a line."""
    rate = f"{number(traffic.rate)} {UNITS[traffic.kind]}"
    more = {
        "unicast": f"{traffic.pattern}, {counted(str(traffic.packet), 'flit')}",
        "broadcast": f"from {traffic.sources}",
        "multicast": f"from {traffic.sources}, to {traffic.members.replace('_', ' ')}",
        "reduction": "to a node drawn at random",
    }[traffic.kind]
    return f"{traffic.kind}, {more}, {rate}, {traffic.process}, class {traffic.message_class}"


def ending(run: Run) -> str:
    """How a run ended."""
    return {"stable": "stable", "saturated": _SATURATED, "deadlocked": _DEADLOCKED}[run.ending]


def latency(one: Measured) -> str:
    """A latency with its quantiles."""
    shown = ", ".join(f"{number(value)} ({name} %)" for name, value in one.quantiles.items())
    mean = counted(estimate(one.latency), "cycle")
    return f"{mean}; no more than {shown}, {one.latency_extremes[1]:,} (all)"


def facts(run: Run) -> list[tuple[str, str]]:
    """Everything that one wants to know at a glance."""
    plan = run.plan
    window = plural(plan.measure, "cycle")
    found = [("buffers", describe_buffers(run.mesh))]
    found += [
        ("traffic" if not place else "", describe_traffic(one))
        for place, one in enumerate(run.traffic)
    ]
    found += [
        ("measured", f"{window} after {plan.warmup:,}, with {plural(plan.seeds, 'seed')}"),
        ("ending", ending(run)),
    ]
    if run.ending == "deadlocked":
        return found
    for traffic, one in zip(run.traffic, run.loads, strict=True):
        name = traffic.kind if len(run.traffic) > 1 else ""
        found += [(" ".join((name, what)).strip(), text) for what, text in _of_traffic(run, one)]
        if traffic.kind == "reduction":
            found.append(("answers for each", estimate(one.arrivals)))
    if any(one.kind == "reduction" for one in run.traffic):
        found += [
            ("table entries", f"{estimate(run.table_entries)} in use per router"),
            ("flows buffered", f"{estimate(run.buffered_flows)} with an answer in a router"),
        ]
        if not math.isnan(run.stay.mean):
            found.append(("stay at a stop", counted(estimate(run.stay), "cycle")))
    return [*found, ("events", events(run))]


def _of_traffic(run: Run, one: Measured) -> list[tuple[str, str]]:
    accepted = counted(estimate(one.accepted), "message")
    rows = []
    if run.is_stable:
        rows.append(("latency", latency(one)))
    rows += [
        (
            "accepted",
            f"{accepted} per cycle, {format_share(one.share)} of what was offered",
        ),
        ("under way", counted(estimate(one.active), "message")),
    ]
    return rows


def events(run: Run) -> str:
    """What happened, in the order in which energy adds it up."""
    counts = run.counts
    return ", ".join(
        f"{value:,} {name}"
        for name, value in (
            ("buffer writes", counts["buffer_writes"]),
            ("buffer reads", counts["buffer_reads"]),
            ("crossbar passages", sum(counts["crossings"])),
            ("bypasses among them", counts["bypasses"]),
            ("link hops", counts["link_hops"]),
            ("requests for paths", counts["requests"] + counts["response_requests"]),
            ("answers merged or dropped", counts["merged"]),
        )
    )


def saturation(found: Saturation) -> list[str]:
    """Where a mesh saturates, in sentences."""
    unit = UNITS[found.runs[0].traffic[0].kind]
    zero = number(found.zero_load.mean)
    top = number(found.most)

    def upto(load: float) -> str:
        if load >= found.most:
            return f"does not saturate up to {top}"
        return f"saturates at {number(load)}" if load > 0 else "is saturated at every load tried"

    lines = [
        f"by throughput it {upto(found.by_throughput)} {unit} (97 % of what is offered accepted)",
        (
            f"by latency it {upto(found.by_latency)} {unit} (three times the {zero} cycles at next "
            "to no load)"
        ),
    ]
    if found.deadlocks is not None:
        lines.append(f"it deadlocks at {number(found.deadlocks)}")
    return lines

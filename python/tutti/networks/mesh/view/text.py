"""Text for reports and terminal tables of meshes with multi-hop bypass."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tutti.networks.mesh import UNITS
from tutti.view.quantity import counted, estimate, format_share, number, plural, sentence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.networks.mesh import Measured, Run, Saturation, SmartMesh, Traffic
    from tutti.networks.mesh.traffic import Kind

_DEADLOCKED = "deadlocked: packets were in flight and none moved; nothing was measured"
_SATURATED = (
    "saturated: accepted throughput below 97 % of offered load, or messages in flight after the "
    "drain phase; latency is undefined"
)


def describe_mesh(mesh: SmartMesh) -> str:
    """Returns the design, size and policies of a mesh on one line."""
    found = mesh.settings
    size = f"{found['columns']} x {found['rows']}"
    if mesh.design.startswith("fully_connected"):
        return f"{mesh.design}, {size}"
    parts = [
        f"{plural(found['hpc_max'], 'hop')} per cycle",
        f"{found['priority']} flits first",
        f"multicasts {found['fan_out']}",
        f"responses {found['fan_in']}",
    ]
    return f"{mesh.design}, {size}: {', '.join(parts)}"


def rate(load: float, kind: Kind) -> str:
    """Returns a load with its unit: `1 reduction per cycle`, `0.5 reductions per cycle`."""
    noun, per = UNITS[kind].split(" ", 1)
    return f"{counted(number(load), noun.removesuffix('s'))} {per}"


def describe_buffers(mesh: SmartMesh) -> str:
    """Returns the number and depth of VCs and the credit delay."""
    found = mesh.settings
    each = "split among broadcast stages" if found["split_vcs"] else "per class"
    if found["fan_out"] not in {"unicasts", "greedy:svt"} and not found["split_vcs"]:
        each = "per class and broadcast stage"
    return (
        f"{plural(found['vcs'], 'VC')} {each}, {plural(found['depth'], 'flit')} deep; credit delay "
        f"{plural(found['credit_delay'], 'cycle')}"
    )


def describe_traffic(traffic: Traffic) -> str:
    """Returns the traffic of a class on one line."""
    more = {
        "unicast": f"{traffic.pattern}, {_packet(traffic.packet)}",
        "broadcast": f"from {traffic.sources}",
        "multicast": f"from {traffic.sources}, to {traffic.members.replace('_', ' ')}",
        "reduction": "to a random node",
    }[traffic.kind]
    load = rate(traffic.rate, traffic.kind)
    return f"{traffic.kind}, {more}, {load}, {traffic.process}, class {traffic.message_class}"


def _packet(flits: int | str) -> str:
    """Returns the packet size, or the sizes from which each packet draws one."""
    *most, last = str(flits).split(",")
    return counted(f"{', '.join(most)} or {last}" if most else last, "flit")


def ending(run: Run) -> str:
    """Returns the state in which a run ended."""
    return {"stable": "stable", "saturated": _SATURATED, "deadlocked": _DEADLOCKED}[run.ending]


def latency(one: Measured) -> str:
    """Returns the mean latency with percentiles and maximum."""
    shown = ", ".join(f"p{name} {number(value)}" for name, value in one.quantiles.items())
    mean = counted(estimate(one.latency), "cycle")
    return f"{mean}; {shown}, maximum {one.latency_extremes[1]:,}"


def facts(run: Run) -> list[tuple[str, str]]:
    """Returns name and value of each fact that summarises a run."""
    plan = run.plan
    window = plural(plan.measure, "cycle")
    found = [("buffers", describe_buffers(run.mesh))]
    found += [
        ("traffic" if not place else "", describe_traffic(one))
        for place, one in enumerate(run.traffic)
    ]
    found += [
        ("measured", f"{window} after {plan.warmup:,}, {plural(plan.seeds, 'seed')}"),
        ("state", ending(run)),
    ]
    if run.ending == "deadlocked":
        return found
    for traffic, one in zip(run.traffic, run.loads, strict=True):
        name = traffic.kind if len(run.traffic) > 1 else ""
        found += [(" ".join((name, what)).strip(), text) for what, text in _of_traffic(run, one)]
        if traffic.kind == "reduction":
            found.append(("responses", f"{estimate(one.arrivals)} arrive per reduction"))
    if any(one.kind == "reduction" for one in run.traffic):
        found += [
            ("table entries", f"{estimate(run.table_entries)} in use per router"),
            ("buffered flows", f"{estimate(run.buffered_flows)} with a response in a router"),
        ]
        if not math.isnan(run.stay.mean):
            found.append(("time per stop", counted(estimate(run.stay), "cycle")))
    return [*found, ("events", events(run))]


def _of_traffic(run: Run, one: Measured) -> list[tuple[str, str]]:
    accepted = counted(estimate(one.accepted), "message")
    rows = []
    if run.is_stable:
        rows.append(("latency", latency(one)))
    rows += [
        (
            "accepted",
            f"{accepted} per cycle, {format_share(one.share)} of the offered load",
        ),
        ("in flight", counted(estimate(one.active), "message")),
    ]
    return rows


def events(run: Run) -> str:
    """Returns the counts of events that the energy model uses, on one line."""
    counts = run.counts
    return ", ".join(
        f"{value:,} {name}"
        for name, value in (
            ("buffer writes", counts["buffer_writes"]),
            ("buffer reads", counts["buffer_reads"]),
            ("crossbar traversals", sum(counts["crossings"])),
            ("bypasses", counts["bypasses"]),
            ("link traversals", counts["link_hops"]),
            ("path requests (SSRs)", counts["requests"] + counts["response_requests"]),
            ("responses combined or dropped", counts["merged"]),
        )
    )


def kinds(run: Run) -> str:
    """Returns the kinds of traffic of a run."""
    return " and ".join(dict.fromkeys(traffic.kind for traffic in run.traffic))


def answer(run: Run) -> list[str]:
    """Returns state, latency and throughput of a run in sentences."""
    lines = [sentence(ending(run))]
    if run.ending == "deadlocked":
        return lines
    several = len(run.traffic) > 1
    of = [
        (f"{traffic.kind} " if several else "", one)
        for traffic, one in zip(run.traffic, run.loads, strict=True)
    ]
    if run.is_stable:
        latencies = [f"{name}{latency(one)}" for name, one in of]
        lines.append(f"Mean latency: {'; '.join(latencies)}.")
    shares = [f"{name}{format_share(one.share)}" for name, one in of]
    return [*lines, f"Accepted share of the offered load: {', '.join(shares)}."]


def load_answer(runs: Sequence[Run]) -> str:
    """Returns the range of loads that contains the saturation load, without a search for it."""
    kind = runs[0].traffic[0].kind
    stable = [run.load for run in runs if run.is_stable]
    unstable = [run.load for run in runs if not run.is_stable]
    lower = f"stable up to {rate(stable[-1], kind)}" if stable else "stable at no simulated load"
    if not unstable:
        return f"{lower[:1].upper()}{lower[1:]}, the highest simulated load."
    return sentence(f"{lower}; the first unstable load is {rate(unstable[0], kind)}")


def saturation(found: Saturation) -> list[str]:
    """Returns the saturation load by throughput and by latency, and the deadlock load if any."""
    kind = found.runs[0].traffic[0].kind
    zero = number(found.zero_load.mean)

    def upto(load: float) -> str:
        if load >= found.most:
            return f"above {rate(found.most, kind)}"
        return rate(load, kind) if load > 0 else "below every simulated load"

    lines = [
        (
            f"saturation load by throughput: {upto(found.by_throughput)} (accepted throughput "
            "below 97 % of offered load)"
        ),
        (
            f"saturation load by latency: {upto(found.by_latency)} (above three times the "
            f"zero-load latency of {zero} cycles)"
        ),
    ]
    if found.deadlocks is not None:
        lines.append(f"deadlocked at {rate(found.deadlocks, kind)}")
    return lines

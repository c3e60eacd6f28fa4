"""What flit-level runs at several loads show: latency against load, and saturation."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tutti.networks.flit.capacity import capacity
from tutti.networks.flit.network import every
from tutti.networks.flit.settings import Trace
from tutti.networks.view import curves_svg, load_sections, share_column, sorted_by_load
from tutti.view.charts import Axis, Curve, LoadChart, draw_loads
from tutti.view.page import SORTING, Section
from tutti.view.palette import styles
from tutti.view.quantity import estimate, number, sentence
from tutti.view.tables import ReportTable, of_scope
from tutti.view.view import Fact, View, json_facts, results

from .quantities import (
    CAPTION,
    QUANTITIES,
    RATE,
    Part,
    capacity_text,
    cycles,
    rate_text,
    requested,
    with_class,
)
from .run import CONVENTIONS, KICKER, UNITS, deadlock, phases
from .settings import settings_of
from .text import describe_network, describe_traffic

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tutti.networks.flit import Capacity, NocRun, Saturation
    from tutti.view.tables import Column

_ACCEPTED = "accepted throughput"
_FARTHEST = 1.5
"""The largest ratio of a marked capacity to the loads."""


def load_view(
    runs: Sequence[NocRun],
    saturation: Saturation | None = None,
    *,
    title: str = "",
    remarks: Sequence[str] = (),
) -> View:
    """Returns what runs at several loads show.

    Args:
        runs: Runs of one network and traffic, at one or more loads.
        saturation: The result of the saturation search, whose runs files and page show, too.
        title: The title of the experiment.
        remarks: Sentences below the answer.
    """
    by_load = {run.load: run for run in [*(saturation.runs if saturation else ()), *runs]}
    ordered = [by_load[load] for load in sorted(by_load, key=lambda load: load or 0.0)]
    network = ordered[0].network
    ideal = capacity(network, ordered[0].traffic)
    columns = [*QUANTITIES, *share_column(ideal.load if ideal else None, requested)]
    name = f"{network.topology.name}, {network.routing_name}"
    saturations = {name: saturation} if saturation else {}
    return View(
        kind="network_load",
        kicker=KICKER,
        title=title,
        question=f"At which load does {network.topology.name} saturate?",
        answer=_answer(ordered, saturation, ideal),
        remarks=remarks,
        headline=Fact("network", describe_network(network)),
        inputs=[
            *(Fact("traffic at the lowest load", line)
              for line in describe_traffic(ordered[0].traffic)),
            Fact("measured", phases(ordered[0])),
        ],
        facts=[
            *_facts(ordered, saturation, ideal),
            *json_facts(settings=partial(settings_of, ordered[0])),
        ],
        tables=[_table(columns, runs)],
        data=[results(with_class(columns, _parts(runs)), _parts(ordered),
                      suffixes=[".parquet", ".csv"])],
        drawings={"latency.svg": lambda path: draw_loads(path, [
            _chart({name: ordered}, {name: quantity}, saturations, ideal)
            for quantity in ("latency", "accepted")
        ])},
        inline=lambda: curves_svg({network.routing_name: sorted_by_load(ordered)},
                                  f"offered load, {RATE}"),
        sections=partial(_sections, ordered, saturation, ideal),
        conventions=CONVENTIONS,
    )  # fmt: skip


def _parts(runs: Sequence[NocRun]) -> list[Part]:
    return [part for run in runs for part in Part.every(run)]


def _table(columns: Sequence[Column[Part]], runs: Sequence[NocRun]) -> ReportTable[Part]:
    parts = _parts(runs)
    unmeasured = "; -: not measured" if any(run.ending == "deadlocked" for run in runs) else ""
    caption = f"{CAPTION}{unmeasured}{_classes(runs)}"
    return ReportTable(of_scope(with_class(columns, parts), "runs"), parts, caption=caption)


def _classes(runs: Sequence[NocRun]) -> str:
    """Returns how a load is divided among several classes, for a caption."""
    traffic = runs[0].traffic if runs else ()
    if isinstance(traffic, Trace):
        return ""
    replies = "; a load is that of requests, accepted of all includes replies"
    replies = replies if any(load.reply for load in every(traffic)) else ""
    if len(every(traffic)) < 2:
        return replies
    total = sum(load.rate for load in every(traffic))
    shares = (f"class {at} {load.rate / total:.3g}" for at, load in enumerate(every(traffic)))
    return f"{replies}; a load is the sum of all classes, of which {', '.join(shares)}"


def _facts(
    runs: Sequence[NocRun], saturation: Saturation | None, ideal: Capacity | None
) -> list[Fact]:
    facts = []
    if ideal:
        load = saturation.load if saturation else None
        facts.append(Fact("ideal capacity", capacity_text(ideal, load), "capacity", ideal))
    if saturation:
        value = {
            "load": saturation.load,
            "unstable_load": saturation.below,
            "too_short": saturation.too_short or None,
            "accepted": saturation.accepted,
            "deadlocks": saturation.deadlocks,
            "capacity_share": saturation.load / ideal.load if ideal else None,
        }
        facts.append(Fact("saturation", _saturation(saturation), "saturation", value))
    deadlocked = [run for run in runs if run.ending == "deadlocked"]
    if deadlocked:
        first = deadlocked[0]
        facts.append(Fact("deadlock", f"at {number(first.load)} {deadlock(first)}"))
    return facts


def _saturation(saturation: Saturation) -> str:
    """Returns the highest stable load and the lowest unstable load."""
    state = "deadlocked" if saturation.deadlocks else "saturated"
    above = f"{state} at {number(saturation.below)}"
    if saturation.too_short:
        above = f"at {number(saturation.below)}, the {saturation.too_short}"
    if saturation.accepted is None:
        return f"stable at no simulated load; {above}"
    stable = (
        f"stable up to {rate_text(number(saturation.load))}, accepted throughput "
        f"{estimate(saturation.accepted)}"
    )
    return stable if saturation.below is None else f"{stable}; {above}"


def _answer(
    runs: Sequence[NocRun], saturation: Saturation | None, ideal: Capacity | None
) -> list[str]:
    """Returns the saturation load, or the range that contains it, and the lowest latency."""
    stable = [run for run in runs if run.is_stable]
    unstable = [run.load for run in runs if not run.is_stable]
    if saturation:
        lines = [sentence(_saturation(saturation))]
    else:
        last = f"Stable up to {rate_text(number(stable[-1].load))}" if stable else ""
        end = ", the highest simulated load."
        if unstable:
            end = f"; the first unstable load is {number(unstable[0])}."
        lines = [f"{last or 'Stable at no simulated load'}{end}"]
    if ideal:
        lines.append(sentence(f"ideal capacity: {capacity_text(ideal)}"))
    if stable:
        latency = cycles(stable[0].latency, stable[0].network.cycle_ps)
        lines.append(f"Mean latency at {rate_text(number(stable[0].load))}: {latency}.")
    return lines


def _sections(
    runs: Sequence[NocRun], saturation: Saturation | None, ideal: Capacity | None
) -> list[Section]:
    saturations = {"latency": saturation, _ACCEPTED: saturation} if saturation else {}
    quantities = {"latency": "latency", "network latency": "network_latency"}
    latency = _chart(dict.fromkeys(quantities, runs), quantities, saturations, ideal)
    throughput = _chart({_ACCEPTED: runs}, {_ACCEPTED: "accepted"}, saturations, ideal)
    parts = [part for run in runs for part in Part.every(run)]
    columns = with_class(
        [*QUANTITIES, *share_column(ideal.load if ideal else None, requested)], parts
    )
    table = ReportTable(of_scope(columns, "runs"), parts)
    every = Section("All runs", f"{UNITS} {SORTING}", table=table)
    return [*load_sections("network", latency, throughput), every]


def _chart(
    lines: Mapping[str, Sequence[NocRun]],
    quantities: Mapping[str, str],
    saturations: Mapping[str, Saturation],
    ideal: Capacity | None,
) -> LoadChart:
    """Returns quantities against load, one curve per line; latencies at stable loads only.

    A dashed line marks the ideal capacity if it is not far beyond the loads.
    """
    chosen = styles(lines)
    most = max((run.load or 0.0 for runs in lines.values() for run in runs), default=1.0)
    accepted = "accepted" in quantities.values()
    unit = RATE if accepted else "cycles"
    curves = []
    for name, runs in lines.items():
        shown = [run for run in runs if accepted or run.is_stable]
        points = [(run.load or 0.0, getattr(run, quantities[name])) for run in shown]
        saturation = saturations.get(name)
        end = saturation.load if saturation and saturation.below is not None else None
        curves.append(Curve(name, points, chosen[name], unit, end, f"stable up to {number(end)}"))
    y = Axis(_ACCEPTED if accepted else "mean latency", unit, zero=True)
    reference = ("offered load", [0.0, most], [0.0, most]) if accepted else None
    x = Axis("offered load", RATE, zero=True)
    limit = ideal.load if ideal and ideal.load <= _FARTHEST * most else None
    return LoadChart(curves, x, y, reference, limit, most=max(most, limit or 0.0))

"""What runs of a mesh at several loads show: latency against load, and saturation."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Literal

from tutti.networks.mesh import UNITS as RATES
from tutti.networks.mesh import ideal
from tutti.networks.view import curves_svg, load_sections, share_column, sorted_by_load
from tutti.view.charts import Axis, Curve, LoadChart, draw_loads
from tutti.view.errors import ReportError
from tutti.view.page import MOST_SENTENCES, SORTING, Section
from tutti.view.palette import styles_with
from tutti.view.quantity import counted, format_share, number, sentence
from tutti.view.tables import ReportTable, of_scope
from tutti.view.view import Fact, View, results

from .quantities import parts, quantities
from .run import CONVENTIONS, KICKER, UNITS, inputs
from .text import describe_mesh, rate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tutti.networks.flit import Estimate
    from tutti.networks.mesh import MeshRun, Saturation
    from tutti.networks.mesh.traffic import Ideal
    from tutti.view.palette import Style
    from tutti.view.tables import Column

    from .quantities import Part

Quantity = Literal["latency", "accepted", "answers", "active"]
_AXES: dict[str, Axis] = {
    "latency": Axis("mean latency", "cycles", zero=True),
    "accepted": Axis("accepted throughput", "messages per cycle", zero=True),
    "answers": Axis("responses per reduction", zero=True),
    "active": Axis("reductions in flight", zero=True),
}
_SEARCHED = ("zero_load", "by_latency", "by_throughput", "accepted", "peak", "most", "deadlocks",
             "too_short")  # fmt: skip
"""The attributes of a saturation search in `--json`; its runs are in the table of results."""


_CAPTION = (
    "offered, accepted: messages per cycle of the mesh; latency: cycles to the last delivery; in "
    "flight: messages; ±: 95 % CI half-width"
)


def _sentences(facts: Sequence[Fact]) -> list[str]:
    return [sentence(f"{fact.name}: {fact.text}") for fact in facts]


def load_view(
    runs: Sequence[MeshRun],
    saturation: Saturation | None = None,
    *,
    title: str = "",
    remarks: Sequence[str] = (),
) -> View:
    """Returns what runs at several loads show.

    Args:
        runs: Runs of one mesh and traffic, at one or more loads.
        saturation: The result of the saturation search, whose runs files and page show, too.
        title: The title of the experiment.
        remarks: Sentences below the answer.
    """
    by_load = {run.load: run for run in [*(saturation.runs if saturation else ()), *runs]}
    ordered = [by_load[load] for load in sorted(by_load)]
    mesh, kind = ordered[0].mesh, ordered[0].traffic[0].kind
    bound = ideal(mesh, ordered[0].traffic[0])
    shares = share_column(bound.load if bound else None)
    columns = [*quantities(kind), *shares]
    saturated = _saturation(saturation) if saturation else []
    capacity = _capacity(ordered[0], bound, saturation)
    summary = [*(_sentences(saturated) or [_range(ordered)]), *_sentences(capacity)]
    return View(
        kind="smart_load",
        kicker=KICKER,
        title=title,
        question=f"At which {kind} load does {mesh.design} saturate?",
        answer=summary[:MOST_SENTENCES],
        remarks=[*(text.removesuffix(".") for text in summary[MOST_SENTENCES:]), *remarks],
        headline=Fact("mesh", describe_mesh(mesh)),
        inputs=inputs(ordered[0]),
        facts=[*capacity, *saturated],
        tables=[ReportTable(of_scope(columns, "runs"), [parts(run)[0] for run in runs],
                            caption=f"load: {RATES[kind]}; {_CAPTION}")],
        data=[results(columns, [part for run in ordered for part in parts(run)],
                      suffixes=[".parquet", ".csv"])],
        drawings={"latency.svg": lambda path: draw_loads(path, [
            smart_chart({mesh.design: ordered}, "latency"),
            smart_chart({mesh.design: ordered}, "accepted"),
        ])},
        inline=lambda: curves_svg({mesh.design: sorted_by_load(ordered)},
                                  f"offered load, {RATES[kind]}"),
        sections=partial(_sections, ordered, shares),
        conventions=CONVENTIONS,
    )  # fmt: skip


def _range(runs: Sequence[MeshRun]) -> str:
    """Returns the range of loads that contains the saturation load, without a search for it."""
    kind = runs[0].traffic[0].kind
    stable = [run.load for run in runs if run.is_stable]
    unstable = [run.load for run in runs if not run.is_stable]
    lower = f"stable up to {rate(stable[-1], kind)}" if stable else "stable at no simulated load"
    if not unstable:
        return sentence(f"{lower}, the highest simulated load")
    return sentence(f"{lower}; the first unstable load is {rate(unstable[0], kind)}")


def _saturation(saturation: Saturation) -> list[Fact]:
    """Returns the saturation load by throughput and by latency, and the deadlock load if any."""
    kind = saturation.runs[0].traffic[0].kind

    def upto(load: float) -> str:
        if load >= saturation.most:
            return f"above {rate(saturation.most, kind)}"
        return rate(load, kind) if load > 0 else "below every simulated load"

    throughput = "(accepted throughput below 97 % of offered load)"
    if saturation.too_short:
        throughput += f"; above it, the {saturation.too_short}"
    latency = (
        "(above three times the zero-load latency of "
        f"{counted(number(saturation.zero_load.mean), 'cycle')})"
    )
    value = {name: getattr(saturation, name) for name in _SEARCHED}
    facts = [
        Fact("saturation load by throughput", f"{upto(saturation.by_throughput)} {throughput}",
             "saturation", value),
        Fact("saturation load by latency", f"{upto(saturation.by_latency)} {latency}"),
    ]  # fmt: skip
    if saturation.deadlocks is not None:
        facts.append(Fact("deadlock load", rate(saturation.deadlocks, kind)))
    return facts


def _capacity(run: MeshRun, bound: Ideal | None, saturation: Saturation | None) -> list[Fact]:
    """Returns the ideal capacity, and the share of it that the saturation load is."""
    if bound is None:
        return []
    traffic = run.traffic[0]
    alone = " by this traffic alone" if len(run.traffic) > 1 else ""
    text = f"{rate(bound.load, traffic.kind)}, bounded by the busiest link or port{alone}"
    if saturation and 0 < saturation.by_throughput < saturation.most:
        share = format_share(saturation.by_throughput / bound.load)
        text += f"; {number(saturation.by_throughput)} is {share} of it"
    return [Fact("ideal capacity", text, "capacity", bound)]


def _sections(runs: Sequence[MeshRun], shares: Sequence[Column[Part]]) -> list[Section]:
    lines, kind = {runs[0].mesh.design: runs}, runs[0].traffic[0].kind
    sections = load_sections("mesh", smart_chart(lines, "latency"), smart_chart(lines, "accepted"))
    if kind == "reduction":
        lead = "Response packets that arrive per reduction; 1 if the mesh combines all of them."
        responses = smart_chart(lines, "answers").captioned(
            "a value of 1, where the mesh combines all responses of a reduction."
        )
        sections.append(Section("Responses per reduction", lead, {"answers": responses}))
    lead = f"Offered load in {RATES[kind]}. {UNITS} {SORTING}"
    columns = [*quantities(kind), *shares]
    table = ReportTable(of_scope(columns, "runs"), [parts(run)[0] for run in runs])
    return [*sections, Section("All runs", lead, table=table)]


def smart_chart(
    lines: Mapping[str, Sequence[MeshRun]],
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
    x = Axis("offered load", RATES[traffic.kind], zero=True)
    return LoadChart(curves, x, _AXES[what], reference, limit, top, largest)


def _saturated(runs: Sequence[MeshRun]) -> frozenset[float]:
    return frozenset(run.load for run in runs if not run.is_stable)


def _points(runs: Sequence[MeshRun], what: Quantity) -> list[tuple[float, Estimate]]:
    moved = [run for run in runs if run.ending != "deadlocked"]
    if what == "latency":
        return [(run.load, run.latency) for run in moved if run.is_stable]
    if what == "accepted":
        return [(run.load, run.loads[0].accepted) for run in moved]
    return [
        (r.load, r.loads[0].arrivals if what == "answers" else r.loads[0].active) for r in moved
    ]

"""What a sweep of networks shows: designs, their Pareto front, and designs without a result."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from operator import attrgetter, itemgetter
from textwrap import shorten
from typing import TYPE_CHECKING, Any, NamedTuple

from tutti.sweeps.design_front import (
    OBJECTIVES,
    SWEPT,
    Row,
    every_objective,
    objectives,
    unit_of,
    without,
)
from tutti.sweeps.pareto import dominators
from tutti.view.charts import TEXT, Axis, chart, line, marks
from tutti.view.page import SORTING, Section, captioned
from tutti.view.palette import BLUE, GREY
from tutti.view.quantity import count, flag, format_rate, format_share, format_time, number, plural
from tutti.view.tables import Column, ReportTable
from tutti.view.view import Data, Fact, View, json_facts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import polars as pl

    from tutti.sweeps.files import Sweep
    from tutti.view.charts import Figure

_MOST_ROWS = 20
"""Rows of each table in the terminal."""
_MOST_NAMED = 12
"""Designs that a row of the terminal names."""
_LONGEST_REASON = 160
"""Characters of a reason in the terminal."""
_RATE = "flits per node and cycle"
_UNITS = ("cycle", "flit")
"""Keys that change what a cycle or a flit is."""


def _has(key: str) -> Callable[[Row], bool]:
    return lambda row: row.get(key) is not None


def _column(name: str, key: str, show: Callable[[Any], str], **more: Any) -> Column[Row]:  # noqa: ANN401 - options of a column
    return Column(name, itemgetter(key), show, key=key, when=_has(key), **more)


def _text(name: str, key: str, **more: Any) -> Column[Row]:  # noqa: ANN401 - options of a column
    return Column(name, itemgetter(key), key=key, when=_has(key), **more)


def _three(value: float) -> str:
    return number(value, 3)


NUMBER = _column("design", "design", count, short="#")
_COLUMNS: tuple[Column[Row], ...] = (
    NUMBER,
    _text("topology", "topology", scope="file"),
    _text("routing", "routing", scope="file"),
    _text("design of the mesh", "mesh_design", scope="file"),
    _column("nodes", "nodes", count, scope="file"),
    _text("state", "state", scope="file"),
    _column("on the Pareto front", "on_front", flag, scope="file"),
    _column("dominated by design", "dominated_by", count, scope="file"),
    _column("saturation load", "saturation", _three, exported=_RATE, short="sat.\nload"),
    _column("share of the ideal capacity", "capacity_share", format_share, terminal=False),
    _column("zero-load latency", "zero_load_latency", _three, exported="cycles",
            short="zero\nload"),
    _column("95 % CI half-width of the zero-load latency", "zero_load_latency_half_width", number,
            exported="cycles", scope="file"),
    _column("offered load", "load", number, exported=_RATE, scope="file"),
    _text("unit of loads", "load_unit", scope="file"),
    _column("mean latency", "latency", _three, exported="cycles", short="at\nload"),
    _column("95 % CI half-width of the mean latency", "latency_half_width", number,
            exported="cycles", scope="file"),
    _column("p99 latency", "latency_99", count, exported="cycles", scope="file"),
    _column("accepted throughput", "accepted", number, exported=_RATE, scope="file"),
    _column("area", "area_mm2", _three, exported="mm2", short="area\nmm2"),
    _column("lower bound of the area", "area_low_mm2", number, exported="mm2", scope="file"),
    _column("upper bound of the area", "area_high_mm2", number, exported="mm2", scope="file"),
    _column("energy per bit", "energy_pj_per_bit", _three, exported="pJ", short="pJ/\nbit"),
    _column("lower bound of the energy per bit", "energy_low_pj_per_bit", number, exported="pJ",
            scope="file"),
    _column("upper bound of the energy per bit", "energy_high_pj_per_bit", number, exported="pJ",
            scope="file"),
    _column("mean power", "power_w", number, exported="W", scope="file"),
    _column("lowest unstable load", "unstable_load", number, exported=_RATE, scope="file"),
    _text("above the saturation load", "too_short", scope="file"),
    _column("tolerance of the saturation load", "tolerance", number, exported=_RATE, scope="file"),
    _column("ideal capacity", "capacity", number, exported=_RATE, scope="file"),
    _text("bottleneck of the ideal capacity", "bottleneck", scope="file"),
    _column("routers on the route", "hops", number, scope="file"),
    _column("simulated loads", "runs", count, scope="file"),
    _column("clock period", "cycle_ps", format_time, scope="file"),
    _column("flit size", "flit_bytes", count, scope="file", exported="B"),
    _column("saturation rate of a node", "saturation_bytes_per_s", format_rate, scope="file",
            short="sat.\nrate"),
    _column("zero-load time", "zero_load_ps", format_time, scope="file", short="zero\nload"),
    _column("mean latency in time", "latency_ps", format_time, scope="file",
            short="at\nload"),
    _text("reason", "reason", scope="file"),
)  # fmt: skip
"""The quantities of a design. A design without a result has `state` and `reason`."""
_OF_MESHES = frozenset({"mesh_design", "load_unit"})
_OF_ROUTERS = frozenset({
    "bottleneck", "hops", "area_mm2", "area_low_mm2", "area_high_mm2", "cycle_ps", "flit_bytes",
    "saturation_bytes_per_s", "zero_load_ps", "latency_ps",
})  # fmt: skip
"""Quantities that only designs of one kind have."""


def design_columns(unit: str | None = None) -> tuple[Column[Row], ...]:
    """Returns the quantities of designs.

    Args:
        unit: The unit of the loads of meshes (SMART); None for networks of routers.
    """
    if unit is None:
        return tuple(column for column in _COLUMNS if column.key not in _OF_MESHES)
    return tuple(
        replace(column, exported=unit) if column.exported == _RATE else column
        for column in _COLUMNS
        if column.key not in _OF_ROUTERS
    )


def _mark(row: Row) -> str:
    """Returns a star for a design of the front, else the number of a design that dominates it."""
    return "*" if row["on_front"] else f"< {row['dominated_by']}"


_FRONT: Column[Row] = Column("front", _mark, short="front")
_IN_TIME = {
    "saturation": "saturation_bytes_per_s",
    "zero_load_latency": "zero_load_ps",
    "latency": "latency_ps",
}
"""The quantities that replace those in cycles and flits if designs differ in them."""


def _rate(row: Row) -> float:
    """Returns the saturation load: as a rate, if designs have a clock."""
    rate: float | None = row.get("saturation_bytes_per_s")
    return row["saturation"] if rate is None else rate


def design_view(
    frame: pl.DataFrame, sweep: Sweep, *, has_table: bool = True, report: bool = True
) -> View:
    """Returns what a sweep of networks shows.

    Args:
        frame: The results: see `tutti.sweeps.sweep`.
        sweep: The sweep.
        has_table: Whether the terminal shows tables.
        report: Whether there is a page.
    """
    rows = frame.to_dicts()
    compared = sorted(
        (row for row in rows if row["on_front"] is not None),
        key=lambda row: (not row["on_front"], -_rate(row), row["design"]),
    )
    others = [row for row in rows if row["on_front"] is None]
    swept = swept_columns_of(sweep.keys, rows)
    columns = [NUMBER, *swept, _FRONT, *_shown(sweep.keys, rows)]
    tables: list[ReportTable[Any]] = [_table(columns, compared[:_MOST_ROWS], rows, sweep)]
    if others:
        tables.append(ReportTable(_GROUPED, _groups(others)[:_MOST_ROWS], gap=2))
    return View(
        kind="network_designs",
        kicker="design space of networks on chip",
        title=sweep.title,
        question=f"Which of {plural(len(rows), 'design')} are on the Pareto front?"
        if report and compared
        else "",
        answer=_answer(compared, others),
        headline=Fact("designs", _swept_text(sweep)),
        facts=_facts(compared, others, rows),
        tables=tables if has_table and rows else [],
        data=[Data("results", lambda: frame, ["results.parquet", "results.csv"])],
        below=_more(compared) if has_table else [],
        sections=partial(_sections, compared, others, columns, swept),
        conventions=CONVENTIONS if unit_of(rows) is None else f"{CONVENTIONS} {_SMART}",
    )


CONVENTIONS = (
    "A design dominates another one if it is at least as good in every objective, and better in "
    "one. The Pareto front has the designs that no other one dominates, among designs under equal "
    "traffic. Objectives are the saturation load, the zero-load latency and, with a table "
    "[energy], area and energy per bit that arrives at the offered load, with leakage; they are "
    "compared with three digits. Loads are in flits per node and cycle, latencies in cycles. Zero "
    "load is 0.1 % of the ideal capacity. A saturation load is the largest stable load found: at "
    "most its tolerance above it, the network is saturated. Designs that can deadlock are not "
    "simulated."
)


_SMART = (
    "Meshes with single-cycle multi-hop links (SMART): loads are rates of the first traffic. Zero "
    "load is 2 % of the largest load. Energies are those of flits of 128 bits, links of 1 mm and "
    "a clock of 1 GHz, for a bit of each destination or response; leakage of reduction tables is "
    "not counted. Areas are not modelled: request arbitration and reduction tables have none."
)


def _table(
    columns: Sequence[Column[Row]], shown: Sequence[Row], rows: Sequence[Row], sweep: Sweep
) -> ReportTable[Row]:
    """Returns the table of compared designs for the terminal."""
    loads = sorted({row["load"] for row in rows if row["load"] is not None})
    at = f"load {number(loads[0])}" if len(loads) == 1 else "the load of each row"
    tolerance = "2 % of the ideal capacity"
    if sweep.template.tolerance is not None:
        tolerance = number(sweep.template.tolerance)
    in_time = any(column.key in _IN_TIME.values() for column in columns)
    rate = "bytes a node accepts per second" if in_time else unit_of(rows) or _RATE
    caption = (
        f"front: *, or a design at least as good in everything; sat. load: {rate}, within "
        f"{tolerance}; zero load, at load: mean latency{'' if in_time else ' in cycles'}, at zero "
        f"load and at {at}"
    )
    if any(row.get("energy_pj_per_bit") is not None for row in rows):
        caption += f"; pJ/bit: energy per bit that arrives, at {at}"
    return ReportTable(columns, shown, bold=itemgetter("on_front"), caption=caption)


def _others(swept: Sequence[Column[Row]], rows: Sequence[Row]) -> ReportTable[Row]:
    """Returns the table of designs that are not compared for the page."""
    why = Column[Row]("reason", _reason, kind="wrap")
    state = Column[Row]("not compared", itemgetter("state"), kind="nowrap")
    return ReportTable([NUMBER, *swept, state, why], rows)


class _Group(NamedTuple):
    """Designs that are not compared for the same reason."""

    designs: str
    state: str
    reason: str


_GROUPED: tuple[Column[_Group], ...] = (
    Column("designs", attrgetter("designs"), kind="wrap"),
    Column("not compared", attrgetter("state"), kind="nowrap"),
    Column("reason", attrgetter("reason"), kind="wrap"),
)


def _groups(rows: Sequence[Row]) -> list[_Group]:
    """Returns the designs that are not compared for the terminal, by their reason."""
    groups: dict[tuple[str, str], list[int]] = {}
    for row in rows:
        groups.setdefault((row["state"], _reason(row)), []).append(row["design"])
    found = []
    for (state, reason), designs in groups.items():
        rest = len(designs) - _MOST_NAMED
        listed = ", ".join(map(str, designs[:_MOST_NAMED]))
        names = f"{listed} and {rest} more" if rest > 0 else listed
        found.append(_Group(names, state, shorten(reason, _LONGEST_REASON, placeholder=" ...")))
    return found


def _reason(row: Row) -> str:
    if row["reason"] is not None:
        return str(row["reason"])
    load = number(row["load"])
    reasons = {
        "saturated": f"saturates at the load {load}; stable up to {number(row.get('saturation'))}",
        "deadlocked": f"deadlocks at the load {load}",
        "empty": "no packet was created in the measurement window",
    }
    return reasons.get(row["state"], "is not stable at zero load")


def swept_columns_of(keys: Sequence[str], rows: Sequence[Row]) -> list[Column[Row]]:
    """Returns the columns of swept keys in tables, without keys of one value."""
    from tutti.sweeps.view import short_key, text_of

    varying = [key for key in keys if len({repr(row[f"{SWEPT}{key}"]) for row in rows}) > 1]
    return [Column(short_key(key, varying), text_of(key), kind="wrap") for key in varying]


def _shown(keys: Sequence[str], rows: Sequence[Row]) -> list[Column[Row]]:
    """Returns the quantities of tables: times and rates if designs differ in cycle or flit."""
    columns = design_columns(unit_of(rows))
    by_key = {column.key: column for column in columns}
    names = [column.key for column in columns if column.scope != "file" and column is not NUMBER]
    if set(_UNITS) & set(keys):
        names = [_IN_TIME.get(name, name) for name in names]
    return [by_key[name] for name in names if any(row.get(name) is not None for row in rows)]


def _facts(compared: Sequence[Row], others: Sequence[Row], rows: Sequence[Row]) -> list[Fact]:
    front = [row["design"] for row in compared if row["on_front"]]
    facts = json_facts(pareto_front=front, objectives=[key for key, *_ in objectives(compared)])
    if compared:
        names = _listed([name for *_, name in objectives(compared)])
        facts.append(
            Fact("Pareto front", f"{len(front)} of {plural(len(rows), 'design')}, by {names}")
        )
    for key, _, name in every_objective(compared):
        if (missing := without(key, compared)) and len(missing) < len(compared):
            first = missing[0]["design"]
            text = f"no objective: {plural(len(missing), 'design')} without, the first: {first}"
            facts.append(Fact(name, text))
    undecided = [row for row in rows if row.get("too_short")]
    if undecided:
        text = f"{plural(len(undecided), 'design')}, the first: {undecided[0]['too_short']}"
        facts.append(Fact("saturation undecided", text))
    if others:
        states: dict[str, int] = {}
        for row in others:
            states[row["state"]] = states.get(row["state"], 0) + 1
        text = ", ".join(f"{number} {state}" for state, number in states.items())
        facts.append(Fact("not compared", text))
    return facts


def _answer(compared: Sequence[Row], others: Sequence[Row]) -> list[str]:
    """Returns the size of the front, and its extremes."""
    front = [row for row in compared if row["on_front"]]
    if not front:
        return ["No design carries the load."]
    names = _listed([name for *_, name in objectives(compared)])
    total = len(compared) + len(others)
    lines = [f"{len(front)} of {total} designs are on the Pareto front of {names}."]
    best = [
        f"{name}: design {min(front, key=lambda row: sign * row[key])['design']}"
        for key, sign, name in objectives(compared)
    ]
    return [*lines, f"Best {_listed(best)}."]


def _listed(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _swept_text(sweep: Sweep) -> str:
    return f"{plural(len(sweep.points), 'design')}: {', '.join(sweep.keys)}"


def _more(compared: Sequence[Row]) -> list[str]:
    rest = len(compared) - _MOST_ROWS
    return [f"{plural(rest, 'more design')} in results.csv"] if rest > 0 else []


_PAIRS = (
    ("area_mm2", "saturation_bytes_per_s"),
    ("energy_pj_per_bit", "saturation_bytes_per_s"),
    ("zero_load_ps", "saturation_bytes_per_s"),
    ("area_mm2", "zero_load_ps"),
    ("energy_pj_per_bit", "saturation"),
    ("zero_load_latency", "saturation"),
    ("energy_pj_per_bit", "zero_load_latency"),
)
"""The objectives of each chart: horizontal and vertical."""
_AXES = {
    "saturation_bytes_per_s": ("saturation rate of a node", "GB/s", 1e9),
    "zero_load_ps": ("zero-load latency", "ns", 1e3),
    "saturation": ("saturation load", "the unit of the rate", 1.0),
    "zero_load_latency": ("zero-load latency", "cycles", 1.0),
    "area_mm2": ("area", "mm2", 1.0),
    "energy_pj_per_bit": ("energy per bit", "pJ", 1.0),
}


def _sections(
    compared: Sequence[Row],
    others: Sequence[Row],
    columns: Sequence[Column[Row]],
    swept: Sequence[Column[Row]],
) -> list[Section]:
    known = {key for key, *_ in objectives(compared)}
    charts = {
        f"{x}-{y}": captioned(
            _scatter(compared, x, y, swept),
            f"Horizontal: {_AXES[x][0]} in {_AXES[x][1]}. Vertical: {_AXES[y][0]} in "
            f"{_AXES[y][1]}. Line: Pareto front of these two.",
            "designs on the line, and blue designs off it, which another objective justifies.",
            "designs",
        )
        for x, y in _PAIRS
        if {x, y} <= known
    }
    lead = f"Blue: designs on the Pareto front of all objectives. Grey: dominated. {SORTING}"
    sections = [
        Section("Pareto front", lead, charts,
                ReportTable(columns, compared, bold=itemgetter("on_front")), source="results.csv")
    ]  # fmt: skip
    if others:
        lead = "These designs have no result to compare."
        sections.append(Section("Not compared", lead, table=_others(swept, others),
                                source="results.csv"))  # fmt: skip
    return sections


def _scatter(rows: Sequence[Row], x: str, y: str, swept: Sequence[Column[Row]]) -> Figure:
    """Returns designs by two objectives, with the Pareto front of these two as a line."""
    signs = {key: sign for *keys, sign, _ in OBJECTIVES for key in keys}
    points = [(signs[x] * row[x], signs[y] * row[y]) for row in rows]
    places = [at for at, one in enumerate(dominators(points)) if one is None]
    best = sorted((rows[at] for at in places), key=itemgetter(x))
    traces = [line(_scaled(best, x), _scaled(best, y), BLUE, name="front of these two")]
    for name, colour, is_front in (("on the front", BLUE, True), ("dominated", GREY, False)):
        group = [row for row in rows if row["on_front"] == is_front]
        marker = {"size": 9, "color": colour}
        traces.append(
            marks(_scaled(group, x), _scaled(group, y), marker, name=name, hovertemplate=TEXT,
                  customdata=[_tip(row, swept) for row in group])
        )  # fmt: skip
    horizontal, vertical = (Axis(*_AXES[key][:2]) for key in (x, y))
    return chart(traces, horizontal, vertical, 380)


def _scaled(rows: Sequence[Row], key: str) -> list[float]:
    """Returns values in the unit of the axis."""
    return [row[key] / _AXES[key][2] for row in rows]


def _tip(row: Row, swept: Sequence[Column[Row]]) -> str:
    values = (f"{column.name} {column.text(row)}" for column in swept)
    return f"design {row['design']}: {', '.join(values)}"

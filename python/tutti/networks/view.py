"""Latency against load of networks on chip: drawings of notebooks, and sections of pages."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Protocol

from tutti.view import svg
from tutti.view.page import Section
from tutti.view.palette import styles_in_order
from tutti.view.quantity import count, counted, estimate, format_share, three
from tutti.view.tables import Column, ReportTable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from xml.etree import ElementTree as ET

    from tutti.networks.loads import Loaded
    from tutti.view.charts import LoadChart

_LEFT, _TOP, _WIDTH, _HEIGHT = 60, 24, 560, 260
_CEILING = 4
"""Curves end at this multiple of their lowest latency, or that of a slower network."""


class Runs(Protocol):
    """Runs at several loads, such as a `Saturation`."""

    @property
    def runs(self) -> Sequence[Loaded]:
        """The runs."""


@dataclass(frozen=True)
class LoadCurves:
    """Latency against load of several networks; a notebook draws one curve for each.

    Attributes:
        curves: The runs by name.
    """

    curves: Mapping[str, Sequence[Loaded]]

    def __repr__(self) -> str:
        return "\n".join(f"{name}: {_summary(runs)}" for name, runs in self.curves.items())

    def _repr_html_(self) -> str:
        return f"<div>{curves_svg(self.curves, 'offered load')}</div>"


def load_curves(curves: Mapping[str, Runs | Sequence[Loaded]]) -> LoadCurves:
    """Returns latency against load of several networks, to show in a notebook.

    Args:
        curves: By name, the result of `saturation` or `sweep` of `tutti.networks.flit` or
            `tutti.networks.mesh`.
    """
    return LoadCurves(
        {
            name: sorted_by_load(several if isinstance(several, Sequence) else several.runs)
            for name, several in curves.items()
        }
    )


def sorted_by_load(runs: Sequence[Loaded]) -> list[Loaded]:
    """Returns the runs with a known load, by ascending load."""
    return sorted((run for run in runs if run.load is not None), key=_load)


def _load(run: Loaded) -> float:
    return run.load or 0.0


def _summary(runs: Sequence[Loaded]) -> str:
    stable = [run for run in runs if run.is_stable]
    if not stable:
        return "no stable load"
    low, high = stable[0], stable[-1]
    return (
        f"latency {counted(three(low.latency), 'cycle')} at load {_load(low):.3g}, "
        f"{three(high.latency)} at {_load(high):.3g}, the largest stable load"
    )


def curves_svg(curves: Mapping[str, Sequence[Loaded]], label: str) -> str:
    """Returns latency in cycles against load; hollow markers at the top are loads not accepted."""
    every = [run for runs in curves.values() for run in runs]
    stable = [[run.latency.mean for run in runs if run.is_stable] for runs in curves.values()]
    highest = max((max(means) for means in stable if means), default=1.0)
    lowest = max((min(means) for means in stable if means), default=1.0)
    axes = _Axes(
        _ticks(max((_load(run) for run in every), default=0.0)),
        _ticks(min(highest, _CEILING * lowest)),
    )
    root = svg.drawing(
        _LEFT + _WIDTH + 16,
        _TOP + _HEIGHT + 44 + 20 * (len(curves) > 1),
        f"Latency against {label}",
    )
    axes.draw(root, label)
    if not all(run.is_stable for run in every):
        svg.text(root, (_LEFT + _WIDTH, 12), "hollow: load not accepted", "end")
    # An inner drawing ends at its edges, as do the curves then.
    inside = svg.shape(root, "svg", x=_LEFT, y=_TOP, width=_WIDTH, height=_HEIGHT)
    styles = styles_in_order(curves)
    for name, runs in curves.items():
        _curve(inside, [run for run in runs if run.is_stable], styles[name].colour, axes)
        for run in runs:
            if not run.is_stable:
                tip = f"{name}, load {_load(run):.4g}: not accepted"
                svg.shape(root, "circle", tip, cx=_LEFT + axes.x(_load(run)), cy=_TOP, r=4,
                          fill="none", stroke=styles[name].colour, stroke_width="1.5",
                          pointer_events="all")  # fmt: skip
    if len(curves) > 1:
        entries = [(name, style.colour) for name, style in styles.items()]
        svg.legend(root, entries, (_LEFT, _TOP + _HEIGHT + 46))
    return svg.written(root)


def _ticks(most: float) -> list[float]:
    """Returns round numbers from zero to at least `most`."""
    rough = (most or 1.0) / 5
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(digit * power for digit in (1, 2, 5, 10) if digit * power >= rough)
    return [round(step * index, 12) for index in range(math.ceil(most / step - 1e-9) + 1)] or [0, 1]


@dataclass(frozen=True)
class _Axes:
    """The ticks of load and latency; the last ones are the ends of the axes."""

    loads: list[float]
    latencies: list[float]

    def x(self, load: float) -> float:
        """Returns the horizontal position of a load, from the left end."""
        return _WIDTH * load / self.loads[-1]

    def y(self, latency: float) -> float:
        """Returns the vertical position of a latency, from the top."""
        return _HEIGHT * (1 - latency / self.latencies[-1])

    def draw(self, root: ET.Element, label: str) -> None:
        """Draws the ticks and labels."""
        svg.text(root, (4, 12), "latency, cycles")
        for latency in self.latencies:
            y = _TOP + self.y(latency)
            svg.shape(root, "line", x1=_LEFT, y1=y, x2=_LEFT + _WIDTH, y2=y,
                      stroke="currentColor", stroke_opacity="0.2")  # fmt: skip
            svg.text(root, (_LEFT - 8, y + 4), f"{latency:g}", "end")
        for load in self.loads:
            at = (_LEFT + self.x(load), _TOP + _HEIGHT + 16)
            svg.text(root, at, f"{load:g}", "middle")
        svg.text(root, (_LEFT + _WIDTH / 2, _TOP + _HEIGHT + 34), label, "middle")


def _curve(inside: ET.Element, runs: Sequence[Loaded], colour: str, axes: _Axes) -> None:
    points = [(axes.x(_load(run)), axes.y(run.latency.mean)) for run in runs]
    svg.shape(inside, "polyline", points=" ".join(f"{x:.1f},{y:.1f}" for x, y in points),
              fill="none", stroke=colour, stroke_width="2")  # fmt: skip
    for run, (x, y) in zip(runs, points, strict=True):
        tip = f"load {_load(run):.4g}: {counted(estimate(run.latency), 'cycle')}"
        svg.shape(inside, "circle", tip, cx=x, cy=y, r=3.5, fill=colour)


def share_column(
    capacity: float | None, load: Callable[[Any], float | None] = attrgetter("load")
) -> list[Column[Any]]:
    """Returns the column of the offered load of a row's run as a share of the ideal capacity.

    Args:
        capacity: The ideal capacity, in the unit of the load; None if it is unknown.
        load: Returns the offered load of a run.
    """
    if capacity is None:
        return []
    return [Column("share of the ideal capacity", lambda part: (load(part.run) or 0) / capacity,
                   format_share, key="capacity_share", short="ideal")]  # fmt: skip


def load_sections(what: str, latency: LoadChart, throughput: LoadChart) -> list[Section]:
    """Returns the sections on latency and throughput against load.

    Args:
        what: The simulated object, such as `network`.
        latency: Latency against load.
        throughput: Accepted throughput against load.
    """
    lead = (
        "Error bars are 95 % confidence intervals. The curve ends at the last stable load of the "
        f"{what}."
    )
    if latency.reference:
        lead += " Dashed: the latency lower bound, up to the load that saturates a link or port."
    return [
        Section("Latency against offered load", lead, {"latency": latency.captioned(
            "the load at which latency rises steeply, and the latency at low load."
        )}),
        Section("Throughput against offered load", f"Accepted throughput of the {what}.",
                {"throughput": throughput.captioned(
                    "the load at which the curve leaves the diagonal: the network saturates.", 380
                )}),
    ]  # fmt: skip


def events_section(lead: str, events: Sequence[tuple[str, float]]) -> Section:
    """Returns a section with a table of events."""
    columns: list[Column[tuple[str, float]]] = [
        Column("event", lambda row: row[0]),
        Column("count", lambda row: round(row[1]), count),
    ]
    return Section("Events", lead, table=ReportTable(columns, events))

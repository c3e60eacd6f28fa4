"""Meshes of several hops per cycle against load, for papers: SVG, PNG or PDF."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tutti.errors import ReportError
from tutti.noc.smart import UNITS, ideal

from .palette import styles
from .plot import figure_at

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tutti.noc import Estimate
    from tutti.noc.smart import Run

Quantity = Literal["latency", "accepted", "answers", "active"]

_TITLES = {
    "latency": "mean latency (cycles)",
    "accepted": "accepted (messages per cycle)",
    "answers": "answers for each reduction",
    "active": "reductions under way",
}


def plot_smart(
    path: str | Path,
    lines: Mapping[str, Sequence[Run]],
    shown: Sequence[Quantity] = ("latency", "accepted"),
    *,
    most: Mapping[str, float] | None = None,
) -> Path:
    """Draws quantities against load, side by side.

    Bars are 95 % confidence intervals over seeds. A line of latency ends where a mesh is stable
    last; what no mesh can better is dashed.

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
    every = [run for runs in by_name.values() for run in runs]
    if not every:
        raise ReportError("there are no runs to draw", kind="frame")
    chosen = styles(by_name)
    with figure_at(path, (4.2 * len(shown), 3.8)) as figure:
        several = figure.subplots(1, len(shown), squeeze=False)[0]
        for axes, what in zip(several, shown, strict=True):
            for name, runs in by_name.items():
                points = _points(runs, what)
                axes.errorbar(
                    [load for load, _ in points],
                    [one.mean for _, one in points],
                    [0.0 if math.isnan(one.half_width) else one.half_width for _, one in points],
                    label=name,
                    color=chosen[name].colour,
                    marker=chosen[name].marker_matplotlib,
                    markersize=4,
                    linewidth=1.4,
                    capsize=2,
                )
            bound = ideal(every[0].mesh, every[0].traffic[0])
            top = max(run.load for run in every)
            if bound is not None and what == "latency":
                xs, ys = [0, bound.load, bound.load], [1, 1, 1e6]
                axes.plot(xs, ys, "--", color="#7F7F7F", linewidth=1.0, label="ideal")
            axes.set_xlabel(f"load ({UNITS[every[0].traffic[0].kind]})")
            axes.set_ylabel(_TITLES[what])
            axes.set_xlim(0, top * 1.03)
            limit = (most or {}).get(what) or 1.1 * _highest(by_name.values(), what)
            axes.set_ylim(0, limit)
            axes.grid(visible=True)
        handles, labels = several[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return Path(path)


def _highest(lines: object, what: Quantity) -> float:
    runs = [run for line in lines for run in line]  # type: ignore[attr-defined]
    return max((one.mean for _, one in _points(runs, what)), default=1.0) or 1.0


def _points(runs: Sequence[Run], what: Quantity) -> list[tuple[float, Estimate]]:
    moved = [run for run in runs if run.ending != "deadlocked"]
    if what == "latency":
        return [(run.load, run.latency) for run in moved if run.is_stable]
    pick = {"accepted": "accepted", "answers": "arrivals", "active": "active"}[what]
    return [(run.load, getattr(run.loads[0], pick)) for run in moved]

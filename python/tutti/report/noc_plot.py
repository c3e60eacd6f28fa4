"""Latency and throughput of a network against load, for papers: SVG, PNG or PDF."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tutti.errors import ReportError

from .palette import styles
from .plot import figure_at

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tutti.noc import NocRun, Saturation


def plot_latency(
    path: str | Path,
    lines: Mapping[str, Sequence[NocRun]],
    saturations: Mapping[str, Saturation] | None = None,
) -> Path:
    """Draws latency against load beside accepted throughput against load.

    Bars are 95 % confidence intervals. A line of latency ends where the network is stable last; a
    dotted line marks saturation, where it was searched.

    Args:
        path: where to; `.svg`, `.png` or `.pdf`.
        lines: by name, the runs of a network at several loads.
        saturations: by the same names, where each saturates.

    Returns:
        The path written.

    Raises:
        ReportError: when there is no run at a known load.
    """
    by_name = {
        name: sorted((run for run in runs if run.load is not None), key=lambda run: run.load or 0)
        for name, runs in lines.items()
    }
    if not any(by_name.values()):
        raise ReportError("there are no runs to draw", kind="frame")
    chosen = styles(by_name)
    with figure_at(path, (8.4, 3.6)) as figure:
        left, right = figure.subplots(1, 2)
        for name, runs in by_name.items():
            style = chosen[name]
            look = {
                "color": style.colour,
                "marker": style.marker_matplotlib,
                "markersize": 4,
                "linewidth": 1.4,
                "capsize": 2,
            }
            stable = [run for run in runs if run.is_stable]
            left.errorbar(
                [run.load for run in stable],
                [run.latency.mean for run in stable],
                [_bar(run.latency.half_width) for run in stable],
                label=name,
                **look,
            )
            right.errorbar(
                [run.load for run in runs],
                [run.accepted.mean for run in runs],
                [_bar(run.accepted.half_width) for run in runs],
                label=name,
                **look,
            )
            found = (saturations or {}).get(name)
            if found is not None and found.below is not None:
                for axes in (left, right):
                    axes.axvline(found.load, color=style.colour, linestyle=":", linewidth=1.2)
        most = max(run.load or 0 for runs in by_name.values() for run in runs)
        right.plot([0, most], [0, most], color="#7F7F7F", linewidth=0.8, zorder=0)
        left.set_ylabel("mean latency (cycles)")
        right.set_ylabel("accepted (flits per node and cycle)")
        for axes in (left, right):
            axes.set_xlabel("load (flits per node and cycle)")
            axes.set_xlim(0, most * 1.03)
            axes.set_ylim(bottom=0)
            axes.grid(visible=True)
        handles, labels = left.get_legend_handles_labels()
        if len(labels) > 1:
            figure.legend(handles, labels, loc="outside lower center", ncols=min(len(labels), 3))
        else:
            left.set_title(labels[0], loc="left")
    return Path(path)


def _bar(half_width: float) -> float:
    return half_width if half_width == half_width else 0.0  # noqa: PLR0124 - not a number

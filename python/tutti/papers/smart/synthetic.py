"""Figures 6 and 7: latency over load of collective flows on an otherwise idle mesh."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from tutti.noc.smart import frame
from tutti.papers import Exhibit, ExhibitResult
from tutti.papers.smart import system
from tutti.papers.smart.system import (
    ALL,
    BASELINE,
    COMPLETE,
    CORNERS,
    GREEDY,
    HALF,
    IN_BUFFERED,
    IN_BYPASS,
    IN_COMPLETE,
    IN_COMPLETE_EJECT,
    IN_COMPLETE_LOCAL,
    IN_LOCAL,
    INTERVALS,
    PRIVATE,
    SOME,
    TO_ONE,
)

if TYPE_CHECKING:
    from pathlib import Path

    from tutti.noc.smart import Saturation

SHOWN = {
    CORNERS: (BASELINE, GREEDY, *(COMPLETE.format(interval) for interval in INTERVALS)),
    ALL: (BASELINE, GREEDY, PRIVATE, COMPLETE.format(6)),
    SOME: (BASELINE, GREEDY, PRIVATE, COMPLETE.format(4), COMPLETE.format(6)),
    HALF: (BASELINE, GREEDY, PRIVATE, COMPLETE.format(4), COMPLETE.format(6)),
    TO_ONE: (
        BASELINE,
        IN_LOCAL,
        IN_BYPASS,
        IN_BUFFERED,
        IN_COMPLETE,
        IN_COMPLETE_EJECT,
        IN_COMPLETE_LOCAL,
    ),
}
"""The designs in each part of the figures; `half` is an alternative definition of multicasts."""

_SOURCE = "the figure's curves are not known; section V describes them in words"


def _rows(experiment: str, found: dict[str, Saturation]) -> pl.DataFrame:
    frames = [
        frame(one.runs)
        .drop("design", "settings")
        .with_columns(pl.lit(experiment).alias("traffic"), pl.lit(name).alias("design"))
        for name, one in found.items()
    ]
    every = pl.concat(frames)
    first = ["traffic", "design"]
    return every.select(*first, *(name for name in every.columns if name not in first))


def _saturations(found: dict[str, dict[str, Saturation]]) -> pl.DataFrame:
    """Returns the saturation loads by both criteria."""
    return pl.DataFrame(
        [
            {
                "traffic": experiment,
                "design": name,
                "zero_load_latency": one.zero_load.mean,
                "by_latency": one.by_latency,
                "by_throughput": one.by_throughput,
                "accepted": one.accepted.mean if one.accepted else None,
                "accepted_at_most": one.peak,
                "of_ideal": one.by_throughput / system.ideal_load(experiment),
                "unsaturated_at_ideal": one.by_throughput >= one.most,
                "deadlocks_at_load": one.deadlocks,
            }
            for experiment, some in found.items()
            for name, one in some.items()
        ],
        schema_overrides={"deadlocks_at_load": pl.Float64},
    )


def _shared_trees(found: dict[str, Saturation]) -> pl.DataFrame:
    """Returns row B6 over load: broadcasts of all nodes on shared trees, and on the baseline."""
    ideal, rows = 64 * system.ideal_load(ALL), []
    for part in system.POINTS:
        load = part * system.largest(ALL)
        base, shared = (system.at(found[name], load) for name in (BASELINE, GREEDY))
        rows.append(
            {
                "of_ideal": part,
                "baseline_latency": base.latency.mean,
                "svt_latency": shared.latency.mean,
                "over_baseline": shared.latency.mean / base.latency.mean,
                "baseline_accepted_of_ideal": base.loads[0].accepted.mean / ideal,
                "svt_accepted_of_ideal": shared.loads[0].accepted.mean / ideal,
            }
        )
    return pl.DataFrame(rows)


def _figure_6(folder: Path) -> ExhibitResult:
    """Returns latency over load for three traffics, and the alternative multicasts."""
    from tutti.report import plot_smart

    found = {
        experiment: system.curves(experiment, SHOWN[experiment])
        for experiment in (CORNERS, ALL, SOME, HALF)
    }
    tops = {CORNERS: 40.0, ALL: 60.0, SOME: 60.0, HALF: 60.0}
    figures = tuple(
        plot_smart(
            folder / f"figure_6{part}.svg",
            {name: one.runs for name, one in found[experiment].items()},
            most={"latency": tops[experiment]},
        )
        for part, experiment in (("a", CORNERS), ("b", ALL), ("c", SOME), ("c_half", HALF))
    )
    return ExhibitResult(
        frame=pl.concat([_rows(experiment, some) for experiment, some in found.items()]),
        source=_SOURCE,
        figures=figures,
        tables={"saturation": _saturations(found), "shared_trees": _shared_trees(found[ALL])},
        notes=(
            "6a: the four corners broadcast; 6b: all nodes broadcast; 6c: all nodes multicast",
            (
                "6c: the number of destinations is uniform; "
                "6c_half: each node is a destination with probability 1/2"
            ),
        ),
    )


def _figure_7(folder: Path) -> ExhibitResult:
    """Returns latency, ACKs per flow, and flows in flight, over load."""
    from tutti.report import plot_smart

    found = {TO_ONE: system.curves(TO_ONE, SHOWN[TO_ONE])}
    lines = {name: one.runs for name, one in found[TO_ONE].items()}
    return ExhibitResult(
        frame=_rows(TO_ONE, found[TO_ONE]),
        source=_SOURCE,
        figures=(
            plot_smart(folder / "figure_7a.svg", lines, ("latency",), most={"latency": 60.0}),
            plot_smart(folder / "figure_7b.svg", lines, ("answers",)),
            plot_smart(folder / "figure_7c.svg", lines, ("active",), most={"active": 25.0}),
        ),
        tables={"saturation": _saturations(found)},
        notes=(
            (
                "7c: flows in flight, equivalent to the paper's count of distinct ACKs; "
                "`buffered_flows`: flows with an ACK in a router; `table_entries`: entries in use"
            ),
            "SFI_Complete and SFI_Greedy use Prio=Bypass; Prio=Local is shown for comparison",
        ),
    )


FIGURES = {
    6: Exhibit(title="SMART-FanOut: 1-to-many latency over load", make=_figure_6),
    7: Exhibit(title="SMART-FanIn: many-to-1 latency over load", make=_figure_7),
}
"""The figures of this module, by number."""

"""Figures 6 and 7: latency over load of collective flows on an otherwise idle mesh."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from tutti.networks.mesh import frame
from tutti.networks.mesh.view.load import smart_chart
from tutti_papers import Exhibit, ExhibitResult, looks
from tutti_papers.claims import verdict_line
from tutti_papers.exhibits import plot_load
from tutti_papers.smart import system
from tutti_papers.smart.anchors import FAN_IN_ANCHORS, fan_out_anchors
from tutti_papers.smart.conclusions import of_fan_in, of_fan_out
from tutti_papers.smart.published import claims_of
from tutti_papers.smart.system import ALL, BASELINE, CORNERS, GREEDY, HALF, SHOWN, SOME, TO_ONE
from tutti_papers.smart.tables import all_nodes, corners, some, to_one

if TYPE_CHECKING:
    from pathlib import Path

    from tutti.networks.mesh import MeshRun, Saturation
    from tutti.networks.mesh.view.load import Quantity

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


def _runs(found: dict[str, Saturation]) -> dict[str, tuple[MeshRun, ...]]:
    return {name: tuple(one.runs) for name, one in found.items()}


def _until_saturation(runs: tuple[MeshRun, ...]) -> tuple[MeshRun, ...]:
    """Returns the runs up to the first load that is not accepted.

    Beyond it a run may seem stable within its cycles, so that its latency falls again.
    """
    by_load = sorted(runs, key=lambda run: run.load)
    last = next((place for place, run in enumerate(by_load) if not run.is_stable), len(by_load))
    return tuple(by_load[: last + 1])


def _latencies(found: dict[str, Saturation]) -> dict[str, tuple[MeshRun, ...]]:
    """Returns the runs of a drawing of latency by design."""
    return {name: _until_saturation(runs) for name, runs in _runs(found).items()}


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
    found = {
        experiment: system.curves(experiment, SHOWN[experiment])
        for experiment in (CORNERS, ALL, SOME, HALF)
    }
    tops = {CORNERS: 40.0, ALL: 60.0, SOME: 60.0, HALF: 60.0}
    claims, conclusions = claims_of([*corners(), *all_nodes(), *some()]), of_fan_out(found)
    verdict = verdict_line(claims, conclusions)
    figures = tuple(
        plot_load(
            folder / f"figure_6{part}.svg",
            smart_chart(_latencies(found[experiment]), "latency", tops[experiment], looks.SMART),
            verdict=verdict,
            anchors=fan_out_anchors(experiment),
        )
        for part, experiment in (("a", CORNERS), ("b", ALL), ("c", SOME), ("c_half", HALF))
    )
    return ExhibitResult(
        frame=pl.concat([_rows(experiment, some) for experiment, some in found.items()]),
        published=claims,
        conclusions=conclusions,
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
    found = {TO_ONE: system.curves(TO_ONE, SHOWN[TO_ONE])}
    lines, latencies = _runs(found[TO_ONE]), _latencies(found[TO_ONE])
    claims, conclusions = claims_of(to_one()), of_fan_in(found[TO_ONE])
    verdict = verdict_line(claims, conclusions)
    parts: tuple[tuple[str, Quantity, float | None], ...] = (
        ("a", "latency", 60.0),
        ("b", "answers", None),
        ("c", "active", 25.0),
    )
    return ExhibitResult(
        frame=_rows(TO_ONE, found[TO_ONE]),
        published=claims,
        conclusions=conclusions,
        source=_SOURCE,
        figures=tuple(
            plot_load(
                folder / f"figure_7{part}.svg",
                smart_chart(
                    latencies if quantity == "latency" else lines, quantity, top, looks.SMART
                ),
                verdict=verdict,
                anchors=FAN_IN_ANCHORS[quantity],
            )
            for part, quantity, top in parts
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

"""Figure 11: network energy of an iteration."""

from __future__ import annotations

from collections import Counter
from itertools import product
from operator import mul
from statistics import correlation, mean
from typing import TYPE_CHECKING

import polars as pl

from tutti.base.progress import watched
from tutti.base.units import Time
from tutti.bypass.package_networks import ALGORITHMS, SIDES, package_of
from tutti.energy.package import Package, technologies
from tutti_papers import Exhibit, ExhibitResult, looks
from tutti_papers.aries.applications import APPLICATIONS
from tutti_papers.aries.conclusions import of_energy
from tutti_papers.aries.iterations import iterations
from tutti_papers.aries.published import ENERGY_SAVED, NETWORKS, SPEEDUPS, compared
from tutti_papers.claims import verdict_line
from tutti_papers.exhibits import plot_bars

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tutti.collectives.phases import PhasedRun
    from tutti.energy.technology import Technology
    from tutti_papers.aries.iterations import Iteration, Key
    from tutti_papers.exhibits import PublishedBar


PARTS = ("dynamic", "leakage")
"""Energy of events and clocks, and energy in proportion to time."""


def _all_reduce_energy(run: PhasedRun, package: Package) -> tuple[float, float]:
    """Returns the dynamic and leakage energy of an all_reduce in joules."""
    reports = [package.energy_of(one) for one in run.runs]
    return (
        sum(report.dynamic.nominal for report in reports),
        sum(report.leakage.nominal for report in reports),
    )


def _joules(steps: dict[Key, Iteration], technology: Technology) -> dict[Key, tuple[float, float]]:
    """Returns the dynamic and leakage energy of each iteration in joules."""
    known: dict[tuple[str, int, int], tuple[float, float]] = {}
    found = {}
    for key, step in steps.items():
        network, _, side, _ = key
        package = package_of(network, side, technology)
        dynamic = leakage = 0.0
        for name, count in Counter(map(id, step.runs)).items():
            run = next(run for run in step.runs if id(run) == name)
            if (network, side, name) not in known:
                known[network, side, name] = _all_reduce_energy(run, package)
            of_one = known[network, side, name]
            dynamic, leakage = dynamic + count * of_one[0], leakage + count * of_one[1]
        busy = sum(one.completion_ps for run in step.runs for one in run.runs)
        idle = package.idle(side * side, Time(ps=step.overlapped.iteration.ps - busy))
        found[key] = dynamic + idle.dynamic.nominal, leakage + idle.leakage.nominal
    return found


def _saved(joules: dict[Key, tuple[float, float]], network: str, side: int) -> float:
    """Returns the energy saved by ARIES in per cent, mean over applications and algorithms."""
    return 100 * mean(
        1
        - sum(joules["aries", algorithm, side, name]) / sum(joules[network, algorithm, side, name])
        for algorithm, name in product(ALGORITHMS, APPLICATIONS)
    )


def _figure_11(folder: Path) -> ExhibitResult:
    """Returns the energy of iterations, and the savings of ARIES."""
    steps = iterations()
    by_technology = {
        name: _joules(steps, technology)
        for name, technology in watched("technologies", list(technologies().items()))
    }
    usual = by_technology["usual"]
    rows = [
        (f"{network} {side}x{side}, saved %", published, _saved(usual, network, side))
        for side, values in ENERGY_SAVED.items()
        for network, published in zip(NETWORKS, values, strict=True)
    ]
    claims = compared(rows)
    over = list(product(NETWORKS, SIDES))
    conclusions = of_energy({which: _saved(usual, *which) for which in over})
    verdict = verdict_line(claims, conclusions)
    figures = tuple(_drawn(folder, usual, side, verdict) for side in SIDES)
    return ExhibitResult(
        frame=pl.DataFrame([_row(key, one) for key, one in usual.items()]),
        published=claims,
        conclusions=conclusions,
        source="section V-C; means over four applications and three algorithms",
        figures=figures,
        notes=(
            (
                "leakage is proportional to the iteration time, dynamic energy to bytes, hops and "
                "routers"
            ),
            (
                "power_and_time: the published savings in energy follow the published savings in "
                "time, as if most energy were a constant power times the time"
            ),
        ),
        tables={
            "power_and_time": _with_ours(by_technology, steps),
            "technologies": _technologies(by_technology),
        },
    )


def _drawn(folder: Path, joules: dict[Key, tuple[float, float]], side: int, verdict: str) -> Path:
    """Draws both parts of each network's energy, relative to the mesh.

    The published savings give the means of the other networks over that of ARIES.
    """
    groups = {
        algorithm: {
            network: dict(zip(PARTS, _normalised(joules, network, algorithm, side), strict=True))
            for network in (*NETWORKS, "aries")
        }
        for algorithm in ALGORITHMS
    }
    saved = dict(zip(NETWORKS, ENERGY_SAVED[side], strict=True))
    left = {network: 1 - percent / 100 for network, percent in saved.items()}
    published: dict[tuple[str, str], PublishedBar] = {("mean", "aries"): (left["mesh"], "text")}
    for network in NETWORKS[1:]:
        published["mean", network] = (left["mesh"] / left[network], "derived")
    return plot_bars(
        folder / f"figure_11_{side}x{side}.svg", groups, y="energy over that of the mesh",
        verdict=verdict, looks=looks.ARIES, published=published,
    )  # fmt: skip


def _normalised(
    joules: dict[Key, tuple[float, float]], network: str, algorithm: str, side: int
) -> tuple[float, float]:
    """Returns both parts relative to the energy of the mesh, mean over applications."""
    parts = [
        [part / sum(joules["mesh", *which]) for part in joules[network, *which]]
        for which in ((algorithm, side, name) for name in APPLICATIONS)
    ]
    return mean(part[0] for part in parts), mean(part[1] for part in parts)


def _row(key: Key, joules: tuple[float, float]) -> dict[str, object]:
    network, algorithm, side, name = key
    return {
        "application": name,
        "algorithm": algorithm,
        "side": side,
        "network": network,
        "dynamic_mJ": round(1000 * joules[0], 3),
        "leakage_mJ": round(1000 * joules[1], 3),
    }


SYNTHESIS = "synthesis"
"""The technology whose routers take a constant power."""


def power_and_time() -> list[dict[str, object]]:
    """Returns the published energy savings with those of time times the fitted factor.

    The factor is that of least squares through the origin, between means over the algorithms.
    """
    cases = list(product(SIDES, NETWORKS))
    saved = [ENERGY_SAVED[side][NETWORKS.index(network)] for side, network in cases]
    time = [
        mean(100 * (1 - 1 / SPEEDUPS[of, side][NETWORKS.index(network)]) for of in ALGORITHMS)
        for side, network in cases
    ]
    factor = sum(map(mul, saved, time)) / sum(map(mul, time, time))
    return [
        {
            "over": f"{network} {side}x{side}",
            "published_time_%": round(time[row], 1),
            "times_factor_%": round(factor * time[row], 1),
            "published_energy_%": saved[row],
            "ratio": round(saved[row] / (factor * time[row]), 2),
            "factor": round(factor, 2),
            "correlation": round(correlation(saved, time), 2),
        }
        for row, (side, network) in enumerate(cases)
    ]


def _with_ours(
    by_technology: Mapping[str, dict[Key, tuple[float, float]]], steps: Mapping[Key, Iteration]
) -> pl.DataFrame:
    """Returns `power_and_time` and the savings here, with routers of constant power."""
    ours = [
        {
            "our_time_%": round(_time_saved(steps, network, side), 1),
            "our_energy_%": round(_saved(by_technology[SYNTHESIS], network, side), 1),
        }
        for side, network in product(SIDES, NETWORKS)
    ]
    return pl.DataFrame(
        [published | found for published, found in zip(power_and_time(), ours, strict=True)]
    )


def _time_saved(steps: Mapping[Key, Iteration], network: str, side: int) -> float:
    """Returns the iteration time saved by ARIES in per cent, as `_saved` averages."""
    return 100 * mean(
        1
        - steps["aries", of, side, name].overlapped.iteration.ps
        / steps[network, of, side, name].overlapped.iteration.ps
        for of, name in product(ALGORITHMS, APPLICATIONS)
    )


def _technologies(by_technology: dict[str, dict[Key, tuple[float, float]]]) -> pl.DataFrame:
    """Returns the savings with other routers and links."""
    return pl.DataFrame(
        [
            {"over": f"{network} {side}x{side}"}
            | {
                name: round(_saved(joules, network, side), 1)
                for name, joules in by_technology.items()
            }
            for side, network in product(SIDES, NETWORKS)
        ]
    )


FIGURES = {11: Exhibit(title="network energy of an iteration", make=_figure_11)}
"""The figure of this module, by number."""

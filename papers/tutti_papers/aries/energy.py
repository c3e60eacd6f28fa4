"""Figure 11: network energy of an iteration."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial
from itertools import product
from math import nan
from operator import mul
from statistics import correlation, mean
from typing import TYPE_CHECKING

import polars as pl

from tutti.base.progress import watched
from tutti.base.units import Size, Time
from tutti.bypass.package_networks import ALGORITHMS, SIDES, package_of, variants
from tutti.energy.package import PackageTraffic, technologies
from tutti_papers import Exhibit, ExhibitResult, looks
from tutti_papers.aries.applications import APPLICATIONS
from tutti_papers.aries.conclusions import (
    MULTI_SAVES_MOST,
    SAVINGS_FALL,
    SHORT,
    of_energy,
    with_reasons,
)
from tutti_papers.aries.iterations import CASES, Load, iteration, key_of, simulated
from tutti_papers.aries.published import ENERGY_SAVED, NETWORKS, SPEEDUPS, compared
from tutti_papers.aries.reading import DEFAULT_READING
from tutti_papers.claims import verdict_line
from tutti_papers.exhibits import plot_bars

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tutti.bypass.package_networks import Assumptions
    from tutti.topologies import Topology
    from tutti_papers.aries.iterations import Case, Iteration, Key, VariantKey
    from tutti_papers.aries.reading import JointReading
    from tutti_papers.exhibits import PublishedBar


PARTS = ("dynamic", "leakage")
"""Energy of events and clocks, and energy in proportion to time."""


_SAMPLE = Size.parse("1 MiB")
"""The size whose traffic is charged; energy of traffic is proportional to the size."""


@cache
def _traffic(key: VariantKey) -> tuple[tuple[Topology, PackageTraffic], ...]:
    """Returns topology and traffic of each phase of an all-reduce, without its time."""
    found = []
    for run in simulated(key, _SAMPLE).runs:
        assert run.platform.routes is not None  # noqa: S101 - packets have routes
        traffic = replace(PackageTraffic.of(run), time=Time(ps=0))
        found.append((run.platform.routes.topology, traffic))
    return tuple(found)


@cache
def _per_byte(network: str, side: int, key: VariantKey, technology: str) -> float:
    """Returns the energy of traffic of an all-reduce over its bytes, in J/B."""
    package = package_of(network, side, technologies()[technology])
    return sum(package.energy(*phase).total.nominal for phase in _traffic(key)) / _SAMPLE.bytes


@cache
def _watts(network: str, side: int, technology: str) -> tuple[float, float]:
    """Returns the power of clocks and of leakage of all routers."""
    package = package_of(network, side, technologies()[technology])
    idle = package.idle(side * side, Time(ps=10**9))
    return idle.dynamic.nominal * 1e3, idle.leakage.nominal * 1e3


@cache
def joules(
    case: Case, assumptions: Assumptions, load: Load, technology: str
) -> tuple[float, float]:
    """Returns the dynamic and the leakage energy of an iteration, as `iteration` has it.

    They are NaN for routers of several chiplets, whose packages are not modelled.
    """
    if case[0] == "flattened_butterfly" and assumptions.butterfly == "concentrated":
        return nan, nan
    seconds = iteration(case, assumptions, load).overlapped.iteration.ps / 1e12
    clocks, leakage = _watts(case[0], case[2], technology)
    traffic = _of_traffic(case, assumptions, load, technology)
    return traffic + clocks * seconds, leakage * seconds


@cache
def _of_traffic(case: Case, assumptions: Assumptions, load: Load, technology: str) -> float:
    """Returns the energy of bytes on links and in routers, without clocks and leakage."""
    known = variants(*case, assumptions)
    return sum(
        _per_byte(case[0], case[2], key_of(known[index]), technology) * size
        for index, size in iteration(case, assumptions, load).carried.items()
    )


def _joules(reading: JointReading, technology: str) -> dict[Key, tuple[float, float]]:
    """Returns the dynamic and leakage energy of each iteration in joules."""
    found = {}
    for case, name in product(CASES, APPLICATIONS):
        relevant = reading.assumptions.relevant(*case[:2])
        load = Load(name, reading.batch, reading.splits)
        found[*case, name] = joules(case, relevant, load, technology)
    return found


def _saved(
    joules: Mapping[Key, tuple[float, float]],
    network: str,
    side: int,
    algorithms: tuple[str, ...] = ALGORITHMS,
) -> float:
    """Returns the energy saved by ARIES in per cent, mean over applications and algorithms."""
    return 100 * mean(
        1
        - sum(joules["aries", algorithm, side, name]) / sum(joules[network, algorithm, side, name])
        for algorithm, name in product(algorithms, APPLICATIONS)
    )


def _figure_11(folder: Path, reading: JointReading = DEFAULT_READING) -> ExhibitResult:
    """Returns the energy of iterations, and the savings of ARIES."""
    steps = reading.iterations()
    by_technology = {
        name: _joules(reading, name) for name in watched("technologies", list(technologies()))
    }
    usual = by_technology[reading.technology]
    rows = [
        (f"{network} {side}x{side}, saved %", published, _saved(usual, network, side))
        for side, values in ENERGY_SAVED.items()
        for network, published in zip(NETWORKS, values, strict=True)
    ]
    claims = compared(rows)
    over = list(product(NETWORKS, SIDES))
    conclusions = of_energy(
        {which: _saved(usual, *which) for which in over},
        {one: mean(_saved(usual, *which, (one,)) for which in over) for one in ALGORITHMS},
    )
    parts = _saved_parts(reading, usual)
    conclusions = with_reasons(conclusions, _reasons(parts, steps))
    verdict = verdict_line(claims, conclusions)
    figures = tuple(_drawn(folder, usual, side, verdict) for side in SIDES)
    return ExhibitResult(
        frame=pl.DataFrame([_row(key, one) for key, one in usual.items()]),
        published=claims,
        conclusions=conclusions,
        source=(
            "section V-C; means over four applications and three algorithms; "
            f"technology: {reading.technology}"
        ),
        figures=figures,
        notes=(
            (
                "leakage is proportional to the iteration time, dynamic energy to bytes, hops and "
                "routers"
            ),
            "parts: savings of traffic, and of the constant power of clocks and leakage",
            (
                "power_and_time: the published savings in energy follow the published savings in "
                "time, as if most energy were a constant power times the time"
            ),
        ),
        tables={
            "parts": parts,
            "power_and_time": _with_ours(by_technology, steps),
            "technologies": _technologies(by_technology),
        },
    )


def _drawn(
    folder: Path, joules: Mapping[Key, tuple[float, float]], side: int, verdict: str
) -> Path:
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
    joules: Mapping[Key, tuple[float, float]], network: str, algorithm: str, side: int
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
            "our_energy_%": round(_saved(by_technology["synthesis"], network, side), 1),
        }
        for side, network in product(SIDES, NETWORKS)
    ]
    return pl.DataFrame(
        [published | found for published, found in zip(power_and_time(), ours, strict=True)]
    )


def _time_saved(
    steps: Mapping[Key, Iteration],
    network: str,
    side: int,
    algorithms: tuple[str, ...] = ALGORITHMS,
) -> float:
    """Returns the iteration time saved by ARIES in per cent, as `_saved` averages."""
    return 100 * mean(
        1
        - steps["aries", of, side, name].overlapped.iteration.ps
        / steps[network, of, side, name].overlapped.iteration.ps
        for of, name in product(algorithms, APPLICATIONS)
    )


def _saved_parts(reading: JointReading, joules: dict[Key, tuple[float, float]]) -> pl.DataFrame:
    """Returns the savings of each part of the energy by network and side, as `_saved` averages."""
    traffic, rest = {}, {}
    for key, both in joules.items():
        network, algorithm, side, name = key
        relevant = reading.assumptions.relevant(network, algorithm)
        load = Load(name, reading.batch, reading.splits)
        took = _of_traffic((network, algorithm, side), relevant, load, reading.technology)
        traffic[key], rest[key] = (took, 0.0), (sum(both) - took, 0.0)
    return pl.DataFrame(
        [
            {
                "over": network,
                "side": side,
                "traffic_saved_%": round(_saved(traffic, network, side), 1),
                "power_times_time_saved_%": round(_saved(rest, network, side), 1),
            }
            for side, network in product(SIDES, NETWORKS)
        ]
    )


def _reasons(parts: pl.DataFrame, steps: Mapping[Key, Iteration]) -> dict[str, str]:
    """Returns the reasons of conclusions that may not hold."""
    saved = {
        column: "; ".join(
            f"{side}x{side}: "
            + ", ".join(f"{value:.0f} %" for value in parts.filter(side=side)[f"{column}_saved_%"])
            for side in SIDES
        )
        for column in ("traffic", "power_times_time")
    }
    time = ", ".join(
        f"{SHORT[one]} {mean(_time_saved(steps, *which, (one,)) for which in over):.0f} %"
        for over in [list(product(NETWORKS, SIDES))]
        for one in ALGORITHMS
    )
    return {
        SAVINGS_FALL: f"constant power times time saves {saved['power_times_time']}; traffic on "
        f"wires and in routers saves {saved['traffic']}",
        MULTI_SAVES_MOST: f"ARIES shortens iterations with {time}",
    }


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


def figures(reading: JointReading) -> dict[int, Exhibit]:
    """Returns the figure of this module, by number."""
    make = partial(_figure_11, reading=reading)
    return {11: Exhibit(title="network energy of an iteration", make=make)}

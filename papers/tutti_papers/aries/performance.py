"""Figure 10: iterations of four applications with each algorithm on each network."""

from __future__ import annotations

from functools import partial
from itertools import product
from statistics import mean
from typing import TYPE_CHECKING, Any

import polars as pl

from tutti.bypass.package_networks import SIDES
from tutti_papers import Exhibit, ExhibitResult, looks
from tutti_papers.aries.applications import APPLICATIONS
from tutti_papers.aries.best import best_schedules
from tutti_papers.aries.bottlenecks import bottlenecks, reasons
from tutti_papers.aries.conclusions import SHORT, of_speedups, with_reasons
from tutti_papers.aries.iterations import speedups
from tutti_papers.aries.published import (
    NETWORKS,
    SPEEDUPS,
    TRANSFORMER_COMMUNICATION,
    UP_TO,
    compared,
)
from tutti_papers.aries.reading import DEFAULT_READING, MEASURES, described
from tutti_papers.aries.readings import VALUES, readings
from tutti_papers.aries.sensitivity import sensitivity
from tutti_papers.claims import verdict_line
from tutti_papers.exhibits import plot_bars

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tutti.training.overlap import Overlapped
    from tutti_papers import Claim
    from tutti_papers.aries.iterations import Key
    from tutti_papers.aries.reading import JointReading


def _figure_10(folder: Path, reading: JointReading = DEFAULT_READING) -> ExhibitResult:
    """Returns iterations with each algorithm on each network."""
    steps = reading.iterations()
    gains = speedups(steps, reading.mean)
    found = {key: step.overlapped for key, step in steps.items()}
    grid, joint = readings()
    rows: list[dict[str, Any]] = []
    for (algorithm, side), published in SPEEDUPS.items():
        for network, value in zip(NETWORKS, published, strict=True):
            iteration, communication = both = gains[algorithm, side, network]
            ours = both[MEASURES.index(reading.time)]
            rows.append(
                {
                    "algorithm": algorithm,
                    "side": side,
                    "over": network,
                    "published": value,
                    "ours": round(ours, 3),
                    "ratio": round(ours / value, 2),
                    "iteration": round(iteration, 3),
                    "communication": round(communication, 3),
                }
            )
    claims, applications = _claims(rows, found), _applications(found)
    bounds = dict(applications.group_by("application").agg(pl.max("at_most")).iter_rows())
    conclusions = of_speedups({key: gain for key, (gain, _) in gains.items()}, bounds)
    busiest = bottlenecks(reading.assumptions)
    conclusions = with_reasons(conclusions, reasons(busiest))
    return ExhibitResult(
        frame=pl.DataFrame([_iteration_row(key, one) for key, one in found.items()]),
        published=claims,
        conclusions=conclusions,
        readings=joint,
        source=f"section V-B; values of the applications are not known; {described(reading)}",
        figures=tuple(_drawn(folder, found, *part, _verdict(claims, *part)) for part in SPEEDUPS),
        tables={
            "speedups": pl.DataFrame(rows),
            "transformer": _transformer(found),
            "applications": applications,
            "bottlenecks": busiest,
            **best_schedules(),
            **grid,
            **sensitivity(reading),
        },
        notes=(
            (
                "ours: maximum over the applications for double trees on 8x8 (up to), otherwise "
                "the arithmetic mean; communication: sequential all_reduces without computation"
            ),
            "best_schedules: every network, ARIES too, runs the fastest schedule for the size",
            "bottlenecks: time and busiest link of 1 MiB, over the payload's time on a link",
            (
                f"readings: joint readings of the text, with the number of the {VALUES} simulated "
                "values that each meets"
            ),
            "computation is a lower bound on the iteration time on every network",
        ),
    )


def _claims(rows: list[dict[str, Any]], found: dict[Key, Overlapped]) -> tuple[Claim, ...]:
    """Returns the published speedups and the reductions of communication time."""
    speedups = [
        (
            "{algorithm} {side}x{side} over {over}: speedup".format(**row),
            row["published"],
            row["ours"],
        )
        for row in rows
    ]
    shorter = [
        (
            f"Transformer, {row['algorithm']}: communication saved, %",
            row["published_%"],
            row["ours_%"],
        )
        for row in _transformer(found).rows(named=True)
    ]
    return compared([*speedups, *shorter])


def _iteration_row(key: Key, one: Overlapped) -> dict[str, object]:
    network, algorithm, side, name = key
    return {
        "application": name,
        "algorithm": algorithm,
        "side": side,
        "network": network,
        "iteration_us": round(one.iteration.ps / 1e6, 1),
        "compute_us": round(one.compute.ps / 1e6, 1),
        "communication_us": round(one.communication.ps / 1e6, 1),
        "exposed_us": round(one.exposed.ps / 1e6, 1),
    }


def _verdict(claims: Sequence[Claim], algorithm: str, side: int) -> str:
    """Returns what a drawing shows, and how many of its values agree."""
    of_part = [one for one in claims if one.quantity.startswith(f"{algorithm} {side}x{side} ")]
    return f"{SHORT[algorithm]} on {side}x{side}: {verdict_line(of_part)}"


def _drawn(
    folder: Path, found: dict[Key, Overlapped], algorithm: str, side: int, verdict: str
) -> Path:
    """Draws iterations relative to those on ARIES; the published speedups are over all."""
    of = "; published: maxima" if (algorithm, side) in UP_TO else ""
    groups = {
        name: {
            network: {
                part: took.ps / found["aries", algorithm, side, name].iteration.ps
                for part, took in (("compute", one.compute), ("exposed communication", one.exposed))
            }
            for network in (*NETWORKS, "aries")
            for one in (found[network, algorithm, side, name],)
        }
        for name in APPLICATIONS
    }
    return plot_bars(
        folder / f"figure_10_{algorithm}_{side}x{side}.svg", groups,
        y=f"iteration time over that on ARIES{of}", verdict=verdict, looks=looks.ARIES,
        published={("mean", network): (value, "text")
                   for network, value in zip(NETWORKS, SPEEDUPS[algorithm, side], strict=True)},
    )  # fmt: skip


def _transformer(found: dict[Key, Overlapped]) -> pl.DataFrame:
    """Returns the reduction of its communication time, mean over networks and sizes."""
    rows = []
    for algorithm, published in TRANSFORMER_COMMUNICATION.items():
        shorter = [
            1
            - found["aries", algorithm, side, "transformer"].communication.ps
            / found[network, algorithm, side, "transformer"].communication.ps
            for side, network in product(SIDES, NETWORKS)
        ]
        rows.append(
            {
                "algorithm": algorithm,
                "published_%": published,
                "ours_%": round(100 * mean(shorter), 1),
                "least_%": round(100 * min(shorter), 1),
                "most_%": round(100 * max(shorter), 1),
            }
        )
    return pl.DataFrame(rows)


def _applications(found: dict[Key, Overlapped]) -> pl.DataFrame:
    """Returns communication over computation with the ring on a mesh, which bounds the speedup."""
    rows = []
    for name, side in product(APPLICATIONS, SIDES):
        mesh, aries = (found[network, "ring", side, name] for network in ("mesh", "aries"))
        rows.append(
            {
                "application": name,
                "side": side,
                "compute_us": round(mesh.compute.ps / 1e6, 1),
                "ring_on_mesh_us": round(mesh.communication.ps / 1e6, 1),
                "over_compute": round(mesh.communication.ps / mesh.compute.ps, 2),
                "speedup": round(mesh.iteration.ps / aries.iteration.ps, 2),
                "at_most": round(mesh.iteration.ps / mesh.compute.ps, 2),
            }
        )
    return pl.DataFrame(rows)


def figures(reading: JointReading) -> dict[int, Exhibit]:
    """Returns the figure of this module, by number."""
    make = partial(_figure_10, reading=reading)
    return {10: Exhibit(title="iterations of four applications", make=make)}

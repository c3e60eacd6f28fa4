"""Joint readings of what the paper leaves open, and how many published speedups each meets."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from math import exp, log
from statistics import mean
from typing import TYPE_CHECKING, Any

import polars as pl

from tutti.base.progress import watched
from tutti.bypass.package_networks import ALGORITHMS, DEFAULT
from tutti_papers.aries.applications import BATCHES
from tutti_papers.aries.iterations import read_as, speedups
from tutti_papers.aries.published import NETWORKS, SPEEDUPS
from tutti_papers.aries.sensitivity import SHORT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tutti_papers.aries.iterations import Iteration, Key

NEAR = 0.15
"""A speedup meets a published one within this relative difference."""


@dataclass(frozen=True)
class Axis:
    """A question that the paper leaves open.

    Attributes:
        name: The question.
        values: The answers; the first is the default.
        evidence: What supports each answer.
    """

    name: str
    values: tuple[Any, ...]
    evidence: tuple[str, ...]


AXES = (
    Axis(
        "samples",
        BATCHES,
        (
            "ASTRA-sim simulates the applications (V); its bundled workloads",
            "each node trains on its own samples (II-B); one is the fewest",
            "MultiTree's mini-batch of 16 N, ISCA 2021: one sample for each PE",
        ),
    ),
    Axis(
        "bidirectional",
        (False, True),
        ("one direction, figure 6(b) as described", "clockwise or anti-clockwise (IV-A)"),
    ),
    Axis("wires", (1, 2), ("8 (k - 1) k links, Table I", "two bi-directional links, III-B")),
    Axis("chunks", (4, 16), ("inferred", "ASTRA-sim's streams are configurable: inferred")),
    Axis(
        "butterfly",
        ("equal_pins", "concentrated", "wide"),
        (
            "micro-bump pitch limits links (III-B)",
            "4 NPUs per router, as in Kim et al., MICRO 2007, which the paper cites",
            "one rate is given for all links (V)",
        ),
    ),
    Axis(
        "rings",
        ("stated", "plain", "grid"),
        (
            "plain, by the title of figure 10; the butterfly uses its full connection (V-B)",
            "`Ring all-reduce` on every network, title of figure 10",
            "Adapt-NoC reduces hops (V-B)",
        ),
    ),
)
MEASURES = ("iterations", "all_reduces")
"""The execution time of V-B is that of training iterations; the second omits computation."""


@cache
def _defaults() -> tuple[Any, ...]:
    return tuple(axis.values[0] for axis in AXES)


def readings(default: Mapping[Key, Iteration]) -> dict[str, pl.DataFrame]:
    """Returns every joint reading with the number of published speedups it meets, and by answer."""
    chosen = list(product(*(axis.values for axis in AXES)))
    rows = [row for values in watched("readings", chosen) for row in _rows(default, values)]
    rows.sort(key=lambda row: (-row["met"], row["distance"]))
    return {
        "readings": pl.DataFrame(rows),
        "readings_alone": pl.DataFrame([row for row in rows if row["changed"] <= 1]),
        "answers": _answers(rows),
    }


def _rows(default: Mapping[Key, Iteration], values: tuple[Any, ...]) -> list[dict[str, Any]]:
    """Returns the row of a reading for each measure."""
    named = dict(zip((axis.name for axis in AXES), values, strict=True))
    answers = dict(named)
    batch = answers.pop("samples")
    found = speedups(read_as(default, replace(DEFAULT, **answers), batch))
    changed = sum(one != usual for one, usual in zip(values, _defaults(), strict=True))
    return [
        {
            "met": sum(met(found, at).values()),
            **{SHORT[algorithm]: count for algorithm, count in met(found, at).items()},
            "distance": round(distance(found, at), 2),
            "time": measure,
            **named,
            "changed": changed + at,
        }
        for at, measure in enumerate(MEASURES)
    ]


def _pairs(found: Mapping[Any, tuple[float, float]], at: int) -> list[tuple[str, float]]:
    """Returns the algorithm and the ratio to the published value of every speedup."""
    return [
        (algorithm, found[algorithm, side, network][at] / published)
        for (algorithm, side), values in SPEEDUPS.items()
        for network, published in zip(NETWORKS, values, strict=True)
    ]


def met(found: Mapping[Any, tuple[float, float]], at: int) -> dict[str, int]:
    """Returns the number of published speedups that are met, by algorithm."""
    counts = dict.fromkeys(ALGORITHMS, 0)
    for algorithm, ratio in _pairs(found, at):
        counts[algorithm] += abs(ratio - 1) <= NEAR
    return counts


def distance(found: Mapping[Any, tuple[float, float]], at: int) -> float:
    """Returns the geometric mean of the factors between the speedups and the published ones."""
    return exp(mean(abs(log(ratio)) for _, ratio in _pairs(found, at)))


def _answers(rows: list[dict[str, Any]]) -> pl.DataFrame:
    """Returns the counts of all readings that share an answer."""
    axes = [*AXES, Axis("time", MEASURES, ("training iterations, V-B", "without computation"))]
    found = []
    for axis in axes:
        for value, evidence in zip(axis.values, axis.evidence, strict=True):
            counts = [row["met"] for row in rows if row[axis.name] == value]
            found.append(
                {
                    "question": axis.name,
                    "answer": str(value),
                    "most_met": max(counts),
                    "mean_met": round(mean(counts), 1),
                    "evidence": evidence,
                }
            )
    return pl.DataFrame(found)

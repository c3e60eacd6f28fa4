"""The grid of joint readings, and how many simulated published values each meets.

Of the published values 36 need a simulation or a model: 24 speedups and 3 savings of communication
time (figure 10), 8 savings of energy (figure 11), and the area of the multiplexers (figure 5).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from itertools import product
from math import exp, log
from statistics import mean
from typing import TYPE_CHECKING, Any

import polars as pl

from tutti.bypass.package_networks import ALGORITHMS, SIDES, Assumptions
from tutti_papers.aries.applications import APPLICATIONS
from tutti_papers.aries.area import added_mm2
from tutti_papers.aries.energy import joules
from tutti_papers.aries.iterations import (
    EVERY,
    Iteration,
    Key,
    Load,
    Speedups,
    iteration,
    simulate_all,
    speedups,
)
from tutti_papers.aries.published import (
    AREA_MORE,
    ENERGY_SAVED,
    NETWORKS,
    SPEEDUPS,
    TRANSFORMER_COMMUNICATION,
)
from tutti_papers.aries.reading import AXES, DEFAULT_READING, MEASURES, NAMED, described
from tutti_papers.claims import TOLERANCE, Reading

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tutti_papers.aries.iterations import Mean
    from tutti_papers.aries.reading import JointReading

_SHOWN = 100
"""The best readings that the table has."""


@dataclass(frozen=True)
class Run:
    """An algorithm on every network, as a reading has it.

    Attributes:
        algorithm: The algorithm.
        relevant: The assumptions that matter for it on each network of `EVERY`.
        batch: The samples of the applications.
        splits: Parts of each all-reduce.
    """

    algorithm: str
    relevant: tuple[Assumptions, ...]
    batch: str
    splits: int


def runs_of(reading: JointReading) -> tuple[Run, ...]:
    """Returns the runs of a reading, by algorithm."""
    return tuple(
        Run(one, _relevant(reading.assumptions, one), reading.batch, reading.splits)
        for one in ALGORITHMS
    )


@cache
def _relevant(assumptions: Assumptions, algorithm: str) -> tuple[Assumptions, ...]:
    return tuple(assumptions.relevant(network, algorithm) for network in EVERY)


@cache
def _steps(run: Run) -> dict[Key, Iteration]:
    found = {}
    for (network, its), side, name in product(
        zip(EVERY, run.relevant, strict=True), SIDES, APPLICATIONS
    ):
        case = (network, run.algorithm, side)
        found[*case, name] = iteration(case, its, Load(name, run.batch, run.splits))
    return found


@cache
def _speedups(run: Run, mean_of: Mean) -> Speedups:
    return speedups(_steps(run), mean_of)


@cache
def _energy_saved(run: Run, technology: str) -> tuple[float, ...]:
    """Returns the energy saved in per cent, mean over applications, in order of `_OVER`."""

    def spent(network: str, side: int, name: str) -> float:
        its = run.relevant[EVERY.index(network)]
        case = (network, run.algorithm, side)
        return sum(joules(case, its, Load(name, run.batch, run.splits), technology))

    return tuple(
        100 * mean(1 - spent("aries", side, one) / spent(network, side, one)
                   for one in APPLICATIONS)
        for side, network in _OVER
    )  # fmt: skip


@cache
def _transformer_saved(run: Run) -> float:
    """Returns the communication time saved in per cent, mean over networks and sizes."""
    steps = _steps(run)

    def took(network: str, side: int) -> int:
        return steps[network, run.algorithm, side, "transformer"].overlapped.communication.ps

    return 100 * mean(1 - took("aries", side) / took(network, side) for side, network in _OVER)


_OVER = tuple(product(SIDES, NETWORKS))


def simulated_values(reading: JointReading) -> dict[str, tuple[float, float]]:
    """Returns the published and the computed value of every simulated quantity."""
    runs = runs_of(reading)
    found = {}
    for run in runs:
        for key, published, computed in _of_speedups(run, reading):
            found[f"{run.algorithm} {key}"] = published, computed
        published = TRANSFORMER_COMMUNICATION[run.algorithm]
        found[f"Transformer, {run.algorithm}"] = published, _transformer_saved(run)
    for (side, network), published, computed in _energies(runs, reading.technology):
        found[f"energy over {network} {side}x{side}"] = published, computed
    its = reading.assumptions
    found["area of muxes"] = AREA_MORE, added_mm2(its.muxes, its.wires)
    return found


def _of_speedups(run: Run, reading: JointReading) -> Iterator[tuple[str, float, float]]:
    known = _speedups(run, reading.mean)
    at = MEASURES.index(reading.time)
    for side, network in _OVER:
        published = SPEEDUPS[run.algorithm, side][NETWORKS.index(network)]
        yield f"over {network} {side}x{side}", published, known[run.algorithm, side, network][at]


def _energies(
    runs: tuple[Run, ...], technology: str
) -> Iterator[tuple[tuple[int, str], float, float]]:
    saved = [_energy_saved(run, technology) for run in runs]
    for (side, network), *each in zip(_OVER, *saved, strict=True):
        yield (side, network), ENERGY_SAVED[side][NETWORKS.index(network)], mean(each)


def meets(published: float, computed: float) -> bool:
    """Returns whether a value agrees with the published one, as `Claim.verdict` does."""
    return abs(computed - published) <= TOLERANCE * abs(published) + 1e-9


@dataclass(frozen=True)
class Score:
    """The values that a reading meets.

    Attributes:
        by_part: The number of values met: of each algorithm's speedups, Transformer, energy, area.
        distance: The geometric mean of the factors between the speedups and the published ones.
    """

    by_part: Mapping[str, int]
    distance: float

    @property
    def met(self) -> int:
        """The number of values met."""
        return sum(self.by_part.values())


def score(reading: JointReading) -> Score:
    """Returns the score of a reading."""
    runs = runs_of(reading)
    by_part, apart = {}, 0.0
    for run in runs:
        by_part[SHORT[run.algorithm]], logs = _met_speedups(run, reading.mean, reading.time)
        apart += logs
    by_part["Transformer"] = sum(
        meets(TRANSFORMER_COMMUNICATION[run.algorithm], _transformer_saved(run)) for run in runs
    )
    by_part["energy"] = sum(meets(*pair) for _, *pair in _energies(runs, reading.technology))
    its = reading.assumptions
    by_part["area"] = int(meets(AREA_MORE, added_mm2(its.muxes, its.wires)))
    return Score(by_part, exp(apart / (len(SPEEDUPS) * len(NETWORKS))))


@cache
def _met_speedups(run: Run, mean_of: Mean, time: str) -> tuple[int, float]:
    """Returns the number of speedups met, and the sum of the logarithms of the factors."""
    reading = DEFAULT_READING.with_answers({"mean": mean_of, "time": time})
    pairs = [pair for _, *pair in _of_speedups(run, reading)]
    return sum(meets(*pair) for pair in pairs), sum(abs(log(ours / of)) for of, ours in pairs)


SHORT = {"ring": "rings", "double_binary_tree": "double trees", "multi_tree": "MultiTree"}
VALUES = len(SPEEDUPS) * len(NETWORKS) + len(TRANSFORMER_COMMUNICATION) + len(_OVER) + 1
"""The number of simulated published values."""


def every_reading() -> Iterator[JointReading]:
    """Yields every combination of answers; without a switch between phases its time is moot."""
    for answers in product(*(axis.values for axis in AXES)):
        named = dict(zip((axis.name for axis in AXES), answers, strict=True))
        if named["switched"] or named["switch"] == DEFAULT_READING.answer("switch"):
            yield DEFAULT_READING.with_answers(named)


def readings() -> tuple[dict[str, pl.DataFrame], tuple[Reading, ...]]:
    """Returns the tables of the grid of readings; and the named ones and the best one."""
    every = list(every_reading())
    requests = {
        ((network, algorithm, side), reading.assumptions.relevant(network, algorithm))
        for reading in {one.assumptions: one for one in every}.values()
        for network, algorithm, side in product(EVERY, ALGORITHMS, SIDES)
    }
    simulate_all(sorted(requests, key=repr), "joint readings")
    scored = [(reading, score(reading)) for reading in every]
    scored.sort(key=lambda pair: (-pair[1].met, pair[1].distance))
    alone = [(one, its) for one, its in scored if _changed(one) <= 1]
    tables = {
        "readings": pl.DataFrame([_row(*pair) for pair in scored[:_SHOWN]]),
        "readings_alone": pl.DataFrame([_row(*pair) for pair in alone]),
        "answers": _answers(scored),
    }
    return tables, (*_named(), _best(*scored[0], len(scored)))


def _named() -> Iterator[Reading]:
    for name, (reading, meaning) in NAMED.items():
        yield Reading(name=name, meaning=meaning, met=score(reading).met, values=VALUES)


def _best(reading: JointReading, its: Score, count: int) -> Reading:
    meaning = f"the most of {count} joint readings: {described(reading)}"
    return Reading(name="best", meaning=meaning, met=its.met, values=VALUES)


def _changed(reading: JointReading) -> int:
    return sum(reading.answer(axis.name) != axis.values[0] for axis in AXES)


def _row(reading: JointReading, its: Score) -> dict[str, Any]:
    return {
        "met": its.met,
        **its.by_part,
        "distance": round(its.distance, 2),
        "changed": _changed(reading),
        "reading": described(reading),
    }


def _answers(scored: list[tuple[JointReading, Score]]) -> pl.DataFrame:
    """Returns the counts of all readings that share an answer."""
    counts: dict[tuple[str, Any], list[int]] = defaultdict(list)
    for reading, its in scored:
        for axis in AXES:
            counts[axis.name, reading.answer(axis.name)].append(its.met)
    return pl.DataFrame(
        [
            {
                "question": axis.name,
                "answer": str(value),
                "most_met": max(counts[axis.name, value]),
                "mean_met": round(mean(counts[axis.name, value]), 1),
                "evidence": evidence,
            }
            for axis in AXES
            for value, evidence in zip(axis.values, axis.evidence, strict=True)
        ]
    )

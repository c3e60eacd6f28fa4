"""The grid of joint readings: the published values that each meets on all sizes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from statistics import mean
from typing import TYPE_CHECKING

import polars as pl

from tutti.base.progress import at_once
from tutti.training.endpoint import Configuration, configurations
from tutti_papers.ace.published import ACTIVE, SPEEDUPS, UTILISATION, Published
from tutti_papers.ace.system import READING, SIZES, ace, step
from tutti_papers.ace.timing import BASELINES, LARGEST, active_percent, iteration
from tutti_papers.ace.tori import AMPLE
from tutti_papers.ace.workloads import FP16, RECORDED, SCALINGS, Reading

if TYPE_CHECKING:
    from collections.abc import Mapping

CLOCKS = ("1 GHz", "1245 MHz")
"""That of ASTRA-sim, at which LIBRA's DLRM decodes; and that of the paper's NPU."""
GRADIENTS = (FP16, 4)
"""LIBRA's file and the text; ASTRA-sim 1.0's file."""
ENGINES = {"paper": configurations()["ace"], "near ideal": ace(**AMPLE)}
"""The paper's ACE; one that only memory and links limit."""
WITHIN = 0.05
"""The relative deviation up to which a reading meets a published value."""
MODELS = tuple(SPEEDUPS)


@dataclass(frozen=True)
class Case:
    """A run of the grid; equal runs of different readings are one case."""

    model: str
    size: str
    configuration: Configuration
    reading: Reading


@dataclass(frozen=True)
class Outcome:
    """Picoseconds of an iteration, and per cent of the backward pass with an active ACE."""

    time: float
    active: float


Outcomes = dict[Case, Outcome]


def grid() -> pl.DataFrame:
    """Returns a row per joint reading: its values and how many published ones it meets."""
    readings = [
        Reading(clock, gradient, scaling)
        for clock, gradient, scaling in product(CLOCKS, GRADIENTS, SCALINGS)
    ]
    configured = [configurations()[name] for name in BASELINES] + list(ENGINES.values())
    cases = {case_of(*one) for one in product(MODELS, SIZES, configured, readings)}
    found = at_once(run, sorted(cases, key=str), "joint readings")
    return pl.DataFrame(
        [_row(reading, engine, found) for reading in readings for engine in ENGINES]
    )


def case_of(model: str, size: str, configuration: Configuration, reading: Reading) -> Case:
    """Returns the run of a reading without the choices that have no effect on it."""
    if model not in RECORDED:
        return Case(model, size, configuration, READING)
    scaling = reading.scaling
    if not configuration.overlap or (scaling == "sms" and not configuration.sms):
        scaling = "fixed"
    gradient = reading.gradient if model == "resnet50_libra" else FP16
    return Case(model, size, configuration, replace(reading, gradient=gradient, scaling=scaling))


def run(case: Case) -> Outcome:
    """Runs two iterations."""
    result = step(case.model, case.size, case.configuration, reading=case.reading)
    counted = case.size == LARGEST and case.configuration.kind == "ace"
    return Outcome(iteration(result), active_percent(result)[1] if counted else float("nan"))


def _row(reading: Reading, engine: str, found: Outcomes) -> dict[str, object]:
    values = _values(reading, ENGINES[engine], found)
    met = sum(abs(ours / published.value - 1) <= WITHIN for published, ours in values.values())
    return {
        "cycles": reading.clock,
        "gradient_bytes": reading.gradient,
        "compute": reading.scaling,
        "ace": engine,
        **{name: round(ours, 2) for name, (_, ours) in values.items()},
        "met": f"{met} of {len(values)}",
    }


def _values(
    reading: Reading, engine: Configuration, found: Outcomes
) -> dict[str, tuple[Published, float]]:
    """Returns published values and those of a reading, by name."""
    others = [configurations()[name] for name in BASELINES]

    def outcome(model: str, size: str, configuration: Configuration) -> Outcome:
        return found[case_of(model, size, configuration, reading)]

    gains: Mapping[tuple[str, str], list[float]] = {
        (model, size): [
            outcome(model, size, one).time / outcome(model, size, engine).time for one in others
        ]
        for model, size in product(MODELS, SIZES)
    }
    values: dict[str, tuple[Published, float]] = {}
    for model in MODELS:
        least = [min(gains[model, size]) for size in SIZES]
        average, most = SPEEDUPS[model]
        values |= {model: (average, mean(least)), f"{model}_most": (most, max(least))}
    every = [gain for of_case in gains.values() for gain in of_case]
    values |= {
        "utilisation": (UTILISATION[0], mean(every)),
        "utilisation_most": (UTILISATION[1], max(every)),
    }
    for model, published in ACTIVE.items():
        values[f"{model}_active"] = (published, outcome(model, LARGEST, engine).active)
    return values

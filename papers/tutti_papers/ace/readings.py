"""The grid of joint readings: the published values and conclusions that each meets."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from statistics import mean
from typing import TYPE_CHECKING

import polars as pl

from tutti.base.progress import at_once
from tutti.training.endpoint import Configuration, configurations
from tutti_papers.ace.conclusions import of_iterations
from tutti_papers.ace.endpoints import memory_values, sm_values
from tutti_papers.ace.published import (
    ACTIVE,
    BACKGROUND,
    SPEEDUPS,
    UTILISATION,
    Published,
    compared,
)
from tutti_papers.ace.silicon import silicon_values
from tutti_papers.ace.system import READING, SIZES, ace, effective, step
from tutti_papers.ace.timing import BASELINES, LARGEST, active_percent, iteration, period
from tutti_papers.ace.tori import AMPLE, VARIANT
from tutti_papers.ace.workloads import SCALINGS, Reading
from tutti_papers.claims import TOLERANCE, counted
from tutti_papers.claims import Reading as Score

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tutti_papers.claims import Conclusion

CLOCKS = ("1 GHz", "1245 MHz")
"""That of ASTRA-sim, at which DLRM decodes; and that of the paper's NPU."""
GRADIENTS = (4, 2)
"""ASTRA-sim 1's file; LIBRA's file and the text."""
PAPER = "paper"
VARIANT_NAME = "8 banks, 24 FSMs"
ENGINES = {
    PAPER: configurations()["ace"],
    VARIANT_NAME: ace(**VARIANT),
    "near ideal": ace(**AMPLE),
}
"""The paper's ACE; a named variant; one that only memory and links limit."""
OTHERS = {
    "DLRM's cycles at 1245 MHz": replace(READING, dlrm_clock="1245 MHz"),
    "DLRM's lookups as recorded": replace(READING, lookups="recorded"),
    "GNMT's inputs in one product": replace(READING, cells="batched"),
    **{
        f"GNMT's compute: {part:g} of its roofline": replace(READING, part=part)
        for part in (1.0, 0.5)
    },
}
"""Other choices for one workload, everything else as in the exhibits."""
WITHIN = 0.05
"""The relative deviation up to which a reading meets a published value closely."""
MODELS = tuple(SPEEDUPS)
_LOOPS = 8
"""Iterations of figure 12."""


@dataclass(frozen=True)
class Joint:
    """A joint reading: a row of the grid.

    Attributes:
        name: What differs from the grid, if anything.
        reading: The reading of the workloads.
        engine: A key of `ENGINES`.
    """

    name: str
    reading: Reading
    engine: str = PAPER


@dataclass(frozen=True)
class Case:
    """A run of the grid; equal runs of different readings are one case."""

    model: str
    size: str
    configuration: Configuration
    reading: Reading
    iterations: int = 2


@dataclass(frozen=True)
class Outcome:
    """Picoseconds of an iteration, and per cent of the backward pass with an active ACE."""

    time: float
    exposed: float
    period: float
    active: float


Outcomes = dict[Case, Outcome]
Values = dict[str, tuple[Published, float]]


def joints() -> list[Joint]:
    """Returns the rows of the grid, that of the exhibits first."""
    grid = [
        Joint("", Reading(clock, gradient, scaling))
        for gradient, clock, scaling in product(GRADIENTS, CLOCKS, SCALINGS)
    ]
    others = [Joint(name, reading) for name, reading in OTHERS.items()]
    return grid + others + [Joint("", READING, engine) for engine in ENGINES if engine != PAPER]


@dataclass(frozen=True)
class Row:
    """A joint reading with its values and conclusions."""

    joint: Joint
    values: Values
    conclusions: list[Conclusion]

    def met(self, within: float) -> int:
        """Returns the number of published values within a relative deviation."""
        return sum(abs(ours / one.value - 1) <= within for one, ours in self.values.values())

    def shown(self) -> dict[str, object]:
        """Returns the cells of the row in the grid."""
        reading, rows = self.joint.reading, len(self.values)
        faster, no_overlap = (_counted(self.conclusions, one) for one in _COUNTED)
        return {
            "cycles": reading.clock,
            "gradient_bytes": reading.gradient,
            "compute": reading.scaling,
            "ace": self.joint.engine,
            "other": self.joint.name,
            **{name: round(ours, 2) for name, (_, ours) in self.values.items()},
            "within_5": f"{self.met(WITHIN)} of {rows}",
            "within_15": f"{self.met(TOLERANCE)} of {rows}",
            "ace_fastest": faster,
            "no_overlap_over_comm_opt": no_overlap,
            "conclusions": f"{sum(one.holds for one in self.conclusions)} of "
            f"{len(self.conclusions)}",
        }


_COUNTED = ("ACE is faster than every baseline", "no_overlap is faster than comm_opt")
"""Conclusions that the text states for all workloads and sizes."""


def _counted(conclusions: list[Conclusion], statement: str) -> str:
    """Returns the cases in which a conclusion holds."""
    why = next(one.why for one in conclusions if one.statement == statement)
    return why.removeprefix("in ").partition(" cases")[0]


@cache
def rows() -> tuple[Row, ...]:
    """Runs the grid."""
    every = joints()
    cases = {case for joint in every for case in _cases(joint)}
    found = at_once(run, sorted(cases, key=str), "joint readings")
    return tuple(Row(joint, values_of(joint, found), _conclusions(joint, found)) for joint in every)


def grid() -> pl.DataFrame:
    """Returns a row per joint reading: its values, and how many published ones it meets."""
    return pl.DataFrame([row.shown() for row in rows()])


def chosen() -> dict[str, Row]:
    """Returns the default and the best joint reading, and two for comparison."""
    ours = [row for row in rows() if row.joint.engine == PAPER]
    return {
        "default": rows()[0],
        "best": max(ours, key=lambda row: row.met(TOLERANCE)),
        "8 banks and 24 FSMs": next(row for row in rows() if row.joint.engine == VARIANT_NAME),
        "complete roofline of GNMT": next(row for row in ours if row.joint.reading.part == 1),
    }


def scores() -> tuple[Score, ...]:
    """Returns the distinct simulated values within 15 % of some joint readings.

    Values of figures 5 and 6 and of table 4 depend on the endpoint only. They are those of the
    paper's ACE in every reading.
    """
    agreed, fixed = counted(compared([*memory_values(), *sm_values(), *silicon_values()]))
    return tuple(
        Score(
            name=name,
            meaning=_choices(row.joint),
            met=row.met(TOLERANCE) + agreed,
            values=len(row.values) + fixed,
        )
        for name, row in chosen().items()
    )


def score() -> pl.DataFrame:
    """Returns the counts of `scores`, and those within 5 %."""
    return pl.DataFrame(
        [
            {
                "joint_reading": one.name,
                "choices": one.meaning,
                "within_15": f"{one.met} of {one.values}",
                "within_5": f"{row.met(WITHIN)} of {len(row.values)} of figures 9, 11, 12",
                "conclusions": row.shown()["conclusions"],
            }
            for one, row in zip(scores(), chosen().values(), strict=True)
        ]
    )


def _choices(joint: Joint) -> str:
    reading = joint.reading
    parts = [
        f"cycles of files at {reading.clock}",
        f"gradients of {reading.gradient} B",
        f"compute scaled by `{reading.scaling}`",
        f"ACE: {joint.engine}",
    ]
    return ", ".join([*parts, joint.name] if joint.name else parts)


def case_of(
    model: str, size: str, configuration: Configuration, reading: Reading, iterations: int = 2
) -> Case:
    """Returns the run of a reading without the choices that have no effect on it."""
    return Case(model, size, configuration, effective(model, configuration, reading), iterations)


def run(case: Case) -> Outcome:
    """Runs the iterations of a case."""
    result = step(
        case.model,
        case.size,
        case.configuration,
        reading=case.reading,
        iterations=case.iterations,
    )
    counted = case.size == LARGEST and case.configuration.kind == "ace"
    return Outcome(
        iteration(result),
        (result.exposed + result.idle) / result.iterations,
        period(result),
        active_percent(result)[1] if counted else float("nan"),
    )


def _configurations(joint: Joint) -> list[Configuration]:
    return [*(configurations()[name] for name in BASELINES), ENGINES[joint.engine]]


def _background(joint: Joint, name: str) -> tuple[Case, Case]:
    """Returns the runs of figure 12: the default loop, and tables in the background."""
    one = ENGINES[joint.engine] if name == "ace" else configurations()[name]
    default, background = (
        case_of("dlrm_libra", LARGEST, replace(one, background=background), joint.reading, _LOOPS)
        for background in (False, True)
    )
    return default, background


def _cases(joint: Joint) -> Iterable[Case]:
    for model, size, one in product(MODELS, SIZES, _configurations(joint)):
        yield case_of(model, size, one, joint.reading)
    for name in BACKGROUND:
        yield from _background(joint, name)


def _times(joint: Joint, found: Outcomes) -> dict[tuple[str, str, str], Outcome]:
    """Returns the outcomes by model, size and configuration."""
    names = (*BASELINES, "ace")
    return {
        (model, size, name): found[case_of(model, size, one, joint.reading)]
        for model, size in product(MODELS, SIZES)
        for name, one in zip(names, _configurations(joint), strict=True)
    }


def _conclusions(joint: Joint, found: Outcomes) -> list[Conclusion]:
    times = _times(joint, found)
    return of_iterations(
        {case: one.time / 1e9 for case, one in times.items()},
        {case: one.exposed / 1e9 for case, one in times.items()},
    )


def values_of(joint: Joint, found: Outcomes) -> Values:
    """Returns published values and those of a reading, by name."""
    times = _times(joint, found)
    gains = {
        (model, size): [
            times[model, size, name].time / times[model, size, "ace"].time for name in BASELINES
        ]
        for model, size in product(MODELS, SIZES)
    }
    values: Values = {}
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
        values[f"{model}_active"] = (published, times[model, LARGEST, "ace"].active)
    for name, published in BACKGROUND.items():
        default, background = (found[case].period for case in _background(joint, name))
        values[f"background_{name}"] = (published, default / background)
    return values

"""The fit of the machine to the rows N = 4, 8 and 16 of Table 2, for each law of its detours.

`search()` fits six parameters for each law; `FITS` has its results. The law with the smallest
misfit on these three rows is the machine of all exhibits, `FITTED`. The other eight rows of Table 2
select nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from tutti.platforms.conditions import Conditions, Noise, Uniform
from tutti_papers.claims import TOLERANCE
from tutti_papers.recursive_multiplying.archer import BLOCKS, CALIBRATED, Archer, predicted
from tutti_papers.recursive_multiplying.published import TABLE_2, reduction, times_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from tutti_papers.recursive_multiplying.published import Table2Row

CHANGED = ("alpha_p", "alpha_r", "hop", "interval", "detour", "spread")
"""The parameters that the fit of a law changes."""

START = Archer(alpha_p=0.835, alpha_r=0.345, hop=0.1, interval=30, detour=5, spread=0.4)
"""Start of a fit. alpha_p and alpha_r solve row N = 4 without noise: 2 (alpha_p + alpha_r) = 2.36,
alpha_p + 3 alpha_r = 1.87. The other values are rough estimates."""

EXPONENTIAL = Archer(
    alpha_p=0.911, alpha_r=0.370, hop=0.132, interval=29.3, detour=4.88, spread=0.420
)
"""The result of `calibrate()`, to three digits: exponential detours."""

FITTED = Archer(
    alpha_p=0.840, alpha_r=0.363, hop=0.359, interval=20.8, detour=4.22, spread=0.539, shape=1.9
)
"""The machine of all exhibits: the fit with the smallest misfit of `FITS`."""

FITS: dict[str, Archer] = {
    "exponential": EXPONENTIAL,
    "exponential, refitted": Archer(0.834, 0.38, 0.375, 22.1, 4.04, 0.528),
    "Pareto 1.5": Archer(0.938, 0.367, 0.385, 27.7, 4.44, 0.463, shape=1.5),
    "Pareto 1.7": Archer(0.838, 0.378, 0.386, 20.8, 3.99, 0.545, shape=1.7),
    "Pareto 1.8": Archer(0.834, 0.375, 0.354, 21.2, 4.16, 0.512, shape=1.8),
    "Pareto 1.9": FITTED,
    "Pareto 2.0": Archer(0.83, 0.361, 0.403, 20.7, 4.28, 0.542, shape=2.0),
    "Pareto 2.1": Archer(0.826, 0.365, 0.386, 20.4, 4.32, 0.551, shape=2.1),
    "Pareto 2.4": Archer(0.808, 0.36, 0.385, 20.5, 4.53, 0.544, shape=2.4),
    "Pareto 2.6": Archer(0.848, 0.354, 0.392, 25.8, 5.27, 0.491, shape=2.6),
    "Pareto 3.0": Archer(0.946, 0.34, 0.221, 24.4, 5.11, 0.528, shape=3.0),
}
"""The best fit that repeated searches found, to three digits, by law."""

CALIBRATED_ROWS = tuple(row for row in TABLE_2 if row.ranks in CALIBRATED)
HELD_BACK = tuple(row for row in TABLE_2 if row.ranks not in CALIBRATED)
"""The eight predicted rows, not used in the fit."""

Prediction = dict[str, float]


def misfit(machine: Archer, blocks: int = BLOCKS) -> float:
    """Returns the root mean square of log(predicted / published) on the calibrated rows."""
    squares = [
        math.log(ours[name] / theirs) ** 2
        for row in CALIBRATED_ROWS
        for ours in [predicted(machine, row, blocks)]
        for name, theirs in times_of(row).items()
    ]
    return math.sqrt(sum(squares) / len(squares))


def calibrate(
    start: Archer = START, *, blocks: int = BLOCKS, step: float = 0.2, finest: float = 0.02
) -> Archer:
    """Returns parameters with a small misfit, by coordinate descent; it takes minutes.

    It changes one parameter at a time, and not the law of the detours. The relative step starts at
    `step` and is halved down to `finest`. The result is deterministic.
    """
    best, least = start, misfit(start, blocks)
    while step >= finest:
        before = least
        for name in CHANGED:
            for factor in (1 + step, 1 / (1 + step)):
                tried = replace(best, **{name: getattr(best, name) * factor})
                found = misfit(tried, blocks)
                if found < least:
                    best, least = tried, found
                    break
        if least > 0.99 * before:
            step /= 2
    return best


def by_simplex(start: Archer, *, blocks: int = BLOCKS, runs: int = 110) -> Archer:
    """Returns parameters with a small misfit, by the method of Nelder and Mead on logarithms.

    Unlike `calibrate`, it follows valleys along which several parameters change.
    """
    from scipy.optimize import minimize  # an optional dependency

    first = np.log([getattr(start, name) for name in CHANGED])
    corners = np.vstack([first, first + 0.15 * np.eye(len(CHANGED))])

    def machine(logarithms: np.ndarray) -> Archer:
        return replace(start, **dict(zip(CHANGED, map(float, np.exp(logarithms)), strict=True)))

    found = minimize(
        lambda logarithms: misfit(machine(logarithms), blocks), first, method="Nelder-Mead",
        options={"initial_simplex": corners, "maxfev": runs, "xatol": 0.004, "fatol": 2e-4},
    )  # fmt: skip
    return machine(found.x)


def search(start: Archer, shapes: Iterable[float | None]) -> Iterator[Archer]:
    """Yields a fit for each shape of Pareto detours, or None for exponential ones.

    Each fit starts at `start`, the best one so far. One to four such searches per law, on a fast
    copy of the model, gave `FITS`; the misfit has many local minima.
    """
    for shape in shapes:
        yield calibrate(by_simplex(replace(start, shape=shape)), step=0.04)


def errors(
    rows: Iterable[Table2Row], predict: Callable[[Table2Row], Prediction]
) -> dict[str, float]:
    """Returns mean absolute errors of rows: times in per cent, reductions in points."""
    pairs = [(predict(row), times_of(row)) for row in rows]
    found = {}
    for name, which in (("minima", "minimum"), ("medians", "median")):
        found[f"{name}, %"] = 100 * fmean(
            abs(ours[f"{of}_{which}"] / theirs[f"{of}_{which}"] - 1)
            for ours, theirs in pairs
            for of in ("rd", "rm")
        )
        found[f"reductions of {name}, points"] = fmean(
            abs(reduction(ours, which) - reduction(theirs, which)) for ours, theirs in pairs
        )
    return found


def agreeing(rows: Iterable[Table2Row], predict: Callable[[Table2Row], Prediction]) -> int:
    """Returns how many times of rows are within `TOLERANCE` of the published ones."""
    return sum(
        abs(predict(row)[name] / theirs - 1) <= TOLERANCE
        for row in rows
        for name, theirs in times_of(row).items()
    )


@dataclass(frozen=True)
class Jittered(Archer):
    """The machine with a uniform delay of each message instead of detours (section 6.5).

    Attributes:
        jitter: The longest delay of a message in us.
    """

    jitter: float = 0

    def conditions(self, allocation: int) -> Conditions:  # noqa: ARG002 - of the base class
        """Returns the noise, which is the same for all allocations."""
        noise = Noise(message=Uniform(high=f"{round(self.jitter * 1e6)} ps"))
        return Conditions(noise=noise, wait_for_sends=True)


JITTERS = (0.5, 1.0, 1.5, 2.0, 3.0, 4.0)
"""Longest delays of a message in us; section 6.5 does not state the paper's."""


def misfit_of_uniform_noise() -> float:
    """Returns the smallest misfit of a topology with uniform noise, over `JITTERS`.

    The latencies are those that solve row N = 4 without noise.
    """
    quiet = {name: getattr(START, name) for name in CHANGED}
    return min(misfit(Jittered(**quiet, jitter=jitter)) for jitter in JITTERS)

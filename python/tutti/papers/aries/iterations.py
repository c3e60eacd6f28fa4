"""Iterations of the applications on each network, and the speedups of ARIES."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import product
from statistics import geometric_mean
from typing import TYPE_CHECKING

from tutti.overlap import Overlap, Overlapped
from tutti.papers.aries.applications import APPLICATIONS, BATCHES, layers
from tutti.papers.aries.published import NETWORKS
from tutti.papers.aries.system import ALGORITHMS, BEST, SIDES, fastest
from tutti.units import Size, Time

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from tutti.papers.aries.system import Assumptions, Case
    from tutti.phases import PhasedRun
    from tutti.workload import TimedLayer

Key = tuple[str, str, int, str]
"""Network, algorithm, side, application."""

Speedups = dict[tuple[str, int, str], tuple[float, float]]
"""By algorithm, side and baseline network: speedups of iterations, and of communication alone,
geometric means over the applications."""

EVERY = ("aries", BEST, *NETWORKS)


@dataclass(frozen=True)
class Iteration:
    """An iteration of an application.

    Attributes:
        overlapped: Hidden and exposed time of its all_reduces.
        runs: The all_reduce of each layer that has one; empty if times were interpolated.
    """

    overlapped: Overlapped
    runs: tuple[PhasedRun, ...] = ()


@cache
def iterations() -> dict[Key, Iteration]:
    """Returns an iteration of every application on every network with every algorithm."""
    applications = _applications(BATCHES[0])
    runs = fastest(list(product(EVERY, ALGORITHMS, SIDES)), _sizes(applications))
    return {
        (*case, name): _step(
            of_one, {size: run for (its, size), run in runs.items() if its == case}
        )
        for case in product(EVERY, ALGORITHMS, SIDES)
        for name, of_one in applications.items()
    }


def _step(of_one: Sequence[TimedLayer], runs: Mapping[Size, PhasedRun]) -> Iteration:
    overlapped = Overlap(of_one).run(lambda size: runs[size].time)
    return Iteration(
        overlapped, tuple(runs[row.gradients] for row in of_one if row.gradients.bytes)
    )


def interpolated(
    assumptions: Assumptions, batch: str, networks: Iterable[str], algorithms: Iterable[str]
) -> dict[Key, Iteration]:
    """Returns iterations, with times interpolated linearly between powers of two of the size."""
    applications = _applications(batch)
    sizes = _sizes(applications)
    powers = range(sizes[0].bytes.bit_length() - 1, sizes[-1].bytes.bit_length() + 1)
    grid = [Size(bytes=1 << power) for power in powers]
    cases = list(product(networks, algorithms, SIDES))
    runs = fastest(cases, grid, assumptions, quiet=True)

    def line(case: Case) -> Callable[[Size], Time]:
        times = [runs[case, size].completion_ps for size in grid]

        def at(size: Size) -> Time:
            index = size.bytes.bit_length() - grid[0].bytes.bit_length()
            before, after = grid[index].bytes, grid[index + 1].bytes
            part = (size.bytes - before) / (after - before)
            return Time(ps=round(times[index] + part * (times[index + 1] - times[index])))

        return at

    return {
        (*case, name): Iteration(Overlap(of_one).run(line(case)))
        for case in cases
        for name, of_one in applications.items()
    }


def _applications(batch: str) -> dict[str, tuple[TimedLayer, ...]]:
    return {name: layers(name, batch) for name in APPLICATIONS}


def _sizes(applications: Mapping[str, Sequence[TimedLayer]]) -> list[Size]:
    sizes = {layer.gradients for of_one in applications.values() for layer in of_one}
    return sorted(size for size in sizes if size.bytes)


def speedups(found: dict[Key, Iteration], of: str = "aries") -> Speedups:
    """Returns the speedups of `of`, geometric mean over the applications.

    Returns:
        Speedups of iterations, and of communication alone.
    """
    result = {}
    for algorithm, side, network in product(ALGORITHMS, SIDES, NETWORKS):
        pairs = [
            tuple(found[one, algorithm, side, name].overlapped for one in (network, of))
            for name in APPLICATIONS
            if (network, algorithm, side, name) in found
        ]
        if pairs:
            result[algorithm, side, network] = (
                geometric_mean(slow.iteration.ps / fast.iteration.ps for slow, fast in pairs),
                geometric_mean(
                    slow.communication.ps / fast.communication.ps for slow, fast in pairs
                ),
            )
    return result

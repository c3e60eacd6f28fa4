"""Iterations of the applications on the networks, and how much faster they are on ARIES."""

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

    from tutti.papers.aries.system import Case, Readings
    from tutti.phases import PhasedRun
    from tutti.workload import TimedLayer

Key = tuple[str, str, int, str]
"""Network, algorithm, side, application."""

Speedups = dict[tuple[str, int, str], tuple[float, float]]
"""By algorithm, side and the network that ARIES is compared with: times over those of ARIES, of
iterations and of communication alone, geometric means over the applications."""

EVERY = ("aries", BEST, *NETWORKS)


@dataclass(frozen=True)
class Iteration:
    """An iteration of an application.

    Attributes:
        overlapped: What of its all-reduces is hidden.
        runs: The all-reduce of each layer that has one; none where times were interpolated.
    """

    overlapped: Overlapped
    runs: tuple[PhasedRun, ...] = ()


@cache
def iterations() -> dict[Key, Iteration]:
    """An iteration of every application, on every network, with every algorithm."""
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
    readings: Readings, batch: str, networks: Iterable[str], algorithms: Iterable[str]
) -> dict[Key, Iteration]:
    """The same from times at sizes that double, with straight lines between them."""
    applications = _applications(batch)
    sizes = _sizes(applications)
    powers = range(sizes[0].bytes.bit_length() - 1, sizes[-1].bytes.bit_length() + 1)
    grid = [Size(bytes=1 << power) for power in powers]
    cases = list(product(networks, algorithms, SIDES))
    runs = fastest(cases, grid, readings, quiet=True)

    def line(case: Case) -> Callable[[Size], Time]:
        times = [runs[case, size].completion_ps for size in grid]

        def at(size: Size) -> Time:
            place = size.bytes.bit_length() - grid[0].bytes.bit_length()
            before, after = grid[place].bytes, grid[place + 1].bytes
            part = (size.bytes - before) / (after - before)
            return Time(ps=round(times[place] + part * (times[place + 1] - times[place])))

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
    """Times over those of ARIES, mean over applications: iterations, and communication alone."""
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

"""Iterations of the applications on each network, and the speedups of ARIES."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import product
from statistics import geometric_mean
from typing import TYPE_CHECKING

from tutti.base.progress import at_once
from tutti.base.units import Size, Time
from tutti.bypass.package_networks import ALGORITHMS, DEFAULT, SIDES, Assumptions, variants
from tutti.training.overlap import Overlap, Overlapped
from tutti_papers.aries.applications import APPLICATIONS, BATCHES, layers
from tutti_papers.aries.published import NETWORKS
from tutti_papers.aries.system import Case, fastest, fastest_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tutti.collectives.phases import PhasedRun
    from tutti.workloads import TimedLayer

Key = tuple[str, str, int, str]
"""Network, algorithm, side, application."""

Speedups = dict[tuple[str, int, str], tuple[float, float]]
"""By algorithm, side and baseline network: speedups of iterations, and of communication alone,
geometric means over the applications."""

EVERY = ("aries", *NETWORKS)
CASES: tuple[Case, ...] = tuple(product(EVERY, ALGORITHMS, SIDES))


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
    runs = fastest(CASES, _sizes(applications))
    return {
        (*case, name): _step(
            of_one, {size: run for (its, size), run in runs.items() if its == case}
        )
        for case in CASES
        for name, of_one in applications.items()
    }


def _step(of_one: Sequence[TimedLayer], runs: Mapping[Size, PhasedRun]) -> Iteration:
    overlapped = Overlap(of_one).run(lambda size: runs[size].time)
    return Iteration(
        overlapped, tuple(runs[row.gradients] for row in of_one if row.gradients.bytes)
    )


def interpolated(
    assumptions: Assumptions, batch: str = BATCHES[0], cases: Iterable[Case] = CASES
) -> dict[Key, Iteration]:
    """Returns iterations, with times interpolated linearly between powers of two of the size.

    Equal cases of several assumptions are simulated once.
    """
    requested = {case: assumptions.relevant(*case[:2]) for case in cases}
    at_once(lambda case: variants(*case, requested[case]), requested, None)
    points = list(product(requested, grid()))
    at_once(lambda point: _took(point[0], requested[point[0]], point[1]), points, None)
    return {
        (*case, name): _interpolated(case, its, batch, name)
        for case, its in requested.items()
        for name in APPLICATIONS
    }


@cache
def _took(case: Case, assumptions: Assumptions, size: Size) -> int:
    """Returns the time of an all_reduce in ps."""
    return fastest_of(variants(*case, assumptions), size).completion_ps


@cache
def _interpolated(case: Case, assumptions: Assumptions, batch: str, name: str) -> Iteration:
    times = {size: _took(case, assumptions, size) for size in grid()}
    return overlapped(times, batch, name)


def overlapped(times: Mapping[Size, int], batch: str, name: str) -> Iteration:
    """Returns an iteration of an application from all_reduce times in ps, at sizes of `grid`."""
    sizes = grid()
    first = sizes[0].bytes.bit_length()

    def at(size: Size) -> Time:
        index = size.bytes.bit_length() - first
        before, after = sizes[index], sizes[index + 1]
        part = (size.bytes - before.bytes) / (after.bytes - before.bytes)
        return Time(ps=round(times[before] + part * (times[after] - times[before])))

    return Iteration(Overlap(layers(name, batch)).run(at))


@cache
def grid() -> tuple[Size, ...]:
    """Returns the powers of two around the sizes of all applications."""
    sizes = [size for batch in BATCHES for size in _sizes(_applications(batch))]
    powers = range(min(sizes).bytes.bit_length() - 1, max(sizes).bytes.bit_length() + 1)
    return tuple(Size(bytes=1 << power) for power in powers)


def _applications(batch: str) -> dict[str, tuple[TimedLayer, ...]]:
    return {name: layers(name, batch) for name in APPLICATIONS}


def _sizes(applications: Mapping[str, Sequence[TimedLayer]]) -> list[Size]:
    sizes = {layer.gradients for of_one in applications.values() for layer in of_one}
    return sorted(size for size in sizes if size.bytes)


def read_as(
    default: Mapping[Key, Iteration], assumptions: Assumptions, batch: str
) -> dict[Key, Iteration]:
    """Returns the iterations under other assumptions; others are the default ones."""
    affected = [
        case
        for case in CASES
        if batch != BATCHES[0] or assumptions.relevant(*case[:2]) != DEFAULT.relevant(*case[:2])
    ]
    return dict(default) | interpolated(assumptions, batch, affected)


def speedups(found: Mapping[Key, Iteration]) -> Speedups:
    """Returns the speedups of ARIES, geometric mean over the applications.

    Returns:
        Speedups of iterations, and of communication alone.
    """
    result = {}
    for algorithm, side, network in product(ALGORITHMS, SIDES, NETWORKS):
        pairs = [
            tuple(found[one, algorithm, side, name].overlapped for one in (network, "aries"))
            for name in APPLICATIONS
            if (network, algorithm, side, name) in found
        ]
        if pairs:
            result[algorithm, side, network] = ratios(pairs)
    return result


def ratios(pairs: Sequence[tuple[Overlapped, ...]]) -> tuple[float, float]:
    """Returns the mean speedups of pairs of a slow and a fast iteration: total, communication."""
    return (
        geometric_mean(slow.iteration.ps / fast.iteration.ps for slow, fast in pairs),
        geometric_mean(slow.communication.ps / fast.communication.ps for slow, fast in pairs),
    )

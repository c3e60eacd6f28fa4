"""Iterations of the applications on each network, and the speedups of ARIES.

Every all-reduce is simulated at some sizes. Times between them are interpolated and beyond them
extrapolated: for one schedule they are nearly a latency and a time per byte.
"""

from __future__ import annotations

from bisect import bisect
from collections import Counter
from dataclasses import dataclass
from functools import cache
from itertools import product
from statistics import fmean, geometric_mean
from typing import TYPE_CHECKING, Literal, NamedTuple

from tutti.base.progress import at_once
from tutti.base.units import Size, Time
from tutti.bypass.package_networks import ALGORITHMS, DEFAULT, SIDES, Assumptions, variants
from tutti.bypass.plans import run_on
from tutti.training.overlap import Overlap, Overlapped
from tutti_papers.aries.applications import APPLICATIONS, BATCHES, layers
from tutti_papers.aries.published import NETWORKS, UP_TO

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tutti.bypass.package_networks import Variant
    from tutti.collectives.phases import PhasedRun
    from tutti.schedules.ir import Schedule
    from tutti.topologies import Routes

    VariantKey = tuple[Schedule, tuple[Routes, ...], int]

Case = tuple[str, str, int]
"""Network, algorithm, side."""
Key = tuple[str, str, int, str]
"""Network, algorithm, side, application."""

Speedups = dict[tuple[str, int, str], tuple[float, float]]
"""By algorithm, side and baseline network: mean speedups over the applications of iterations, and
of communication alone."""

Mean = Literal["stated", "arithmetic", "geometric"]
"""How speedups of the applications are combined. `stated`: the maximum where the text states "up
to", otherwise the arithmetic mean."""

EVERY = ("aries", *NETWORKS)
CASES: tuple[Case, ...] = tuple(product(EVERY, ALGORITHMS, SIDES))
SPLITS = (1, 4)
"""Parts of an all-reduce, sequentially: none, and those of ASTRA-sim's
`inputs/system/sample_torus_sys.txt` (`preferred-dataset-splits: 4`,
`active-chunks-per-dimension: 1`)."""
_LARGEST, _SMALL = 16 << 20, 256 << 10
"""The largest simulated size; beyond, times are linear. The largest of the small ones, in which the
number of packets grows with the size."""


@dataclass(frozen=True)
class Iteration:
    """An iteration of an application.

    Attributes:
        overlapped: Hidden and exposed time of its all-reduces.
        carried: Bytes that each variant of the case all-reduces, by its index.
    """

    overlapped: Overlapped
    carried: Mapping[int, int]


def iterations(
    assumptions: Assumptions = DEFAULT,
    batch: str = BATCHES[0],
    splits: int = 1,
    cases: Iterable[Case] = CASES,
) -> dict[Key, Iteration]:
    """Returns an iteration of every application on every network with every algorithm."""
    requested = {case: assumptions.relevant(*case[:2]) for case in cases}
    simulate_all(requested.items())
    return {
        (*case, name): iteration(case, its, Load(name, batch, splits))
        for case, its in requested.items()
        for name in APPLICATIONS
    }


def simulate_all(requests: Iterable[tuple[Case, Assumptions]], what: str | None = None) -> None:
    """Simulates the all-reduces of cases at every size of `grid` in parallel, each variant once."""
    known = at_once(lambda request: variants(*request[0], request[1]), dict.fromkeys(requests),
                    what and f"{what}: mappings")  # fmt: skip
    every = {key_of(variant): variant for some in known.values() for variant in some}
    at_once(lambda point: _took(*point), product(every, grid()), what)


def key_of(variant: Variant) -> VariantKey:
    """Returns what determines the run of a variant."""
    return variant.schedule, variant.routes, variant.switch.ps


def simulated(key: VariantKey, size: Size) -> PhasedRun:
    """Returns the run of a variant."""
    schedule, routes, switch = key
    return run_on(schedule, routes, size, switch=Time(ps=switch), datatype="int8")


@cache
def _took(key: VariantKey, size: Size) -> int:
    """Returns the time of an all-reduce in ps."""
    return simulated(key, size).completion_ps


class Load(NamedTuple):
    """An application and its all-reduces."""

    name: str
    batch: str
    """One of `BATCHES`."""
    splits: int = 1
    """Parts of each all-reduce, sequentially."""


@cache
def iteration(case: Case, assumptions: Assumptions, load: Load) -> Iteration:
    """Returns the iteration of an application, which takes the fastest variant for each size.

    Args:
        case: Network, algorithm and side.
        assumptions: The assumptions that affect the case.
        load: The application.
    """
    keys = map(key_of, variants(*case, assumptions))
    return fastest(tuple(tuple(_took(key, size) for size in grid()) for key in keys), load)


@cache
def fastest(times: tuple[tuple[int, ...], ...], load: Load) -> Iteration:
    """Returns an iteration with the fastest of several all-reduces for each size.

    Args:
        times: Times in ps of each all-reduce at the sizes of `grid`.
        load: The application.
    """
    carried: Counter[int] = Counter()
    took: dict[Size, Time] = {}
    for layer in layers(load.name, load.batch):
        size = layer.gradients
        if size.bytes:
            part = size.bytes / load.splits
            ps, index = min((_at(of_one, part), index) for index, of_one in enumerate(times))
            took[size] = Time(ps=round(load.splits * ps))
            carried[index] += size.bytes
    return Iteration(Overlap(layers(load.name, load.batch)).run(took.__getitem__), carried)


def _at(times: tuple[int, ...], size: float) -> float:
    """Returns the time at a size, between or beyond those of `grid`."""
    sizes = [one.bytes for one in grid()]
    index = min(max(bisect(sizes, size) - 1, 0), len(sizes) - 2)
    part = (size - sizes[index]) / (sizes[index + 1] - sizes[index])
    return times[index] + part * (times[index + 1] - times[index])


@cache
def grid() -> tuple[Size, ...]:
    """Returns the simulated sizes: powers of two, and of four where chunks have all packets."""
    least = min(
        layer.gradients.bytes
        for batch, name in product(BATCHES, APPLICATIONS)
        for layer in layers(name, batch)
        if layer.gradients.bytes
    )
    sizes = [_LARGEST]
    while sizes[-1] > least // max(SPLITS):
        sizes.append(sizes[-1] // (4 if sizes[-1] > _SMALL else 2))
    return tuple(Size(bytes=size) for size in reversed(sizes))


def speedups(found: Mapping[Key, Iteration], mean: Mean = "stated") -> Speedups:
    """Returns the mean speedups of ARIES: of iterations, and of communication alone."""
    result = {}
    for algorithm, side, network in product(ALGORITHMS, SIDES, NETWORKS):
        pairs = [
            tuple(found[one, algorithm, side, name].overlapped for one in (network, "aries"))
            for name in APPLICATIONS
            if (network, algorithm, side, name) in found
        ]
        if pairs:
            result[algorithm, side, network] = ratios(pairs, averaging(mean, algorithm, side))
    return result


def averaging(mean: Mean, algorithm: str, side: int) -> Mean | Literal["maximum"]:
    """Returns how speedups of an algorithm and size are combined."""
    if mean != "stated":
        return mean
    return "maximum" if (algorithm, side) in UP_TO else "arithmetic"


def ratios(
    pairs: Sequence[tuple[Overlapped, ...]], mean: Mean | Literal["maximum"] = "arithmetic"
) -> tuple[float, float]:
    """Returns the mean speedups of pairs of a slow and a fast iteration: total, communication."""
    return (
        _combined([slow.iteration.ps / fast.iteration.ps for slow, fast in pairs], mean),
        _combined([slow.communication.ps / fast.communication.ps for slow, fast in pairs], mean),
    )


def _combined(values: Sequence[float], mean: str) -> float:
    if mean == "maximum":
        return max(values)
    return geometric_mean(values) if mean == "geometric" else fmean(values)

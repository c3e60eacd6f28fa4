"""Times dispatch and combine of a layer of experts on a platform.

Both are all-to-alls with messages of unequal size. The lower bound is the largest time of a link
for its bytes. The flow network gives the time of an all_to_all_v in which every rank sends all
messages at once (`direct`). docs/models/moe.md has the equations.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tutti.base.errors import ConfigError
from tutti.base.units import Size
from tutti.collectives.case import make_case, measured
from tutti.schedules.errors import AlgorithmError
from tutti.schedules.ir import schedule
from tutti.schedules.proving import verify
from tutti.view.quantity import format_time
from tutti.workloads.experts import STAGES, balanced, copies, imbalance

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from tutti import _core
    from tutti.platforms.machine import Platform
    from tutti.topologies import Routes
    from tutti.workloads.experts import Choices, ExpertLayer, Kernel, Matrix, Placement, Stage

MOST_SIMULATED = 32
"""The most ranks that are simulated by default; the number of messages grows with the square."""


class Quantiles(NamedTuple):
    """A median over samples of the routing, with its 5 % and 95 % quantiles."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Quantiles:
        """Returns the range of values."""
        low, median, high = np.quantile(values, [0.05, 0.5, 0.95])
        return cls(float(median), float(low), float(high))


@dataclass(frozen=True, kw_only=True)
class StageTimes:
    """Dispatch or combine.

    Attributes:
        bound_ps: The lower bound by link capacities, in ps.
        time_ps: The time by the flow network, in ps; None if it was not simulated.
        relative_bound: The bound over that of the same bytes, spread evenly over the ranks.
        bottleneck: The link that determines the bound, in the sample of the median.
        network_bytes: Mean bytes that a rank sends to other nodes, including those of relays.
        node_bytes: Mean bytes that a rank sends to ranks of its node.
    """

    bound_ps: Quantiles
    time_ps: Quantiles | None
    relative_bound: Quantiles
    bottleneck: str
    network_bytes: float
    node_bytes: float

    @property
    def best_ps(self) -> Quantiles:
        """The simulated time, or else the lower bound."""
        return self.time_ps or self.bound_ps


@dataclass(frozen=True, kw_only=True)
class ExpertTimes:
    """Times of a kernel on a number of ranks.

    Attributes:
        kernel: The kernel.
        ranks: The number of ranks.
        imbalance: Received copies of the busiest rank over the mean.
        dispatch: The times of dispatch.
        combine: The times of combine.
    """

    kernel: Kernel
    ranks: int
    imbalance: Quantiles
    dispatch: StageTimes
    combine: StageTimes

    @property
    def total_ps(self) -> float:
        """The median of dispatch plus that of combine."""
        return self.dispatch.best_ps.median + self.combine.best_ps.median

    @property
    def bound_ps(self) -> float:
        """The median of the lower bound of dispatch plus that of combine."""
        return self.dispatch.bound_ps.median + self.combine.bound_ps.median

    @property
    def is_simulated(self) -> bool:
        """Whether :attr:`total_ps` is simulated, not a lower bound."""
        return self.dispatch.time_ps is not None


class Links:
    """The links of a platform, and the pairs of ranks whose routes use them."""

    def __init__(self, platform: Platform, ranks: int) -> None:
        """Finds the routes between the first ranks of a platform.

        Raises:
            ConfigError: The platform has no topology, fewer ranks, or no fixed routes.
        """
        self._routes = _fixed_routes(platform, ranks)
        self._ranks = ranks

    @cached_property
    def _uses(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Links, and for each the number of its pair of ranks."""
        core = self._routes.core
        paths = [core.path(a, b) for a in range(self._ranks) for b in range(self._ranks)]
        pairs = np.repeat(np.arange(len(paths)), [len(path) for path in paths])
        return np.array([link for path in paths for link in path], dtype=np.int64), pairs

    @cached_property
    def _ps_per_byte(self) -> NDArray[np.float64]:
        return np.array([link.rate.core.ps_per_byte for link in self._routes.topology.links])

    def times_ps(self, matrix: Matrix | NDArray[np.float64], size: int) -> NDArray[np.float64]:
        """Returns the time of each link for its bytes, in ps.

        Args:
            matrix: Copies from each rank to each rank, shape (ranks, ranks).
            size: The bytes of a copy.
        """
        links, pairs = self._uses
        weights = matrix.ravel()[pairs]
        loads = np.bincount(links, weights=weights, minlength=len(self._ps_per_byte))
        return loads * size * self._ps_per_byte

    def name(self, index: int) -> str:
        """Returns the ends of a link."""
        link = self._routes.topology.links[index]
        return f"{link.source} to {link.target}"


def _fixed_routes(platform: Platform, ranks: int) -> Routes:
    routes = platform.routes
    if routes is None or routes.choice is not None:
        lack = "topology" if routes is None else "fixed routes"
        message = f"platform {platform.name} has no {lack}: dispatch loads its links"
        hint = "use a platform with a topology and static routing, such as dgx_h100_cluster"
        raise ConfigError(message, kind="invalid", hint=hint)
    if ranks > routes.topology.ranks:
        most = routes.topology.ranks
        message = f"platform {platform.name} has {most} ranks: expected {ranks} or more"
        raise ConfigError(message, kind="invalid", hint="use fewer ranks, or a larger topology")
    return routes


def time_experts(
    layer: ExpertLayer,
    placement: Placement,
    samples: Sequence[Choices],
    platform: Platform,
    kernel: Kernel,
    *,
    most_simulated: int = MOST_SIMULATED,
) -> ExpertTimes:
    """Returns times of dispatch and combine over samples of the routing.

    The sample with the median bound is simulated; the interval of its time is that of the bounds,
    scaled. In the `normal` kernel relays forward copies while others arrive, so that messages of
    both hops are concurrent; the time of one forwarded copy is added.

    Args:
        layer: The layer.
        placement: The placement of experts and ranks.
        samples: Experts of each token, one array per sample.
        platform: A platform with fixed routes; rank i is its NPU i.
        kernel: The kernel.
        most_simulated: The most ranks to simulate.

    Raises:
        ConfigError: The platform has no topology, fewer ranks, or no fixed routes.
    """
    links = Links(platform, placement.ranks)
    matrices = [copies(choices, placement, kernel) for choices in samples]
    times: dict[Stage, StageTimes] = {}
    middle: dict[Stage, Matrix] = {}
    for stage in STAGES:
        sent = [one if stage == "dispatch" else one.T for one in matrices]
        times[stage], middle[stage] = _bounds(sent, links, layer.token_bytes(stage), placement)
    if 1 < placement.ranks <= most_simulated:
        forwards = kernel == "normal" and 1 < placement.per_node < placement.ranks
        found = _simulated(middle, platform, layer, forwards=forwards)
        times = {stage: _with_time(times[stage], found[stage]) for stage in STAGES}
    return ExpertTimes(
        kernel=kernel,
        ranks=placement.ranks,
        imbalance=Quantiles.of([_received(choices, placement) for choices in samples]),
        dispatch=times["dispatch"],
        combine=times["combine"],
    )


def all_to_all_of_library(layer: ExpertLayer, platform: Platform, ranks: int) -> str:
    """Returns what the platform's library takes to dispatch a copy per selected expert.

    Empty without a library, or if its model has no answer.

    Args:
        layer: The layer; its routing is balanced.
        platform: The platform.
        ranks: The number of first ranks.
    """
    if platform.library is None or ranks < 2:
        return ""
    size, model = layer.tokens * layer.top_k * layer.token_bytes("dispatch"), platform.library.model
    try:
        found = model.default("all_to_all", ranks, size)
    except AlgorithmError:
        return ""
    return (
        f"{model.title} takes {format_time(found.time_ps)} for a balanced all_to_all of a copy per "
        f"selected expert on {ranks} ranks, of which {format_time(found.latency_ps)} are latency"
    )


def _received(choices: Choices, placement: Placement) -> float:
    """Returns the imbalance of the computation: selected experts per rank, for any kernel."""
    return imbalance(copies(choices, placement, "low_latency"))


def _bounds(
    matrices: Sequence[Matrix], links: Links, size: int, placement: Placement
) -> tuple[StageTimes, Matrix]:
    """Returns bounds, and the matrix of the sample with the median bound."""
    times = [links.times_ps(matrix, size) for matrix in matrices]
    bounds = [float(one.max(initial=0)) for one in times]
    even = [
        float(links.times_ps(balanced(one, placement), size).max(initial=0)) for one in matrices
    ]
    middle = int(np.argsort(bounds, kind="stable")[len(bounds) // 2])
    nodes = placement.nodes
    near = nodes[:, None] == nodes[None, :]
    own = np.eye(placement.ranks, dtype=bool)
    total = np.mean(matrices, axis=0) * size / placement.ranks
    found = StageTimes(
        bound_ps=Quantiles.of(bounds),
        time_ps=None,
        relative_bound=Quantiles.of(
            [bound / least if least else 1.0 for bound, least in zip(bounds, even, strict=True)]
        ),
        bottleneck=links.name(int(times[middle].argmax())) if bounds[middle] else "none",
        network_bytes=float(total[~near].sum()),
        node_bytes=float(total[near & ~own].sum()),
    )
    return found, matrices[middle]


def _simulated(
    matrices: Mapping[Stage, Matrix], platform: Platform, layer: ExpertLayer, *, forwards: bool
) -> dict[Stage, float]:
    """Returns the time of each stage in ps; their flow networks run in threads."""
    runs = []
    for stage, matrix in matrices.items():
        size = layer.token_bytes(stage)
        runs.append((stage, _case(matrix, platform, size)))
        if forwards:
            one = np.zeros_like(matrix)
            one[0, 1] = 1
            runs.append((stage, _case(one, platform, size)))
    moving = [(stage, case) for stage, case in runs if case is not None]
    times = dict.fromkeys(matrices, 0.0)
    for (stage, _), (time_ps, *_) in zip(
        moving, measured([case for _, case in moving], 0, None), strict=True
    ):
        # The launch of the platform's model is that of NCCL, not of these kernels.
        times[stage] += time_ps - platform.model.launch.ps
    return times


def _case(matrix: Matrix, platform: Platform, size: int) -> _core.Case | None:
    """Returns the concurrent messages of a matrix; None if all copies stay on their rank."""
    moved = matrix - np.diag(np.diag(matrix))
    if not moved.any():
        return None
    exchange = schedule("direct", ranks=len(moved), collective="all_to_all_v", blocks=moved)
    verify(exchange)
    payload = Size(bytes=int(moved.sum(axis=1).max()) * size)
    return make_case(exchange, platform, size=payload, datatype="uint8")


def _with_time(times: StageTimes, time: float) -> StageTimes:
    """Adds the simulated time of the median sample; the interval is that of the bounds, scaled."""
    middle = times.bound_ps.median or 1.0
    sides = (time * side / middle for side in times.bound_ps[1:])
    return replace(times, time_ps=Quantiles(time, *sides))

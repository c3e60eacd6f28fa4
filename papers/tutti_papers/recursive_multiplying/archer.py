"""The machine of the paper's measurements, with seven parameters that the paper does not state.

ARCHER is a Cray XC30: four nodes on each Aries router, 16 routers in a chassis, six chassis in a
group, a dragonfly of groups (Faanes et al., "Cray Cascade", SC 2012). The ranks of a job are
consecutive nodes. A stage ends when all of its puts have arrived (Algorithm 2: "wait on sends").

Table 2 requires an effect that the paper's simulator lacks (sections 5.5 and 8): other jobs and the
operating system occupy a node and its link for some time (a detour). Longer runs on more nodes
experience more detours. Their rate differs between allocations, as does the load of the machine.

The duration of a detour is exponential, or has the heavy tail of a Pareto distribution. `fitting`
fits both to the rows N = 4, 8 and 16 of Table 2.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

import polars as pl

import tutti
from tutti.platforms.conditions import Conditions, Exponential, Noise, Pareto, Poisson
from tutti.platforms.contention import Free
from tutti.platforms.machine import PipeliningPostal, Platform
from tutti.topologies import Topology
from tutti_papers.recursive_multiplying.published import (
    ALLOCATIONS,
    BLOCK,
    DATATYPE,
    SIZE,
    Table2Row,
    doubling,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tutti.topologies import Routes

CALIBRATED = (4, 8, 16)
"""Rows of Table 2 that the fit uses."""

BLOCKS = 25
"""Measured blocks per allocation; the paper has 250 (section 5.2)."""

DRAGONFLY = "dragonfly:p=4,a=16x6,h=10,g=4"
RATE = "10 GB/s"
"""Rate of a node's link, as in the platform `cray_xc30`; it does not affect 8 bytes."""
BETWEEN = ("5.25 GB/s", "5.25 GB/s", "4.6875 GB/s")
"""Rates of links in a row, in a column and between groups, as in `cray_xc30_dragonfly`."""


@dataclass(frozen=True)
class Archer:
    """The parameters of the machine, times in us.

    Attributes:
        alpha_p: Overlapping part of the latency of a message, within a router.
        alpha_r: Non-overlapping part of the latency.
        hop: Latency of a link between two routers, including the next router.
        interval: Mean time between detours of a node in a median allocation.
        detour: Mean duration of a detour.
        spread: Standard deviation of the logarithm of the detour rate over the allocations.
        shape: Shape of the Pareto distribution of durations, above 1; None: exponential.
    """

    alpha_p: float
    alpha_r: float
    hop: float
    interval: float
    detour: float
    spread: float
    shape: float | None = None

    def platform(self) -> Platform:
        """Returns the platform: endpoint costs and minimal routes.

        The fit covers messages of 8 B, whose derivation has no contention.
        """
        model = PipeliningPostal(alpha_p=_us(self.alpha_p), alpha_r=_us(self.alpha_r))
        routes = _routes(_us(self.hop))
        return Platform(name="archer", model=model, routes=routes, contention=Free())

    def platform_of_sizes(self, gamma: str, rate: str = RATE) -> Platform:
        """Returns the platform for larger messages, which share links, with a time per byte."""
        model = PipeliningPostal(
            alpha_p=_us(self.alpha_p), alpha_r=_us(self.alpha_r), beta=rate, gamma=gamma
        )
        return Platform(name="archer", model=model, routes=_routes(_us(self.hop), (rate, *BETWEEN)))

    def conditions(self, allocation: int) -> Conditions:
        """Returns the noise of an allocation; allocations are equally likely quantiles."""
        deviate = NormalDist().inv_cdf((allocation + 0.5) / ALLOCATIONS)
        interval = self.interval * math.exp(-self.spread * deviate)
        noise = Noise(detours=Poisson(interval=_us(interval), duration=self.duration))
        return Conditions(noise=noise, wait_for_sends=True)

    @property
    def duration(self) -> Exponential | Pareto:
        """The distribution of the duration of a detour."""
        if self.shape is None:
            return Exponential(mean=_us(self.detour))
        return Pareto(least=_us(self.detour * (1 - 1 / self.shape)), shape=self.shape)


def _us(microseconds: float) -> str:
    return f"{round(microseconds * 1e6)} ps"


@functools.cache
def _routes(hop: str, rates: tuple[str, ...] = (RATE,) * 4) -> Routes:
    terminal, *between = rates
    links = [{"rate": terminal, "latency": "0 ns"}]
    links += [{"rate": rate, "latency": hop} for rate in between]
    return Topology.build(DRAGONFLY, links=links).routes("minimal")


_COLUMNS = {
    "minimum_us": "least_ps",
    "lower_quartile_us": "lower_quartile_ps",
    "median_us": "median_ps",
    "upper_quartile_us": "upper_quartile_ps",
}


def measured(
    machine: Archer, ranks: int, schedules: Iterable[str], blocks: int, each: int = BLOCK
) -> pl.DataFrame:
    """Returns statistics of blocks of all_reduces over all allocations, a row per schedule.

    Args:
        machine: The machine.
        ranks: The number of ranks.
        schedules: Notations of recursive multiplying.
        blocks: Blocks per allocation.
        each: All_reduces of a block.

    Returns:
        Columns schedule; minimum_us, lower_quartile_us, median_us and upper_quartile_us of one
        all_reduce.
    """
    repeated = [
        tutti.schedule(f"recursive_multiplying:{name}", ranks=ranks).repeated(each)
        for name in schedules
    ]
    frames = [
        tutti.compare(
            machine.platform(),
            collective="all_reduce",
            ranks=[ranks],
            sizes=[SIZE],
            algorithms=repeated,
            datatype=DATATYPE,
            conditions=machine.conditions(allocation),
            repetitions=blocks,
            seed=allocation * 1000,
        ).select("schedule", "time_ps")
        for allocation in range(ALLOCATIONS)
    ]
    summary = tutti.summary(pl.concat(frames))
    times = [(pl.col(column) / (each * 1e6)).alias(name) for name, column in _COLUMNS.items()]
    return summary.select("schedule", *times)


def predicted(machine: Archer, row: Table2Row, blocks: int = BLOCKS) -> dict[str, float]:
    """Returns times of a row of Table 2 in us: minima, medians, and the lower quartile of RD.

    Each case is simulated once.
    """
    return _predicted(machine, row, blocks)


@functools.cache
def _predicted(machine: Archer, row: Table2Row, blocks: int) -> dict[str, float]:
    found = measured(machine, row.ranks, (doubling(row.ranks), row.schedule), blocks)
    doubled, multiplied = found.rows(named=True)
    return {
        "rd_minimum": doubled["minimum_us"],
        "rm_minimum": multiplied["minimum_us"],
        "rd_median": doubled["median_us"],
        "rm_median": multiplied["median_us"],
        "rd_lower_quartile": doubled["lower_quartile_us"],
    }


def quiet(machine: Archer, ranks: int, schedule: str) -> float:
    """Returns the time of one all_reduce without detours in us."""
    run = tutti.simulate(
        tutti.schedule(f"recursive_multiplying:{schedule}", ranks=ranks),
        machine.platform(),
        size=SIZE,
        datatype=DATATYPE,
        conditions=Conditions(wait_for_sends=True),
    )
    return run.completion_ps / 1e6

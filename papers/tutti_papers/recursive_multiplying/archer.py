"""The machine of the paper's measurements, with six parameters that the paper does not state.

ARCHER is a Cray XC30: four nodes on each Aries router, 16 routers in a chassis, six chassis in a
group, a dragonfly of groups (Faanes et al., "Cray Cascade", SC 2012). The ranks of a job are
consecutive nodes. A stage ends when all of its puts have arrived (Algorithm 2: "wait on sends").

Table 2 requires an effect that the paper's simulator lacks (sections 5.5 and 8): other jobs and the
operating system occupy a node and its link for some time (a detour). Longer runs on more nodes
experience more detours. Their rate differs between allocations, as does the load of the machine.

`FITTED` is the result of `calibrate()`, which uses only the rows N = 4, 8 and 16 of Table 2.
"""

from __future__ import annotations

import functools
import math
from dataclasses import asdict, dataclass, replace
from statistics import NormalDist
from typing import TYPE_CHECKING

import polars as pl

import tutti
from tutti.platforms.conditions import Conditions, Exponential, Noise, Poisson
from tutti.platforms.contention import Free
from tutti.platforms.machine import PipeliningPostal, Platform
from tutti.topologies import Topology
from tutti_papers.recursive_multiplying.published import (
    ALLOCATIONS,
    BLOCK,
    DATATYPE,
    SIZE,
    TABLE_2,
    Table2Row,
    doubling,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tutti.topologies import Routes

CALIBRATED = (4, 8, 16)
"""Rows that the calibration uses."""

BLOCKS = 25
"""Measured blocks per allocation; the paper has 250 (section 5.2)."""

DRAGONFLY = "dragonfly:p=4,a=16x6,h=10,g=4"
RATE = "10 GB/s"
"""Rate of a node's link, as in the platform `cray_xc30`; it does not affect 8 bytes."""


@dataclass(frozen=True)
class Archer:
    """The parameters of the machine, times in us.

    Attributes:
        alpha_p: Overlapping part of the latency of a message, within a router.
        alpha_r: Non-overlapping part of the latency.
        hop: Latency of a link between two routers, including the next router.
        interval: Mean time between detours of a node in a median allocation.
        detour: Mean duration of a detour (exponential).
        spread: Standard deviation of the logarithm of the detour rate over the allocations.
    """

    alpha_p: float
    alpha_r: float
    hop: float
    interval: float
    detour: float
    spread: float

    def platform(self) -> Platform:
        """Returns the platform: endpoint costs and minimal routes.

        The fit covers messages of 8 B, whose derivation has no contention.
        """
        model = PipeliningPostal(alpha_p=_us(self.alpha_p), alpha_r=_us(self.alpha_r))
        routes = _routes(_us(self.hop))
        return Platform(name="archer", model=model, routes=routes, contention=Free())

    def conditions(self, allocation: int) -> Conditions:
        """Returns the noise of an allocation; allocations are equally likely quantiles."""
        deviate = NormalDist().inv_cdf((allocation + 0.5) / ALLOCATIONS)
        interval = self.interval * math.exp(-self.spread * deviate)
        duration = Exponential(mean=_us(self.detour))
        noise = Noise(detours=Poisson(interval=_us(interval), duration=duration))
        return Conditions(noise=noise, wait_for_sends=True)


START = Archer(alpha_p=0.835, alpha_r=0.345, hop=0.1, interval=30, detour=5, spread=0.4)
"""Start of the calibration. alpha_p and alpha_r solve row N = 4 without noise: 2 (alpha_p +
alpha_r) = 2.36, alpha_p + 3 alpha_r = 1.87. The other values are rough estimates."""

FITTED = Archer(alpha_p=0.911, alpha_r=0.370, hop=0.132, interval=29.3, detour=4.88, spread=0.420)
"""The result of `calibrate()`, to three digits."""


def _us(microseconds: float) -> str:
    return f"{round(microseconds * 1e6)} ps"


@functools.cache
def _routes(hop: str) -> Routes:
    terminal = {"rate": RATE, "latency": "0 ns"}
    between = {"rate": RATE, "latency": hop}
    links = [terminal, between, between, between]
    return Topology.build(DRAGONFLY, links=links).routes("minimal")


def measured(machine: Archer, ranks: int, schedules: Iterable[str], blocks: int) -> pl.DataFrame:
    """Returns statistics of blocks of all_reduces over all allocations, a row per schedule.

    Returns:
        Columns schedule; minimum_us, lower_quartile_us, median_us and upper_quartile_us of one
        all_reduce.
    """
    repeated = [
        tutti.schedule(f"recursive_multiplying:{name}", ranks=ranks).repeated(BLOCK)
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
    columns = {
        "minimum_us": "least_ps",
        "lower_quartile_us": "lower_quartile_ps",
        "median_us": "median_ps",
        "upper_quartile_us": "upper_quartile_ps",
    }
    summary = tutti.summary(pl.concat(frames))
    times = [(pl.col(column) / (BLOCK * 1e6)).alias(name) for name, column in columns.items()]
    return summary.select("schedule", *times)


def predicted(machine: Archer, row: Table2Row, blocks: int = BLOCKS) -> dict[str, float]:
    """Returns minimum and median times of a row of Table 2 in us, by column."""
    found = measured(machine, row.ranks, (doubling(row.ranks), row.schedule), blocks)
    doubled, multiplied = found.rows(named=True)
    return {
        "rd_minimum": doubled["minimum_us"],
        "rm_minimum": multiplied["minimum_us"],
        "rd_median": doubled["median_us"],
        "rm_median": multiplied["median_us"],
    }


def published(row: Table2Row) -> dict[str, float]:
    """Returns the published times of a row of Table 2 in us, by column."""
    return {
        "rd_minimum": row.minimum[0],
        "rm_minimum": row.minimum[1],
        "rd_median": row.median[0],
        "rm_median": row.median[1],
    }


def misfit(machine: Archer, blocks: int = BLOCKS) -> float:
    """Returns the root mean square of log(predicted / published) on the calibrated rows."""
    squares = [
        math.log(ours[name] / theirs) ** 2
        for row in TABLE_2
        if row.ranks in CALIBRATED
        for ours in [predicted(machine, row, blocks)]
        for name, theirs in published(row).items()
    ]
    return math.sqrt(sum(squares) / len(squares))


def calibrate(start: Archer = START, *, blocks: int = BLOCKS, finest: float = 0.02) -> Archer:
    """Returns the parameters with the smallest misfit, by coordinate descent; it takes minutes.

    It changes one parameter at a time. The relative step starts at 20 % and is halved down to
    `finest`. The result is deterministic.
    """
    best, least, step = start, misfit(start, blocks), 0.2
    while step >= finest:
        before = least
        for name in asdict(start):
            for factor in (1 + step, 1 / (1 + step)):
                tried = replace(best, **{name: getattr(best, name) * factor})
                found = misfit(tried, blocks)
                if found < least:
                    best, least = tried, found
                    break
        if least > 0.99 * before:
            step /= 2
    return best

"""The machine that the paper measured on, with the six numbers that are not in the paper.

ARCHER is a Cray XC30: four nodes on each Aries router, 16 routers in a chassis, six chassis in a
group, a dragonfly of groups (Faanes et al., "Cray Cascade", SC 2012). The ranks of a job are
consecutive nodes. A stage ends when all of its puts have arrived (Algorithm 2: "wait on sends").

What the paper's own simulator leaves out, and what Table 2 needs (sections 5.5 and 8), is in one
mechanism: now and then a node and its link are taken by something else, for a time, so that a run
meets the more of it the longer it takes and the more nodes it has. How often differs between
allocations, because the load of the machine does.

`FITTED` comes from `calibrate()`, which sees the rows N = 4, 8 and 16 of Table 2 and no others.
"""

from __future__ import annotations

import functools
import math
from dataclasses import asdict, dataclass, replace
from statistics import NormalDist
from typing import TYPE_CHECKING

import polars as pl

import tutti
from tutti.conditions import Conditions, Exponential, Noise, Poisson
from tutti.papers.recursive_multiplying.published import (
    ALLOCATIONS,
    BLOCK,
    DATATYPE,
    SIZE,
    TABLE_2,
    Table2Row,
    doubling,
)
from tutti.platform import PipeliningPostal, Platform
from tutti.topology import Topology

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tutti.topology import Routes

CALIBRATED = (4, 8, 16)
"""Rows that the calibration sees."""

BLOCKS = 25
"""Blocks measured in each allocation; the paper has 250 (section 5.2)."""

DRAGONFLY = "dragonfly:p=4,a=16x6,h=10,g=4"
RATE = "10 GB/s"
"""Of a node's link, as in the platform `cray_xc30`; 8 bytes do not feel it."""


@dataclass(frozen=True)
class Archer:
    """The numbers of the machine, times in us.

    Attributes:
        alpha_p: Part of a message's latency that further messages overlap, within a router.
        alpha_r: The part that nothing overlaps.
        hop: Latency of each link between two routers, the router that it leads to included.
        interval: From one detour of a node to the next, in the mean, in a typical allocation.
        detour: How long one lasts, in the mean (exponential).
        spread: How much the rate of detours differs between allocations: the standard deviation
            of its logarithm.
    """

    alpha_p: float
    alpha_r: float
    hop: float
    interval: float
    detour: float
    spread: float

    def platform(self) -> Platform:
        """The network: endpoint costs, and the way between any two nodes."""
        model = PipeliningPostal(alpha_p=_us(self.alpha_p), alpha_r=_us(self.alpha_r))
        return Platform(name="archer", model=model, routes=_routes(_us(self.hop)))

    def conditions(self, allocation: int) -> Conditions:
        """What a node allocation meets; they are equally likely, from quiet to busy."""
        deviate = NormalDist().inv_cdf((allocation + 0.5) / ALLOCATIONS)
        interval = self.interval * math.exp(-self.spread * deviate)
        duration = Exponential(mean=_us(self.detour))
        noise = Noise(detours=Poisson(interval=_us(interval), duration=duration))
        return Conditions(noise=noise, wait_for_sends=True)


START = Archer(alpha_p=0.835, alpha_r=0.345, hop=0.1, interval=30, detour=5, spread=0.4)
"""Where the calibration begins: alpha_p and alpha_r solve row N = 4 without noise (2 (alpha_p +
alpha_r) = 2.36, alpha_p + 3 alpha_r = 1.87); a hop of about 100 ns; the rest is a round guess."""

FITTED = Archer(alpha_p=0.911, alpha_r=0.370, hop=0.132, interval=29.3, detour=4.88, spread=0.420)
"""What `calibrate()` ends with, to three digits."""


def _us(microseconds: float) -> str:
    return f"{round(microseconds * 1e6)} ps"


@functools.cache
def _routes(hop: str) -> Routes:
    terminal = {"rate": RATE, "latency": "0 ns"}
    between = {"rate": RATE, "latency": hop}
    links = [terminal, between, between, between]
    return Topology.build(DRAGONFLY, links=links).routes("minimal")


def measured(machine: Archer, ranks: int, schedules: Iterable[str], blocks: int) -> pl.DataFrame:
    """Blocks of all_reduces in every allocation, summed up: a row for each schedule.

    Columns: schedule; minimum_us, lower_quartile_us, median_us and upper_quartile_us of one
    all_reduce.
    """
    laid_out = [
        tutti.schedule(f"recursive_multiplying:{name}", ranks=ranks).repeated(BLOCK)
        for name in schedules
    ]
    frames = [
        tutti.compare(
            machine.platform(),
            collective="all_reduce",
            ranks=[ranks],
            sizes=[SIZE],
            algorithms=laid_out,
            datatype=DATATYPE,
            conditions=machine.conditions(allocation),
            repetitions=blocks,
            seed=allocation * 1000,
        ).select("schedule", "time_ps")
        for allocation in range(ALLOCATIONS)
    ]
    each = {
        "minimum_us": "least_ps",
        "lower_quartile_us": "lower_quartile_ps",
        "median_us": "median_ps",
        "upper_quartile_us": "upper_quartile_ps",
    }
    found = tutti.summary(pl.concat(frames))
    times = [(pl.col(column) / (BLOCK * 1e6)).alias(name) for name, column in each.items()]
    return found.select("schedule", *times)


def predicted(machine: Archer, row: Table2Row, blocks: int = BLOCKS) -> dict[str, float]:
    """Least and median times of a row of Table 2, in us, by the name of its column."""
    found = measured(machine, row.ranks, (doubling(row.ranks), row.schedule), blocks)
    doubled, multiplied = found.rows(named=True)
    return {
        "rd_minimum": doubled["minimum_us"],
        "rm_minimum": multiplied["minimum_us"],
        "rd_median": doubled["median_us"],
        "rm_median": multiplied["median_us"],
    }


def published(row: Table2Row) -> dict[str, float]:
    """The same of the paper."""
    return {
        "rd_minimum": row.minimum[0],
        "rm_minimum": row.minimum[1],
        "rd_median": row.median[0],
        "rm_median": row.median[1],
    }


def misfit(machine: Archer, blocks: int = BLOCKS) -> float:
    """Root mean square of the logarithms of predicted over published, on the calibrated rows."""
    squares = [
        math.log(ours[name] / theirs) ** 2
        for row in TABLE_2
        if row.ranks in CALIBRATED
        for ours in [predicted(machine, row, blocks)]
        for name, theirs in published(row).items()
    ]
    return math.sqrt(sum(squares) / len(squares))


def calibrate(start: Archer = START, *, blocks: int = BLOCKS, finest: float = 0.02) -> Archer:
    """The numbers that fit the rows N = 4, 8 and 16 best: each in turn larger or smaller, by steps
    that are halved from 20 % down to `finest`. It takes minutes, and ends the same every time.
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

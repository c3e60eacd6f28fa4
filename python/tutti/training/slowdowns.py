"""Slow NPUs, failed links and other jobs: their effect on the time of a training step.

Each kind of disturbance is drawn several times. The spread of the step's time over the draws is the
interval of the prediction. Draws depend on the seed only.

Examples:
    >>> from tutti.training.endpoint import configurations
    >>> from tutti.platforms.machine import Platform
    >>> from tutti.training.fabric import Dimension
    >>> from tutti.topologies import Topology
    >>> from tutti.training.step import Step
    >>> from tutti.workloads import build
    >>> import tutti
    >>> switch = Topology.build("switch:4", rate="25 GB/s", latency="500 ns")
    >>> ends = tutti.PipeliningPostal(alpha_p="0 ns", alpha_r="1 ns")
    >>> pod = Platform(name="pod", model=ends, routes=switch.routes())
    >>> step = Step(
    ...     model=build("dlrm_small"),
    ...     batch=32,
    ...     platform=pod,
    ...     rings=(Dimension("data", 4),),
    ...     iterations=1,
    ... )
    >>> given = Disturbances(slow_share=0.3, slow_factor=1.5)
    >>> found = effects(step, configurations()["ideal"], given, draws=2)
    >>> found["disturbance"].to_list()
    ['none', 'slow NPUs', 'slow NPUs']
    >>> found["total_ps"][0] < found["total_ps"][1]
    True
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import polars as pl

from tutti.topologies.errors import TopologyError
from tutti.topologies.faults import cable, with_faults
from tutti.training.runs import run_each
from tutti.workloads.errors import WorkloadError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tutti.platforms.machine import Platform
    from tutti.topologies import Routes, Topology
    from tutti.training.endpoint import Configuration
    from tutti.training.plan.timing import StepTiming
    from tutti.training.results import TrainingResult
    from tutti.training.step import Step

_STEPS_PER_UNIT: Final = 200
"""Slowdowns are rounded to steps of 0.5 %, so that NPUs share programs."""
_MOST_LOAD: Final = 0.45
_MOST_SPREAD: Final = 1.0
_ATTEMPTS: Final = 20
_INTERVAL: Final = (0.05, 0.95)


class Effect(NamedTuple):
    """A simulation of a step with a disturbance.

    Attributes:
        disturbance: The disturbance, `none` or `all`.
        draw: The draw, from 0.
        total_ps: The time of all iterations of the simulation.
        planned_ps: The undisturbed time of the step as a plan; None for other rows and steps.
    """

    disturbance: str
    draw: int
    total_ps: int
    planned_ps: int | None = None


@dataclass(frozen=True, kw_only=True)
class Disturbances:
    """What disturbs a training step.

    Network cables are those of the lowest rate of the topology: between hosts.

    Attributes:
        slow_share: the probability that an NPU is slow.
        slow_factor: the factor on the time of a slow NPU's passes, at least 1.
        spread: the standard deviation of the logarithm of every NPU's time of passes. NPUs are
            never faster than the model.
        down: the number of network cables that are down, chosen at random.
        cables: names of cables that are down, as of :func:`tutti.topologies.cables`.
        load: the mean share of each network cable that other jobs use, below 0.45. The share of a
            cable is uniform between 0 and twice the mean.
    """

    slow_share: float = 0.0
    slow_factor: float = 1.0
    spread: float = 0.0
    down: int = 0
    cables: tuple[str, ...] = ()
    load: float = 0.0

    def __post_init__(self) -> None:
        """Checks the ranges.

        Raises:
            WorkloadError: A value is out of range.
        """
        checks = (
            (0 <= self.slow_share <= 1, "slow_share", "from 0 to 1"),
            (1 <= self.slow_factor <= 100, "slow_factor", "from 1 to 100"),
            (0 <= self.spread <= _MOST_SPREAD, "spread", f"from 0 to {_MOST_SPREAD:g}"),
            (self.down >= 0, "down", "at least 0"),
            (0 <= self.load < _MOST_LOAD, "load", f"from 0 to below {_MOST_LOAD}"),
        )
        for valid, name, limits in checks:
            if not valid:
                value, expected = getattr(self, name), f"a number {limits}"
                fields = {"parameter": name, "value": value, "expected": expected}
                message = f"{name} is {value}: expected {expected}"
                raise WorkloadError(message, kind="disturbances", fields=fields)

    def kinds(self) -> dict[str, Disturbances]:
        """Returns each disturbance alone, by its name, and all together if there are several."""
        alone = {
            "slow NPUs": Disturbances(slow_share=self.slow_share, slow_factor=self.slow_factor),
            "spread": Disturbances(spread=self.spread),
            "links down": Disturbances(down=self.down, cables=self.cables),
            "other jobs": Disturbances(load=self.load),
        }
        active = {name: one for name, one in alone.items() if one.is_active}
        return active | ({"all": self} if len(active) > 1 else {})

    @property
    def is_active(self) -> bool:
        """Whether there is any disturbance."""
        return bool(
            (self.slow_share and self.slow_factor > 1)
            or self.spread
            or self.down
            or self.cables
            or self.load
        )


def effects(
    step: Step,
    configuration: Configuration,
    disturbances: Disturbances,
    *,
    draws: int = 10,
    seed: int = 0,
    report: Callable[[Effect], None] | None = None,
    threads: int = 0,
    planned: Callable[[TrainingResult], StepTiming] | None = None,
) -> pl.DataFrame:
    """Simulates a step undisturbed, and with each disturbance alone and with all.

    Args:
        step: The step; with a platform if links are disturbed.
        configuration: The endpoint configuration.
        disturbances: The disturbances.
        draws: Draws of each.
        seed: The seed of the first draw.
        report: Called after each simulation with its row, in the order in which they end.
        threads: The most threads; 0 for one per core. Rows do not depend on it.
        planned: Returns the time of a run as a plan, for the step of a plan. Disturbances add to
            it what they add to the simulation.

    Returns:
        A row per simulation: `disturbance` (`none`, `slow NPUs`, `spread`, `links down`, `other
        jobs`, `all`), `draw` from 0, `total_ps`, the time of all iterations, and with `planned`
        `planned_ps`.

    Raises:
        WorkloadError: Links are disturbed on a torus, or nothing is disturbed.
        TopologyError: Too many links are down for a path between all NPUs.
    """
    kinds = disturbances.kinds()
    if not kinds:
        message = "nothing disturbs the step: expected slow NPUs, links down or other jobs"
        raise WorkloadError(message, kind="disturbances")
    kinds = {"none": Disturbances()} | kinds
    cases = [(name, draw) for name in kinds for draw in range(1 if name == "none" else draws)]
    rows: dict[int, Effect] = {}

    def done(index: int, run: TrainingResult) -> None:
        name, draw = cases[index]
        as_plan = round(planned(run).step * 1e12) if planned and name == "none" else None
        rows[index] = Effect(name, draw, run.total.ps, as_plan)
        if report:
            report(rows[index])

    drawn = ((_disturbed(step, kinds[name], seed + draw), configuration) for name, draw in cases)
    run_each(drawn, done, npus=step.npus, threads=threads)
    return frame_of_effects([rows[index] for index in sorted(rows)])


def frame_of_effects(rows: Sequence[Effect]) -> pl.DataFrame:
    """Returns simulations as :func:`effects` does: disturbance, draw, and times in ps."""
    found = pl.DataFrame(rows, schema=list(Effect._fields), orient="row")
    planned = next((row for row in rows if row.planned_ps is not None), None)
    if planned is None:
        return found.drop("planned_ps")
    # A plan counts shares of exposed collectives, which a delay moves between them.
    more = pl.col("total_ps") - planned.total_ps
    return found.with_columns(planned_ps=planned.planned_ps + more)


def ordered(rows: Sequence[Effect], disturbances: Disturbances) -> list[Effect]:
    """Returns rows as those of :func:`effects`, in its order."""
    names = ["none", *disturbances.kinds()]
    return sorted(rows, key=lambda row: (names.index(row[0]), row[1]))


def summary(rows: pl.DataFrame) -> pl.DataFrame:
    """Returns the median and the 90 % interval of each disturbance.

    Args:
        rows: Simulations, as of :func:`effects`.

    Returns:
        A row per disturbance in order: `disturbance`, `median_ps`, `low_ps`, `high_ps`, and
        `slowdown`, the median over the undisturbed time, less one. Times as a plan have the same
        columns with the prefix `planned_`.
    """
    kinds = {"": "total_ps", "planned_": "planned_ps"}
    columns = [
        column
        for prefix, name in kinds.items()
        if name in rows.columns
        for column in _quantiles(rows, name, prefix)
    ]
    return rows.group_by("disturbance", maintain_order=True).agg(columns)


def _quantiles(rows: pl.DataFrame, name: str, prefix: str) -> Iterator[pl.Expr]:
    """Yields the columns of :func:`summary` of a kind of time."""
    alone = int(rows.filter(pl.col("disturbance") == "none")[name][0])
    time = pl.col(name)
    low, high = (time.quantile(one, "nearest") for one in _INTERVAL)
    yield time.median().alias(f"{prefix}median_ps")
    yield low.alias(f"{prefix}low_ps")
    yield high.alias(f"{prefix}high_ps")
    yield (time.median() / alone - 1).alias(f"{prefix}slowdown")


def _disturbed(step: Step, what: Disturbances, seed: int) -> Step:
    """Returns the step with one draw of its disturbances."""
    # A stream per kind: the slow NPUs of a draw do not depend on whether links are down.
    compute, network = np.random.SeedSequence(seed).spawn(2)
    if what.slow_share or what.spread:
        slowdowns = _slowdowns(step.npus, what, np.random.Generator(np.random.Philox(compute)))
        step = replace(step, slowdowns=slowdowns)
    if what.down or what.cables or what.load:
        if step.platform is None or step.platform.routes is None:
            message = "links are disturbed on a platform with a topology only: expected one"
            raise WorkloadError(message, kind="disturbances", hint="or disturb NPUs only")
        generator = np.random.Generator(np.random.Philox(network))
        step = replace(step, platform=_faulty(step.platform, what, generator)).sharing(step)
    return step


def _slowdowns(npus: int, what: Disturbances, generator: np.random.Generator) -> tuple[float, ...]:
    slow = generator.random(npus) < what.slow_share
    spread = np.exp(np.abs(generator.standard_normal(npus)) * what.spread)
    factors = np.where(slow, what.slow_factor, 1.0) * spread
    return tuple((np.round(factors * _STEPS_PER_UNIT) / _STEPS_PER_UNIT).tolist())


def _faulty(platform: Platform, what: Disturbances, generator: np.random.Generator) -> Platform:
    """Returns the platform with a draw of its faults, and routes around them."""
    routes = platform.routes
    assert routes is not None  # noqa: S101 - for mypy: the caller has checked it
    between = _network_cables(routes.topology)
    if what.down > len(between):
        message = f"{what.down} cables are down: expected at most the {len(between)} of the network"
        raise WorkloadError(message, kind="disturbances")
    shares = generator.random(len(between)) * 2 * what.load
    slowed = {name: 1 / (1 - share) for name, share in zip(between, shares, strict=True) if share}
    return _rerouted(platform, what, between, slowed, generator)


def _rerouted(
    platform: Platform,
    what: Disturbances,
    between: list[str],
    slowed: Mapping[str, float],
    generator: np.random.Generator,
) -> Platform:
    """Draws cables that are down until all NPUs have a path."""
    routes = platform.routes
    assert routes is not None  # noqa: S101 - as above
    for attempt in range(_ATTEMPTS):
        drawn = generator.choice(len(between), size=what.down, replace=False)
        down = {*what.cables, *(between[place] for place in drawn)}
        try:
            found = with_faults(routes.topology, down=down, slowed=slowed)
            again = _routes(found, routes.rule or "")
            return platform.model_copy(update={"routes": again})
        except TopologyError:
            if not what.down or attempt == _ATTEMPTS - 1:
                raise
    raise AssertionError


def _network_cables(topology: Topology) -> list[str]:
    """Returns the cables of the lowest rate, sorted."""
    slowest = max(link.rate.core.ps_per_byte for link in topology.links)
    names = {cable(one) for one in topology.links if one.rate.core.ps_per_byte == slowest}
    return sorted(names)


def _routes(topology: Topology, rule: str) -> Routes:
    """Returns routes around the faults by the platform's rule.

    Raises:
        WorkloadError: The rule is that of a family, which a graph with faults is not.
    """
    name, _, seed = rule.partition(":")
    if name == "ecmp":
        return topology.routes("ecmp", seed=int(seed))
    if name == "shortest_path":
        return topology.routes()
    message = f"the routing `{name or 'by path'}` does not route around faults"
    message += ": expected ecmp or shortest_path"
    raise WorkloadError(message, kind="disturbances", hint="set `routing` of the topology")

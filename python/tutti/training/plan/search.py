"""The search for the fastest plan within memory."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING

from tutti.base.errors import TuttiError
from tutti.training.plan.estimate import Known, estimate
from tutti.training.plan.interval import spread_of
from tutti.training.plan.refusal import no_plans, over_memory
from tutti.training.plan.simulate import simulate
from tutti.training.plan.space import FixedDegrees, plans
from tutti.training.runs import threads_for
from tutti.workloads.memory import Memory, States, memory
from tutti.workloads.parallel import KINDS
from tutti.workloads.pieces import Pieces

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tutti.training.plan.cluster import Cluster
    from tutti.training.plan.interval import Spread
    from tutti.training.plan.space import Plan
    from tutti.training.plan.timing import StepTiming
    from tutti.workloads.compute import ComputeModel
    from tutti.workloads.model import Model

_VARIANTS = 2
"""Simulated plans with the same degrees, which differ in placement, interleaving or ZeRO."""


_MORE = 6
"""Plans simulated at least until the first of all is one of them: plans of few kinds are nearly as
fast as the best."""


@dataclass(frozen=True, kw_only=True)
class Ranked:
    """A plan with its time and memory.

    Attributes:
        plan: The plan.
        memory: The memory of a GPU of the stage that needs the most.
        estimated: The closed-form time.
        simulated: The simulated time, or None.
        correction: The factor on the closed-form time that simulations of plans of the same
            kind showed.
        problem: Why the simulation failed; empty if it did not.
    """

    plan: Plan
    memory: Memory
    estimated: StepTiming
    simulated: StepTiming | None = None
    correction: float = 1.0
    problem: str = ""

    @property
    def timing(self) -> StepTiming:
        """The simulated time if there is one, else the corrected closed form."""
        return self.simulated or self.estimated.times(self.correction)

    @property
    def kind(self) -> tuple[bool, ...]:
        """Which dimensions the plan uses, and whether it shards weights (ZeRO 3).

        The errors of the closed form are those of its collectives: plans of a kind share them.
        """
        return (*(self.plan.degree(kind) > 1 for kind in KINDS), self.plan.kinds.zero == 3)


@dataclass(frozen=True, kw_only=True)
class PlanSearch:
    """The plans of a search.

    Attributes:
        cluster: The GPUs.
        model: The model.
        batch: The global batch, in sequences.
        fitting: The plans within memory, fastest first: by simulated time, or by the closed form
            times its median error in simulated plans of the same kind.
        exceeding: The plans that exceed the memory, fastest first.
    """

    cluster: Cluster
    model: Model
    batch: int
    fitting: Sequence[Ranked]
    exceeding: Sequence[Ranked]

    def with_simulated(self, simulated: Sequence[Ranked]) -> PlanSearch:
        """Returns the plans by time.

        Others have the closed form times its median error in simulated plans of the same kind.
        Without such plans, it is not corrected: other kinds have other errors.
        """
        known = {one.plan for one in simulated}
        ratios: dict[tuple[bool, ...], list[float]] = {}
        for one in simulated:
            if one.simulated:
                ratio = one.simulated.step / one.estimated.step
                ratios.setdefault(one.kind, []).append(ratio)
        factors = {kind: median(found) for kind, found in ratios.items()}
        rest = (one for one in self.fitting if one.plan not in known)
        corrected = (replace(one, correction=factors.get(one.kind, 1.0)) for one in rest)
        fitting = sorted(
            [*simulated, *corrected], key=lambda one: (one.timing.step, one.memory.total)
        )
        return replace(self, fitting=fitting)

    def mfu(self, timing: StepTiming) -> float:
        """Returns the model FLOPs utilisation: FLOPs without recomputation over the peak."""
        shape = Pieces(self.model).decoder
        flops = self.batch * shape.tokens * shape.flops
        return flops / (timing.step * self.cluster.gpus * self.cluster.peak)

    def spread(self, one: Ranked) -> Spread | None:
        """Returns the interval of a plan's time; None if the GPU has measured steps."""
        return spread_of(Pieces(self.model), one.plan, self.cluster)

    def tokens_per_second(self, timing: StepTiming) -> float:
        """Returns the tokens per second and GPU."""
        tokens = Pieces(self.model).decoder.tokens
        return self.batch * tokens / (timing.step * self.cluster.gpus)

    def flops_per_second(self, timing: StepTiming) -> float:
        """Returns the FLOPs of the model per second and GPU, without recomputation."""
        return self.mfu(timing) * self.cluster.peak


def search(
    model: Model,
    cluster: Cluster,
    batch: int,
    *,
    fixed: FixedDegrees | None = None,
    simulated: int = 10,
    compute: ComputeModel | None = None,
    progress: Callable[[int], None] | None = None,
) -> PlanSearch:
    """Ranks all plans by the closed form, and simulates the fastest that fit the memory.

    Args:
        model: A decoder.
        cluster: The GPUs.
        batch: The global batch, in sequences.
        fixed: Degrees to keep.
        simulated: The number of plans to simulate.
        compute: The compute model of simulations; by default the roofline.
        progress: Called with the number of simulations so far.

    Raises:
        WorkloadError: There are no plans, or none fits the memory.
    """
    found = ranked(model, cluster, batch, fixed)
    finished = 0

    def done(_: Ranked) -> None:
        nonlocal finished
        finished += 1
        if progress:
            progress(finished)

    return found.with_simulated(simulate_fastest(found, simulated, compute=compute, done=done))


def ranked(
    model: Model, cluster: Cluster, batch: int, fixed: FixedDegrees | None = None
) -> PlanSearch:
    """Ranks all plans by the closed form.

    Args:
        model: A decoder.
        cluster: The GPUs.
        batch: The global batch, in sequences.
        fixed: Degrees to keep.

    Raises:
        WorkloadError: There are no plans, or none fits the memory.
    """
    fitting, exceeding = _ranked(Pieces(model), cluster, batch, fixed)
    if not fitting:
        if exceeding:
            raise over_memory(model, cluster, exceeding)
        raise no_plans(Pieces(model).decoder, cluster, batch, fixed or FixedDegrees())
    return PlanSearch(
        cluster=cluster, model=model, batch=batch, fitting=fitting, exceeding=exceeding
    )


def simulate_fastest(
    found: PlanSearch,
    count: int,
    *,
    compute: ComputeModel | None = None,
    done: Callable[[Ranked], object],
    threads: int = 0,
) -> list[Ranked]:
    """Simulates the fastest plans that fit the memory.

    Then it simulates the first of all plans until that one is simulated, at most `count` times, or
    :data:`_MORE` if that is more: the simulations may show that the closed form favours other
    plans.

    Args:
        found: The plans, by the closed form.
        count: The number of plans to simulate first.
        compute: The compute model of simulations; by default the roofline.
        done: Called with each simulated plan.
        threads: The most threads; 0 for one per core.
    """
    pieces, best = Pieces(found.model), list[Ranked]()

    def simulation(one: Ranked) -> Ranked:
        return _simulated(one, pieces, found.cluster, compute)

    def add(one: Ranked) -> None:
        best.append(one)
        done(one)

    # The engine releases the interpreter lock, so threads run in parallel.
    pool = ThreadPoolExecutor(threads_for(found.cluster.gpus, threads))
    try:
        for one in pool.map(simulation, _chosen(found.fitting, count)):
            add(one)
        for _ in range(max(count, _MORE) if count else 0):
            first = found.with_simulated(best).fitting[0]
            if first.simulated or first.problem:
                break
            add(simulation(first))
    finally:
        # After Ctrl-C, simulations that run are not waited for.
        pool.shutdown(wait=False, cancel_futures=True)
    return best


def _ranked(
    pieces: Pieces, cluster: Cluster, batch: int, fixed: FixedDegrees | None
) -> tuple[list[Ranked], list[Ranked]]:
    """Returns the plans that fit the memory, and those that do not, by estimated time."""
    known, states = Known(), States(gradients=cluster.gradients)
    found: tuple[list[Ranked], list[Ranked]] = ([], [])
    for plan in plans(pieces.decoder, cluster.gpus, batch, cluster.domain, fixed):
        given = {"data": plan.data, "micro_batch": plan.micro_batch}
        used = memory(pieces, plan.kinds, **given, states=states)
        one = Ranked(plan=plan, memory=used, estimated=estimate(pieces, plan, cluster, known))
        found[used.total > cluster.capacity].append(one)
    for ranked in found:
        ranked.sort(key=lambda one: (one.estimated.step, one.memory.total))
    return found


def _chosen(fitting: Sequence[Ranked], count: int) -> list[Ranked]:
    """Returns the fastest plans, with few variants of equal degrees."""
    chosen: list[Ranked] = []
    variants: Counter[tuple[int, ...]] = Counter()
    for one in fitting:
        if len(chosen) == count:
            break
        kinds = one.plan.kinds
        degrees = (kinds.tensor, kinds.context, kinds.pipeline, kinds.expert)
        if variants[degrees] < _VARIANTS:
            chosen.append(one)
            variants[degrees] += 1
    return chosen


def _simulated(
    one: Ranked, pieces: Pieces, cluster: Cluster, compute: ComputeModel | None
) -> Ranked:
    try:
        return replace(one, simulated=simulate(pieces, one.plan, cluster, compute))
    except TuttiError as error:
        return replace(one, problem=error.problem)

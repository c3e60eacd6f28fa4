"""Sentences on a search: placement, memory, and what does not fit."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tutti.base.files.writer import document
from tutti.training.plan.efficiency import UNSEEN_TAIL
from tutti.training.plan.estimate import amounts, compute_shares
from tutti.training.plan.interval import OTHER_VENDOR
from tutti.workloads.parallel import KINDS, Parallelism
from tutti.workloads.pieces import Pieces

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tutti.training.plan.interval import Spread
    from tutti.training.plan.search import PlanSearch, Ranked
    from tutti.training.plan.space import FixedDegrees, Plan
    from tutti.workloads.memory import Memory

_NEAR = 1.5
"""The memory over that of a GPU up to which a plan that does not fit is of interest."""
_MANY_LAUNCHES = 0.25
"""The share of compute from which a sentence states how to have fewer launches."""


def by_use(used: Memory) -> str:
    """Returns the memory by use, largest first, such as `59.7 GB activations, 6.1 GB weights`."""
    parts = {
        "activations": used.activations,
        "optimizer states": used.optimizer,
        "gradients": used.gradients,
        "weights": used.weights,
        "working memory": used.working,
    }
    ordered = sorted(parts.items(), key=lambda part: -part[1])
    return ", ".join(f"{size / 1e9:.1f} GB {name}" for name, size in ordered if size >= 0.05e9)


def of_batch(gpus: int, batch: int, fixed: FixedDegrees) -> str:
    """Returns which odd factor of the GPUs replicas cannot have; empty if the batch divides.

    Replicas divide the batch. A factor that the batch lacks is then in the other degrees, of which
    context degrees are powers of two.

    Args:
        gpus: The number of GPUs.
        batch: The sequences of the global batch.
        fixed: The degrees that the search does not change.
    """
    odd = gpus // (gpus & -gpus)
    missing = odd // math.gcd(odd, batch)
    if missing == 1 or fixed.data or fixed.pipeline or fixed.tensor:
        return ""
    unit = gpus if batch >= gpus else odd
    near = " or ".join(
        f"{one:,}" for one in (batch // unit * unit, -(-batch // unit) * unit) if one
    )
    return (
        f"{batch:,} sequences are not a multiple of {odd}, the odd factor of {gpus:,} GPUs: in all "
        f"plans, tensor or pipeline parallelism has the factor {missing}; --global-batch {near} "
        "permits others"
    )


def exceeds(used: Memory, capacity: int) -> str:
    """Returns by how much a plan exceeds the memory, and what uses it."""
    more = (used.total - capacity) / 1e9
    return f"exceeds {capacity / 1e9:.1f} GB by {more:.1f} GB: {by_use(used)}"


def described(plan: Plan) -> str:
    """Returns the degrees of a plan, such as `tensor 8 x pipeline 16 x data 8`."""
    degrees = [f"{kind} {plan.degree(kind)}" for kind in plan.kinds.order if plan.degree(kind) > 1]
    if plan.kinds.undivided_experts:
        degrees = [part for part in degrees if not part.startswith("expert")]
        degrees.append(f"(expert {plan.expert_ranks} over tensor and data)")
    text = " x ".join(degrees) or "one GPU"
    extra = [f"ZeRO {plan.kinds.zero}"] if plan.kinds.zero else []
    if plan.kinds.interleaved > 1:
        extra.append(f"{plan.kinds.interleaved} chunks per stage")
    if plan.micro_batch > 1:
        extra.append(f"micro-batches of {plan.micro_batch} sequences")
    if plan.kinds.recompute == "full":
        extra.append("full recomputation")
    return ", ".join([text, *extra])


def explained(found: PlanSearch) -> Iterator[str]:
    """Yields sentences on the placement of the best plan, and on plans that do not fit."""
    best, cluster = found.fitting[0], found.cluster
    inside = ", ".join(best.plan.inside(cluster.domain)) or "no kind"
    outside = [
        kind
        for kind in KINDS
        if best.plan.degree(kind) > 1 and kind not in best.plan.inside(cluster.domain)
    ]
    yield (
        f"best: {described(best.plan)}. Within {cluster.domain} GPUs of a scale-up domain: "
        f"{inside}; across domains: {', '.join(outside) or 'no kind'}"
    )
    yield _compute(found)
    if spread := found.spread(best):
        low, high = spread.interval(best.timing.step)
        least, most = spread.interval(found.mfu(best.timing))
        yield (
            f"90 % interval of the best's step: {low:.2f} to {high:.2f} s, {least:.0%} to "
            f"{most:.0%} MFU; {reasoned(spread)}"
        )
    used = best.memory
    yield f"memory of the best: {by_use(used)}; of {cluster.capacity / 1e9:.1f} GB"
    if found.exceeding:
        yield from _exceeding(found)


def reasoned(spread: Spread) -> str:
    """Returns what the interval of a GPU without measured steps consists of."""
    ratios = spread.by_gpu.values()
    least, most = min(ratios), max(ratios)
    text = f"with the efficiencies of the {len(ratios)} measured GPUs it would take {least:.2f} to "
    text += f"{most:.2f} times as long"
    if spread.foreign:
        wide = math.exp(OTHER_VENDOR)
        text += f", but they are of another vendor, for which a factor of {wide:.2f} is assumed"
    return f"{text}; steps of models and systems left out of the fit are {UNSEEN_TAIL:.0%} off"


_WORDS = {
    "products": "matrix products",
    "grouped": "products of experts",
    "attention": "attention",
    "classifier": "the classifier",
    "memory": "activations in memory",
    "copies": "copies of tokens",
    "weights": "weights in memory",
    "launches": "waiting for launches",
}
"""The terms of compute for display."""


def _compute(found: PlanSearch) -> str:
    """Returns the largest shares of the best plan's compute, and what to do about launches."""
    best, cluster, model = found.fitting[0], found.cluster, found.model
    of = amounts(Pieces(model), best.plan, cluster)
    shares = compute_shares(of, cluster.coefficients(model))
    ordered = sorted(shares.items(), key=lambda part: -part[1])
    texts = [f"{share:.0%} {_WORDS[name]}" for name, share in ordered if share >= 0.05]
    text = f"compute of the best's slowest stage, by the closed form: {', '.join(texts)}"
    if shares["launches"] < _MANY_LAUNCHES:
        return text
    graphs = "" if cluster.setting(model).graph == "full" else " or --cuda-graphs full"
    return f"{text}; larger micro-batches{graphs} give GPUs more to do for each launch"


def _exceeding(found: PlanSearch) -> Iterator[str]:
    total = len(found.fitting) + len(found.exceeding)
    limit = found.cluster.capacity / 1e9
    exceed = "exceed" if len(found.exceeding) > 1 else "exceeds"
    yield f"{len(found.exceeding):,} of {total:,} plans {exceed} {limit:.0f} GB per GPU"
    best, most = min(one.estimated.step for one in found.fitting), _NEAR * found.cluster.capacity
    near = [one for one in found.exceeding if one.memory.total <= most]
    fastest = next((one for one in near if one.estimated.step < best), None)
    if fastest is None:
        return
    yield (
        f"the fastest that exceeds it by at most half, {described(fastest.plan)}, is estimated at "
        f"{fastest.estimated.step:.2f} s and {exceeds(fastest.memory, found.cluster.capacity)}"
    )


def parallelism_of(one: Ranked) -> dict[str, Any]:
    """Returns the keys of `[parallelism]` in a training file, without the defaults."""
    kinds = one.plan.kinds
    found: dict[str, Any] = {
        kind: one.plan.degree(kind)
        for kind in KINDS
        if kind != "data" and one.plan.degree(kind) > 1
    }
    for key in (
        "undivided_experts", "expert_domain", "dispatch_format", "expert_imbalance",
        "cp_comm_type", "sequence", "micro_batches", "interleaved", "zero", "recompute", "order",
    ):  # fmt: skip
        value = getattr(kinds, key)
        if value != getattr(_DEFAULTS, key):
            found[key] = list(value) if isinstance(value, tuple) else value
    return found


_DEFAULTS = Parallelism()


def table_of(one: Ranked) -> str:
    """Returns the table `[parallelism]` of a training file, without the defaults."""
    return document((), {"parallelism": parallelism_of(one)}).strip()

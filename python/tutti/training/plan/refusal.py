"""Refusals of searches without a result: which option excludes all plans, or what fits.

An option excludes all plans if there are some without it. A batch does if there are some with
another batch.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

from tutti.training.plan.explain import by_use, described
from tutti.training.plan.space import FixedDegrees, plans
from tutti.workloads.errors import WorkloadError
from tutti.workloads.memory import States

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tutti.training.plan.cluster import Cluster
    from tutti.training.plan.search import Ranked
    from tutti.training.plan.space import Plan
    from tutti.workloads.decoder import Decoder
    from tutti.workloads.model import Model

__all__ = ["least_gpus", "no_plans", "over_memory"]

_VALUES = {
    "tensor": lambda plan: plan.kinds.tensor,
    "context": lambda plan: plan.kinds.context,
    "pipeline": lambda plan: plan.kinds.pipeline,
    "expert": lambda plan: plan.expert_ranks,
    "data": lambda plan: plan.data,
    "micro_batch": lambda plan: plan.micro_batch,
    "chunks": lambda plan: plan.kinds.interleaved,
    "zero": lambda plan: plan.kinds.zero,
}
"""The value of each option in a plan; other options exclude none."""
_BATCHES = 64
"""Batches that are tried on each side of the given one."""
_MOST_CHANGED = 3
"""Options that are changed together, if no change of fewer and no batch suffices."""


def no_plans(shape: Decoder, cluster: Cluster, batch: int, fixed: FixedDegrees) -> WorkloadError:
    """Returns the error of a search of which no plan has the batch and the fixed options."""
    given = [name for name in _VALUES if getattr(fixed, name) is not None]
    of = (shape, cluster.gpus, batch, cluster.domain)
    fitting = _near(of, fixed)
    changes: list[str] = []
    for count in range(1, _MOST_CHANGED + 1):
        changes = [
            text for names in combinations(given, count) if (text := _change(of, fixed, names))
        ]
        if changes or fitting:
            break
    stated = ", ".join(f"{_option(name)} {getattr(fixed, name)}" for name in given)
    message = f"no plan of {batch:,} sequences on {cluster.gpus:,} GPUs"
    message += f" with {stated}" * bool(stated)
    batches = f"--global-batch {_or(fitting)}" if fitting else ""
    options = [*changes, *([batches] if batches else [])]
    message += f": expected {', or '.join(options) or 'other fixed options'}"
    return WorkloadError(message, kind="no_plan", hint=_rules(shape, fixed))


_Search = tuple["Decoder", int, int, int]
"""The arguments of :func:`plans` without fixed options."""


def _change(of: _Search, fixed: FixedDegrees, names: Sequence[str]) -> str:
    """Returns the values of options with which there are plans; empty without any.

    Of several options, it returns one value of each.
    """
    freed: dict[str, Any] = dict.fromkeys(names)
    free = replace(fixed, **freed)
    found = {tuple(_VALUES[name](plan) for name in names) for plan in plans(*of, free)}
    if not found:
        return ""
    if len(names) == 1:
        return f"{_option(names[0])} {_or([value for (value,) in sorted(found)])}"
    now = [getattr(fixed, name) for name in names]

    def distance(values: tuple[int, ...]) -> float:
        return sum(max(a / b, b / a) if a and b else 2.0 for a, b in zip(values, now, strict=True))

    nearest = min(sorted(found), key=distance)
    pairs = zip(names, nearest, strict=True)
    return " with ".join(f"{_option(name)} {value}" for name, value in pairs)


def _near(of: _Search, fixed: FixedDegrees) -> list[int]:
    """Returns the nearest smaller and larger batch with plans."""
    shape, gpus, batch, domain = of

    def first(candidates: Iterator[int]) -> list[int]:
        found = (one for one in candidates if _any(plans(shape, gpus, one, domain, fixed)))
        return [one for one in (next(found, None),) if one is not None]

    units = {(fixed.micro_batch or 1) * one for one in range(1, gpus + 1) if gpus % one == 0}
    above = sorted({batch // unit * unit + unit * n for unit in units for n in (1, 2)})[:_BATCHES]
    below = sorted({batch // unit * unit - unit * (batch % unit == 0) for unit in units})
    below = [one for one in reversed(below) if 0 < one < batch][:_BATCHES]
    return [*first(iter(below)), *first(iter(above))]


def _or(values: Sequence[int]) -> str:
    """Returns values such as `2, 4 or 8`."""
    *others, last = map(str, values)
    return f"{', '.join(others)} or {last}" if others else last


def _any(found: Iterator[Plan]) -> bool:
    return next(found, None) is not None


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _rules(shape: Decoder, fixed: FixedDegrees) -> str:
    """Returns the rules of the fixed options, or of all batches."""
    rules = []
    if (fixed.chunks or 1) > 1:
        rules.append(
            "model chunks interleave the stages of a pipeline: they need several stages, a "
            "multiple of as many micro-batches, and at most "
            f"{shape.layers + 2} chunks in all ({shape.layers} layers, embedding and classifier)"
        )
    if fixed.zero == 2:
        rules.append("ZeRO 2 needs several chunks per stage, and as many micro-batches as stages")
    if not rules:
        rules.append("micro-batches x replicas divide the batch; stages need as many micro-batches")
    return "; ".join(rules)


def over_memory(model: Model, cluster: Cluster, found: Sequence[Ranked]) -> WorkloadError:
    """Returns the error of a search whose plans exceed the memory, with the least memory."""
    least = min(found, key=lambda one: one.memory.total)
    needed, limit = least.memory.total / 1e9, cluster.capacity / 1e9
    message = (
        f"{model.name} does not fit {cluster.gpus:,} GPUs: the plan with the least memory, "
        f"{described(least.plan)}, needs {needed:.1f} GB per GPU ({by_use(least.memory)}): "
        f"expected at most {limit:.1f} GB, {round(needed, 1) - round(limit, 1):.1f} GB less"
    )
    fastest = found[0]
    step = fastest.estimated.step
    message += f"; with more memory, {described(fastest.plan)} would take {step:.2f} s"
    return WorkloadError(message, kind="no_plan", hint=_relief(model, cluster, least))


def least_gpus(model: Model, capacity: float) -> int:
    """Returns the number of GPUs whose memory of `capacity` bytes holds the training states."""
    states = States()
    each = states.weights + states.gradients + states.optimizer
    return int(-(-model.parameters * each // capacity))


def _relief(model: Model, cluster: Cluster, least: Ranked) -> str:
    """Returns what reduces the memory of the plan that needs the least."""
    domain = cluster.domain
    gpus = -(-least_gpus(model, cluster.capacity) // domain) * domain
    if gpus > cluster.gpus:
        return f"states alone need {gpus:,} GPUs of this memory; use more"
    kinds, used = least.plan.kinds, least.memory
    if used.activations + used.working > used.states:
        possible = {
            "--micro-batch 1": least.plan.micro_batch > 1,
            "--recompute full": kinds.recompute != "full",
            "a larger --tensor, --context or --pipeline": True,
        }
        what = "activations"
    else:
        possible = {
            "--zero 1": kinds.zero == 0,
            "--zero 3": kinds.zero < 3 and kinds.pipeline == 1,
            "a larger --tensor, --pipeline or --expert": True,
        }
        what = "states"
    changes = [option for option, is_possible in possible.items() if is_possible]
    return f"{what} use the most: {', '.join(changes)}; or more GPUs"

"""What the reservations of endpoints cost, what they hide, and when they pay off."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tutti import _core
from tutti.view.quantity import format_share, format_time
from tutti.view.view import Fact
from tutti.workloads.compute import Roofline
from tutti.workloads.model import PASSES

from . import text as words

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tutti.training.results import TrainingResult


_MOST_UNUSED = 0.5
"""The share of a reservation above which a smaller one would slow communication."""


def memory_bound(run: TrainingResult) -> float | None:
    """Returns the share of the compute time of a complete NPU in passes that memory bounds.

    None if the times of passes do not follow the roofline of the layers.
    """
    step = run.step
    if step.is_recorded or not isinstance(step.compute, Roofline):
        return None
    part = step.divided(run.configuration)
    per_second, memory = step.npu.without(0, None)
    sums = {"arithmetic": 0, "memory": 0}
    for layer, _ in part.layers:
        for which in PASSES:
            work = layer.work(which, part.samples, step.element)
            ps, bound = _core.roofline_time(work.flops, work.bytes, per_second, memory.core)
            sums[bound] += ps
    total = sum(sums.values())
    return sums["memory"] / total if total else None


def facts(runs: Sequence[TrainingResult]) -> list[Fact]:
    """Returns what each reservation costs and hides, and the share at which it breaks even."""
    costly = [run for run in runs if run.reservation_cost > 0]
    if not costly:
        return []
    texts = [
        f"{run.configuration.name} {format_time(run.reservation_cost)}, "
        f"{format_time(hidden(runs, run))}"
        for run in costly
    ]
    even = [
        f"{run.configuration.name} {format_share(run.reservation_cost / run.complete_compute)}"
        for run in costly
    ]
    communicating = _alone(runs, costly[0])
    return [
        Fact("reservation", f"lengthens computation, hides communication: {'; '.join(texts)}"),
        Fact(
            "break-even",
            f"communication of {', '.join(even)} of the computation of a complete NPU; "
            f"here {format_share(communicating / costly[0].complete_compute)}",
        ),
        *_rule(costly),
    ]


def hidden(runs: Sequence[TrainingResult], run: TrainingResult) -> int:
    """Returns picoseconds of communication that a run hides.

    If one of the runs alternates between computation and communication, this is its communication
    that the run does not expose; otherwise the time in which the run does both.
    """
    alternates = any(not one.configuration.overlap for one in runs)
    return max(0, _alone(runs, run) - run.exposed) if alternates else run.overlap


def _alone(runs: Sequence[TrainingResult], run: TrainingResult) -> int:
    """Returns the time of communication without computation, or else that of a run."""
    alternating = [one for one in runs if not one.configuration.overlap]
    return alternating[0].exposed if alternating else run.overlap + run.exposed


def _rule(runs: Sequence[TrainingResult]) -> Iterator[Fact]:
    """Yields the break-even share from the reserved bandwidth, if only memory is reserved."""
    for run in runs:
        configuration, npu = run.configuration, run.step.npu
        share = memory_bound(run)
        is_static = configuration.reservation == "static"
        if configuration.memory is None or configuration.sms or share is None or not is_static:
            continue
        complete = npu.memory.core.bytes_per_second
        reserved = configuration.memory.core.bytes_per_second
        factor = reserved / (complete - reserved)
        yield Fact(
            "break-even",
            f"of {configuration.name}: {factor:.3f} ({words.rate(configuration.memory)} reserved / "
            f"{words.rate(configuration.compute(npu)[1])} left) x {format_share(share)} of the "
            f"computation that memory bounds = {format_share(factor * share)}",
        )
        return


def losses(runs: Sequence[TrainingResult]) -> Iterator[str]:
    """Yields a sentence for each endpoint that costs more than it hides, with the cure."""
    for run in runs:
        cost, hides = run.reservation_cost, hidden(runs, run)
        if cost <= hides:
            continue
        name = run.configuration.name
        yield (
            f"{name} costs more than it hides: its reservation lengthens computation by "
            f"{format_time(cost)}, and it hides {format_time(hides)} of communication; "
            f"{_cure(run)}"
        )


def _cure(run: TrainingResult) -> str:
    configuration = run.configuration
    if configuration.memory is None:
        return "reserve fewer `sms`"
    used = run.read / configuration.memory.core.bytes_per_second * 1e12 / run.total.ps
    uses = f"it uses {format_share(used)} of its memory bandwidth: "
    cures = []
    if used < _MOST_UNUSED:
        more = ", with more `banks` and `fsms` for the same send rate"
        cures.append("reserve less (`memory`)" + (more if configuration.kind == "ace" else ""))
        if configuration.reservation == "static":
            cures.append('leave what it does not use (`reservation = "work_conserving"`)')
    elif configuration.kind == "baseline":
        cures.append("use an endpoint that reads less for each byte sent, such as ace")
    else:
        cures.append("reduce what it reads and writes")
    return uses + ", or ".join(cures)

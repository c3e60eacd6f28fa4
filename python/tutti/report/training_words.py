"""What a training step came to, in words and numbers for people."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING

from .quantity import format_rate, format_share, format_time

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.endpoint import Configuration, Npu
    from tutti.training import TrainingResult
    from tutti.workload.parallel import Division


def answer(runs: Sequence[TrainingResult]) -> list[str]:
    """What communication costs with each configuration: the quickest first, an ideal one apart."""
    ideal = [run for run in runs if run.configuration.kind == "ideal"]
    built = sorted((run for run in runs if run not in ideal), key=lambda run: run.total.ps)
    count = runs[0].iterations
    what = "the iteration takes" if count == 1 else f"the {count} iterations take"
    said = [
        f"With {run.configuration.name}, an endpoint that is never in the way, "
        f"{what} {format_time(run.total.ps)}; {_exposed(run)}."
        for run in ideal
    ]
    limit = min((run.total.ps for run in ideal), default=0)
    for place, run in enumerate(built):
        longer = f", {format_share(run.total.ps / limit - 1)} longer" if limit else ""
        how = ", the quickest of the others," if ideal else ", the quickest,"
        name = run.configuration.name + (how if place == 0 and len(built) > 1 else "")
        said.append(f"With {name} {what} {format_time(run.total.ps)}{longer}; {_exposed(run)}.")
    return said


def _exposed(run: TrainingResult) -> str:
    computing = f"an NPU computes for {format_time(run.compute)}"
    if run.exposed == 0:
        return f"{computing}, and all communication is hidden"
    return f"{computing}, and {format_time(run.exposed)} of communication stay exposed"


def facts(runs: Sequence[TrainingResult]) -> list[tuple[str, str]]:
    """What was run."""
    step = runs[0].step
    model, npu = step.model, step.npu
    rings = [
        f"{ring.name} {ring.nodes} x {format_rate(ring.rate.core.bytes_per_second)}, "
        f"{format_time(ring.latency.ps)}"
        for ring in step.rings
    ]
    return [
        ("model", f"{model.name}, {model.parameters / 1e6:,.1f} M weights"),
        ("batch", f"{step.batch} {model.samples} on each NPU"),
        *([("divided", divided)] if (divided := _divided(step.parallelism)) else []),
        ("torus", "; ".join(rings)),
        ("NPU", f"{_tflops(npu.arithmetic.per_second)}, {npu.sms} SMs, memory {_rate(npu.memory)}"),
        ("iterations", str(runs[0].iterations)),
        ("chunks", f"{step.chunk}, {step.order}"),
        ("bytes an element", str(step.element)),
    ]


def _divided(parallelism: Division) -> str:
    """What is not as it is without being asked for, such as ``tensor 4, zero 3``."""
    if not is_dataclass(parallelism):
        return type(parallelism).__name__
    asked = {one.name: getattr(parallelism, one.name) for one in fields(parallelism)}
    plain = {one.name: one.default for one in fields(parallelism)}
    said = [
        f"{name.replace('_', ' ')} {value}" for name, value in asked.items() if value != plain[name]
    ]
    return ", ".join(said)


def taken(configuration: Configuration, npu: Npu) -> tuple[str, str]:
    """SMs and bandwidth of memory that are set aside for communication."""
    if configuration.kind == "ideal":
        return "none", "none"
    if not configuration.overlap:
        return f"all {npu.sms}, in turns", f"all {_rate(npu.memory)}, in turns"
    sms = configuration.sms + (1 if configuration.background else 0)
    memory = "none" if configuration.memory is None else _rate(configuration.memory)
    if configuration.background:
        memory = f"{memory} + {_rate(npu.per_sm)}"
    return f"{sms} of {npu.sms}" if sms else "none", memory


def left(configuration: Configuration, npu: Npu) -> tuple[tuple[float, str], tuple[float, str]]:
    """Operations and bytes a second that are left to compute with, each as number and text."""
    per_second, memory = configuration.compute(npu)
    return (per_second, _tflops(per_second)), (memory.core.bytes_per_second, _rate(memory))


def _tflops(per_second: int) -> str:
    return f"{per_second / 1e12:,.4g} TFLOP/s"


def _rate(cost: object) -> str:
    return format_rate(cost.core.bytes_per_second)  # type: ignore[attr-defined]

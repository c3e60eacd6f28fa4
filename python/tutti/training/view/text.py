"""Text for reports and terminal output of training steps."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING

from tutti.training.endpoint import Ring
from tutti.training.library import lines
from tutti.training.spans import communication
from tutti.training.view.captured import captured_facts, captured_headline, captured_remarks
from tutti.view.palette import GREEN, OLIVE, ORANGE, PINK, others
from tutti.view.quantity import format_rate, format_share, format_time, plural
from tutti.view.view import Fact
from tutti.workloads.parallel import Parallelism

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tutti.schedules.ir import Schedule
    from tutti.training.endpoint import Configuration, Npu
    from tutti.training.fabric import Channels
    from tutti.training.plan.timing import StepTiming
    from tutti.training.results import TrainingResult
    from tutti.training.step import Step
    from tutti.workloads.parallel import Division

_COMMUNICATION = (
    ORANGE, GREEN, PINK, OLIVE, *others(6),
)  # fmt: skip
"""Colours of collectives; red is exposed communication, blue is compute."""


def collective(name: str) -> str:
    """Returns the name of a collective for display; a shift is a send between pipeline stages."""
    return "send" if name == "shift" else name


def communication_colours(runs: Iterable[TrainingResult]) -> dict[tuple[str, str], str]:
    """Returns a colour for each collective and process group of runs of one step."""
    keys = {key for run in runs for key in communication(run)}
    return {key: _COMMUNICATION[at % len(_COMMUNICATION)] for at, key in enumerate(sorted(keys))}


def of_first(runs: Sequence[TrainingResult]) -> str:
    """Returns a sentence on the NPU of the values, if each NPU was simulated."""
    several = any(run.record.npus > 1 for run in runs)
    return " The values are those of NPU 0." if several else ""


def answer(runs: Sequence[TrainingResult]) -> list[str]:
    """Returns the exposed share of the fastest endpoint that is built, and of the extremes."""
    built = sorted(
        (run for run in runs if run.configuration.kind != "ideal"), key=lambda run: run.total.ps
    )
    first = (built or runs)[0]
    lines = [
        (
            f"{format_share(first.exposed / first.total.ps)} with {first.configuration.name}: "
            f"{format_time(first.exposed)} of {format_time(first.total.ps)}."
        )
    ]
    if len(built) > 1:
        last = built[-1]
        lines.append(
            f"{last.configuration.name} is the slowest of {len(built)} configurations: "
            f"{format_share(last.exposed / last.total.ps)} of {format_time(last.total.ps)}."
        )
    ideal = [run for run in runs if run.configuration.kind == "ideal"]
    if ideal and built:
        shorter = format_time(ideal[0].total.ps)
        lines.append(f"With an ideal endpoint, the time is {shorter}.")
    return lines


def summary(runs: Sequence[TrainingResult]) -> list[str]:
    """Returns a sentence per endpoint configuration: ideal endpoints, then fastest first."""
    ideal = [run for run in runs if run.configuration.kind == "ideal"]
    built = sorted((run for run in runs if run not in ideal), key=lambda run: run.total.ps)
    count = runs[0].iterations
    what = "the iteration takes" if count == 1 else f"the {count} iterations take"
    lines = [
        f"With {run.configuration.name} (ideal endpoint), {what} {format_time(run.total.ps)}: "
        f"{_exposed(run)}."
        for run in ideal
    ]
    bound = min((run.total.ps for run in ideal), default=0)
    for place, run in enumerate(built):
        longer = f", {format_share(run.total.ps / bound - 1)} longer" if bound else ""
        rank = " (fastest non-ideal)" if ideal else " (fastest)"
        name = run.configuration.name + (rank if place == 0 and len(built) > 1 else "")
        lines.append(f"With {name}, {what} {format_time(run.total.ps)}{longer}: {_exposed(run)}.")
    return lines


def _exposed(run: TrainingResult) -> str:
    computing = f"{format_time(run.compute)} of computation"
    if run.exposed == 0:
        return f"{computing}, no exposed communication"
    return f"{computing}, {format_time(run.exposed)} of exposed communication"


def headline(run: TrainingResult) -> str:
    """Returns model, batch, NPUs and iterations of a run on one line."""
    step = run.step
    shape = " x ".join(str(ring.nodes) for ring in step.rings)
    if step.captured is not None:
        return captured_headline(step.captured, shape)
    if step.traces:
        return f"{step.model.name}, {len(step.traces)} traces on {shape}"
    what = f"{step.batch} {step.model.samples} on each {replica(step)} of {shape}"
    return f"{step.model.name}, {what}, {plural(run.iterations, 'iteration')}"


def inputs(step: Step) -> list[Fact]:
    """Returns the settings of a training step."""
    if step.captured is not None:
        return [*captured_facts(step.captured), *_network(step), Fact("NPUs", f"{step.npus:,}")]
    model, npu = step.model, step.npu
    divided = _divided(step.parallelism)
    memory = f"{npu.sms} SMs, memory {rate(npu.memory)}"
    return [
        Fact(
            "model", f"{model.name}, {model.parameters / 1e6:,.1f} M weights", "model", model.name
        ),
        Fact("batch", f"{step.batch} {model.samples} per {replica(step)}", "batch", step.batch),
        *([Fact("parallelism", divided)] if divided else []),
        *_network(step),
        Fact("NPU", f"{tflops(npu.arithmetic.per_second)}, {memory}", "npus", step.npus),
        Fact("chunks", f"{step.chunk}, {step.order}"),
        Fact("bytes per element", str(step.element)),
    ]


def times(runs: Sequence[TrainingResult]) -> list[Fact]:
    """Returns the time of the last of several iterations, and the lower bound."""
    last = ", ".join(f"{run.configuration.name} {format_time(run.period.ps)}" for run in runs)
    bounds = (
        f"{run.configuration.name} {format_time(run.bound.time.ps)} ({format_share(run.of_bound)})"
        for run in runs
    )
    return [
        *([Fact("last iteration", last)] if runs[0].iterations > 1 else []),
        Fact(
            "lower bound",
            "of any algorithms that follow complete layers, and its share of the time: "
            + ", ".join(bounds),
        ),
    ]


def planned_fact(run: TrainingResult, timing: StepTiming) -> Fact:
    """Returns the time of a plan's step, and how it differs from the run's."""
    less = run.total.ps + 1e12 * (timing.update - timing.step)
    exposed = f"{format_time(abs(less))} {'less' if less >= 0 else 'more'}"
    return Fact(
        "as a plan",
        f"{format_time(timing.step * 1e12)}: measured runs expose {exposed}, and "
        f"casts, the optimizer and a constant add {format_time(timing.update * 1e12)}",
        "planned_step_s",
        timing.step,
    )


def remarks(runs: Sequence[TrainingResult]) -> Iterator[str]:
    """Yields what traces lack, the model of communication, and configurations not yet stable."""
    step = runs[0].step
    for trace in step.traces:
        yield from trace.remarks
    if step.captured is not None:
        yield from captured_remarks(step.captured)
    if step.platform is not None:
        name = step.platform.name
        replaces = {
            "packets": f"endpoints replace the cost model of {name}",
            "flows": f"flows replace the cost model of {name}; endpoints cost nothing",
            "isolated": f"collectives take the time of their simulation alone on {name}",
        }
        yield f"{replaces[step.detail]} ({step.platform.model.kind})"
        yield from _of_library(runs[0])
    unstable = [run.configuration.name for run in runs
                if run.step.iterations == "stable" and not run.is_stable]  # fmt: skip
    if unstable:
        yield f"not stable after {runs[0].iterations} iterations: {', '.join(unstable)}"


def _of_library(run: TrainingResult) -> Iterator[str]:
    """Yields the collectives that the platform's library executes, or that it does not."""
    step = run.step
    library = step.platform.library if step.platform else None
    if library is None:
        return
    programs = step.programs(run.configuration)
    yield from lines(step.network, sorted({one for of in programs for one in of.transfers}))
    if step.detail == "packets" and library.system:
        title = library.model.title
        yield f"collectives are not those of {title}, unlike with `detail = flows` or `isolated`"


def _network(step: Step) -> list[Fact]:
    """Returns the network and the algorithms of a step."""
    rows = []
    if step.platform is None:
        rings = [
            f"{ring.name} {ring.nodes} x {format_rate(ring.rate.core.bytes_per_second)}, "
            f"{format_time(ring.latency.ps)}"
            for ring in step.rings
            if isinstance(ring, Ring)
        ]
        rows.append(Fact("torus", "; ".join(rings)))
    else:
        dimensions = ", ".join(f"{one.name} {one.nodes}" for one in step.rings)
        text = f"{step.platform.name}, {step.platform.network}: {dimensions}"
        rows.append(Fact("platform", text))
    chosen = [f"{name} {_notation(given)}" for name, given in step.algorithms.items()]
    return rows + ([Fact("algorithms", "; ".join(chosen))] if chosen else [])


def _notation(given: str | Schedule | Channels) -> str:
    if isinstance(given, tuple):
        return ", ".join(map(_notation, given))
    return given if isinstance(given, str) else given.name


def replica(step: Step) -> str:
    """Returns the NPUs that share a model and process a batch, such as ``replica of 32 NPUs``."""
    parallelism = step.parallelism
    count = parallelism.replica if isinstance(parallelism, Parallelism) else 1
    return f"replica of {count} NPUs" if count > 1 else "NPU"


def _divided(parallelism: Division) -> str:
    """Returns the settings that differ from their defaults, such as ``tensor 4, zero 3``."""
    if not is_dataclass(parallelism):
        return type(parallelism).__name__
    values = {one.name: getattr(parallelism, one.name) for one in fields(parallelism)}
    defaults = {one.name: one.default for one in fields(parallelism)}
    changed = {name: value for name, value in values.items() if value != defaults[name]}
    return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in changed.items())


def server(name: str) -> str:
    """Returns the name of a server of the endpoint, or of the links of a ring, for display."""
    upper = {"alu": "ALU", "sms": "SMs", "sram": "SRAM"}
    return " ".join(upper.get(word, word) for word in name.replace("_", " ").split())


_CAUSES = {
    "entry": "first partition",
    "fsm": "FSM",
    "next_partition": "next partition",
    "port": "send buffer",
}


def cause(name: str) -> str:
    """Returns the resource that a stalled chunk or packet waits for, for display."""
    return _CAUSES.get(name) or server(name)


def taken(configuration: Configuration, npu: Npu) -> tuple[str, str]:
    """Returns the SMs and the memory bandwidth that are reserved for communication."""
    if configuration.kind == "ideal":
        return "none", "none"
    if not configuration.overlap:
        return f"all {npu.sms}, alternating", f"all {rate(npu.memory)}, alternating"
    sms = configuration.sms + (1 if configuration.background else 0)
    memory = "none" if configuration.memory is None else rate(configuration.memory)
    if configuration.reservation == "work_conserving":
        memory += " while used"
    if configuration.background:
        memory = f"{memory} + {rate(npu.per_sm)}"
    return f"{sms} of {npu.sms}" if sms else "none", memory


def tflops(per_second: int) -> str:
    """Formats operations per second."""
    return f"{per_second / 1e12:,.4g} TFLOP/s"


def rate(cost: object) -> str:
    """Formats a time per byte as a rate."""
    return format_rate(cost.core.bytes_per_second)  # type: ignore[attr-defined]

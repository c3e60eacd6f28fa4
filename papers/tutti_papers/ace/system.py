"""The paper's system: tori of NPUs, their endpoints, and the trained models."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

from tutti.base.units import Size, Time, TimePerByte
from tutti.training.collective import Alone
from tutti.training.endpoint import AceSettings, Configuration, Npu, Ring
from tutti.training.step import Step
from tutti.workloads.transfers import Elements
from tutti_papers.ace.workloads import (
    BATCH,
    RECORDED,
    Reading,
    compute_of,
    gradient_of,
    model_of,
)

if TYPE_CHECKING:
    from tutti.training.collective import AloneResult
    from tutti.training.results import TrainingResult

SIZES = {"4x2x2": (4, 2, 2), "4x4x2": (4, 4, 2), "4x4x4": (4, 4, 4), "4x8x4": (4, 8, 4)}
"""16 to 128 NPUs: local x vertical x horizontal (R)."""

PAYLOAD = Size.parse("64 MiB")
"""Payload of the all_reduce of figures 5 and 6 (R)."""

MESSAGE = Size.parse("8 KiB")
"""The unit of kernels and of loads and stores of ACE (R)."""

INSIDE, BETWEEN = 90, 500
"""Link latency in cycles: inside a package (V: ASTRA-sim's sample), between packages (R)."""
SAMPLE = 200
"""Link latency between packages in ASTRA-sim's public sample, cycles (V)."""

EFFICIENCY = 0.94
"""Payload share of the transmitted bytes (R)."""

READING = Reading()
"""The reading of the exhibits; `docs/papers/ace.md` argues each choice."""


def rings(size: str, between: int = BETWEEN) -> tuple[Ring, ...]:
    """Returns the rings of a torus: 200 GB/s per direction in a package, 25 GB/s between (R)."""
    clock = Npu().clock
    dimensions = (
        ("local", "200 GB/s", INSIDE),
        ("vertical", "25 GB/s", between),
        ("horizontal", "25 GB/s", between),
    )
    return tuple(
        Ring(name, nodes, TimePerByte.parse(rate), clock.cycles(cycles))
        for nodes, (name, rate, cycles) in zip(SIZES[size], dimensions, strict=True)
    )


def ace(memory: str = "128 GB/s", **settings: object) -> Configuration:
    """Returns an ACE with this memory bandwidth, and settings that differ from the paper's."""
    default = AceSettings()
    return Configuration(
        name="ace",
        kind="ace",
        memory=TimePerByte.parse(memory),
        ace=replace(default, **settings),  # type: ignore[arg-type]
    )


def baseline(memory: str, sms: int = 80) -> Configuration:
    """Returns a baseline with this memory bandwidth and number of SMs for communication."""
    return Configuration(
        name="baseline", kind="baseline", memory=TimePerByte.parse(memory), sms=sms
    )


def alone(
    configuration: Configuration, size: str, between: int = BETWEEN, message: Size = MESSAGE
) -> AloneResult:
    """Runs the all_reduce of figures 5 and 6; each case once."""
    return _alone(configuration, size, between, message)


@cache
def _alone(configuration: Configuration, size: str, between: int, message: Size) -> AloneResult:
    experiment = Alone(
        size=PAYLOAD, rings=rings(size, between), efficiency=EFFICIENCY, message=message
    )
    return experiment.run(configuration)


def effective(model: str, configuration: Configuration, reading: Reading) -> Reading:
    """Returns a reading without the choices that have no effect on a run."""
    scaling = reading.scaling
    if not configuration.overlap or (scaling == "sms" and not configuration.sms):
        scaling = "fixed"
    return Reading(
        clock=reading.clock_of(model) if model in RECORDED else READING.clock,
        gradient=reading.gradient if model.startswith("resnet50") else READING.gradient,
        scaling=scaling,
        lookups=reading.lookups if model == "dlrm_libra" else READING.lookups,
        cells=reading.cells if model == "gnmt" else READING.cells,
        part=reading.part if model == "gnmt" else READING.part,
    )


def step(
    model: str,
    size: str,
    configuration: Configuration,
    *,
    between: int = BETWEEN,
    batch: int | None = None,
    iterations: int = 2,
    reading: Reading = READING,
) -> TrainingResult:
    """Runs a few iterations of a workload, with utilisation in windows of 20 us; each case once."""
    reading = effective(model, configuration, reading)
    case = Trained(model, size, between, batch or BATCH[model], iterations, reading)
    return _step(case, configuration)


@dataclass(frozen=True)
class Trained:
    """A workload on a torus."""

    model: str
    size: str
    between: int
    batch: int
    iterations: int
    reading: Reading


@cache
def _step(case: Trained, configuration: Configuration) -> TrainingResult:
    experiment = Step(
        model=model_of(case.model, case.reading),
        batch=case.batch,
        compute=compute_of(case.model, case.reading),
        elements=Elements(gradients=gradient_of(case.model, case.reading)),
        rings=rings(case.size, case.between),
        efficiency=EFFICIENCY,
        iterations=case.iterations,
        window=Time.parse("20 us"),
    )
    return experiment.run(configuration)

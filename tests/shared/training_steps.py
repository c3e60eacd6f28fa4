"""Small training steps on the torus of Rashidi et al. 2021."""

from __future__ import annotations

from dataclasses import replace

from tutti.base.units import Time, TimePerByte
from tutti.training.endpoint import Ring
from tutti.training.step import Step
from tutti.workloads.model import Model, linear

RATE = TimePerByte.parse


def rings(local: int, vertical: int, horizontal: int) -> tuple[Ring, ...]:
    """The torus of Rashidi et al. 2021."""
    near, far = Time.parse("72289 ps"), Time.parse("401607 ps")
    return (
        Ring("local", local, RATE("200 GB/s"), near),
        Ring("vertical", vertical, RATE("25 GB/s"), far),
        Ring("horizontal", horizontal, RATE("25 GB/s"), far),
    )


def small(**changes: object) -> Step:
    layers = tuple(linear(f"l{i}", 512, 512, first=i == 0) for i in range(6))
    model = Model(name="small", source="made up", layers=layers, samples="rows")
    step = Step(model=model, batch=64, rings=rings(4, 2, 2), efficiency=0.94)
    return replace(step, **changes)  # type: ignore[arg-type]

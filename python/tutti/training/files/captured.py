"""Captured steps of PyTorch programs as training steps: `captured:FOLDER`, or the folder itself."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tutti.base.errors import TuttiError
from tutti.base.files.mistakes import mistake, shown
from tutti.base.files.overrides import with_changes
from tutti.base.units import OpRate
from tutti.platforms.files.presets import platform_of
from tutti.platforms.files.scaled import scaled
from tutti.platforms.npus import npu, npu_names
from tutti.training.capture.files import read_step
from tutti.training.capture.kernels import KernelTimes
from tutti.training.capture.measured import MEASURED, read_times
from tutti.training.capture.programs import CapturedWork
from tutti.training.endpoint import Npu
from tutti.training.files.calibration import read_calibration
from tutti.training.files.step_file import CAPTURED, Training, resolve_training
from tutti.training.files.tables import GpuTable, RawTraining
from tutti.training.plan.efficiency import Setting, rates_of
from tutti.training.step import Step
from tutti.workloads import Model

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tutti.platforms.files.platform_file import RawPlatform
    from tutti.platforms.machine import Platform
    from tutti.schedules.ir import Schedule
    from tutti.training.capture.record import CapturedStep
    from tutti.training.fabric import Channels, Dimension

__all__ = ["captured_step", "load_captured"]

PLATFORM = "dgx_h100_cluster"
"""The default platform, as of `tutti train plan`."""
MOST_IN_FLOWS = 64
"""The most ranks whose collectives share links as flows by default; in larger steps, each takes the
time of its simulation alone. A step of 1,024 ranks takes 17 s of CPU time as flows, 1 s otherwise.
"""
_DEFAULTS: dict[str, Any] = {
    "model": f"{CAPTURED}.",
    "platform": PLATFORM,
    "iterations": 1,
    "configurations": ["ideal"],
}


def load_captured(
    folder: Path, changes: Sequence[str] = (), *, output: Path | None = None
) -> Training:
    """Reads the folder of a captured step as a training step on a platform.

    Args:
        folder: The folder that `tutti train capture` wrote.
        changes: Key paths and values, each ``KEY=VALUE``: `platform=...`, `compute.gpu=...`.
        output: The folder for results; by default `out/training`.

    Raises:
        ConfigError: A change is invalid, or the platform does not have as many GPUs.
        CaptureError: The folder has no captured step.
    """
    example = "platform=gb200_nvl72_cluster or detail=isolated"
    ranks = read_step(folder).world_size
    defaults = {**_DEFAULTS, "detail": "flows" if ranks <= MOST_IN_FLOWS else "isolated"}
    tables = with_changes(defaults, changes, RawTraining, example=example)
    if output is not None:
        tables["output"] = str(output)
    return resolve_training(tables, source=str(folder), folder=folder)


def captured_step(
    raw: RawTraining,
    source: str,
    folder: Path,
    algorithms: dict[str, str | Schedule | Channels],
) -> Step:
    """Returns the training step of a file whose model is `captured:FOLDER`.

    Raises:
        ConfigError: The platform does not fit the step.
        CaptureError: The folder has no captured step.
    """
    step = read_step(folder / raw.model.removeprefix(CAPTURED))
    if raw.platform is None:
        raise mistake("is missing: a captured step runs on a platform", source=source,
                      key="platform", expected="a platform with a topology")  # fmt: skip
    platform = platform_of(raw.platform, folder=folder, source=source)
    kernels = _kernels(raw, step, platform, source, folder)
    work = CapturedWork(step=step, kernels=kernels)
    return Step(
        model=Model(name=step.script, source=source, layers=(), samples="steps"),
        batch=1,
        rings=_dimensions(raw, work, source),
        platform=_sized(platform, step.world_size, source),
        algorithms=algorithms,
        npu=_engine(kernels),
        iterations=1,
        chunk=raw.chunk,
        message=raw.message,
        order=raw.order,
        detail=raw.detail,
        captured=work,
    )


def _sized(platform: RawPlatform, world_size: int, source: str) -> Platform:
    """Returns the platform with a GPU per rank."""
    try:
        return scaled(platform, world_size, source=source)
    except TuttiError as error:
        problem = error.problem.removeprefix("--gpus: ")
        raise mistake(problem, source=source, key="platform", hint=error.hint) from None


def _dimensions(raw: RawTraining, work: CapturedWork, source: str) -> tuple[Dimension, ...]:
    found = work.dimensions
    if raw.dimensions and [one.nodes for one in raw.dimensions] != [one.nodes for one in found]:
        sizes = " x ".join(str(one.nodes) for one in found)
        given = [one.nodes for one in raw.dimensions]
        raise mistake(f"does not fit the process groups of {math.prod(given):,} ranks",
                      source=source, key="dimensions", value=shown(given),
                      expected=f"{sizes}, or none")  # fmt: skip
    return tuple(raw.dimensions) or found


def _engine(kernels: KernelTimes) -> Npu:
    peaks = kernels.peaks
    rate = OpRate.parse(f"{peaks.bf16_flops.per_second} FLOP/s")
    return Npu(arithmetic=rate, sms=peaks.sms, memory=peaks.memory_bandwidth)


def _kernels(
    raw: RawTraining, step: CapturedStep, platform: RawPlatform, source: str, folder: Path
) -> KernelTimes:
    """Returns the times of kernels on the GPU of `compute`, or on that of the platform."""
    given = raw.compute if isinstance(raw.compute, GpuTable) else None
    name = given.gpu if given else _gpu_of(platform, source)
    peaks = npu(name)
    precision = given.precision if given else "bf16"
    rates_of(peaks, precision)
    setting = Setting(npu=peaks.name, precision=precision, graph=(given and given.graph) or "eager")
    calibration = given.calibration if given else None
    stored = folder / raw.model.removeprefix(CAPTURED)
    return KernelTimes(
        peaks=peaks,
        setting=setting,
        efficiency=given.efficiency if given else None,
        calibrated=read_calibration(folder / calibration) if calibration else None,
        fused=step.compiled,
        measured=read_times(times) if (times := stored / MEASURED).is_file() else None,
    )


def _gpu_of(platform: RawPlatform, source: str) -> str:
    words = platform.name.split("_")
    named = [name for name in npu_names() if name in words]
    if not named:
        raise mistake(f"platform {platform.name} does not name its GPU", source=source,
                      key="compute", expected=f'{{ model = "gpu", gpu = "{npu_names()[0]}" }}',
                      hint="`--set compute.model=gpu --set compute.gpu=h100`")  # fmt: skip
    return named[0]

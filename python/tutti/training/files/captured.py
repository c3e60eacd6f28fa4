"""Captured steps of PyTorch programs as training steps: `captured:FOLDER`, `script:FILE`, or the
folder or script itself.
"""

from __future__ import annotations

import math
from dataclasses import replace
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
from tutti.training.files.scripts import captured_script
from tutti.training.files.step_file import CAPTURED, SCRIPT, Training, resolve_training
from tutti.training.files.tables import GpuTable, RawTraining
from tutti.training.plan.efficiency import Setting, rates_of
from tutti.training.step import Detail, Step
from tutti.workloads import Model
from tutti.workloads.zoo.llm import DECODERS

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
    "platform": PLATFORM,
    "iterations": 1,
    "configurations": ["ideal"],
}
_ELSEWHERE = {
    "batch": "give the script another batch: `capture.arguments`",
    "precision": "`compute.precision` is the precision of products",
    "elements": "collectives have the datatypes of the script",
    "iterations": "the captured step is one iteration",
    "torus": "give `platform`",
    "npu": "give `compute.gpu`",
    "parallelism": "the script has its own: `capture.arguments`",
    "bucket": "the script has its own",
}
"""Keys of training steps that captured ones do not have, with what to do instead."""
_NORMS = 1e-3
"""Largest share of the weights of norms, which shapes of decoders leave out."""
_OF_EXPERTS = frozenset({"dispatcher", "overlapped"})


def load_captured(
    path: Path, changes: Sequence[str] = (), *, output: Path | None = None
) -> Training:
    """Reads the folder of a captured step, or its script, as a training step on a platform.

    Args:
        path: The folder that `tutti train capture` wrote, or a Python script to capture.
        changes: Key paths and values, each ``KEY=VALUE``: `platform=...`, `compute.gpu=...`;
            `capture.world_size=...` of a script.
        output: The folder for results; by default `out/training`.

    Raises:
        ConfigError: A change is invalid, or the platform does not have as many GPUs.
        CaptureError: The folder has no captured step, or the script cannot be captured.
    """
    is_script = path.suffix == ".py"
    model = f"{SCRIPT}{path.name}" if is_script else f"{CAPTURED}."
    example = "capture.world_size=64" if is_script else "platform=gb200_nvl72_cluster"
    tables = with_changes({**_DEFAULTS, "model": model}, changes, RawTraining,
                          example=f"{example} or detail=isolated")  # fmt: skip
    if output is not None:
        tables["output"] = str(output)
    return resolve_training(tables, source=str(path), folder=path.parent if is_script else path)


def captured_step(
    raw: RawTraining,
    source: str,
    folder: Path,
    algorithms: dict[str, str | Schedule | Channels],
) -> Step:
    """Returns the training step of a file whose model is `captured:FOLDER` or `script:FILE`.

    Raises:
        ConfigError: The platform does not fit the step, or a key does not apply.
        CaptureError: The folder has no captured step, or the script cannot be captured.
    """
    _refuse_unused(raw, source)
    if raw.platform is None:
        raise mistake("is missing: a captured step runs on a platform", source=source,
                      key="platform", expected="a platform with a topology")  # fmt: skip
    platform = platform_of(raw.platform, folder=folder, source=source)
    kernels = _kernels(raw, platform, source, folder)
    if raw.capture is not None:
        # A capture takes longer than to find out that the platform has too few GPUs.
        _sized(platform, raw.capture.world_size, source)
    stored = _stored(raw, source, folder)
    step = read_step(stored)
    times = stored / MEASURED
    kernels = replace(
        kernels,
        setting=replace(kernels.setting, model=like_of(step)),
        fused=step.compiled,
        measured=read_times(times) if times.is_file() else None,
    )
    work = CapturedWork(step=step, kernels=kernels)
    detail: Detail = "flows" if step.world_size <= MOST_IN_FLOWS else "isolated"
    return Step(
        model=Model(name=step.script, source=raw.model, layers=(), samples="steps"),
        batch=1,
        rings=_dimensions(raw, work, source),
        platform=_sized(platform, step.world_size, source),
        algorithms=algorithms,
        npu=_engine(kernels),
        iterations=1,
        chunk=raw.chunk,
        message=raw.message,
        order=raw.order,
        detail=raw.detail if "detail" in raw.model_fields_set else detail,
        captured=work,
    )


def like_of(step: CapturedStep) -> str:
    """Returns the dense decoder with as many weights as a program; empty if there is none.

    Its fitted factors apply, as those of a preset do to a `config.json` of its shape.
    """
    weights = sum(role.weights for role in step.roles)
    dense = ((name, one.shape) for name, one in DECODERS.items() if one.shape.experts is None)
    return next((name for name, shape in dense
                 if abs(weights - shape.parameters) <= _NORMS * shape.parameters), "")  # fmt: skip


def _refuse_unused(raw: RawTraining, source: str) -> None:
    for key, hint in _ELSEWHERE.items():
        is_default = key == "iterations" and raw.iterations == 1
        if key in raw.model_fields_set and not is_default:
            raise mistake("does not apply to a captured step", source=source, key=key, hint=hint)


def _stored(raw: RawTraining, source: str, folder: Path) -> Path:
    """Returns the folder of the captured step; captures a script that has none."""
    if raw.model.startswith(CAPTURED):
        if raw.capture is not None:
            raise mistake("is of a script: the step is captured already", source=source,
                          key="capture", expected='`model = "script:FILE"`',
                          hint="name the script instead of the folder")  # fmt: skip
        return folder / raw.model.removeprefix(CAPTURED)
    if raw.capture is None:
        raise mistake("is missing: a script is captured for a number of ranks", source=source,
                      key="capture", expected="capture = { world_size = 64 }",
                      hint="`--set capture.world_size=64`")  # fmt: skip
    return captured_script(folder / raw.model.removeprefix(SCRIPT), raw.capture, source)


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
    raw: RawTraining,
    platform: RawPlatform,
    source: str,
    folder: Path,
) -> KernelTimes:
    """Returns the times of kernels on the GPU of `compute`, or on that of the platform."""
    if "compute" in raw.model_fields_set and not isinstance(raw.compute, GpuTable):
        raise mistake("does not apply to a captured step", source=source, key="compute.model",
                      value=raw.compute.model, expected="gpu")  # fmt: skip
    given = raw.compute if isinstance(raw.compute, GpuTable) else None
    for key in _OF_EXPERTS & (given.model_fields_set if given else set()):
        raise mistake("does not apply to a captured step", source=source, key=f"compute.{key}",
                      hint="the script has its own exchange of experts")  # fmt: skip
    name = given.gpu if given else _gpu_of(platform, source)
    peaks = npu(name)
    precision = given.precision if given else "bf16"
    rates_of(peaks, precision)  # refuses a precision that the GPU does not have
    setting = Setting(npu=peaks.name, precision=precision, graph=(given and given.graph) or "eager")
    calibration = given.calibration if given else None
    return KernelTimes(
        peaks=peaks,
        setting=setting,
        efficiency=given.efficiency if given else None,
        calibrated=read_calibration(folder / calibration) if calibration else None,
    )


def _gpu_of(platform: RawPlatform, source: str) -> str:
    words = platform.name.split("_")
    named = [name for name in npu_names() if name in words]
    if not named:
        raise mistake(f"platform {platform.name} does not name its GPU", source=source,
                      key="compute", expected=f'{{ model = "gpu", gpu = "{npu_names()[0]}" }}',
                      hint="`--set compute.model=gpu --set compute.gpu=h100`")  # fmt: skip
    return named[0]

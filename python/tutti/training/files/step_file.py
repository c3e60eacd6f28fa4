"""Resolves files of training steps."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tutti.base.errors import TuttiError
from tutti.base.files.kinds import validated_file
from tutti.base.files.mistakes import did_you_mean, mistake, shown
from tutti.base.files.overrides import read_changed
from tutti.base.units import OpRate
from tutti.study.console import remark
from tutti.training.endpoint import Configuration, configurations
from tutti.training.files.tables import GpuTable, MeasuredTable, RawTraining, SystolicTable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tutti.formats.chakra.reader import ChakraTrace
    from tutti.platforms.files.platform_file import RawPlatform
    from tutti.platforms.machine import Platform
    from tutti.schedules.ir import Schedule
    from tutti.training.endpoint import Ring
    from tutti.training.fabric import Channels, Dimension
    from tutti.training.step import Detail, Step
    from tutti.workloads import Model
    from tutti.workloads.compute import ComputeModel

CAPTURED = "captured:"
"""The start of `model` for the folder of a captured step."""
SCRIPT = "script:"
"""The start of `model` for a script that is captured."""
_NEAR = 0.9
"""The least share of a GPU's rate that needs no remark."""
_RELATIVE = "paths are relative to the file of the training step"
_BYTES = {"fp8": 1, "fp16": 2, "bf16": 2, "fp32": 4}


@dataclass(frozen=True, kw_only=True)
class Training:
    """A resolved training step and its configurations.

    Attributes:
        source: The file, for messages.
        raw: The tables of the file.
        title: Title of reports.
        step: The step.
        configurations: The endpoint configurations, run sequentially.
        output: The folder for results.
    """

    source: str
    raw: RawTraining
    title: str
    step: Step
    configurations: tuple[Configuration, ...]
    output: Path


def load_training(
    path: Path, changes: Sequence[str] = (), *, output: Path | None = None
) -> Training:
    """Reads the file of a training step.

    Args:
        path: The file; or the folder of a captured step, or the script of one.
        changes: Key paths and values, each ``KEY=VALUE``.
        output: Replaces the folder for results of the file.

    Raises:
        ConfigError: The file or a change is invalid.
    """
    if path.is_dir() or path.suffix == ".py":
        from tutti.training.files.captured import load_captured

        return load_captured(path, changes, output=output)
    example = "batch=64 or torus.rings[0].nodes=8"
    tables, source = read_changed(path, changes, RawTraining, example=example, output=output)
    training = resolve_training(tables, source=source, folder=path.parent)
    for text in training.step.platform.remarks if training.step.platform else ():
        remark(text)
    for text in (*training.step.model.remarks, *_other_peak(training.raw)):
        remark(text)
    return training


def resolve_training(
    tables: dict[str, Any], *, source: str, folder: Path | None = None
) -> Training:
    """Validates the tables of a training step.

    Args:
        tables: The tables.
        source: The file, for messages.
        folder: The base of relative paths; the folder of `source` if absent.

    Raises:
        ConfigError: The tables are not a valid training step.
    """
    folder = Path(source).parent if folder is None else folder
    raw = validated_file(RawTraining, tables, source=source)
    step = _step(raw, source, folder)
    return Training(
        source=source,
        raw=raw,
        title=raw.title,
        step=step,
        configurations=_configurations(raw, source, step.detail),
        output=Path(raw.output),
    )


def _step(raw: RawTraining, source: str, folder: Path) -> Step:
    from tutti.training.step import Step

    if raw.model.startswith((CAPTURED, SCRIPT)):
        from tutti.training.files.captured import captured_step

        return captured_step(raw, source, folder, _algorithms(raw, folder))
    if raw.capture is not None:
        raise mistake("is of a script", source=source, key="capture",
                      expected='`model = "script:FILE"`')  # fmt: skip
    rings, platform = _network(raw, source, folder)
    traces = _traces(raw, source, folder)
    model = _traced(raw, traces) if traces else _model(raw, source, folder)
    step = Step(
        model=model,
        batch=raw.batch,
        rings=rings,
        platform=platform,
        algorithms=_algorithms(raw, folder),
        npu=raw.npu,
        element=_BYTES[raw.precision],
        elements=raw.elements,
        iterations=raw.iterations,
        efficiency=raw.torus.efficiency if raw.torus else Step.efficiency,
        chunk=raw.chunk,
        message=raw.message,
        order=raw.order,
        detail=raw.detail,
        bucket=raw.bucket,
        parallelism=raw.parallelism,
        compute=_compute(raw, source, folder, model),
        traces=traces,
    )
    _check_division(step, source)
    return step


def _network(
    raw: RawTraining, source: str, folder: Path
) -> tuple[tuple[Ring, ...] | tuple[Dimension, ...], Platform | None]:
    """Returns the rings of the torus, or the dimensions of the platform and the platform."""
    if (raw.torus is None) == (raw.platform is None):
        problem = "has both a torus and a platform" if raw.torus else "has no network"
        hint = "give `[torus]`, or `platform` with `dimensions`"
        raise mistake(problem, source=source, key="torus", expected="one of both", hint=hint)
    rings = tuple(raw.torus.rings) if raw.torus else ()
    dimensions = tuple(raw.dimensions)
    key, given = ("torus.rings", rings) if raw.torus else ("dimensions", dimensions)
    names = [one.name for one in given]
    if len(set(names)) < len(names):
        problem = "has two rings of the same name" if raw.torus else "has two of the same name"
        raise mistake(problem, source=source, key=key, value=", ".join(names))
    if raw.platform is None:
        if raw.dimensions:
            problem = "are those of the NPUs of a platform; the rings of a torus are its dimensions"
            raise mistake(problem, source=source, key="dimensions")
        return rings, None
    if not dimensions:
        example = 'dimensions = [{ name = "data", nodes = 16 }]'
        raise mistake("is missing", source=source, key=key, expected=example)
    return dimensions, _platform(raw.platform, source, folder)


def _platform(given: str | RawPlatform, source: str, folder: Path) -> Platform:
    from tutti.platforms.files.builder import machine
    from tutti.platforms.files.presets import chosen_model, platform_of

    found = platform_of(given, folder=folder, source=source)
    return machine(found, chosen_model(found, None, source=source), source=source)


def _algorithms(raw: RawTraining, folder: Path) -> dict[str, str | Schedule | Channels]:
    """Returns the algorithms with the paths of files relative to the file of the step."""
    from tutti.schedules.text import SCHEDULE_SUFFIX

    def located(notation: str) -> str:
        is_file = notation.endswith(SCHEDULE_SUFFIX)
        return str(folder / notation) if is_file else notation

    return {
        collective: located(given) if isinstance(given, str) else tuple(map(located, given))
        for collective, given in raw.algorithms.items()
    }


def _hint(error: TuttiError) -> str:
    """Returns the hint of an error, with the base of relative paths for a missing file."""
    if "there is no such file" in error.problem:
        return "; ".join(part for part in (error.hint, _RELATIVE) if part)
    if error.hint.startswith("files are "):
        return f"{error.hint}; {_RELATIVE}"
    return error.hint


def _traces(raw: RawTraining, source: str, folder: Path) -> tuple[ChakraTrace, ...]:
    kind, _, files = raw.model.partition(":")
    if kind not in ("chakra", "kineto"):
        return ()
    from tutti.formats.chakra import reader as chakra
    from tutti.formats.kineto import trace as kineto

    read = chakra.read_all if kind == "chakra" else kineto.read_all
    try:
        return tuple(read(folder / files))
    except TuttiError as error:
        hint = _hint(error)
        raise mistake(error.problem, source=source, key="model", hint=hint) from None


def _traced(raw: RawTraining, traces: tuple[ChakraTrace, ...]) -> Model:
    """Returns a model without layers, as the traces define the work."""
    from tutti.workloads import Model

    return Model(name=raw.model, source=traces[0].source, layers=(), samples="traces")


def find_model(notation: str, folder: Path) -> Model:
    """Returns a model by name, or from a `scalesim:`, `file:`, `hf:` or `megatron:FILE`.

    Files are relative to `folder`.

    Raises:
        TuttiError: There is no such model or file, or the file is invalid.
    """
    kind, _, file = notation.partition(":")
    if kind == "scalesim":
        from tutti.formats.scalesim import read_topology

        return read_topology(folder / file)
    if kind == "file":
        from tutti.workloads.files import read_model

        return read_model(folder / file)
    if kind == "hf":
        from tutti.workloads.huggingface import read_config

        return read_config(file, folder)
    if kind == "megatron":
        from tutti.workloads.megatron.decoder import read_megatron

        return read_megatron(file, folder)
    from tutti.workloads import build

    return build(notation)


def remarked_model(notation: str) -> Model:
    """Returns the model of an option, and prints its remarks."""
    model = find_model(notation, Path())
    for text in model.remarks:
        remark(text)
    return model


def _model(raw: RawTraining, source: str, folder: Path) -> Model:
    try:
        return find_model(raw.model, folder)
    except TuttiError as error:
        hint = _hint(error) if raw.model.startswith("scalesim:") else error.hint
        raise mistake(error.problem, source=source, key="model", hint=hint) from None


def _compute(raw: RawTraining, source: str, folder: Path, model: Model) -> ComputeModel:
    from tutti.workloads import Chiplet, Roofline, Systolic, read_measured

    given = raw.compute
    if isinstance(given, GpuTable):
        return _kernels(given, source, folder, model)
    if isinstance(given, SystolicTable):
        clock = given.clock or raw.npu.clock
        keys = dict(given)
        shape = {key: keys[key] for key in ("rows", "columns", "dataflow")}
        array = Systolic(**shape, clock=clock)
        if given.elements == 1:
            return array
        return Chiplet(array=array, elements=given.elements, share=keys["share"])
    if isinstance(given, MeasuredTable):
        try:
            return read_measured(folder / given.file)
        except TuttiError as error:
            key, hint = "compute.file", _hint(error)
            raise mistake(error.problem, source=source, key=key, hint=hint) from None
    return Roofline()


def _kernels(given: GpuTable, source: str, folder: Path, model: Model) -> ComputeModel:
    from tutti.platforms.npus import npu
    from tutti.training.files.calibration import read_calibration
    from tutti.training.plan.efficiency import kernels_of, setting_of

    try:
        peaks = npu(given.gpu)
        setting = setting_of(
            peaks,
            model,
            given.precision,
            given.dispatcher,
            overlapped=given.overlapped,
            graph=given.graph,
        )
        file = given.calibration
        calibrated = read_calibration(folder / file) if file is not None else None
        return kernels_of(peaks, setting, given.efficiency, calibrated)
    except TuttiError as error:
        raise mistake(error.problem, source=source, key="compute", hint=error.hint) from None


def _other_peak(raw: RawTraining) -> Iterator[str]:
    """Yields a remark if `npu.arithmetic` is far from the rate of the GPU in its precision."""
    if not isinstance(raw.compute, GpuTable):
        return
    from tutti.platforms.npus import npu
    from tutti.training.plan.efficiency import rates_of

    given = raw.compute
    rate, stated = rates_of(npu(given.gpu), given.precision).flops, raw.npu.arithmetic.per_second
    if not _NEAR < stated / rate < 1 / _NEAR:
        peak = OpRate(per_second=int(rate))
        yield (
            f"npu.arithmetic is {raw.npu.arithmetic}, and products run at that rate: {given.gpu} "
            f"has {peak} in {given.precision}, which --set 'npu.arithmetic=\"{peak}\"' takes"
        )


def _check_division(step: Step, source: str) -> None:
    """Checks the parallelism before the simulation starts."""
    if step.is_recorded:
        return
    rings = [(ring.name, ring.nodes) for ring in step.rings]
    try:
        step.parallelism.divide(step.model, step.batch, step.element, rings, lambda *_: 1)
    except TuttiError as error:
        key = "parallelism"
        raise mistake(error.problem, source=source, key=key, hint=error.hint) from None


def _configurations(raw: RawTraining, source: str, detail: Detail) -> tuple[Configuration, ...]:
    known = configurations()
    found: list[Configuration] = []
    is_given = detail == "packets" or "configurations" in raw.model_fields_set
    for index, given in enumerate(raw.configurations if is_given else ["ideal"]):
        key = f"configurations[{index}]"
        if isinstance(given, Configuration):
            found.append(given)
        elif given in known:
            found.append(known[given])
        else:
            raise mistake(
                "unknown configuration",
                source=source,
                key=key,
                value=shown(given),
                expected=f"one of {', '.join(known)}, or a table",
                hint=did_you_mean(given, known),
            )
        try:
            found[-1].check()
        except TuttiError as error:
            raise mistake(error.problem, source=source, key=key, hint=error.hint) from None
        if [one.name for one in found].count(found[-1].name) > 1:
            raise mistake("duplicates a name", source=source, key=key, value=shown(found[-1].name),
                          hint="rename one of the two")  # fmt: skip
    return tuple(found)

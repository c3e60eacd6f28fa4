"""The study of efficiencies of training steps from measured steps."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tutti.base.errors import TuttiError
from tutti.base.files.mistakes import mistake
from tutti.study.console import remark
from tutti.study.study import Study
from tutti.training.files.calibration import write_calibration
from tutti.training.files.job import Job, cluster_of
from tutti.training.files.measured import read_measured
from tutti.training.files.planned import Planned, read_planned
from tutti.training.files.step_file import find_model
from tutti.training.plan import FixedDegrees, plans
from tutti.training.plan.calibration import Calibration, MeasuredStep, calibrate
from tutti.training.plan.explain import described
from tutti.training.plan.view.calibration import calibration_view
from tutti.workloads.pieces import Pieces

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tutti.training.files.measured import MeasuredRow

_PROFILES = (".json", ".gz")
_FARTHEST = 5
"""Most times by which a measured step is slower or faster than the model (published: 1.86)."""


def calibrate_logs(logs: Sequence[Path], plan: Path | None, file: Path) -> None:
    """Fits the efficiencies of a GPU to measured steps, shows and writes them.

    Args:
        logs: Rows of measured steps, or profiles.
        plan: The plan of profiles and of rows without a plan or a recipe.
        file: The output file.

    Raises:
        ConfigError: A file is invalid, or a step has no plan.
    """
    planned = read_planned(plan) if plan is not None else None
    steps = [step for log in logs for step in measured_steps(log, planned)]
    found = calibrate(steps)
    study = Study[Calibration]()
    study.present(calibration_view(found))
    study.write(file, partial(write_calibration, found=found))
    study.end(1, 1)


def measured_steps(log: Path, planned: Planned | None = None) -> Iterator[MeasuredStep]:
    """Yields the measured steps of a log.

    Args:
        log: Rows of measured steps, or a profile.
        planned: The plan of a profile and of rows without a plan or a recipe.

    Raises:
        ConfigError: The file is invalid, or a step has no plan.
    """
    if log.suffix in _PROFILES:
        yield from _profiled(log, planned)
        return
    assumed: dict[str, list[str]] = {}
    for source, row in read_measured(log):
        try:
            model, plan, cluster = _planned(row, log.parent, planned, source)
        except TuttiError as error:
            if source in error.problem:
                raise
            raise mistake(error.problem, source=source, hint=error.hint) from None
        tokens = Pieces(model).decoder.tokens * plan.samples * plan.data * plan.kinds.expert
        rate = row.tokens_per_s_per_gpu
        seconds = tokens / (rate * cluster.gpus) if rate else float(row.seconds or 0)
        step = MeasuredStep(source=source, model=model, cluster=cluster, plan=plan, seconds=seconds)
        _check_plausible(step, row)
        if row.model and row.zero is None:
            zero = "" if plan.kinds.zero else ", without ZeRO"
            assumed.setdefault(f"{described(plan)}{zero}", []).append(source)
        yield step
    for text, sources in assumed.items():
        more = f" and {len(sources) - 1} more" if len(sources) > 1 else ""
        remark(f"{sources[0]}{more}: `zero` is not given: the plan is assumed to be {text}")


def _check_plausible(step: MeasuredStep, row: MeasuredRow | None = None) -> None:
    """Refuses a time that no efficiency explains, such as one in another unit.

    Args:
        step: The measured step.
        row: Its row; None for a profile.

    Raises:
        ConfigError: The time differs from the model's by more than a factor of :data:`_FARTHEST`.
    """
    model, gpus = step.predicted(), step.cluster.gpus
    ratio = step.seconds / model
    if 1 / _FARTHEST <= ratio <= _FARTHEST:
        return
    key, given, middle, unit = "seconds", step.seconds, model, "s"
    hint = "`seconds` is the time of one step in seconds; check the plan and the global batch"
    if row is None:
        key, hint = "", "check that --plan is the plan of the profile"
    elif rate := row.tokens_per_s_per_gpu:
        key, given, middle, unit = "tokens_per_s_per_gpu", rate, rate * ratio, "tokens/s"
        hint = f"the rate is that of one GPU: divide a total by its {gpus:,} GPUs; check the plan"
    far = f"{_rounded(ratio)} times the" if ratio > 1 else f"1 / {_rounded(1 / ratio)} of the"
    raise mistake(
        f"the step takes {far} model's time",
        source=step.source,
        key=key,
        value=f"{given:,.12g} {unit}",
        expected=f"{_rounded(middle / _FARTHEST)} to {_rounded(middle * _FARTHEST)} {unit}, "
        f"within a factor of {_FARTHEST} of the model",
        hint=hint,
    )


def _rounded(value: float) -> str:
    """Returns a number with at least three digits, without an exponent."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _profiled(log: Path, planned: Planned | None) -> Iterator[MeasuredStep]:
    from tutti.formats.kineto.steps import read_step

    if planned is None:
        raise _no_plan(str(log))
    found = read_step(log)
    model, plan, cluster = planned
    measured = partial(MeasuredStep, source=str(log), model=model, cluster=cluster, plan=plan)
    step = measured(seconds=found.seconds)
    _check_plausible(step)
    yield step
    if plan.kinds.pipeline > 1:
        remark(f"{log}: the kernels of one pipeline stage are not those of the slowest: unused")
        return
    yield measured(seconds=found.kernels, observed="kernels")


def _planned(row: MeasuredRow, folder: Path, planned: Planned | None, source: str) -> Planned:
    """Returns the plan of a row."""
    if row.plan:
        return read_planned(folder / row.plan)
    if not row.model:
        if planned is None:
            raise _no_plan(source)
        return planned
    model = find_model(row.model, folder)
    job = Job(
        model=row.model,
        platform=row.platform or None,
        gpus=row.gpus,
        global_batch=row.global_batch,
        npu=row.gpu or None,
        precision=row.precision,
        gradients=row.gradients,
        dispatcher=row.dispatcher or None,
        overlapped=row.overlap_experts,
        graph=row.cuda_graphs or None,
    )
    cluster = cluster_of(job, model)
    shape = Pieces(model).decoder
    found = plans(shape, cluster.gpus, row.global_batch or 1, cluster.domain, _fixed(row))
    plan = next(found, None)
    if plan is None:
        raise mistake(f"no plan of {row.global_batch} sequences on {cluster.gpus} GPUs has these "
                      "degrees", source=source, expected="a global batch that replicas and "
                      "micro-batches divide")  # fmt: skip
    return Planned(model, plan, cluster)


def _fixed(row: MeasuredRow) -> FixedDegrees:
    return FixedDegrees(
        tensor=row.tensor,
        context=row.context,
        pipeline=row.pipeline,
        expert=row.expert,
        micro_batch=row.micro_batch,
        chunks=row.chunks,
        recompute=row.recompute,
        zero=row.zero,
        cp_comm_type=row.cp_comm_type,
        dispatch_format=row.dispatch_format,
        expert_imbalance=row.expert_imbalance,
    )


def _no_plan(source: str) -> TuttiError:
    return mistake(f"{source} has no plan", source="--plan",
                   expected="--plan FILE, or a plan or recipe per row",
                   hint="`tutti train plan --out FILE` writes a plan")  # fmt: skip

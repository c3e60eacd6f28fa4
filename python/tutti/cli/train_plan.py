"""`tutti train plan`: the fastest parallelisation of a decoder on a number of GPUs."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from tutti.cli.grouped import grouped
from tutti.cli.train_plan_megatron import with_recipe
from tutti.cli.train_plan_options import (
    Degrees,
    JobOptions,
    Shown,
    defaults_of,
    training_text,
)
from tutti.study.console import remark
from tutti.study.interrupts import end_soon
from tutti.study.progress import Progress
from tutti.study.study import Study
from tutti.training.files.job import cluster_of, sequences_of, unlike_platform
from tutti.training.files.step_file import remarked_model
from tutti.training.plan import Ranked, ranked, simulate_fastest
from tutti.training.plan.efficiency import unmeasured
from tutti.training.plan.explain import of_batch
from tutti.training.plan.view.plan import plan_view

_SIMULATED = 10
_SIMULATED_LARGE = 2
_LARGE = 2048
"""Simulated plans by default: for more GPUs than `_LARGE`, fewer."""


@grouped
def plan(job: JobOptions, degrees: Degrees, output: Shown) -> None:
    """Find the fastest parallelisation of a decoder within the memory of the GPUs.

    Searches tensor, context, pipeline, expert and data parallelism, interleaving, micro-batches,
    ZeRO stages, recomputation, and whether stages or replicas are neighbours. A closed form ranks
    all plans, and the engine of `tutti train run` simulates the fastest ones as flows.

    `step` is the time of an iteration, `tok/s` and `TF/s` are tokens and FLOPs of the model per
    second and GPU, `MFU` is the latter over the peak, `GB` the memory of a GPU. `exposed` are the
    largest shares of the step that compute does not hide, in per cent. Efficiencies are fitted to
    published runs, by GPU, precision and model.

    \b
    Examples:
      tutti train plan llama3_8b
      tutti train plan llama3_8b --platform dgx_h100_cluster --gpus 16 \\
        --global-batch 64
      tutti train plan llama3_8b -p dgx_h100_cluster -g 16 --global-batch 64 \\
        --tensor 8 --simulate 2
      tutti train plan llama3_8b -p dgx_h100_cluster -g 8 --global-batch 128 \\
        --precision fp8 --zero 3 --tensor 1 --micro-batch 1 --out training.toml
    """
    model = remarked_model(job.model)
    job, degrees = with_recipe(job, degrees)
    cluster = cluster_of(job, model)
    if defaults := defaults_of(job, cluster):
        remark(defaults)
    if unlike := unlike_platform(cluster):
        remark(unlike)
    setting = cluster.setting(model)
    for sentence in unmeasured(setting, model.name.partition(":")[0]):
        remark(sentence)
    for sentence in cluster.calibrated.remarks(setting) if cluster.calibrated else ():
        remark(sentence)
    most = output.simulate
    if most is None:
        most = _SIMULATED if cluster.gpus <= _LARGE else _SIMULATED_LARGE
    sequences = sequences_of(job, model)
    if text := of_batch(cluster.gpus, sequences, degrees.fixed):
        remark(text)
    with Progress("ranking plans"):
        found = ranked(model, cluster, sequences, degrees.fixed)
    study = Study[Ranked]()
    best, _ = study.several(
        "simulating plans",
        lambda done: simulate_fastest(found, most, done=done, threads=output.threads),
        planned=most,
    )
    plans = found.with_simulated(best)
    study.present(plan_view(plans, output.top))
    if output.file is not None:
        text = training_text(job, plans, output.file.parent)
        study.write(output.file, partial(_write, content=text))
    for row in plans.fitting[: output.top]:
        if row.problem:
            remark(f"not simulated: {row.problem}")
    if study.is_interrupted:
        end_soon()
    study.end(len(best), most)


def _write(path: Path, content: str) -> Path:
    path.write_text(content, encoding="utf-8")
    return path

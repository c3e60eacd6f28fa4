"""`tutti train overlap`: how much all-reduce time a training step hides, by algorithm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from tutti.base.files.mistakes import mistake
from tutti.cli import options
from tutti.cli.grouped import grouped
from tutti.study.study import Study
from tutti.training.files.step_file import remarked_model
from tutti.training.overlap import Overlap
from tutti.training.overlap import Overlapped as Iteration
from tutti.training.study.overlap import time_overlap
from tutti.training.view.overlap import overlap_view
from tutti.view.quantity import plural
from tutti.workloads import Chiplet, recorded, timed

if TYPE_CHECKING:
    from tutti.collectives.files.resolve import Experiment
    from tutti.workloads import TimedLayer

RECORDED = "astrasim"
"""Prefix of workloads with recorded cycles."""


@dataclass
class Overlapped:
    """Options that replace keys of the experiment file."""

    file: options.ExperimentFile
    algorithm: options.Algorithms = None
    ranks: options.Ranks = None
    platform: options.Platform = None
    to: options.ExperimentOut = None


@grouped
def overlap(
    of: Overlapped,
    *,
    model: Annotated[
        str,
        typer.Option(
            "--workload",
            metavar="NAME[:ARG]",
            help="Model of `tutti train list`, `scalesim:FILE`, `file:FILE`, or `astrasim:NAME`.",
        ),
    ] = "resnet50",
    batch: Annotated[int, typer.Option("--batch", min=1, help="Samples per chiplet (rank).")] = 16,
    share: Annotated[
        Literal["samples", "folds"],
        typer.Option(help="How the 16 processing elements of a chiplet divide the work."),
    ] = "samples",
    waits: Annotated[
        Literal["all", "own"],
        typer.Option(help="The next forward pass of a layer waits for all gradients, or its own."),
    ] = "all",
    order: Annotated[
        Literal["fifo", "lifo"], typer.Option(help="Order of pending all-reduces.")
    ] = "fifo",
    verify: options.Verify = True,
) -> None:
    """Show the hidden and the exposed all-reduce time of a training step, by algorithm.

    The file is an all_reduce experiment with one rank count; its sizes are ignored. The gradients
    of each layer are reduced separately and sequentially, overlapped with compute on chiplets of 16
    systolic arrays, 32 x 32 at 1 GHz. `astrasim:NAME` uses the cycles that ASTRA-sim records for
    resnet50, dlrm_small or transformer. Writes layers.parquet.

    \b
    Examples:
      tutti train overlap experiment.toml --ranks 8 --algorithm ring
      tutti train overlap experiment.toml --ranks 8 -a ring \\
        --batch 1 --share folds
      tutti train overlap experiment.toml --ranks 8 -a ring \\
        --workload astrasim:dlrm_small
    """
    experiment = options.experiment(of, of.file)
    _check(experiment)
    layers = _layers(model, batch, share)
    how = f", {plural(batch, 'sample')} each, split by {share}"
    study = Study[Iteration](experiment.output, "algorithm", extra=None)
    step = Overlap(layers, waits=waits, order=order)
    runs = time_overlap(study, experiment, step, verify=verify)
    settings: dict[str, str | int] = {"model": model, "ranks": experiment.ranks[0], "batch": batch}
    how = "" if model.startswith(f"{RECORDED}:") else how
    if runs:
        study.present(overlap_view(runs, settings, how))
    study.end(len(runs), len(experiment.algorithms or ()))


def _check(experiment: Experiment) -> None:
    """Refuses experiments other than an all_reduce on one rank count by named algorithms."""
    source = experiment.source
    if experiment.collective != "all_reduce":
        value = experiment.collective
        problem = "is not the collective that reduces gradients"
        raise mistake(problem, source=source, key="collective", value=value, expected="all_reduce")
    if len(experiment.ranks) != 1:
        problem = f"has {len(experiment.ranks)} values; a training step takes one"
        hint = f"select one: --ranks {experiment.ranks[0]}"
        raise mistake(problem, source=source, key="ranks", hint=hint)
    if not experiment.algorithms:
        hint = "name some: --algorithm ring --algorithm multi_tree"
        raise mistake("names no algorithm", source=source, key="algorithms", hint=hint)


def _layers(
    notation: str, batch: int, share: Literal["samples", "folds"]
) -> tuple[TimedLayer, ...]:
    kind, _, name = notation.partition(":")
    if kind == RECORDED:
        return recorded(name)
    return timed(remarked_model(notation), Chiplet(share=share), batch)

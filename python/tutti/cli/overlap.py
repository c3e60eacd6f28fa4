"""`tutti train overlap`: how much all-reduce time a training step hides, by algorithm."""

from __future__ import annotations

from itertools import starmap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import polars as pl
import typer
from rich.table import Table

from tutti.base.files.mistakes import mistake
from tutti.base.units import Time
from tutti.cli import options
from tutti.collectives.experiment import lay_out, run_once
from tutti.study.console import out, record, record_table, remark, wrote
from tutti.study.files import folder, written
from tutti.study.progress import Progress
from tutti.training.files.step_file import find_model
from tutti.training.frames import write_frame
from tutti.training.overlap import Overlap
from tutti.view.quantity import format_share, format_time, plural
from tutti.workloads import Chiplet, recorded, timed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tutti.base.units import Size
    from tutti.collectives.files.resolve import Experiment
    from tutti.schedules.ir import Schedule
    from tutti.training.overlap import Overlapped
    from tutti.workloads import TimedLayer

RECORDED = "astrasim"
"""Prefix of workloads with recorded cycles."""


def overlap(
    file: options.ExperimentFile,
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
    algorithm: options.Algorithms = None,
    ranks: options.Ranks = None,
    platform: options.Platform = None,
    verify: options.Verify = True,
    to: options.Out = None,
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
    overrides = options.Overrides(algorithms=algorithm, ranks=ranks, platform=platform, out=to)
    experiment = overrides.load(file)
    _check(experiment)
    layers = _layers(model, batch, share)
    runs = _runs(experiment, Overlap(layers, waits=waits, order=order), verify=verify)
    size = sum(layer.gradients.bytes for layer in layers)
    samples = f"{plural(batch, 'sample')} each, split by {share}"
    how = "" if model.startswith(f"{RECORDED}:") else f", {samples}"
    head = f"{model} on {experiment.ranks[0]} chiplets{how}: {size / 1e6:,.1f} MB of gradients"
    record(model=model, ranks=experiment.ranks[0], batch=batch, gradient_bytes=size)
    record_table("results", lambda: starmap(_row, runs.items()))
    out().print(head, style="bold", markup=False)
    out().print(_table(runs))
    remark("exposed: iteration time minus compute time; share: exposed / iteration")
    _write(folder(experiment.output), runs)


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
    return timed(find_model(notation, Path()), Chiplet(share=share), batch)


def _runs(experiment: Experiment, step: Overlap, *, verify: bool) -> dict[str, Overlapped]:
    named = experiment.algorithms or ()
    found = {}
    unverified: dict[str, str] = {}
    sizes = len({layer.gradients for layer in step.layers if layer.gradients.bytes})
    done = 0
    with Progress("all-reduces", work=sizes * len(named), total=sizes * len(named)) as progress:
        for notation in named:
            laid_out = lay_out(experiment, notation, experiment.ranks[0])

            def all_reduce(size: Size, laid_out: Schedule = laid_out) -> Time:
                nonlocal done
                done += 1
                run = run_once(experiment, laid_out, size, verify=verify)
                if run.not_verified is not None:
                    unverified[laid_out.name] = run.not_verified
                progress.advance(1, done)
                return Time(ps=run.completion_ps)

            found[notation] = step.run(all_reduce)
    for name, reason in unverified.items():
        remark(f"{name} is not verified: {reason}")
    return found


def _table(runs: Mapping[str, Overlapped]) -> Table:
    """Returns a table with a row per algorithm, in input order."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("algorithm", overflow="fold")
    for name in ("iteration", "compute", "all-reduces", "exposed", "share"):
        table.add_column(name, justify="right", no_wrap=True)
    for name, run in runs.items():
        times = (run.iteration, run.compute, run.communication, run.exposed)
        share = format_share(run.exposed.ps / run.iteration.ps) if run.iteration.ps else "-"
        table.add_row(name, *(format_time(time.ps) for time in times), share)
    return table


def _row(algorithm: str, run: Overlapped) -> dict[str, Any]:
    """Returns the figures of an algorithm for `--json`."""
    iteration = run.iteration.ps
    return {
        "algorithm": algorithm,
        "iteration_ps": iteration,
        "compute_ps": run.compute.ps,
        "communication_ps": run.communication.ps,
        "exposed_ps": run.exposed.ps,
        "exposed_share": run.exposed.ps / iteration if iteration else None,
    }


def _write(folder: Path, runs: Mapping[str, Overlapped]) -> None:
    frame = pl.concat(
        run.frame.select(pl.lit(name).alias("algorithm"), pl.all()) for name, run in runs.items()
    )
    wrote(written(write_frame, folder / "layers.parquet", frame))

"""`tutti train`: simulates training steps with different endpoint models."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import polars as pl
import typer
from rich.table import Table

from tutti.cli import options
from tutti.cli.train_results import write_results
from tutti.study.console import out, record, record_table, remark
from tutti.study.files import folder
from tutti.study.progress import Progress
from tutti.training.endpoint import configurations
from tutti.training.exposed import exposed_frame
from tutti.training.files.step_file import load_training
from tutti.training.frames import frame
from tutti.training.step import alike, watched
from tutti.training.view.text import collective, replica
from tutti.training.view.tracks import check_npus
from tutti.view.quantity import format_share, format_size, format_time
from tutti.workloads import build, models

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.training.step import TrainingResult

app = options.group("Simulate training steps: compute, exposed and hidden communication.")


@app.command("list")
def list_() -> None:
    """List the models and the endpoint configurations.

    \b
    Examples:
      tutti train list
    """
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in ("model", "layers", "weights", "GFLOP forward", "summary"):
        table.add_column(name, justify="right" if name in _NUMBERS else "left")
    for entry in models():
        model = build(entry.name)
        row = {
            "name": entry.name,
            "argument": entry.argument,
            "layers": len(model.layers),
            "weights": model.parameters,
            "forward_flop": 2 * model.macs,
            "summary": entry.summary,
        }
        record_table("models", [row])
        table.add_row(
            entry.name,
            str(len(model.layers)),
            f"{model.parameters / 1e6:,.1f} M",
            f"{2 * model.macs / 1e9:,.1f}",
            entry.summary,
        )
    out().print(table)
    record(readers=dict(_READ), configurations=list(configurations()))
    out().print("\narguments", style="bold")
    for entry in models():
        if entry.argument:
            out().print(f"  {entry.name}:{entry.argument}", markup=False)
    out().print("\nread from files", style="bold")
    for name, what in _READ:
        out().print(f"  {name:18}{what}", markup=False)
    out().print("\nconfigurations of Rashidi et al. 2021", style="bold")
    out().print(f"  {', '.join(configurations())}", markup=False)


_READ = (
    ("scalesim:FILE", "layers from a topology of SCALE-Sim"),
    ("chakra:PREFIX", "ops of each NPU, from the traces PREFIX.RANK.et"),
    ("[compute]", 'model = "measured", file = FILE: times of each layer'),
    ("from-astrasim", "workloads of ASTRA-sim: `tutti train from-astrasim --help`"),
    ("astrasim:NAME", "cycles recorded by ASTRA-sim: `tutti train overlap --help`"),
)
_NUMBERS = {"layers", "weights", "GFLOP forward"}


@app.command("run")
def run_(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="The training step (TOML).", show_default=False),
    ],
    changes: options.Changes = None,
    to: options.Out = None,
    npus: Annotated[
        list[int] | None,
        typer.Option(
            "--npu",
            metavar="NPU",
            help="An NPU of the timeline, by default 0; may be repeated, up to 8 times.",
        ),
    ] = None,
) -> None:
    """Simulate a training step with each endpoint configuration.

    Writes report.html and results.parquet to the output folder: time per NPU, bytes sent, and
    memory reads of communication. Further files: exposed.parquet (exposed communication by
    collective and process group), layers.parquet (per layer), links.parquet (per link),
    servers.parquet (per component of the endpoint), stalls.parquet (waits in the endpoint),
    windows.parquet (over time), and trace.pftrace (the timeline, for Perfetto).

    The file's `model` is one of `tutti train list`, or `scalesim:FILE` or `chakra:PREFIX`, which
    read files of other tools. `[compute]` can read measured times. `tutti train from-astrasim`
    runs workloads of ASTRA-sim.

    \b
    Examples:
      tutti train run examples/10_training_step/training.toml
      tutti train run examples/10_training_step/training.toml --set batch=64
      tutti train run examples/10_training_step/training.toml --npu 0
    """
    read = load_training(file, changes or (), output=to)
    drawn = npus or [0]
    folder(read.output, extra="reports")
    started = time.monotonic()
    runs: list[TrainingResult] = []
    total = len(read.configurations)
    step = watched(read.step, read.configurations[0])
    with Progress("configurations", work=total, total=total) as progress:
        for configuration in read.configurations:
            runs.append(step.run(configuration))
            check_npus(drawn, runs[-1])
            progress.advance(1, len(runs))
    runs = alike(runs)
    model = step.model
    shape = " x ".join(str(ring.nodes) for ring in step.rings)
    count = runs[0].iterations
    what = f"{step.batch} {model.samples} on each {replica(step)} of {shape}"
    what += f", {count} iteration{'s' if count > 1 else ''}"
    if step.traces:
        what = f"{len(step.traces)} traces on {shape}"
    record(model=model.name, batch=step.batch, iterations=count, npus=step.npus)
    record_table("results", lambda: frame(runs))
    out().print(f"{model.name}, {what}", style="bold")
    out().print(results_table(runs))
    _explain(runs)
    _print_exposed(runs)
    remark(f"{total} runs in {time.monotonic() - started:.1f} s")
    write_results(runs, read.output, read.title, drawn)


def results_table(runs: Sequence[TrainingResult]) -> Table:
    """Returns a table with a row per configuration; it fits 80 columns."""
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("configuration", overflow="fold", max_width=20)
    for name in ("time", "compute", "exposed", "hidden", "idle", "sent", "read"):
        table.add_column(name, justify="right", no_wrap=True)
    for run in runs:
        times = (run.total.ps, run.compute, run.exposed, run.overlap, run.idle)
        table.add_row(
            run.configuration.name,
            *(format_time(ps) for ps in times),
            f"{run.network_rate / 1e9:.0f} GB/s",
            format_size(run.read),
        )
    return table


def _explain(runs: Sequence[TrainingResult]) -> None:
    """Prints a legend, the time per iteration and the lower bounds."""
    remark(
        "time: all iterations = compute + exposed + idle; exposed, hidden: communication without, "
        "with concurrent compute; sent: injection rate; read: memory reads of communication"
    )
    platform = runs[0].step.platform
    if platform is not None:
        replaces = {
            "packets": f"endpoints replace the cost model of {platform.name}",
            "flows": f"flows replace the cost model of {platform.name}; endpoints cost nothing",
            "isolated": f"collectives take the time of their simulation alone on {platform.name}",
        }
        remark(f"{replaces[runs[0].step.detail]} ({platform.model.kind})")
    if runs[0].iterations > 1:
        each = ", ".join(f"{run.configuration.name} {format_time(run.period.ps)}" for run in runs)
        remark(f"last iteration: {each}")
    unstable = [
        run.configuration.name
        for run in runs
        if run.step.iterations == "stable" and not run.is_stable
    ]
    if unstable:
        remark(f"not stable after {runs[0].iterations} iterations: {', '.join(unstable)}")
    bounds = (
        f"{run.configuration.name} {format_time(run.bound.time.ps)} ({format_share(run.of_bound)})"
        for run in runs
    )
    remark(f"lower bound of any algorithms, and its share of the time: {', '.join(bounds)}")


def exposed_table(runs: Sequence[TrainingResult]) -> Table:
    """Returns a table of exposed communication by collective and process group in 80 columns."""
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("configuration", overflow="fold", max_width=18)
    table.add_column("collective", no_wrap=True)
    table.add_column("process group", overflow="fold", max_width=18)
    for name in ("exposed", "share", "in flight"):
        table.add_column(name, justify="right", no_wrap=True)
    for run in runs:
        for row in exposed_frame(run, [0]).filter(pl.col("exposed_ps") > 0).iter_rows(named=True):
            table.add_row(
                run.configuration.name,
                collective(row["collective"]),
                row["group"],
                format_time(row["exposed_ps"]),
                format_share(row["exposed_ps"] / run.total.ps),
                format_time(row["in_flight_ps"]),
            )
    return table


def _print_exposed(runs: Sequence[TrainingResult]) -> None:
    table = exposed_table(runs)
    record_table("exposed", lambda: pl.concat(exposed_frame(run, [0]) for run in runs))
    if table.row_count:
        out().print()
        out().print(table)
        remark(
            "exposed, of NPU 0: by the collective that the next pass waits for; share: of the time"
        )

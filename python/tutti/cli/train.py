"""`tutti train`: training steps, and what endpoints between NPUs and network cost them."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import polars as pl
import typer
from rich.table import Table

from tutti.cli import options, overlap
from tutti.cli.console import out, remark, wrote
from tutti.cli.files import folder, written
from tutti.cli.progress import Progress
from tutti.config import load_training
from tutti.endpoint import configurations
from tutti.interop import astrasim
from tutti.report import write_training_report
from tutti.report.quantity import format_size, format_time
from tutti.training import alike, frame, watched, write_frame
from tutti.training_frames import layer_frame, server_frame, window_frame
from tutti.workload import build, models

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.training import TrainingResult

app = options.group("Training steps: computing, communicating, and what of that is hidden.")


@app.command("list")
def list_() -> None:
    """List the models, and the configurations of endpoints.

    \b
    Examples:
      tutti train list
    """
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in ("model", "argument", "layers", "weights", "GFLOP forward", "summary"):
        table.add_column(name, justify="right" if name in _NUMBERS else "left")
    for entry in models():
        model = build(entry.name)
        table.add_row(
            entry.name,
            entry.argument.replace(",", ", "),
            str(len(model.layers)),
            f"{model.parameters / 1e6:,.1f} M",
            f"{2 * model.macs / 1e9:,.1f}",
            entry.summary,
        )
    out().print(table)
    out().print("\nread from files", style="bold")
    for name, what in _READ:
        out().print(f"  {name:18}{what}", markup=False)
    out().print("\nconfigurations of Rashidi et al. 2021", style="bold")
    out().print(f"  {', '.join(configurations())}", markup=False)


_READ = (
    ("scalesim:FILE", "layers from a topology of SCALE-Sim"),
    ("chakra:PREFIX", "what each NPU does, from the traces PREFIX.RANK.et"),
    ("[compute]", 'model = "measured", file = FILE: times of each layer'),
    ("from-astrasim", "workloads of ASTRA-sim: `tutti train from-astrasim --help`"),
    ("astrasim:NAME", "cycles that ASTRA-sim records: `tutti train overlap --help`"),
)
_NUMBERS = {"layers", "weights", "GFLOP forward"}


@app.command("run")
def run_(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="The file of the training step (TOML).", show_default=False
        ),
    ],
    changes: options.Changes = None,
    to: options.FolderOut = None,
) -> None:
    """Run a training step with one configuration of endpoints after the other.

    Writes report.html into the output folder, and results.parquet: where the time of an NPU went,
    what it sent, and what communication read from its memory; layers.parquet, servers.parquet and
    windows.parquet tell the same layer by layer, by part of the endpoint, and over time.

    The file's `model` is one of `tutti train list`, or read from another tool's file:
    `scalesim:FILE`, `chakra:PREFIX`. `[compute]` can read measured times. Workloads of ASTRA-sim
    are run by `tutti train from-astrasim`.

    \b
    Examples:
      tutti train run examples/10_training_step/training.toml
      tutti train run examples/10_training_step/training.toml --set batch=64
    """
    read = load_training(file, changes or (), output=to)
    folder(read.output)
    started = time.monotonic()
    runs: list[TrainingResult] = []
    total = len(read.configurations)
    step = watched(read.step, read.configurations[0])
    with Progress("configurations", work=total, total=total) as progress:
        for configuration in read.configurations:
            runs.append(step.run(configuration))
            progress.advance(1, len(runs))
    runs = alike(runs)
    model = step.model
    npus = " x ".join(str(ring.nodes) for ring in step.rings)
    what = f"{step.batch} {model.samples} on each NPU of {npus}, {runs[0].iterations} iterations"
    if step.traces:
        what = f"{len(step.traces)} traces on {npus}"
    out().print(f"{model.name}, {what}", style="bold")
    out().print(results_table(runs))
    _explain(runs)
    remark(f"{total} runs in {time.monotonic() - started:.1f} s")
    _write(runs, read.output, read.title)


def _write(runs: Sequence[TrainingResult], folder: Path, title: str) -> None:
    frames = {
        "results.parquet": frame(runs),
        "layers.parquet": pl.concat(layer_frame(run) for run in runs),
        "servers.parquet": pl.concat(server_frame(run) for run in runs),
        "windows.parquet": pl.concat(window_frame(run) for run in runs),
    }
    files = [written(write_frame, folder / name, rows) for name, rows in frames.items()]
    files.append(written(write_training_report, folder / "report.html", runs, title))
    wrote(*files)


@app.command("from-astrasim")
def from_astrasim(
    workload: Annotated[
        Path,
        typer.Argument(
            metavar="WORKLOAD",
            help="The prefix of Chakra traces PREFIX.NPU.et, or a text file of layers.",
            show_default=False,
        ),
    ],
    network: Annotated[
        Path, typer.Option("--network", "-n", help="The network (YAML).", show_default=False)
    ],
    system: Annotated[
        Path, typer.Option("--system", "-s", help="The system (JSON).", show_default=False)
    ],
    groups: Annotated[
        Path | None, typer.Option("--groups", help="Communicators and their ranks (JSON).")
    ] = None,
    aware: Annotated[
        bool,
        typer.Option(
            "--congestion/--no-congestion",
            help="Whether messages share links and wait in switches.",
        ),
    ] = True,
    to: Annotated[Path, typer.Option("--out", "-o", help="Folder for results.")] = Path(
        "out/astrasim"
    ),
) -> None:
    """Run a workload of ASTRA-sim on its network and system, from its own files.

    Writes results.parquet into the output folder: the time, and how much of it was computing and
    exposed communication. Keys that change no time are named; what is not modelled, such as an
    all-to-all or an algorithm other than `ring`, is refused.

    \b
    Examples:
      tutti train from-astrasim examples/13_astrasim/two_layers.txt \\
        --network examples/13_astrasim/Ring_8.yml \\
        --system examples/13_astrasim/Ring.json
    """
    given = astrasim.load_network(network), astrasim.load_system(system)
    if given[1].unused:
        remark(f"not honoured, as they change no time: {', '.join(given[1].unused)}")
    folder(to)
    found = astrasim.load_programs(workload, *given, groups)
    run = astrasim.simulate(*given, found, aware=aware)
    shape = " x ".join(f"{one.block} {one.npus}" for one in given[0].dimensions)
    out().print(f"{run.npus} NPUs: {shape}", style="bold")
    out().print(
        f"{run.total.ps / 1000:,.3f} ns, of them {run.compute / 1000:,.3f} ns computing, "
        f"{run.exposed / 1000:,.3f} ns exposed communication"
    )
    frame = astrasim.frame(run, str(workload), shape, aware=aware)
    path = written(write_frame, to / "results.parquet", frame)
    wrote(path)


app.command("overlap")(overlap.overlap)


def results_table(runs: Sequence[TrainingResult]) -> Table:
    """A row for each configuration; it fits 80 columns."""
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("configuration", overflow="fold", max_width=20)
    for name in ("time", "compute", "exposed", "hidden", "idle", "sent at", "read"):
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
    """What the columns mean, and how long an iteration takes."""
    remark(
        "time: all iterations together = compute + exposed + idle; exposed: communicating while "
        "not computing; hidden: while computing"
    )
    each = ", ".join(f"{run.configuration.name} {format_time(run.period.ps)}" for run in runs)
    remark(f"the last iteration alone: {each}")

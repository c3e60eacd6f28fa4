"""`tutti train`: simulates training steps with different endpoint models."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from tutti.cli import options
from tutti.study.console import out, record, record_table
from tutti.training.endpoint import configurations
from tutti.training.files.step_file import load_training
from tutti.training.study.step import run_step
from tutti.workloads import build, models

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
        out().print(f"  {name:16} {what}", markup=False)
    out().print("\nconfigurations of Rashidi et al. 2021", style="bold")
    out().print(f"  {', '.join(configurations())}", markup=False)


_READ = (
    ("scalesim:FILE", "layers from a topology of SCALE-Sim"),
    ("chakra:PREFIX", "ops of each NPU, from the traces PREFIX.RANK.et"),
    ("kineto:FILES", "ops of each NPU, from PyTorch profiles: file, pattern or folder"),
    ("hf:FILE", "a decoder, from the config.json of Hugging Face"),
    ("captured:FOLDER", "a step of a PyTorch program, from `tutti train capture`"),
    ("script:FILE", "a PyTorch program, captured as `[capture]` states"),
    ("megatron:FILE", "a decoder, from arguments of Megatron-LM"),
    ("[compute]", 'model = "measured", file = FILE: times of each layer'),
    ("from-astrasim", "workloads of ASTRA-sim: `tutti train from-astrasim --help`"),
    ("astrasim:NAME", "cycles recorded by ASTRA-sim: `tutti train overlap --help`"),
)
_NUMBERS = {"layers", "weights", "GFLOP forward"}


@app.command("run")
def run_(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="The training step (TOML), the folder of a captured step, or a PyTorch program.",
            show_default=False,
        ),
    ],
    platform: options.Platform = None,
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
    threads: options.Threads = 0,
    report: options.Report = True,
) -> None:
    """Simulate a training step with each endpoint configuration.

    Writes report.html and results.parquet to the output folder: time per NPU, bytes sent, and
    memory reads of communication. Further files: exposed.parquet (exposed communication by
    collective and process group), layers.parquet (per layer), links.parquet (per link),
    servers.parquet (per component of the endpoint), stalls.parquet (waits in the endpoint),
    windows.parquet (over time), and trace.pftrace (the timeline, for Perfetto).

    The file's `model` is one of `tutti train list`, or `scalesim:FILE`, `chakra:PREFIX` or
    `kineto:FILES`, which read files of other tools. `[compute]` can read measured times. `tutti
    train from-astrasim` runs workloads of ASTRA-sim. The folder of `tutti train capture` is a step
    of a PyTorch program; by default it runs on dgx_h100_cluster. A program itself, FILE.py, is
    captured first: `capture.world_size` is the number of ranks, `capture.arguments` has its
    options.

    \b
    Examples:
      tutti train run examples/10_training_step/training.toml
      tutti train run examples/10_training_step/training.toml --set batch=64
      tutti train run examples/10_training_step/training.toml --npu 0
      tutti train run step --platform gb200_nvl72_cluster
      tutti train run train.py --set capture.world_size=64 \\
        --set capture.arguments.layers=16
    """
    training = load_training(file, options.with_platform(platform, changes), output=to)
    run_step(training, npus or [0], threads, report=report)

"""`tutti workload`: converts models of other tools to workloads."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tutti.base.errors import ConfigError
from tutti.cli import options
from tutti.formats import torch as reader
from tutti.study.console import out, record, remark
from tutti.study.study import Study
from tutti.workloads.files import write_model

app = options.group("Convert PyTorch models to lists of layers.")


@app.callback()
def _group() -> None:
    """Makes typer keep the group although it has a single command."""


@app.command("from-torch")
def from_torch(
    where: Annotated[
        str,
        typer.Argument(
            metavar="MODULE:CALLABLE",
            help="A callable that returns the model; the current folder is importable.",
            show_default=False,
        ),
    ],
    inputs: Annotated[
        list[str],
        typer.Option("--input", help="Shape of an input, batch first, as in 8,3,224,224."),
    ],
    *,
    integers: Annotated[
        bool, typer.Option("--integers", help="Inputs are indices, such as token ids.")
    ] = False,
    to: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="Output file.")] = Path(
        "model.json"
    ),
) -> None:
    """Read a PyTorch model as layers, for `model = "file:model.json"` in a training file.

    Requires torch. The model is exported with shapes only; nothing is computed.

    \b
    Examples:
      tutti workload from-torch net:Net --input 8,3,224,224  # exit code 2
    """
    shapes = []
    for text in inputs:
        sizes = text.split(",")
        if not all(size.strip().isdecimal() and int(size) > 0 for size in sizes):
            message = f"`--input {text}` is not a shape: expected sizes such as 8,3,224,224"
            raise ConfigError(message, kind="invalid")
        shapes.append(tuple(int(size) for size in sizes))
    module = reader.load_module(where, Path.cwd())
    remark(f"exporting {where}")
    name = where.rpartition(":")[2]
    model = reader.from_torch(module, shapes, name=name, integers=integers)
    record(
        model=name,
        layers=len(model.layers),
        weights=model.parameters,
        forward_flop=2 * model.macs,
    )
    out().print(
        f"{name}: {len(model.layers)} layers, {model.parameters:,} weights, "
        f"{2 * model.macs / 1e9:,.3f} GFLOP forward for one sample"
    )
    Study().write(to, lambda path: write_model(path, model))

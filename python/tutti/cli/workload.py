"""`tutti workload`: models of other tools as workloads."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tutti.cli import options
from tutti.cli.console import out, remark, wrote
from tutti.cli.files import written
from tutti.errors import ConfigError
from tutti.interop import torch as reader
from tutti.workload.files import write_model

app = options.group("Workloads: models of PyTorch as lists of layers.")


@app.callback()
def _group() -> None:
    """A group, although there is one command only."""


@app.command("from-torch")
def from_torch(
    where: Annotated[
        str,
        typer.Argument(
            metavar="MODULE:CALLABLE",
            help="What makes the model, as Python imports it; the current folder is searched too.",
            show_default=False,
        ),
    ],
    inputs: Annotated[
        list[str],
        typer.Option("--input", help="Shape of an input, batch first, as in 8,3,224,224."),
    ],
    *,
    integers: Annotated[
        bool, typer.Option("--integers", help="Inputs are indices, of words for example.")
    ] = False,
    to: Annotated[Path, typer.Option("--out", "-o", help="The file to write.")] = Path(
        "model.json"
    ),
) -> None:
    """Read a PyTorch model as layers, for `model = "file:model.json"` in a training file.

    Needs torch. Nothing is computed: the model is exported with shapes alone.

    \b
    Examples:
      tutti workload from-torch net:Net --input 8,3,224,224  # exit code 2 without torch
    """
    shapes = []
    for text in inputs:
        sizes = text.split(",")
        if not all(size.strip().isdecimal() and int(size) > 0 for size in sizes):
            message = f"`--input {text}` is no shape: expected sizes and commas, as in 8,3,224,224"
            raise ConfigError(message, kind="invalid")
        shapes.append(tuple(int(size) for size in sizes))
    remark(f"exporting {where}")
    module = reader.load_module(where, Path.cwd())
    name = where.rpartition(":")[2]
    model = reader.from_torch(module, shapes, name=name, integers=integers)
    out().print(
        f"{name}: {len(model.layers)} layers, {model.parameters:,} weights, "
        f"{2 * model.macs / 1e9:,.3f} GFLOP forward for one sample"
    )
    wrote(written(write_model, to, model))

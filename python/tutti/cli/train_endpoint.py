"""`tutti train endpoint`: prints built-in endpoints as graphs of servers, for training files."""

from __future__ import annotations

import tomllib
from typing import Annotated

import typer

from tutti.base.files.mistakes import did_you_mean, mistake, shown
from tutti.base.units import Size
from tutti.study.console import record
from tutti.study.document import active
from tutti.training.endpoint import Npu, configurations
from tutti.training.files.endpoint_text import endpoint_text
from tutti.training.graph import graph_of


def endpoint(
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help="A configuration of `tutti train list`.",
                       show_default=False),
    ],
    message: Annotated[
        str,
        typer.Option(help="Largest message of the training file: the packet of the baseline."),
    ] = "8 KiB",
) -> None:  # fmt: skip
    """Print a built-in endpoint as a graph of servers, to change in a training file.

    The output is a table `[[configurations]]` with `kind = "graph"`. It takes the same time as the
    built-in endpoint, to the picosecond, on the default NPU.

    \b
    Examples:
      tutti train endpoint ace
      tutti train endpoint comm_opt >> comm_opt.toml
    """
    known = configurations()
    if name not in known:
        raise mistake(
            "is not a configuration", source="NAME", value=shown(name),
            expected=f"one of {', '.join(known)}", hint=did_you_mean(name, known),
        )  # fmt: skip
    text = endpoint_text(graph_of(known[name], Npu(), Size.parse(message)))
    record(configurations=lambda: tomllib.loads(text)["configurations"])
    if not active():
        typer.echo(text, nl=False)

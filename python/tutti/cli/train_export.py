"""`tutti train export`: a captured step as Chakra traces."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tutti.cli import options
from tutti.training.files.step_file import load_training
from tutti.training.study.export import export_step


def export(
    folder: Annotated[
        Path,
        typer.Argument(metavar="FOLDER", help="The folder of a captured step.", show_default=False),
    ],
    to: Annotated[
        Path,
        typer.Option(
            "--out", "-o", metavar="FILE", help="Output file of a rank, PREFIX.et, of all ranks."
        ),
    ],
    platform: options.Platform = None,
    changes: options.Changes = None,
) -> None:
    """Write a captured step as Chakra execution traces, one file per rank.

    Computations have the times of the GPU of the platform. Collectives have process groups, in
    PREFIX.comm_group.json. `tutti train run`, `tutti trace run` and ASTRA-sim 2 read the files.

    \b
    Examples:
      tutti train export step --platform dgx_h100_cluster -o traces/llama.et
    """
    export_step(load_training(folder, options.with_platform(platform, changes)), to)

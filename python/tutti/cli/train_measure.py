"""`tutti train measure`: times of the operators of a captured step on a GPU."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tutti.training.study.measure import measure_step


def measure_(
    folder: Annotated[
        Path,
        typer.Argument(metavar="FOLDER", help="The folder of a captured step.", show_default=False),
    ],
    gpu: Annotated[
        str | None,
        typer.Option("--gpu", help="The GPU, such as h100. Default: by the product's name."),
    ] = None,
) -> None:
    """Measure the products and attentions of a captured step on the GPU of this machine.

    Each distinct operator runs on random tensors of its shapes. FOLDER/times.csv stores the medians
    of 10 runs, which `tutti train run` uses on platforms with this GPU. Other operators take their
    bytes at the memory bandwidth. Requires PyTorch and a GPU.

    \b
    Examples:
      tutti train measure step
    """
    measure_step(folder, gpu)

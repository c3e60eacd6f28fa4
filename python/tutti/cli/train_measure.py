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
    profile: Annotated[
        Path | None,
        typer.Option(
            "--profile",
            metavar="FILE",
            help="A profile of PyTorch (Kineto) with shapes: its times instead of measurements.",
        ),
    ] = None,
) -> None:
    """Measure the operators of a captured step on a GPU.

    Each distinct product and attention runs on random tensors of its shapes on the GPU of this
    machine. FOLDER/times.csv stores the medians of 10 runs, which `tutti train run` uses on
    platforms with this GPU. Other operators take their bytes at the memory bandwidth. Requires
    PyTorch and a GPU.

    With `--profile`, times are those of kernels in the trace of `torch.profiler` with
    `record_shapes=True`, also of other operators, matched by name, datatype and shapes. Operators
    without a time are listed.

    \b
    Examples:
      tutti train measure step
      tutti train measure step --profile rank0.json
    """
    measure_step(folder, gpu, profile)

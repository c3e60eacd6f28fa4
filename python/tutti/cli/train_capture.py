"""`tutti train capture`: one training step of a PyTorch program, without GPUs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tutti.training.study.capture import run_capture


def capture(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="SCRIPT [ARGS]...",
            help="The Python program and its arguments.",
            show_default=False,
        ),
    ],
    world_size: Annotated[
        int,
        typer.Option("--world-size", min=1, max=1 << 20, metavar="N", help="The number of ranks."),
    ],
    to: Annotated[
        Path, typer.Option("--out", "-o", metavar="FOLDER", help="Output folder of the step.")
    ] = Path("step"),
    ranks: Annotated[
        str | None,
        typer.Option(
            "--only-ranks",
            metavar="R,...",
            help="The captured ranks. Default: one of each role: rank 0, those with which captured "
            "ranks exchange messages, and those of other process groups.",
        ),
    ] = None,
    step: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="The captured step. Default: 2, after optimizers have created their states, and 3 "
            "with DDP, which rebuilds its buckets in the second.",
        ),
    ] = None,
    values: Annotated[
        float | None,
        typer.Option(
            metavar="VALUE",
            help="What each value is that the program reads, with `.item()` for example. "
            "Default: such a program is refused.",
        ),
    ] = None,
    gpus_per_node: Annotated[
        int,
        typer.Option(
            "--gpus-per-node", min=1, max=1024, metavar="N", help="GPUs of a node, for LOCAL_RANK."
        ),
    ] = 8,
) -> None:
    """Capture a training step of a PyTorch program, without GPUs, data or other ranks.

    Runs the program in this process as one rank of the job: tensors of the GPU have shapes and no
    data, and collectives of `torch.distributed` return at once. Stores what the step issues:
    operators with FLOPs and bytes, collectives with process groups, streams and dependencies,
    and memory. `tutti train run FOLDER --platform NAME` simulates it. Requires PyTorch.

    Options that this command does not have belong to the program. Put `--` before SCRIPT if both
    have an option of the same name; options of this command then precede it.

    \b
    Examples:
      tutti train capture train.py --layers 32 --world-size 1024
      tutti train run step --platform gb200_nvl72_cluster
    """
    run_capture(
        words,
        world_size,
        to,
        ranks=ranks,
        step=step,
        values=values,
        node=gpus_per_node,
    )

"""`tutti train calibrate`: efficiencies of training steps from measured steps."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tutti.training.study.calibrate import calibrate_logs


def calibrate_(
    logs: Annotated[
        list[Path],
        typer.Argument(
            metavar="LOG...",
            show_default=False,
            help="Measured steps: CSV, TOML, or profiles of PyTorch (Kineto, JSON).",
        ),
    ],
    plan: Annotated[
        Path | None,
        typer.Option(
            "--plan",
            show_default=False,
            help="The plan of profiles, and of rows without plan or recipe: a file of "
            "`tutti train plan --out`.",
        ),
    ] = None,
    file: Annotated[
        Path,
        typer.Option("--out", "-o", metavar="FILE", help="Output file of the calibration (TOML)."),
    ] = Path("calibration.toml"),
) -> None:
    """Fit the efficiencies of training steps on a GPU to measured steps.

    A row of a CSV file or a table [[step]] of a TOML file has `seconds` of a step, or
    `tokens_per_s_per_gpu`. It also has `plan`, a file of `tutti train plan --out`, or a recipe with
    the options of `train plan` by name: model, platform, gpus, global_batch, tensor, micro_batch. A
    profile of PyTorch gives the time of a step and that of its kernels.

    The output shows each coefficient before and after, its 90 % interval, and how much the
    measurements determine it. `tutti train plan --calibration FILE` uses the result, as does a
    training file with `calibration` in [compute].

    \b
    Examples:
      tutti train plan llama3_8b -p dgx_h100_cluster -g 16 --global-batch 64 \\
        --tensor 2 --simulate 0 --out plan.toml
      tutti train calibrate steps.csv --plan plan.toml --out calibration.toml
      tutti train plan llama3_8b -p dgx_h100_cluster -g 64 --global-batch 256 \\
        --calibration calibration.toml
    """
    calibrate_logs(logs, plan, file)

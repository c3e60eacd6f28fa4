"""`tutti train search`: the algorithms that minimise the time of a training step."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tutti.cli import options
from tutti.training.files.step_file import load_training
from tutti.training.study.search import run_search


def search(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="The training step (TOML), or the folder of a captured step.",
            show_default=False,
        ),
    ],
    platform: options.Platform = None,
    algorithm: options.Algorithms = None,
    limit: Annotated[
        int,
        typer.Option("--limit", min=0, help="Most simulations per configuration; 0 for no limit."),
    ] = 0,
    threads: options.Threads = 0,
    changes: options.Changes = None,
    to: options.Out = None,
) -> None:
    """Find the algorithms of a step's collectives that minimise the time of the step.

    Tries every algorithm for each collective, on each of its groups, with each endpoint
    configuration. The measure is the time of the complete step. The search changes one collective
    at a time until no change shortens the step. `of bound` is the share of the lower bound, which
    no algorithm can beat.

    Writes search.parquet, a row per simulation, to the output folder, and the tables of `tutti
    train run` with the chosen algorithms. It also writes the report, unless the step has several
    micro-batches: then `tutti train run` with these algorithms writes it.

    \b
    Examples:
      tutti train search examples/20_choose_algorithms/training.toml -a ring
      tutti train search examples/20_choose_algorithms/training.toml --limit 50
      tutti train search step --platform gb200_nvl72_cluster
    """
    training = load_training(file, options.with_platform(platform, changes), output=to)
    run_search(training, None if "all" in (algorithm or ["all"]) else algorithm, limit, threads)

"""`tutti run`: simulates one schedule and shows what each rank does over time."""

from __future__ import annotations

from typing import Annotated

import typer

from tutti.cli import options
from tutti.collectives.study.run import run as run_schedule


def run(
    file: options.OptionalExperiment = None,
    size: Annotated[str | None, typer.Option("--size", "-s", metavar="SIZE", help="Size.")] = None,
    ranks: Annotated[int | None, typer.Option("--ranks", "-r", help="Rank count.")] = None,
    algorithm: Annotated[
        str | None,
        typer.Option("--algorithm", "-a", metavar="NAME[:ARG]", help="Algorithm."),
    ] = None,
    datatype: options.Datatype = None,
    platform: options.Platform = None,
    collective: options.Collective = None,
    model: options.Model = None,
    changes: options.Changes = None,
    verify: options.Verify = True,
    to: options.Out = None,
) -> None:
    """Simulate one schedule: time per kind of op, link utilisation and a timeline.

    Writes ranks.parquet, timeline.parquet, messages.parquet, a Perfetto trace and, up to 64
    ranks, timeline.svg to the output folder. Packet and flit models add links.parquet, flit models
    channels.parquet, and platforms with a technology energy.parquet. Options select the rank
    count, size and algorithm if the file has several.

    \b
    Examples:
      tutti run experiment.toml
      tutti run ring --ranks 16 --size 64MiB
      tutti run experiment.toml --ranks 8 --size 8 --algorithm swing
      tutti run experiment.toml --set ranks=16
    """
    overrides = options.Overrides(
        size=size, ranks=str(ranks) if ranks is not None else None, algorithms=[algorithm] if
        algorithm else None, datatype=datatype, platform=platform, collective=collective,
        model=model, changes=changes, out=to,
    )  # fmt: skip
    run_schedule(overrides.load(file), verify=verify)

"""`tutti compare`: the fastest algorithm at each rank count and size, its lead, and the reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from tutti.base.files.extras import check_extra
from tutti.cli import options
from tutti.cli.grouped import grouped
from tutti.collectives.study.comparison import compare as compare_algorithms


@dataclass
class Compared:
    """Options that replace keys of the experiment file."""

    file: options.OptionalExperiment = None
    begin: options.Begin = None
    end: options.End = None
    factor: options.Factor = None
    repetitions: options.Repetitions = None
    datatype: options.Datatype = None
    ranks: options.Ranks = None
    algorithm: options.Algorithms = None
    platform: options.Platform = None
    collective: options.Collective = None
    model: options.Model = None
    changes: options.Changes = None
    to: options.ExperimentOut = None


@grouped
def compare(
    of: Compared,
    *,
    top: Annotated[int, typer.Option("--top", min=0, help="Rows of the table; 0 shows all.")] = 20,
    threads: options.Threads = 0,
    verify: options.Verify = True,
    report: Annotated[
        bool | None,
        typer.Option(
            "--report/--no-report",
            help="Write the HTML report and the trace. Default: if tutti[reports] is installed.",
        ),
    ] = None,
    prune: Annotated[
        bool,
        typer.Option(
            "--prune/--all",
            help="Leave out schedules of 100,000 and more messages whose lower bound exceeds the "
            "time of the second-fastest algorithm, or simulate all.",
        ),
    ] = True,
) -> None:
    """Compare algorithms: the fastest at each rank count and size, its lead, and the reason.

    Writes results.parquet, results.csv, report.html and a Perfetto trace of one winner's run to
    the output folder. Options override keys of the file. Sizes follow nccl-tests: a bare number is
    bytes, and K, M and G are KiB, MiB and GiB.

    \b
    Examples:
      tutti compare experiment.toml
      tutti compare --platform dgx_h100 --ranks 8 -b 8 -e 1GiB
      tutti compare experiment.toml -b 8 -e 128MiB -f 2 --ranks 4:1024
      tutti compare experiment.toml --algorithm ring --algorithm swing
      tutti compare experiment.toml --platform loggp_cluster --out out/loggp
    """
    if report:
        check_extra("reports")
    experiment = options.experiment(of, of.file, of.changes)
    compare_algorithms(
        experiment, top=top, threads=threads, verify=verify, report=report, prune=prune
    )

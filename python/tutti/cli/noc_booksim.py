"""`tutti noc from-booksim`: runs or converts a BookSim 2 configuration."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from tutti.cli import options
from tutti.cli.grouped import grouped
from tutti.cli.loads import load_values
from tutti.formats.booksim import network as booksim
from tutti.networks.study import run_load, sweep_loads
from tutti.study.console import remark
from tutti.study.study import Study


@dataclass
class Input:
    """The file, what replaces values of it, and what to write."""

    config: Annotated[
        Path, typer.Argument(metavar="CONFIG", show_default=False,
                             help="A BookSim 2 configuration file."),
    ]  # fmt: skip
    changes: Annotated[
        list[str] | None,
        typer.Argument(metavar="KEY=VALUE", help="BookSim keys to override.", show_default=False),
    ] = None
    loads: Annotated[
        str | None,
        typer.Option("--loads", metavar="LOADS", help="Offered loads in flits per node and cycle, "
                     "as in `sweep`; replaces the rate."),
    ] = None  # fmt: skip
    write: Annotated[
        Path | None,
        typer.Option("--write", metavar="FILE",
                     help="Write a tutti file (TOML) instead of running."),
    ] = None  # fmt: skip
    search: Annotated[
        bool,
        typer.Option("--saturation/--no-saturation",
                     help="Search for the saturation load of --loads."),
    ] = True  # fmt: skip
    threads: options.Threads = 0
    to: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FOLDER", help="Output folder. Default: out/noc."),
    ] = None
    report: options.Report = True
    lenient: Annotated[
        bool, typer.Option("--lenient", help="Skip and list keys that BookSim does not have."),
    ] = False  # fmt: skip


@grouped
def from_booksim(of: Input) -> None:
    """Run a BookSim 2 configuration file, or convert it to a tutti file.

    Writes the files of `run` into the output folder; with --loads, those of `sweep`. Keys that
    do not affect results are listed. Keys without a counterpart are errors. If the network
    saturates or deadlocks, latency is undefined; a run at one load then exits with code 3.

    \b
    Examples:
      tutti noc from-booksim examples/08_latency_under_load/mesh.cfg num_vcs=8
      tutti noc from-booksim examples/08_latency_under_load/mesh.cfg \\
        traffic=transpose --loads 0.05:0.4:0.05
      tutti noc from-booksim examples/08_latency_under_load/mesh.cfg \\
        --write out/mesh.toml
    """
    values = None if of.loads is None else load_values(of.loads)
    converted = booksim.load(of.config, of.changes or (), is_lenient=of.lenient)
    if converted.not_honoured:
        ignored = ", ".join(converted.not_honoured)
        remark(f"ignored keys, without effect on results: {ignored}")
    for text in converted.remarks:
        remark(text)
    if of.write is not None:
        Study().write(of.write, lambda path: booksim.write(path, converted))
        return
    experiment = converted.noc if of.to is None else replace(converted.noc, output=of.to)
    if values is None:
        run_load(experiment, of.config, converted.remarks, report=of.report)
    else:
        sweep_loads(experiment, of.config, values, search=of.search, threads=of.threads,
                    notes=converted.remarks, report=of.report)  # fmt: skip

"""`tutti noc from-garnet`: runs or converts a network of gem5's Garnet."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from tutti.cli.grouped import grouped
from tutti.cli.noc_converted import ConvertedOptions, study_converted
from tutti.formats.garnet import experiment as garnet


@dataclass
class Input:
    """The file, and options of gem5."""

    config: Annotated[
        Path, typer.Argument(metavar="FILE", show_default=False,
                             help="A topology script of gem5 (.py), or the config.ini or "
                             "config.json of a run."),
    ]  # fmt: skip
    changes: Annotated[
        list[str] | None,
        typer.Argument(metavar="KEY=VALUE", help="Options of gem5's command line, such as "
                       "num_cpus=16.", show_default=False),
    ] = None  # fmt: skip


@grouped
def from_garnet(given: Input, of: ConvertedOptions) -> None:
    """Run a network of gem5's Garnet under synthetic traffic, or convert it to a tutti file.

    A topology script is read, not executed. Options are those of gem5's scripts, with underscores:
    num_cpus, num_dirs, mesh_rows, link_latency, router_latency, vcs_per_vnet, synthetic,
    injectionrate, inj_vnet. Routes are those of gem5's routing tables, and are checked for
    deadlock. Writes the files of `run` into the output folder; with --loads, those of `sweep`. What
    tutti does not model is an error that lists each line. If the network saturates or deadlocks,
    latency is undefined; a run at one load then exits with code 3.

    \b
    Examples:
      tutti noc from-garnet examples/31_coming_from_garnet/mesh.py \\
        num_cpus=16 mesh_rows=4 injectionrate=0.05
      tutti noc from-garnet examples/31_coming_from_garnet/config.ini \\
        --loads 0.1,0.2 --no-saturation
      tutti noc from-garnet examples/31_coming_from_garnet/mesh.py \\
        num_cpus=16 mesh_rows=4 --write out/garnet.toml
    """
    study_converted(given.config, of, lambda: garnet.load(given.config, given.changes or ()))

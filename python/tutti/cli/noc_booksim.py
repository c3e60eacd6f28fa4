"""`tutti noc from-booksim`: runs or converts a BookSim 2 configuration."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tutti.cli.grouped import grouped
from tutti.cli.noc_converted import ConvertedOptions, study_converted
from tutti.formats.booksim import network as booksim

if TYPE_CHECKING:
    from tutti.formats.converted import ConvertedNoc


@dataclass
class Input:
    """The file, and what replaces values of it."""

    config: Annotated[
        Path, typer.Argument(metavar="CONFIG", show_default=False,
                             help="A BookSim 2 configuration file."),
    ]  # fmt: skip
    changes: Annotated[
        list[str] | None,
        typer.Argument(metavar="KEY=VALUE", help="BookSim keys to override.", show_default=False),
    ] = None
    lenient: Annotated[
        bool, typer.Option("--lenient", help="Skip and list keys that BookSim does not have."),
    ] = False  # fmt: skip


@grouped
def from_booksim(given: Input, of: ConvertedOptions) -> None:
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

    def convert() -> ConvertedNoc:
        return booksim.load(given.config, given.changes or (), is_lenient=given.lenient)

    study_converted(given.config, of, convert)

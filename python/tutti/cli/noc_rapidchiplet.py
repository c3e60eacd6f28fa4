"""`tutti noc from-rapidchiplet`: runs or converts a design of RapidChiplet."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tutti.cli.grouped import grouped
from tutti.cli.noc_converted import ConvertedOptions, study_converted
from tutti.formats.rapidchiplet import network as rapidchiplet

if TYPE_CHECKING:
    from tutti.formats.converted import ConvertedNoc


@dataclass
class Input:
    """The design, and what replaces values of its BookSim configuration."""

    design: Annotated[
        Path, typer.Argument(metavar="DESIGN", show_default=False,
                             help="A design file of RapidChiplet (JSON)."),
    ]  # fmt: skip
    changes: Annotated[
        list[str] | None,
        typer.Argument(metavar="KEY=VALUE", show_default=False,
                       help="Keys of its BookSim configuration to override."),
    ] = None  # fmt: skip
    lenient: Annotated[
        bool, typer.Option("--lenient", help="Skip and list keys that RapidChiplet does not have."),
    ] = False  # fmt: skip


@grouped
def from_rapidchiplet(given: Input, of: ConvertedOptions) -> None:
    """Run a design of RapidChiplet, or convert it to a tutti file.

    Reads the files that the design names: chiplets, placement, topology, packaging, technologies,
    routing table, and traffic or, with mode=trace, a trace. Writes the files of `run` into the
    output folder; with --loads, those of `sweep`. Keys that do not affect results are listed. If
    the network saturates or deadlocks, latency is undefined; a run at one load then exits with
    code 3.

    \b
    Examples:
      tutti noc from-rapidchiplet examples/31_coming_from_garnet/rapidchiplet/design.json
      tutti noc from-rapidchiplet examples/31_coming_from_garnet/rapidchiplet/design.json \\
        num_vcs=8 --loads 0.05,0.1 --no-saturation
      tutti noc from-rapidchiplet examples/31_coming_from_garnet/rapidchiplet/design.json \\
        mode=trace --write out/rapidchiplet.toml
    """

    def convert() -> ConvertedNoc:
        return rapidchiplet.load(given.design, given.changes or (), is_lenient=given.lenient)

    study_converted(given.design, of, convert)

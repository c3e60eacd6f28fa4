"""`tutti noc from-noxim`: runs or converts a configuration of Noxim."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from tutti.cli.grouped import grouped
from tutti.cli.noc_converted import ConvertedOptions, study_converted
from tutti.formats.noxim import network as noxim


@dataclass
class Input:
    """The file, and what replaces values of it."""

    config: Annotated[
        Path, typer.Argument(metavar="CONFIG", show_default=False,
                             help="A configuration file of Noxim (YAML)."),
    ]  # fmt: skip
    changes: Annotated[
        list[str] | None,
        typer.Argument(metavar="KEY=VALUE", help="Noxim keys to override.", show_default=False),
    ] = None


@grouped
def from_noxim(given: Input, of: ConvertedOptions) -> None:
    """Run a configuration of Noxim, or convert it to a tutti file.

    Writes the files of `run` into the output folder; with --loads, those of `sweep`. Keys that
    do not affect results are listed. Wireless hubs and other keys without a counterpart are errors,
    all listed with their lines. If the network saturates or deadlocks, latency is undefined; a run
    at one load then exits with code 3.

    \b
    Examples:
      tutti noc from-noxim examples/31_coming_from_garnet/noxim.yaml
      tutti noc from-noxim examples/31_coming_from_garnet/noxim.yaml \\
        mesh_dim_x=8 mesh_dim_y=8 --loads 0.05,0.1 --no-saturation
      tutti noc from-noxim examples/31_coming_from_garnet/noxim.yaml \\
        --write out/noxim.toml
    """
    study_converted(given.config, of, lambda: noxim.load(given.config, given.changes or ()))

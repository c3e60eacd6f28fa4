"""`tutti noc watch`: animates flits on a single-cycle multi-hop mesh."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tutti.base.files.mistakes import mistake
from tutti.cli import options
from tutti.networks import mesh as smart
from tutti.networks.errors import NocError
from tutti.networks.mesh.files import is_smart, load_smart
from tutti.networks.mesh.view.watch import watch_view
from tutti.study.progress import Progress
from tutti.study.study import Study

MeshFile = Annotated[
    Path,
    typer.Argument(metavar="FILE", help="The network file (TOML).", show_default=False),
]


def watch_(
    file: MeshFile,
    cycles: Annotated[
        int, typer.Option("--cycles", min=1, max=5000, help="Number of cycles to simulate.")
    ] = 60,
    start: Annotated[int, typer.Option("--from-cycle", min=0, help="The first cycle to show.")] = 0,
    changes: options.Changes = None,
    to: options.Out = None,
) -> None:
    """Animate flits on a single-cycle multi-hop mesh, cycle by cycle, from an empty mesh.

    Writes watch.html into the output folder. The page shows path requests, flits and why they stop,
    copies, drops, merges and reserved outputs that stay idle. It plays, steps, and follows a
    message. The file needs a table [mesh].

    \b
    Examples:
      tutti noc watch examples/16_single_cycle_collectives/broadcast.toml
      tutti noc watch mesh.toml --cycles 100 --set mesh.priority=bypass
    """
    if not is_smart(file):
        raise mistake(
            "missing table `[mesh]`: only single-cycle multi-hop meshes can be watched",
            source=str(file), key="mesh",
            expected="a table `[mesh]`, as in examples/16_single_cycle_collectives",
        )  # fmt: skip
    read = load_smart(file, changes or (), output=to)
    study = Study[None](read.output)
    with Progress("running"):
        try:
            watched = smart.watch(read.network, read.traffic, cycles, seed=read.plan.seed)
        except NocError as error:
            key = "mesh.design"
            raise mistake(error.problem, source=read.source, key=key, hint=error.hint) from None
    study.present(watch_view(watched, read.title, start=start))

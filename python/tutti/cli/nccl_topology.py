"""`tutti nccl topology`: reads a topology of NCCL, and writes it as a platform."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tutti.base.files.mistakes import known_word
from tutti.formats.nccl import NodePlatform, platform_from_topology, read_topology
from tutti.formats.nccl.rates import RATES
from tutti.formats.nccl.view import topology_view
from tutti.study.study import Study


def topology(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file of NCCL_TOPO_DUMP_FILE.")],
    to: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="Output file: a platform (*.toml)."),
    ] = None,
    nodes: Annotated[
        int,
        typer.Option(
            "--nodes",
            min=1,
            help="Number of nodes, which are equal and joined by a non-blocking network.",
        ),
    ] = 1,
    rates: Annotated[
        str,
        typer.Option("--rates", help="`link`: rates of the links; `nccl`: rates of NCCL's search."),
    ] = "link",
) -> None:
    """Show the topology of a node that NCCL wrote, or write it as a platform.

    The platform is a graph of GPUs, NVSwitches, PCI switches, sockets and NICs, with a source for
    each rate. NVSwitches act as one. With --out, the graph is written next to the platform file.

    \b
    Examples:
      tutti nccl topology examples/23_nccl_doctor/topology.xml
      tutti nccl topology examples/23_nccl_doctor/topology.xml --nodes 2 \\
        --out out/node.toml
    """
    node = read_topology(file)
    name = to.stem if to is not None else None
    platform = platform_from_topology(
        node, nodes=nodes, rates=known_word(rates, RATES, source="--rates"), name=name
    )
    study = Study[NodePlatform]()
    study.present(topology_view(node, platform, file))
    if to is not None:
        study.write(to, platform.write)

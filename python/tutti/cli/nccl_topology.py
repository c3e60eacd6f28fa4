"""`tutti nccl topology`: reads a topology of NCCL, and writes it as a platform."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.padding import Padding
from rich.text import Text

from tutti.base.files.mistakes import mistake, shown
from tutti.formats.nccl import platform_from_topology, read_topology
from tutti.formats.nccl.rates import RATES, Rates
from tutti.study.console import out, record, record_table, remark, wrote

if TYPE_CHECKING:
    from tutti.formats.nccl import NodePlatform, Topology


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
    found = read_topology(file)
    name = to.stem if to is not None else None
    platform = platform_from_topology(found, nodes=nodes, rates=_rates(rates), name=name)
    _record(found, platform)
    _show(found, platform)
    for line, reason in found.omitted:
        remark(f"{file}, line {line}: {reason}")
    for text in platform.remarks:
        remark(f"{file}, {text}: left out")
    if to is not None:
        to.parent.mkdir(parents=True, exist_ok=True)
        wrote(*platform.write(to))


def _rates(text: str) -> Rates:
    chosen: Rates | None = next((one for one in RATES if one == text), None)
    if chosen is None:
        raise mistake("unknown value", source="--rates", value=shown(text),
                      expected=f"one of {', '.join(RATES)}")  # fmt: skip
    return chosen


def _show(found: Topology, platform: NodePlatform) -> None:
    console = out()
    hosts = len({cpu.host for cpu in found.cpus})
    console.print(
        f"{found.writer}: {hosts} host(s), {len(found.cpus)} sockets, {len(found.gpus)} GPUs, "
        f"{len(found.ports)} NIC ports",
        markup=False,
    )
    for line in platform.sources:
        console.print(Padding(Text(line), (0, 0, 0, 2), expand=False))


def _record(found: Topology, platform: NodePlatform) -> None:
    record(writer=found.writer)
    gpus = (
        {"dev": gpu.dev, "rank": gpu.rank, "sm": gpu.sm, "bus": pci.bus, "numa": cpu.numa}
        for cpu, pci, gpu in found.gpus
    )
    ports = (
        {"dev": port.dev, "name": port.name, "mbit_per_s": port.mbit_per_s, "gdr": port.gdr,
         "bus": pci.bus if pci is not None else None, "numa": cpu.numa}
        for cpu, pci, port in found.ports
    )  # fmt: skip
    edges = platform.graph.edges(data=True)
    record_table("gpus", gpus)
    record_table("ports", ports)
    record_table("links", ({"source": a, "target": b, **data} for a, b, data in edges))
    record_table("omitted", ({"line": line, "reason": reason} for line, reason in found.omitted))

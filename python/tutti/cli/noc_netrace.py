"""`tutti noc from-netrace`: converts a trace of netrace."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from tutti.base.units import Size
from tutti.cli.grouped import grouped
from tutti.formats import netrace
from tutti.study.console import remark
from tutti.study.study import Study, read
from tutti.view.quantity import plural


@dataclass
class Input:
    """The trace, and the part of it to convert."""

    trace: Annotated[
        Path, typer.Argument(metavar="TRACE", show_default=False,
                             help="A trace of netrace (.tra.bz2, or unpacked)."),
    ]  # fmt: skip
    to: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE",
                           help="Output file: a trace (CSV) for `tutti noc run`."),
    ] = Path("out/trace.csv")  # fmt: skip
    flit: Annotated[str, typer.Option("--flit", help="Flit size.")] = "16 B"
    region: Annotated[
        int, typer.Option("--region", min=0, max=99, help="Region of the trace, from 0.")
    ] = 0
    packets: Annotated[
        int, typer.Option("--packets", min=1, max=netrace.MOST_PACKETS,
                          help="Largest number of packets to convert."),
    ] = netrace.MOST_PACKETS  # fmt: skip
    delay: Annotated[
        int, typer.Option("--delay", min=0, max=(1 << 32) - 1,
                          help="Cycles from the arrival of the packets that a packet waits for."),
    ] = 0  # fmt: skip
    classes: Annotated[
        int, typer.Option("--classes", min=1, max=2,
                          help="Message classes: 2 for responses in a class apart from requests."),
    ] = 1  # fmt: skip


@grouped
def from_netrace(of: Input) -> None:
    """Convert a trace of netrace: packets that wait for the arrival of others.

    Cycles count from the first packet, and are the first in which a packet can be sent.
    `tutti noc run` replays the trace: set `traffic.trace`.

    \b
    Examples:
      tutti noc from-netrace blackscholes.tra.bz2 --packets 100000 -o out/trace.csv
    """
    flit = Size.of_any(of.flit).bytes
    found = read("reading", lambda: netrace.convert(
        of.trace, flit_bytes=flit, packets=of.packets, region=of.region,
        delay=of.delay, classes=of.classes,
    ))  # fmt: skip
    cut = ", of more" if found.is_cut else ""
    remark(
        f"{found.benchmark}: {plural(found.nodes, 'node')}, {plural(found.packets, 'packet')}{cut}"
    )
    if found.unknown:
        remark(f"{found.unknown:,} dependencies name packets outside of this part: ignored")

    def save(to: Path) -> Path:
        to.write_text(found.text, encoding="utf-8")
        return to

    Study().write(of.to, save)

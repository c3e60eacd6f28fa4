"""`tutti bypass run`: how long an algorithm takes on a mesh alone, and with its bypass links."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tutti.cli.bypass import (
    Algorithm,
    Collective,
    Latency,
    Muxes,
    Rate,
    Size,
    Wires,
    mesh_of,
    schedule_of,
)
from tutti.cli.console import out, remark
from tutti.cli.progress import Progress

if TYPE_CHECKING:
    from tutti.bypass import BypassMesh
    from tutti.bypass.plans import Plan
    from tutti.schedule import Schedule


def run(
    algorithm: Algorithm,
    size: Size = "4x4",
    wires: Wires = 1,
    muxes: Muxes = "any",
    collective: Collective = "all_reduce",
    payload: Annotated[
        list[str] | None,
        typer.Option("--payload", "-b", help="Bytes of the collective; may be repeated."),
    ] = None,
    copies: Annotated[
        int, typer.Option("--copies", min=1, max=4, help="Links side by side for each flow.")
    ] = 1,
    switch: Annotated[
        str, typer.Option("--switch", help="What it takes to configure the mesh anew.")
    ] = "100 ns",
    rate: Rate = "68 GB/s",
    latency: Latency = "12 ns",
) -> None:
    """Time an algorithm packet by packet: on the mesh alone, and with bypass links.

    The links are configured once for all of it, and, where its schedule has phases, anew for each:
    then everybody waits for the last, and for the switch.

    \b
    Examples:
      tutti bypass run double_binary_tree:nccl,phased,4 --payload 64KiB --payload 2MiB
      tutti bypass run ring:4x4 --copies 2
    """
    from rich.table import Table

    from tutti.bypass.plans import chunk_packets, chunk_platform
    from tutti.phases import simulate_phases
    from tutti.report.quantity import format_rate
    from tutti.topology import Topology
    from tutti.units import Size as Bytes

    mesh = mesh_of(size, wires, muxes)
    schedule = schedule_of(algorithm, collective, mesh, None)
    with Progress("mapping"):
        plans = _plans(schedule, mesh, copies)
        plain = Topology.build(f"mesh:{size}", rate=rate, latency=latency)
        alone = plain.routes("dimension_order")
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in ("payload", "links"):
        table.add_column(name, no_wrap=True)
    for name in ("time", "algbw", "speedup"):
        table.add_column(name, justify="right", no_wrap=True)
    for text in payload or ["16 KiB", "1 MiB"]:
        nbytes = Bytes.of_any(text)
        packets = chunk_packets(nbytes, schedule)
        machine = chunk_platform(alone, packets)
        runs = {"mesh alone": simulate_phases(schedule, [machine], size=nbytes)}
        for name, plan in plans.items():
            runs[name] = plan.run(nbytes, rate=rate, latency=latency, switch=switch)
        for name, ran in runs.items():
            gain = f"{runs['mesh alone'].completion_ps / ran.completion_ps:.2f}"
            table.add_row(str(nbytes), name, str(ran.time), format_rate(ran.algbw), gain)
    out().print(table)
    remark("speedup: over the mesh in dimension order; a packet is a 32nd of a chunk, or a flit")


def _plans(schedule: Schedule, mesh: BypassMesh, copies: int) -> dict[str, Plan]:
    """Configured once, and for each phase where there are some."""
    from tutti.bypass.plans import plan

    plans = {"bypass, configured once": plan(schedule, mesh, copies=copies)}
    if schedule.phases > 1:
        plans["bypass, for each phase"] = plan(schedule, mesh, switched=True, copies=copies)
    return plans

"""`tutti bypass run`: how long an algorithm takes on a mesh alone, and with its bypass links."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tutti.cli import options
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
    from rich.table import Table

    from tutti.bypass import BypassMesh
    from tutti.bypass.plans import Plan
    from tutti.phases import PhasedRun
    from tutti.schedule import Schedule
    from tutti.units import Size as Bytes


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
    verify: options.Verify = True,
) -> None:
    """Time an algorithm packet by packet: on the mesh alone, and with bypass links.

    The links are configured once for all of it, and, where its schedule has phases, anew for each:
    then everybody waits for the last, and for the switch.

    \b
    Examples:
      tutti bypass run double_binary_tree:nccl,phased,4 --payload 64KiB --payload 2MiB
      tutti bypass run ring:4x4 --copies 2
    """
    from tutti.units import Size as Bytes

    mesh = mesh_of(size, wires, muxes)
    schedule = schedule_of(algorithm, collective, mesh, None)
    links = {"rate": rate, "latency": latency}
    with Progress("mapping"):
        plans = _plans(schedule, mesh, copies)
    rows = [
        (str(nbytes), name, ran)
        for nbytes in map(Bytes.of_any, payload or ["16 KiB", "1 MiB"])
        for name, ran in {
            _ALONE: _on_mesh(schedule, mesh.side, nbytes, links, verify=verify),
            **{
                name: plan.run(nbytes, switch=switch, verify=verify, **links)
                for name, plan in plans.items()
            },
        }.items()
    ]
    out().print(_table(rows))
    for reason in {ran.not_verified for *_, ran in rows} - {None}:
        remark(f"{schedule.name} is not verified: {reason}")
    remark("speedup: over the mesh in dimension order; a packet is a 32nd of a chunk, or a flit")


_ALONE = "mesh alone"


def _on_mesh(
    schedule: Schedule, side: int, nbytes: Bytes, links: dict[str, str], *, verify: bool
) -> PhasedRun:
    """All phases on a mesh without wires, in dimension order."""
    from tutti.bypass.plans import run_on
    from tutti.topology import Topology

    mesh = Topology.build(f"mesh:{side}x{side}", rate=links["rate"], latency=links["latency"])
    return run_on(schedule, [mesh.routes("dimension_order")], nbytes, verify=verify)


def _table(rows: list[tuple[str, str, PhasedRun]]) -> Table:
    """Each payload on the mesh alone and with wires: payload, links, run."""
    from rich.table import Table

    from tutti.report.quantity import format_rate

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in ("payload", "links"):
        table.add_column(name, no_wrap=True)
    for name in ("time", "algbw", "speedup"):
        table.add_column(name, justify="right", no_wrap=True)
    alone = {payload: ran for payload, name, ran in rows if name == _ALONE}
    for payload, name, ran in rows:
        gain = f"{alone[payload].completion_ps / ran.completion_ps:.2f}"
        table.add_row(payload, name, str(ran.time), format_rate(ran.algbw), gain)
    return table


def _plans(schedule: Schedule, mesh: BypassMesh, copies: int) -> dict[str, Plan]:
    """Configured once, and for each phase where there are some."""
    from tutti.bypass.plans import plan

    plans = {"bypass, configured once": plan(schedule, mesh, copies=copies)}
    if schedule.phases > 1:
        plans["bypass, for each phase"] = plan(schedule, mesh, switched=True, copies=copies)
    return plans

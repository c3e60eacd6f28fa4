"""`tutti bypass`: maps algorithms to chiplet meshes with bypass links, and draws the result."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from tutti.base.files.mistakes import mistake, shown
from tutti.base.units import Size
from tutti.bypass import BypassMesh, flows_of, map_flows
from tutti.bypass.improve import improve
from tutti.bypass.plans import plan, run_on
from tutti.bypass.platform_file import write_platform
from tutti.cli import options
from tutti.cli.bypass_endpoints import endpoints
from tutti.schedules.ir import schedule
from tutti.study.console import out, record, record_table, remark, wrote
from tutti.study.files import written
from tutti.study.progress import Progress
from tutti.topologies import Topology
from tutti.view.quantity import counted, format_rate, format_share, plural

if TYPE_CHECKING:
    from tutti.bypass import BypassConfiguration, Flow, Mapping
    from tutti.bypass.plans import MappedSchedule
    from tutti.collectives.phases import PhasedRun
    from tutti.schedules.ir import Schedule

app = options.group("Map collectives to chiplet networks with bypass links.")

Algorithm = Annotated[
    str,
    typer.Argument(metavar="ALGORITHM", help="An algorithm as NAME[:ARG].", show_default=False),
]
Mesh = Annotated[str, typer.Option("--mesh", metavar="SIZE", help="Mesh: rows x columns.")]
Wires = Annotated[
    int, typer.Option("--wires", min=0, help="Bypass wires per row and column, in each direction.")
]
Muxes = Annotated[
    str,
    typer.Option("--muxes", help="Links that a port can select: own, axis, sign or any."),
]
Collective = Annotated[str, typer.Option("--collective", "-c", help="Collective.")]
Phase = Annotated[
    int | None,
    typer.Option("--phase", min=0, help="Only this phase of the schedule, counted from 0."),
]
Rate = Annotated[str, typer.Option("--rate", help="Bandwidth of every link.")]
Latency = Annotated[str, typer.Option("--latency", help="Latency of every link.")]
Write = Annotated[
    Path | None, typer.Option("--out", "-o", metavar="FILE", help="Output file: a platform (TOML).")
]
Draw = Annotated[
    Path | None,
    typer.Option("--draw", metavar="FILE", help="Write a drawing (SVG, PNG, PDF)."),
]


@app.command("map")
def map_(
    algorithm: Algorithm,
    size: Mesh = "4x4",
    wires: Wires = 1,
    muxes: Muxes = "any",
    collective: Collective = "all_reduce",
    phase: Phase = None,
    copies: Annotated[
        int, typer.Option("--copies", min=1, max=4, help="Parallel links per flow.")
    ] = 1,
    method: Annotated[str, typer.Option("--method", help="exact, greedy or auto.")] = "auto",
    limit: Annotated[
        str, typer.Option("--time-limit", help="Time limit of the solver (its deterministic time).")
    ] = "20 s",
    fill: Annotated[
        bool,
        typer.Option("--fill/--no-fill", help="Use idle wires and ports for more links."),
    ] = True,
    rate: Rate = "68 GB/s",
    latency: Latency = "12 ns",
    to: Write = None,
    draw: Draw = None,
) -> None:
    """Find the configuration that dedicates links to the most flows of an algorithm.

    Lists dedicated, shared and unplaced flows. --out writes a platform for
    `tutti run FILE --platform PLATFORM`.

    \b
    Examples:
      tutti bypass map double_binary_tree:nccl --mesh 4x4
      tutti bypass map mirrored_ring:4x4,bidirectional --draw out/rings.svg
      tutti bypass map ring:8x8 --mesh 8x8 --copies 2 --out out/ring.toml
      tutti bypass map double_binary_tree:nccl --muxes own --method greedy
    """
    mesh = mesh_of(size, wires, muxes)
    schedule = schedule_of(algorithm, collective, mesh, phase)
    with Progress("mapping"):
        flows = flows_of(schedule) * copies
        mapping = map_flows(mesh, flows, method, limit, fill=fill)  # type: ignore[arg-type] # it refuses others
    show(mapping, _title(algorithm, collective, phase))
    if mapping.unplaced:
        remark("a platform of this configuration cannot run the algorithm: flows have no route")
    write(mapping, rate, latency, to, draw)


@app.command("search")
def search_(
    algorithm: Algorithm,
    size: Mesh = "4x4",
    wires: Wires = 1,
    muxes: Muxes = "any",
    collective: Collective = "all_reduce",
    phase: Phase = None,
    payload: Annotated[
        str,
        typer.Option(
            "--size", "-s", metavar="SIZE", help="Size of the collective whose time is minimised."
        ),
    ] = "64 KiB",
    trials: Annotated[
        int, typer.Option("--trials", min=2, help="Number of configurations to simulate.")
    ] = 200,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the random order.")] = 0,
    rate: Rate = "68 GB/s",
    latency: Latency = "12 ns",
    to: Write = None,
    draw: Draw = None,
) -> None:
    """Search for a configuration that is faster than the one of `map`.

    Places the flows in random orders and simulates each configuration with packets of 256 B. The
    same seed gives the same result.

    \b
    Examples:
      tutti bypass search double_binary_tree:nccl --trials 50
      tutti bypass search double_binary_tree:nccl --mesh 8x8 --trials 20 \\
        --out out/found.toml
    """
    mesh = mesh_of(size, wires, muxes)
    schedule = schedule_of(algorithm, collective, mesh, phase)
    with Progress("searching", work=trials, total=trials) as progress:
        found = improve(
            mesh,
            schedule,
            size=payload,
            rate=rate,
            latency=latency,
            trials=trials,
            seed=seed,
            done=lambda count, work: progress.reach(count, work, count),
        )
    show(found.best, _title(algorithm, collective, phase))
    saved = found.start_time.ps / found.best_time.ps - 1
    record(
        size_bytes=Size.of_any(payload).bytes,
        time_ps=found.best_time.ps,
        start_time_ps=found.start_time.ps,
        trials=found.trials,
    )
    out().print(
        f"{payload}: {found.best_time}; with the configuration of `map` {found.start_time} "
        f"({format_share(saved)} longer); {plural(found.trials, 'configuration')} simulated",
        markup=False,
    )
    write(found.best, rate, latency, to, draw)


@app.command("draw")
def draw_(
    notation: Annotated[
        str,
        typer.Argument(
            metavar="NOTATION",
            help="A configuration, such as 4x4:mesh,0=>3.",
            show_default=False,
        ),
    ],
    to: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="Output file: .svg, .png or .pdf.")
    ] = Path("out/bypass.svg"),
) -> None:
    """Draw a configuration of bypass links.

    \b
    Examples:
      tutti bypass draw 4x4:mesh,0=3,12=15
      tutti bypass draw '4x4,wires=2,muxes=axis:0-1,0=>3@1' -o out/two.svg
    """
    family = "bypass:" + notation.removeprefix("bypass:")
    Topology.build(
        family, links=2 * [{"rate": "68 GB/s", "latency": "12 ns"}]
    )  # validates the notation
    head, _, links = family.removeprefix("bypass:").partition(":")
    size, *words = (word.strip() for word in head.split(","))
    given = dict(word.split("=", 1) for word in words if "=" in word)
    mesh = mesh_of(size, int(given.get("wires", 1)), given.get("muxes", "any"))
    _draw(mesh.configure(links), to)


@app.command("run")
def run_(
    algorithm: Algorithm,
    size: Mesh = "4x4",
    wires: Wires = 1,
    muxes: Muxes = "any",
    collective: Collective = "all_reduce",
    payload: Annotated[
        list[str] | None,
        typer.Option(
            "--size", "-s", metavar="SIZE", help="Size of the collective; may be repeated."
        ),
    ] = None,
    copies: Annotated[
        int, typer.Option("--copies", min=1, max=4, help="Parallel links per flow.")
    ] = 1,
    switch: Annotated[
        str, typer.Option("--switch", help="Time to reconfigure the mesh.")
    ] = "100 ns",
    rate: Rate = "68 GB/s",
    latency: Latency = "12 ns",
    verify: options.Verify = True,
) -> None:
    """Time an algorithm packet by packet, on the plain mesh and with bypass links.

    The links are configured once. If the schedule has phases, the table also shows the time with
    links reconfigured for each phase: all ranks then wait for the last one and for the switch.

    \b
    Examples:
      tutti bypass run double_binary_tree:nccl,phased,4 -s 64KiB -s 2MiB
      tutti bypass run ring:4x4 --copies 2
    """
    mesh = mesh_of(size, wires, muxes)
    schedule = schedule_of(algorithm, collective, mesh, None)
    links = {"rate": rate, "latency": latency}
    with Progress("mapping"):
        plans = _plans(schedule, mesh, copies)
    sizes = [Size.of_any(one) for one in payload or ["16 KiB", "1 MiB"]]
    rows = []
    total = len(sizes) * (1 + len(plans))
    with Progress("simulating", work=total, total=total) as progress:
        for nbytes in sizes:
            alone = _on_mesh(schedule, mesh.side, nbytes, links, verify=verify)
            rows.append((str(nbytes), _ALONE, alone))
            for name, plan in plans.items():
                ran = plan.run(nbytes, switch=switch, verify=verify, **links)
                rows.append((str(nbytes), name, ran))
                progress.advance(1, len(rows))
    record_table("results", _rows(rows))
    out().print(_speedups(rows))
    for reason in {ran.not_verified for *_, ran in rows} - {None}:
        remark(f"{schedule.name} is not verified: {reason}")
    remark("speedup: relative to the mesh in dimension order; packets are 1/32 chunk, or a flit")


def _draw(configuration: BypassConfiguration, to: Path, title: str | None = None) -> None:
    written(lambda path: configuration.draw(path, title=title), to)
    wrote(to)


def mesh_of(size: str, wires: int, muxes: str) -> BypassMesh:
    """Returns the mesh that the options describe.

    Raises:
        ConfigError: The size is malformed.
        BypassError: The mesh is not supported.
    """
    found = re.fullmatch(r"([0-9]{1,4})x([0-9]{1,4})", size)
    if not found or found[1] != found[2]:
        raise mistake(
            "is not the size of a mesh",
            source="--mesh",
            value=shown(size),
            expected="equal numbers of rows and columns, such as 4x4",
        )
    return BypassMesh(int(found[1]), wires, muxes)  # type: ignore[arg-type] # it refuses others


def schedule_of(algorithm: str, collective: str, mesh: BypassMesh, phase: int | None) -> Schedule:
    """Returns the algorithm's schedule with one rank per node, or one phase of it.

    Raises:
        AlgorithmError: It is unknown, or does not support the collective or the rank count.
        ScheduleError: The schedule has no such phase.
    """
    laid_out = schedule(algorithm, collective=collective, ranks=mesh.nodes)
    return laid_out if phase is None else laid_out.phase(phase)


def _title(algorithm: str, collective: str, phase: int | None) -> str:
    return f"{collective} by {algorithm}{'' if phase is None else f', phase {phase}'}"


def show(mapping: Mapping, title: str) -> None:
    """Prints the placed and the unplaced flows, and the links used."""
    network, console = mapping.configuration, out()
    record(
        mesh=mapping.mesh.notation,
        flows=len(mapping.flows),
        dedicated_flows=len(mapping.dedicated),
        dedicated_flows_bound=mapping.bound,
        optimal=mapping.optimal,
        method=mapping.method,
        live_links=len(network.links),
        used_segments=network.used_segments,
        total_segments=network.total_segments,
        most_flows_per_link=mapping.most_loaded,
        hops=mapping.hops,
    )
    kinds = ("dedicated", "lent", "shared", "unplaced")
    record_table("flows", ({"kind": kind, "source": source, "target": target}
                           for kind in kinds
                           for source, target in getattr(mapping, kind)))  # fmt: skip
    console.print(f"{title}: {plural(len(mapping.flows), 'flow')} on {mapping.mesh.notation}")
    console.print(_table(mapping))
    console.print(verdict(mapping), markup=False)
    console.print(
        f"{plural(len(network.links), 'live link')}, {network.used_segments:,} of "
        f"{network.total_segments:,} segments; at most "
        f"{counted(f'{mapping.most_loaded:.3g}', 'flow')} per link, {plural(mapping.hops, 'hop')}",
        markup=False,
    )


def verdict(mapping: Mapping) -> str:
    """Returns a sentence on how far the number of dedicated flows is from the optimum."""
    if mapping.optimal:
        return "verified optimal: no configuration dedicates links to more flows"
    how = "found by search" if mapping.method == "exact" else "found by the greedy method"
    return f"{how}; upper bound on flows with dedicated links: {mapping.bound:,}"


_MOST_NAMED = 40
"""Flows listed per row; the notation and the Python API have all."""


def _table(mapping: Mapping) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), expand=True)
    table.add_column("flows", no_wrap=True)
    table.add_column("count", justify="right", no_wrap=True)
    table.add_column("source > destination", ratio=1)
    rows = {
        "dedicated": mapping.dedicated,
        "  lent": mapping.lent,
        "shared": mapping.shared,
        "unplaced": mapping.unplaced,
    }
    for name, flows in rows.items():
        if flows or not name.startswith(" "):
            table.add_row(name, f"{len(flows):,}", _named(flows))
    return table


def _named(flows: tuple[Flow, ...]) -> str:
    named = [f"{source}>{destination}" for source, destination in flows[:_MOST_NAMED]]
    more = len(flows) - len(named)
    return " ".join(named) + (f" ... {more:,} more" if more else "")


def write(mapping: Mapping, rate: str, latency: str, to: Path | None, draw: Path | None) -> None:
    """Writes the platform and the drawing if their paths are given."""
    if to is not None:
        written(write_platform, to, mapping, rate=rate, latency=latency)
        wrote(to)
    if draw is not None:
        _draw(mapping.configuration, draw, f"bypass:{mapping.mesh.notation}")


# --- run ------------------------------------------------------------------------------------------

_ALONE = "mesh"


def _on_mesh(
    schedule: Schedule, side: int, nbytes: Size, links: dict[str, str], *, verify: bool
) -> PhasedRun:
    """Runs all phases on a mesh without bypass wires, in dimension order."""
    mesh = Topology.build(f"mesh:{side}x{side}", rate=links["rate"], latency=links["latency"])
    return run_on(schedule, [mesh.routes("dimension_order")], nbytes, verify=verify)


def _speedups(rows: list[tuple[str, str, PhasedRun]]) -> Table:
    """Returns the times of each payload on the plain mesh and with bypass links."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in ("payload", "links"):
        table.add_column(name, no_wrap=True)
    for name in ("time", "algbw", "speedup"):
        table.add_column(name, justify="right", no_wrap=True)
    for row, (payload, name, ran) in zip(_rows(rows), rows, strict=True):
        gain = f"{row['speedup']:.2f}"
        table.add_row(payload, name, str(ran.time), format_rate(ran.algbw), gain)
    return table


def _rows(rows: list[tuple[str, str, PhasedRun]]) -> list[dict[str, Any]]:
    alone = {payload: ran for payload, name, ran in rows if name == _ALONE}
    return [
        {
            "size_bytes": Size.of_any(payload).bytes,
            "links": name,
            "time_ps": ran.completion_ps,
            "algbw_bytes_per_s": ran.algbw,
            "speedup": alone[payload].completion_ps / ran.completion_ps,
        }
        for payload, name, ran in rows
    ]


def _plans(schedule: Schedule, mesh: BypassMesh, copies: int) -> dict[str, MappedSchedule]:
    """Returns the plan configured once and, if there are phases, the plan switched per phase."""
    plans = {"bypass, configured once": plan(schedule, mesh, copies=copies)}
    if schedule.phases > 1:
        plans["bypass, for each phase"] = plan(schedule, mesh, switched=True, copies=copies)
    return plans


app.command("endpoints")(endpoints)

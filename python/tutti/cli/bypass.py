"""`tutti bypass`: which bypass links to make live for an algorithm, and drawings of them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from tutti.bypass import BypassMesh, flows_of, map_flows
from tutti.bypass.improve import improve
from tutti.bypass.plans import plan, run_on
from tutti.bypass.platform_file import write_platform
from tutti.cli import options
from tutti.cli.console import out, remark, wrote
from tutti.cli.files import written
from tutti.cli.progress import Progress
from tutti.files.mistakes import mistake, shown
from tutti.report.quantity import format_rate, format_share, plural
from tutti.schedule import schedule
from tutti.topology import Topology
from tutti.units import Size

if TYPE_CHECKING:
    from tutti.bypass import BypassConfiguration, Flow, Mapping
    from tutti.bypass.plans import MappedSchedule
    from tutti.phases import PhasedRun
    from tutti.schedule import Schedule

app = options.group("Package networks whose links are chosen: the links that an algorithm needs.")

Algorithm = Annotated[
    str,
    typer.Argument(metavar="ALGORITHM", help="An algorithm as NAME[:ARG].", show_default=False),
]
Mesh = Annotated[str, typer.Option("--size", metavar="KxK", help="The mesh.")]
Wires = Annotated[
    int, typer.Option("--wires", min=0, help="Bypass wires of each line, in each direction.")
]
Muxes = Annotated[
    str, typer.Option("--muxes", help="What a port can take: own, axis, sign or any.")
]
Collective = Annotated[str, typer.Option("--collective", "-c", help="What it is to perform.")]
Phase = Annotated[
    int | None,
    typer.Option("--phase", min=0, help="Only this phase of its schedule, counted from 0."),
]
Rate = Annotated[str, typer.Option("--rate", help="Of every link.")]
Latency = Annotated[str, typer.Option("--latency", help="Of every link.")]
Write = Annotated[
    Path | None, typer.Option("--out", "-o", metavar="FILE", help="Write a platform (TOML).")
]
Draw = Annotated[
    Path | None, typer.Option("--draw", metavar="FILE", help="Draw it (.svg, .png or .pdf).")
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
        int, typer.Option("--copies", min=1, max=4, help="Links side by side for each flow.")
    ] = 1,
    method: Annotated[str, typer.Option("--method", help="exact, greedy or auto.")] = "auto",
    limit: Annotated[
        str, typer.Option("--limit", help="How long to search, by the solver's own clock.")
    ] = "20 s",
    fill: Annotated[
        bool, typer.Option("--fill/--no-fill", help="Whether idle wires and ports are used, too.")
    ] = True,
    rate: Rate = "68 GB/s",
    latency: Latency = "12 ns",
    to: Write = None,
    draw: Draw = None,
) -> None:
    """Find the configuration in which the most flows of an algorithm have links of their own.

    Tells which flows do, which share, and which find no way at all. The platform that --out writes
    is for `tutti run FILE --platform PLATFORM`.

    \b
    Examples:
      tutti bypass map double_binary_tree:nccl --size 4x4
      tutti bypass map mirrored_ring:4x4,bidirectional --draw out/rings.svg
      tutti bypass map ring:8x8 --size 8x8 --copies 2 --out out/ring.toml
      tutti bypass map double_binary_tree:nccl --muxes own --method greedy
    """
    mesh = mesh_of(size, wires, muxes)
    schedule = schedule_of(algorithm, collective, mesh, phase)
    with Progress("mapping"):
        flows = flows_of(schedule) * copies
        mapping = map_flows(mesh, flows, method, limit, fill=fill)  # type: ignore[arg-type] # it refuses others
    show(mapping, _title(algorithm, collective, phase))
    if mapping.unplaced:
        remark("a platform of this configuration cannot run the algorithm: flows have no way")
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
        str, typer.Option("--payload", help="Of the collective whose time is shortened.")
    ] = "64 KiB",
    trials: Annotated[
        int, typer.Option("--trials", min=2, help="How many configurations to run.")
    ] = 200,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of what is drawn.")] = 0,
    rate: Rate = "68 GB/s",
    latency: Latency = "12 ns",
    to: Write = None,
    draw: Draw = None,
) -> None:
    """Search a configuration on which an algorithm takes less time than on that of `map`.

    Flows are placed in other orders again and again, and each configuration is run with packets of
    256 B. The same seed finds the same.

    \b
    Examples:
      tutti bypass search double_binary_tree:nccl --trials 50
      tutti bypass search double_binary_tree:nccl --size 8x8 --trials 20 --out out/found.toml
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
    out().print(
        f"{payload} take {found.best_time}, with the mapping {found.start_time} "
        f"({format_share(saved)} longer); {found.trials:,} configurations run",
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
        Path, typer.Option("--out", "-o", metavar="FILE", help="The drawing (.svg, .png or .pdf).")
    ] = Path("out/bypass.svg"),
) -> None:
    """Draw a configuration of bypass links, which is also read through.

    \b
    Examples:
      tutti bypass draw 4x4:mesh,0=3,12=15
      tutti bypass draw '4x4,wires=2,muxes=axis:0-1,0=>3@1' -o out/two.svg
    """
    family = "bypass:" + notation.removeprefix("bypass:")
    Topology.build(
        family, links=2 * [{"rate": "68 GB/s", "latency": "12 ns"}]
    )  # says what is wrong
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
    mesh = mesh_of(size, wires, muxes)
    schedule = schedule_of(algorithm, collective, mesh, None)
    links = {"rate": rate, "latency": latency}
    with Progress("mapping"):
        plans = _plans(schedule, mesh, copies)
    rows = [
        (str(nbytes), name, ran)
        for nbytes in map(Size.of_any, payload or ["16 KiB", "1 MiB"])
        for name, ran in {
            _ALONE: _on_mesh(schedule, mesh.side, nbytes, links, verify=verify),
            **{
                name: plan.run(nbytes, switch=switch, verify=verify, **links)
                for name, plan in plans.items()
            },
        }.items()
    ]
    out().print(_speedups(rows))
    for reason in {ran.not_verified for *_, ran in rows} - {None}:
        remark(f"{schedule.name} is not verified: {reason}")
    remark("speedup: over the mesh in dimension order; a packet is a 32nd of a chunk, or a flit")


def _draw(configuration: BypassConfiguration, to: Path, title: str | None = None) -> None:
    written(lambda path: configuration.draw(path, title=title), to)
    wrote(to)


def mesh_of(size: str, wires: int, muxes: str) -> BypassMesh:
    """The mesh that options describe.

    Raises:
        ConfigError: the size is none.
        BypassError: there is no such mesh.
    """
    found = re.fullmatch(r"([0-9]{1,4})x([0-9]{1,4})", size)
    if not found or found[1] != found[2]:
        raise mistake(
            "is no size of a mesh",
            source="--size",
            value=shown(size),
            expected="as many rows as columns, such as 4x4",
        )
    return BypassMesh(int(found[1]), wires, muxes)  # type: ignore[arg-type] # it refuses others


def schedule_of(algorithm: str, collective: str, mesh: BypassMesh, phase: int | None) -> Schedule:
    """The algorithm laid out for a rank on each node, or one phase of it.

    Raises:
        AlgorithmError: there is none, or it does not perform this on so many ranks.
        ScheduleError: there is no such phase.
    """
    laid_out = schedule(algorithm, collective=collective, ranks=mesh.nodes)
    return laid_out if phase is None else laid_out.phase(phase)


def _title(algorithm: str, collective: str, phase: int | None) -> str:
    return f"{collective} by {algorithm}{'' if phase is None else f', phase {phase}'}"


def show(mapping: Mapping, title: str) -> None:
    """What was placed and what could not be, as a table."""
    network, console = mapping.configuration, out()
    console.print(f"{title}: {plural(len(mapping.flows), 'flow')} on {mapping.mesh.notation}")
    console.print(_table(mapping))
    console.print(verdict(mapping), markup=False)
    console.print(
        f"{plural(len(network.links), 'live link')}, {network.used_segments:,} of "
        f"{network.total_segments:,} segments; at most {mapping.most_loaded:.3g} flows to a link, "
        f"{mapping.hops:,} hops",
        markup=False,
    )


def verdict(mapping: Mapping) -> str:
    """How good the number of dedicated flows is, in words."""
    if mapping.optimal:
        return "proved: no configuration has links of their own for more flows"
    how = "found by search" if mapping.method == "exact" else "found at a short look"
    return f"{how}; no configuration has links of their own for more than {mapping.bound:,} flows"


_MOST_NAMED = 40
"""Flows of a row; the notation and Python have all."""


def _table(mapping: Mapping) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), expand=True)
    table.add_column("flows", no_wrap=True)
    table.add_column("", justify="right", no_wrap=True)
    table.add_column("which", ratio=1)
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
    return " ".join(named) + (f" and {more:,} more" if more else "")


def write(mapping: Mapping, rate: str, latency: str, to: Path | None, draw: Path | None) -> None:
    """Writes the platform and the drawing, where they are asked for."""
    if to is not None:
        written(write_platform, to, mapping, rate=rate, latency=latency)
        wrote(to)
    if draw is not None:
        _draw(mapping.configuration, draw, f"bypass:{mapping.mesh.notation}")


# --- run ------------------------------------------------------------------------------------------

_ALONE = "mesh alone"


def _on_mesh(
    schedule: Schedule, side: int, nbytes: Size, links: dict[str, str], *, verify: bool
) -> PhasedRun:
    """All phases on a mesh without wires, in dimension order."""
    mesh = Topology.build(f"mesh:{side}x{side}", rate=links["rate"], latency=links["latency"])
    return run_on(schedule, [mesh.routes("dimension_order")], nbytes, verify=verify)


def _speedups(rows: list[tuple[str, str, PhasedRun]]) -> Table:
    """Each payload on the mesh alone and with wires: payload, links, run."""
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


def _plans(schedule: Schedule, mesh: BypassMesh, copies: int) -> dict[str, MappedSchedule]:
    """Configured once, and for each phase where there are some."""
    plans = {"bypass, configured once": plan(schedule, mesh, copies=copies)}
    if schedule.phases > 1:
        plans["bypass, for each phase"] = plan(schedule, mesh, switched=True, copies=copies)
    return plans

"""`tutti noc`: flit-level simulation of networks, at one load or several."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from tutti import _core
from tutti.base.errors import ExitCode
from tutti.base.files.mistakes import mistake
from tutti.cli import noc_smart, options
from tutti.cli.console import out, record, record_table, remark, wrote
from tutti.cli.files import folder, written
from tutti.cli.grouped import grouped
from tutti.cli.loads import load_values
from tutti.cli.noc_options import Given, NetworkOptions, network
from tutti.cli.noc_shown import present, refuse_unstable
from tutti.cli.progress import Progress
from tutti.formats.booksim import network as booksim
from tutti.networks.flit import Trace, patterns, routings, run, saturation, sweep
from tutti.networks.flit.files.network_file import resolve_noc
from tutti.networks.flit.network import classes_of, longest_of
from tutti.networks.flit.view.load import load_view
from tutti.networks.flit.view.run import run_view
from tutti.networks.mesh import designs
from tutti.networks.mesh.files import resolve_smart
from tutti.view.quantity import plural

if TYPE_CHECKING:
    from tutti.networks.flit import NocRun, Saturation
    from tutti.networks.flit.files.network_file import Noc

app = options.group("Simulate networks flit by flit: latency against offered load, and saturation.")

_LOADS = "0.05:0.5:0.05"
_TOLERANCE = 0.01

MeshFile = Annotated[
    Path,
    typer.Argument(metavar="FILE", help="The network file (TOML).", show_default=False),
]


@dataclass
class RunOptions:
    """The load of a run."""

    rate: Annotated[
        float | None,
        typer.Option(
            "--rate",
            help="Offered load in flits per node and cycle; broadcasts and multicasts per source "
            "and cycle; reductions per cycle.",
        ),
    ] = None


@dataclass
class SweepOptions:
    """The loads of a sweep, and the search for the saturation load."""

    loads: Annotated[
        str | None,
        typer.Option(
            "--loads",
            metavar="LOADS",
            help="Offered loads: a list 0.1,0.2,0.4 or a range FROM:TO:STEP, in flits per node and "
            "cycle (with a table [mesh], in the unit of the first traffic's rate). Default: "
            "0.05:0.5:0.05; with a table [mesh], twelve loads up to the ideal throughput.",
        ),
    ] = None
    search: Annotated[
        bool,
        typer.Option("--saturation/--no-saturation", help="Search for the saturation load."),
    ] = True
    tolerance: Annotated[
        float | None,
        typer.Option(
            "--tolerance",
            help="Tolerance of the saturation load, in the unit of the loads. Default: 0.01; with "
            "a table [mesh], 2 % of the largest load.",
        ),
    ] = None
    threads: options.Threads = 0


@app.command("list")
def list_() -> None:
    """List routings, traffic patterns, allocators and designs of single-cycle multi-hop meshes.

    \b
    Examples:
      tutti noc list
    """
    for title, entries in (("routing", routings()), ("pattern", patterns())):
        facts = []
        for entry in entries:
            argument = entry.argument
            colon = ":" if argument and not argument.startswith("[") else ""
            name = f"{entry.name}{colon}{argument.replace('[', '[:', 1) if not colon else argument}"
            facts.append((name, entry.summary))
            record_table(f"{title}s", [{"name": name, "summary": entry.summary}])
        out().print(title, style="bold")
        out().print(_listed(facts))
    record(allocators=_core.flit_allocators(), mesh_designs=designs())
    out().print("allocator", style="bold")
    out().print(f"  {', '.join(_core.flit_allocators())}", markup=False)
    out().print("single-cycle multi-hop mesh", style="bold")
    out().print(_listed(list(designs().items())))


def _listed(facts: list[tuple[str, str]]) -> Table:
    """Returns a table of names and descriptions."""
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 2))
    table.add_column(overflow="fold", max_width=34)
    table.add_column()
    for name, text in facts:
        table.add_row(Text(name), Text(text))
    return table


@app.command("run")
@grouped
def run_(given: NetworkOptions, at: RunOptions) -> None:
    """Run a network at one load: latency, throughput, utilisation, occupancy and causes of stalls.

    Writes report.html, results.parquet, channels.parquet and occupancy.parquet into the output
    folder, and energy.parquet if the file names a technology. If the network saturates, latency is
    undefined. If it deadlocks, nothing is measured. Both exit with code 3. A file with a table
    [mesh] describes a single-cycle multi-hop mesh.

    Options override keys of the file. Without a file, they define the network, and the output names
    the defaults. If neither gives a load, the command runs `tutti noc sweep`.

    \b
    Examples:
      tutti noc run noc.toml
      tutti noc run --mesh 8x8 --rate 0.2
      tutti noc run --torus 4x4x4 --rate 0.1 --traffic tornado --packet 4 \\
        --vcs 8 --buffer 4 --set router.routing_delay=1
      tutti noc run --mesh 8x8 --design sfo_greedy --rate 0.004
      tutti noc run noc.toml --set traffic.rate=0.3 --set router.vcs=8 -o out
    """
    found = network(given, at.rate)
    if given.file is None and not found.has_rate:
        remark("no load is given (--rate): sweeps the load")
        _sweep(found, SweepOptions())
        return
    if found.is_smart:
        noc_smart.run_mesh(resolve_smart(found.tables, source=found.source), found.name)
        return
    with Progress("building the network"):
        read = resolve_noc(found.tables, source=found.source, folder=found.folder)
        remarks = _remarks(read)
    folder(read.output, extra="reports")
    started = time.monotonic()
    with Progress("running"):
        result = run(read.network, read.traffic, read.plan)
    remark(f"{result.cycles:,} cycles in {time.monotonic() - started:.1f} s")
    view = run_view(result, technology=read.technology, title=read.title, remarks=remarks)
    present(view, read.output)
    refuse_unstable(result.ending, found.name)


@app.command("sweep")
@grouped
def sweep_(given: NetworkOptions, of: SweepOptions) -> None:
    """Run a network at several loads in parallel: latency against load, and the saturation load.

    Writes results.parquet, results.csv, latency.svg and report.html into the output folder.
    The loads replace the rate in the file; traffic classes keep their proportions. With a table
    [mesh], loads are rates of the first traffic. A sweep that deadlocks at every load exits with
    code 3. Options override keys of the file, or define the network without a file.

    \b
    Examples:
      tutti noc sweep noc.toml
      tutti noc sweep --mesh 4x4 --traffic transpose --loads 0.1,0.2 --no-saturation
      tutti noc sweep noc.toml --loads 0.05:0.45:0.05 \\
        --set topology.routing=valiant
      tutti noc sweep noc.toml --loads 0.1,0.2 --no-saturation
    """
    _sweep(network(given), of)


def _sweep(found: Given, of: SweepOptions) -> None:
    """Runs a network at several loads, and searches for the saturation load."""
    values = load_values(of.loads or _LOADS)
    tolerance = of.tolerance
    if tolerance is not None and (not tolerance > 0 or not math.isfinite(tolerance)):
        raise mistake("invalid tolerance", source="--tolerance", value=str(tolerance),
                      expected="a number above 0, such as 0.01")  # fmt: skip
    tables = found.at(values[0])
    if found.is_smart:
        read = resolve_smart(tables, source=found.source)
        noc_smart.sweep_mesh(
            read,
            values if of.loads else None,
            name=found.name,
            search=of.search,
            tolerance=tolerance,
            threads=of.threads,
        )
        return
    with Progress("building the network"):
        read_noc = resolve_noc(tables, source=found.source, folder=found.folder)
        remarks = _remarks(read_noc)
    folder(read_noc.output, extra="reports")
    tolerance = (_TOLERANCE if of.tolerance is None else of.tolerance) if of.search else None
    runs = _curve(read_noc, values, remarks, tolerance, of.threads)
    _refuse_deadlocked(runs, found.name)


def _curve(
    read: Noc, values: list[float], remarks: list[str], tolerance: float | None, threads: int
) -> list[NocRun]:
    """Runs, shows and writes a sweep; with a tolerance, also searches the saturation load."""
    runs, interrupted = _swept(read, values, threads)
    found = None
    if tolerance is not None and not interrupted and runs:
        found, interrupted = _searched(read, runs, tolerance, threads)
    if runs:
        present(load_view(runs, found, title=read.title, remarks=remarks), read.output)
    if interrupted:
        remark(f"interrupted: {len(runs):,} of {len(values):,} loads finished")
        raise typer.Exit(int(ExitCode.INTERRUPTED))
    return runs


@app.command("watch")
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
    noc_smart.watch_file(file, cycles, start, changes or (), to)


@app.command("from-booksim")
def from_booksim(
    config: Annotated[
        Path,
        typer.Argument(
            metavar="CONFIG", help="A BookSim 2 configuration file.", show_default=False
        ),
    ],
    changes: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="KEY=VALUE",
            help="BookSim keys to override.",
            show_default=False,
        ),
    ] = None,
    loads: Annotated[
        str | None,
        typer.Option(
            "--loads",
            metavar="LOADS",
            help="Offered loads in flits per node and cycle, as in `sweep`; replaces the rate.",
        ),
    ] = None,
    write: Annotated[
        Path | None,
        typer.Option(
            "--write", metavar="FILE", help="Write a tutti file (TOML) instead of running."
        ),
    ] = None,
    search: Annotated[
        bool,
        typer.Option(
            "--saturation/--no-saturation", help="Search for the saturation load of --loads."
        ),
    ] = True,
    threads: options.Threads = 0,
    to: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FOLDER", help="Output folder. Default: out/noc."),
    ] = None,
) -> None:
    """Run a BookSim 2 configuration file, or convert it to a tutti file.

    Writes the files of `run` into the output folder; with --loads, those of `sweep`. Keys that
    do not affect results are listed. Keys without a counterpart are errors. If the network
    saturates or deadlocks, latency is undefined; a run at one load then exits with code 3.

    \b
    Examples:
      tutti noc from-booksim examples/08_latency_under_load/mesh.cfg num_vcs=8
      tutti noc from-booksim examples/08_latency_under_load/mesh.cfg \\
        traffic=transpose --loads 0.05:0.4:0.05
      tutti noc from-booksim examples/08_latency_under_load/mesh.cfg \\
        --write out/mesh.toml
    """
    values = None if loads is None else load_values(loads)
    found = booksim.load(config, changes or ())
    if found.not_honoured:
        remark(f"ignored keys, without effect on results: {', '.join(found.not_honoured)}")
    for text in found.remarks:
        remark(text)
    if write is not None:
        written(booksim.write, write, found)
        wrote(write)
        if graph := found.tables["topology"].get("file"):
            wrote(write.parent / graph)
        return
    read = found.noc if to is None else replace(found.noc, output=to)
    remarks = [*found.remarks, *_remarks(read)]
    folder(read.output, extra="reports")
    if values is None:
        with Progress("running"):
            result = run(read.network, read.traffic, read.plan)
        present(run_view(result, title=read.title, remarks=remarks), read.output)
        refuse_unstable(result.ending, config)
        return
    runs = _curve(read, values, remarks, _TOLERANCE if search else None, threads)
    _refuse_deadlocked(runs, config)


def _refuse_deadlocked(runs: list[NocRun], source: object) -> None:
    """Raises the error of a deadlocked run if every load deadlocked."""
    if all(run.ending == "deadlocked" for run in runs):
        refuse_unstable("deadlocked", source)


def _swept(read: Noc, values: list[float], threads: int) -> tuple[list[NocRun], bool]:
    """Returns the finished runs, and whether Ctrl-C interrupted the sweep."""
    if isinstance(read.traffic, Trace):
        raise mistake(
            "a trace has a fixed load and cannot be swept", source=read.source,
            key="traffic.trace", expected="generated traffic",
            hint="replay the trace with `tutti noc run`",
        )  # fmt: skip
    runs: list[NocRun] = []
    # The time of a run grows with its load.
    work = {value: 1 + round(100 * value) for value in values}
    started = time.monotonic()
    with Progress(
        "loads", work=sum(work.values()), total=len(values), handles_interrupts=True
    ) as progress:

        def done(run: NocRun) -> None:
            runs.append(run)
            progress.advance(1 + round(100 * (run.load or 0)), len(runs))

        try:
            sweep(read.network, read.traffic, values, read.plan, threads=threads, done=done)
        except KeyboardInterrupt:
            return sorted(runs, key=lambda run: run.load or 0), True
    _print_duration("", runs, started)
    return sorted(runs, key=lambda run: run.load or 0), False


def _searched(
    read: Noc, runs: list[NocRun], tolerance: float, threads: int
) -> tuple[Saturation | None, bool]:
    """Returns the saturation load, and whether Ctrl-C interrupted the search."""
    if isinstance(read.traffic, Trace):
        return None, False
    most = max(1.0, *(run.load or 0 for run in runs))
    # Each round of three runs divides the interval by four.
    rounds = max(1, math.ceil(math.log(most / tolerance, 4)))
    more: list[NocRun] = []
    started = time.monotonic()
    with Progress(
        "saturation", work=3 * rounds, total=3 * rounds, handles_interrupts=True
    ) as progress:

        def done(run: NocRun) -> None:
            more.append(run)
            progress.advance(1, len(more))

        try:
            found = saturation(
                read.network,
                read.traffic,
                read.plan,
                tolerance=tolerance,
                most=most,
                known=runs,
                threads=threads,
                done=done,
            )
        except KeyboardInterrupt:
            return None, True
    if more:
        _print_duration("saturation: ", more, started)
    return found, False


def _print_duration(name: str, runs: list[NocRun], started: float) -> None:
    loads = plural(len(runs), "load")
    total = sum(run.cycles for run in runs)
    remark(f"{name}{loads}, {total:,} cycles in {time.monotonic() - started:.1f} s")


def _remarks(read: Noc) -> list[str]:
    """Prints and returns the warnings about a network, before it is run."""
    found = read.network.remarks(classes_of(read.traffic), longest_of(read.traffic))
    for text in found:
        remark(text)
    return found

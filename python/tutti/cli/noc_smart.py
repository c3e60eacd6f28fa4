"""`tutti noc` on files of single-cycle multi-hop meshes."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import typer

from tutti.base.errors import ExitCode, TuttiError
from tutti.base.files.mistakes import mistake
from tutti.cli.console import out, record, remark, wrote
from tutti.cli.files import folder
from tutti.cli.noc_shown import present, refuse_unstable
from tutti.cli.progress import Progress
from tutti.networks import mesh as smart
from tutti.networks.errors import NocError
from tutti.networks.mesh.files import is_smart, load_smart
from tutti.networks.mesh.view.load import load_view
from tutti.networks.mesh.view.run import run_view
from tutti.networks.mesh.view.watch import write_watch
from tutti.view.quantity import plural

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tutti.networks.mesh import Run, Saturation
    from tutti.networks.mesh.files import Smart

_LOADS = 12
"""Default number of loads of a sweep, up to the ideal throughput."""


def run_mesh(read: Smart, name: str) -> None:
    """Runs a mesh at its rates, and writes the results; `name` is that of its file."""
    folder(read.output, extra="reports")
    started = time.monotonic()
    with Progress("running"):
        result = smart.run(read.mesh, read.traffic, read.plan)
    remark(f"{result.cycles:,} cycles in {time.monotonic() - started:.1f} s")
    present(run_view(result, title=read.title), read.output)
    refuse_unstable(result.ending, name)


def sweep_mesh(
    read: Smart,
    loads: Sequence[float] | None,
    *,
    name: str,
    search: bool,
    tolerance: float | None,
    threads: int,
) -> None:
    """Runs a mesh at several loads, and searches for the saturation load.

    Args:
        read: The mesh.
        loads: The loads; None for the default.
        name: The name of the file, for messages.
        search: Whether to search for the saturation load.
        tolerance: Tolerance of the saturation load; None for the default.
        threads: The number of threads.
    """
    values = _loads(read) if loads is None else list(loads)
    folder(read.output, extra="reports")
    runs, interrupted = _swept(read, values, threads)
    found = None
    if search and runs and not interrupted:
        found, interrupted = _searched(read, runs, tolerance, threads)
    if runs:
        present(load_view(runs, found, title=read.title), read.output)
    if interrupted:
        remark(f"interrupted: {len(runs):,} of {len(values):,} loads finished")
        raise typer.Exit(int(ExitCode.INTERRUPTED))
    if all(one.ending == "deadlocked" for one in runs):
        refuse_unstable("deadlocked", name)


def _loads(read: Smart) -> list[float]:
    """Returns the default loads: up to the ideal throughput, or 1 if the pattern has no bound."""
    bound = smart.ideal(read.mesh, read.traffic[0])
    most = min(bound.load, 1.0) if bound and read.traffic[0].kind != "reduction" else 1.0
    return [round(most * (index + 1) / _LOADS, 6) for index in range(_LOADS)]


def _swept(read: Smart, values: list[float], threads: int) -> tuple[list[Run], bool]:
    """Returns the finished runs, and whether Ctrl-C interrupted the sweep."""
    runs: list[Run] = []
    started = time.monotonic()
    with Progress(
        "loads", work=len(values), total=len(values), handles_interrupts=True
    ) as progress:

        def done(run: Run) -> None:
            runs.append(run)
            progress.advance(1, len(runs))

        try:
            smart.sweep(read.mesh, read.traffic, values, read.plan, threads=threads, done=done)
        except KeyboardInterrupt:
            return sorted(runs, key=lambda run: run.load), True
        except TuttiError as error:
            raise mistake(error.problem, source="--loads", hint=error.hint) from None
    total = sum(run.cycles for run in runs)
    remark(f"{plural(len(runs), 'load')}, {total:,} cycles in {time.monotonic() - started:.1f} s")
    return sorted(runs, key=lambda run: run.load), False


def _searched(
    read: Smart, runs: list[Run], tolerance: float | None, threads: int
) -> tuple[Saturation | None, bool]:
    """Returns the saturation loads, and whether Ctrl-C interrupted the search."""
    bound = smart.ideal(read.mesh, read.traffic[0])
    highest = max(run.load for run in runs)
    most = max(highest, bound.load if bound else highest)
    if read.traffic[0].kind != "reduction":
        most = min(most, max(1.0, highest))
    share = 0.02 if tolerance is None else min(tolerance / most, 1.0)
    started = time.monotonic()
    more: list[Run] = []
    with Progress("saturation", handles_interrupts=True) as progress:
        try:
            found = smart.saturation(
                read.mesh,
                read.traffic,
                read.plan,
                tolerance=share,
                most=most,
                known=runs,
                threads=threads,
                done=more.append,
            )
        except KeyboardInterrupt:
            return None, True
        progress.advance(0, len(more))
    if more:
        remark(f"saturation: {plural(len(more), 'load')} in {time.monotonic() - started:.1f} s")
    return found, False


def watch_file(
    file: Path, cycles: int, start: int, changes: Sequence[str], to: Path | None
) -> None:
    """Runs the first cycles of a file, and writes the page that animates them."""
    if not is_smart(file):
        raise mistake(
            "missing table `[mesh]`: only single-cycle multi-hop meshes can be watched",
            source=str(file), key="mesh",
            expected="a table `[mesh]`, as in examples/16_single_cycle_collectives",
        )  # fmt: skip
    read = load_smart(file, changes, output=to)
    folder(read.output, extra="reports")
    with Progress("running"):
        try:
            found = smart.watch(read.mesh, read.traffic, cycles, seed=read.plan.seed)
        except NocError as error:
            key = "mesh.design"
            raise mistake(error.problem, source=read.source, key=key, hint=error.hint) from None
    path = write_watch(read.output / "watch.html", found, read.title, start=start)
    flits = sum(event.what == "crossed" for event in found.events)
    messages = len({packet.message for packet in found.packets})
    record(cycles=cycles, messages=messages, paths=flits)
    counts = ((cycles, "cycle"), (messages, "message"), (flits, "path"))
    out().print(", ".join(plural(count, noun) for count, noun in counts), markup=False)
    wrote(path)

"""`tutti trace`: simulates traces of applications."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tutti import _core
from tutti.base.files.mistakes import mistake
from tutti.cli import options
from tutti.collectives.lowering import expand
from tutti.collectives.simulation import TraceRun, simulate_trace
from tutti.formats.formats import Options, head, named, recognised, stated
from tutti.platforms import platform as find
from tutti.study.console import out, record, record_table, remark
from tutti.study.progress import Progress
from tutti.workloads.operations import Trace

app = options.group("Simulate traces of applications.")

_SHOWN_RANKS = 16


@app.callback()
def _group() -> None:
    """Makes typer keep the group although it has a single command."""


@app.command("run")
def run(
    file: Annotated[Path, typer.Argument(help="A trace, such as a GOAL file.")],
    *,
    platform: Annotated[
        str, typer.Option("--platform", "-p", help="Name or file of a platform.")
    ] = "loggp_cluster",
    model: options.Model = None,
    from_: Annotated[
        str | None, typer.Option("--from", help="Format of the file. Default: recognised.")
    ] = None,
    algorithm: options.Expansion = None,
) -> None:
    """Simulate a trace on a platform: the completion time of each rank.

    \b
    Examples:
      tutti trace run app.goal  # exit code 2
      tutti trace run app.bin -p loggp_cluster --json  # exit code 2
    """
    with Progress("reading"):
        trace, losses = _read(file, from_)
    for loss in losses:
        remark(stated(loss))
    machine = find(platform, model=model)
    with Progress("simulating"):
        if algorithm is not None:
            trace = expand(trace, algorithm)
        result = simulate_trace(trace, machine)
    _show(trace, result, machine.name)


def _read(file: Path, name: str | None) -> tuple[Trace, tuple[str, ...]]:
    start = head(file)
    chosen = named(name, option="--from") if name else recognised(file, start, option="--from")
    if chosen.content != "trace":
        raise mistake(
            f"has the format {chosen.name}, which holds a {chosen.content.removesuffix('s')}",
            source=str(file),
            expected="a trace",
        )
    return chosen.reader()(file, Options())


def _show(trace: Trace, result: TraceRun, machine: str) -> None:
    operations = sum(len(of) for of in trace.ranks)
    record(
        trace=trace.name,
        platform=machine,
        ranks=len(trace.ranks),
        operations=operations,
        time_ps=result.completion_ps,
        messages=result.messages,
        message_bytes=result.message_bytes,
    )
    times = enumerate(zip(result.finish_ps, result.busy_ps, strict=True))
    record_table("ranks", ({"rank": rank, "finish_ps": finish, "busy_ps": busy}
                           for rank, (finish, busy) in times))  # fmt: skip
    console = out()
    console.print(
        f"{trace.name} on {machine}: {_core.format_time(result.completion_ps)}", markup=False
    )
    console.print(
        f"{len(trace.ranks):,} ranks, {operations:,} operations, {result.messages:,} messages, "
        f"{result.message_bytes:,} B"
    )
    for rank, finish in enumerate(result.finish_ps[:_SHOWN_RANKS]):
        busy = _core.format_time(result.busy_ps[rank])
        console.print(f"rank {rank}: {_core.format_time(finish)}, busy {busy}")
    if len(result.finish_ps) > _SHOWN_RANKS:
        console.print(f"and {len(result.finish_ps) - _SHOWN_RANKS:,} more ranks")

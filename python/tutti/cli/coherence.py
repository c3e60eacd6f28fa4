"""`tutti coherence`: runs parallel kernels on chips with coherent caches."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from tutti.base.errors import ExitCode
from tutti.base.files.mistakes import mistake, shown
from tutti.cli import options
from tutti.networks.coherence import flow_frame, kernels, miss_frame, run_all
from tutti.networks.coherence.files import load_coherence
from tutti.networks.coherence.frames import frame
from tutti.networks.coherence.view import text as words
from tutti.networks.coherence.view.page import write_coherence_report
from tutti.networks.mesh import designs
from tutti.study.console import out, record_table, remark, wrote
from tutti.study.files import folder, write_frames
from tutti.study.progress import Progress
from tutti.view.quantity import plural
from tutti.view.terminal import facts_table
from tutti.view.view import Fact

if TYPE_CHECKING:
    from tutti.networks.coherence import CoherenceRun
    from tutti.networks.coherence.files import Coherence

app = options.group("Run parallel kernels on a chip with coherent caches.")


@app.command("list")
def list_() -> None:
    """List the kernels, the protocols and the mesh designs.

    \b
    Examples:
      tutti coherence list
    """
    protocols = [
        ("ht", "home node without a directory: broadcasts each request; all caches respond"),
        ("tc", "token coherence: the requester broadcasts; holders send tokens of the line"),
    ]
    for title, entries in (
        ("kernels", list(kernels().items())),
        ("protocols", protocols),
        ("mesh designs", list(designs().items())),
    ):
        record_table(
            title.replace(" ", "_"), ({"name": name, "summary": text} for name, text in entries)
        )
        out().print(title, style="bold")
        out().print(_listed(entries))


def _listed(entries: list[tuple[str, str]]) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 2))
    table.add_column(no_wrap=True)
    table.add_column()
    for name, text in entries:
        table.add_row(Text(name), Text(text))
    return table


@app.command("run")
def run_(
    file: Annotated[
        Path | None,
        typer.Argument(metavar="[FILE]", help="A configuration file (TOML); optional."),
    ] = None,
    kernel: Annotated[
        str | None,
        typer.Option("--kernel", "-k", help="Kernel, a comma-separated list, or `all`."),
    ] = None,
    protocol: Annotated[
        str | None, typer.Option("--protocol", help="Protocol: `ht` or `tc`. Default: `ht`.")
    ] = None,
    design: Annotated[
        str | None,
        typer.Option("--design", help="A mesh design, or a comma-separated list."),
    ] = None,
    scale: Annotated[
        str | None, typer.Option("--scale", help="`tiny`, `small` or `large`. Default: `small`.")
    ] = None,
    changes: options.Changes = None,
    threads: options.Threads = 0,
    to: options.Out = None,
) -> None:
    """Run kernels on a chip: runtime, cache misses and the latency of misses.

    Kernels have the sharing patterns of well-known benchmarks, but are not those benchmarks: use
    them to compare designs, not with published runtimes. Each result is checked against a serial
    program. Writes report.html, results.parquet, misses.parquet and flows.parquet to the output
    folder.

    \b
    Examples:
      tutti coherence run --kernel water_like --protocol ht --design sfo_complete
      tutti coherence run -k radix_like,water_like \\
        --design baseline_collective,sfo_greedy
      tutti coherence run examples/15_coherence/chip.toml --set chip.protocol=tc
    """
    if file is None and kernel is None:
        raise mistake("nothing to run", source="tutti coherence run",
                      expected="a file, or --kernel",
                      hint="`tutti coherence list` lists the kernels")  # fmt: skip
    given: dict[str, Any] = {}
    _refuse_several("--protocol", protocol)
    _refuse_several("--scale", scale)
    if kernel is not None:
        given["kernel"] = _kernels(kernel)
    if design is not None:
        given["designs"] = [name.strip() for name in design.split(",")]
    given |= {"chip.protocol": protocol} if protocol is not None else {}
    given |= {"scale": scale} if scale is not None else {}
    with Progress("laying out"):
        read = load_coherence(file, changes or (), options=given, output=to)
    folder(read.output, extra="reports")
    runs, interrupted = _run(read, threads)
    if runs:
        _show(runs)
        _write(read, runs)
    if interrupted:
        remark(f"interrupted: {len(runs):,} of {len(read.cases):,} runs are finished")
        raise typer.Exit(int(ExitCode.INTERRUPTED))


def _refuse_several(option: str, text: str | None) -> None:
    """Refuses a list where a run takes one value.

    Raises:
        ConfigError: The option has several values.
    """
    if text is None or "," not in text:
        return
    names = [name.strip() for name in text.split(",") if name.strip()]
    each = " and once with ".join(f"`{option} {name}`" for name in names)
    raise mistake(
        "takes one value", source=option, value=shown(text), expected="one name",
        hint=f"run it once with {each}, each with its --out" if len(names) > 1 else "",
    )  # fmt: skip


def _kernels(text: str) -> list[str]:
    return list(kernels()) if text == "all" else [name.strip() for name in text.split(",")]


def _run(read: Coherence, threads: int) -> tuple[list[CoherenceRun], bool]:
    """Returns the finished runs, and whether Ctrl-C interrupted the others."""
    finished: list[CoherenceRun] = []
    started = time.monotonic()
    interrupted = False
    with Progress(
        "runs", work=len(read.cases), total=len(read.cases), handles_interrupts=True
    ) as progress:

        def done(run: CoherenceRun) -> None:
            finished.append(run)
            progress.advance(1, len(finished))

        try:
            run_all(read.cases, threads=threads, done=done)
        except KeyboardInterrupt:
            interrupted = True
    total = sum(run.total_cycles for run in finished)
    remark(
        f"{plural(len(finished), 'run')}, {total:,} cycles in {time.monotonic() - started:.1f} s"
    )
    order = {id(case): place for place, case in enumerate(read.cases)}
    return sorted(finished, key=lambda run: order[id(run.case)]), interrupted


def _show(runs: list[CoherenceRun]) -> None:
    record_table("results", lambda: frame(runs))
    if len(runs) == 1:
        out().print(words.describe(runs[0]), style="bold", markup=False)
        out().print(facts_table([Fact(*fact) for fact in words.facts(runs[0])]))
    else:
        out().print(words.describe_chip(runs), style="bold", markup=False)
        out().print(words.table(runs).terminal(words.CAPTION))


def _write(read: Coherence, runs: list[CoherenceRun]) -> None:
    frames = {
        "results.parquet": frame(runs),
        "misses.parquet": miss_frame(runs),
        "flows.parquet": flow_frame(runs),
    }
    files = write_frames(read.output, frames)
    files.append(write_coherence_report(read.output / "report.html", runs, read.title))
    wrote(*files)

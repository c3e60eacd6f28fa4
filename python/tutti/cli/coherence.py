"""`tutti coherence`: small parallel kernels on chips with coherent caches."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from tutti.cli import options
from tutti.cli.console import out, remark, wrote
from tutti.cli.files import folder, write_frames
from tutti.cli.noc_shown import facts_table
from tutti.cli.progress import Progress
from tutti.coherence import flow_frame, frame, kernels, miss_frame, run_all
from tutti.config import load_coherence
from tutti.errors import ExitCode
from tutti.files.mistakes import mistake, shown
from tutti.noc.smart import designs
from tutti.report import coherence_words as words
from tutti.report import write_coherence_report
from tutti.report.quantity import plural

if TYPE_CHECKING:
    from tutti.coherence import CoherenceRun
    from tutti.config import Coherence

app = options.group(
    "Small parallel kernels on chips with coherent caches, over meshes that broadcast."
)


@app.command("list")
def list_() -> None:
    """List the kernels, the protocols and the designs of meshes.

    \b
    Examples:
      tutti coherence list
    """
    protocols = [
        ("ht", "a home per line, without a directory, broadcasts every request, and all answer"),
        ("tc", "tokens: whoever misses broadcasts, and who holds tokens of the line sends them"),
    ]
    for title, entries in (
        ("kernel", list(kernels().items())),
        ("protocol", protocols),
        ("design of the mesh", list(designs().items())),
    ):
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
        typer.Argument(metavar="[FILE]", help="The file (TOML); options alone will do."),
    ] = None,
    kernel: Annotated[
        str | None,
        typer.Option("--kernel", "-k", help="A kernel, several with commas, or `all`."),
    ] = None,
    protocol: Annotated[
        str | None, typer.Option("--protocol", "-p", help="`ht` or `tc`; if left out `ht`.")
    ] = None,
    design: Annotated[
        str | None,
        typer.Option("--design", help="A design of the mesh, or several with commas."),
    ] = None,
    scale: Annotated[
        str | None, typer.Option("--scale", help="`tiny`, `small` or `large`; if left out `small`.")
    ] = None,
    changes: options.Changes = None,
    threads: options.Threads = 0,
    to: options.FolderOut = None,
) -> None:
    """Run kernels on a chip: how long they take, what they miss, what that is spent on.

    Kernels share data as well-known benchmarks do and are named after them, but are none of them:
    compare designs by them, not with published runtimes. Each computes its result for real, which
    is checked against a serial program. Writes report.html, results.parquet, misses.parquet and
    flows.parquet into the output folder.

    \b
    Examples:
      tutti coherence run --kernel water_like --protocol ht --design sfo_complete
      tutti coherence run -k radix_like,water_like --design baseline_collective,sfo_greedy
      tutti coherence run examples/15_coherence/chip.toml --set chip.protocol=tc
    """
    if file is None and kernel is None:
        raise mistake("nothing to run", source="tutti coherence run",
                      expected="a file, or --kernel",
                      hint="`tutti coherence list` lists the kernels")  # fmt: skip
    given: dict[str, Any] = {}
    _refuse_several("--protocol", "-p", protocol)
    _refuse_several("--scale", "--scale", scale)
    if kernel is not None:
        given["kernel"] = _kernels(kernel)
    if design is not None:
        given["designs"] = [name.strip() for name in design.split(",")]
    given |= {"chip.protocol": protocol} if protocol is not None else {}
    given |= {"scale": scale} if scale is not None else {}
    with Progress("laying out"):
        read = load_coherence(file, changes or (), options=given, output=to)
    folder(read.output)
    runs, interrupted = _run(read, threads)
    if runs:
        _show(runs)
        _write(read, runs)
    if interrupted:
        remark(f"interrupted: {len(runs):,} of {len(read.cases):,} runs were finished")
        raise typer.Exit(int(ExitCode.INTERRUPTED))


def _refuse_several(option: str, short: str, text: str | None) -> None:
    """A run has one protocol and one scale, unlike kernels and designs.

    Raises:
        ConfigError: The option names several.
    """
    if text is None or "," not in text:
        return
    names = [name.strip() for name in text.split(",") if name.strip()]
    each = " and once with ".join(f"`{short} {name}`" for name in names)
    raise mistake(
        "a run has one", source=option, value=shown(text), expected="one name",
        hint=f"run it once with {each}, into a folder each (--out)" if len(names) > 1 else "",
    )  # fmt: skip


def _kernels(text: str) -> list[str]:
    return list(kernels()) if text == "all" else [name.strip() for name in text.split(",")]


def _run(read: Coherence, threads: int) -> tuple[list[CoherenceRun], bool]:
    """The runs that were finished, and whether Ctrl-C came before the last."""
    finished: list[CoherenceRun] = []
    started = time.monotonic()
    interrupted = False
    with Progress("runs", work=len(read.cases), total=len(read.cases)) as progress:

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
    if len(runs) == 1:
        out().print(words.describe(runs[0]), style="bold", markup=False)
        out().print(facts_table(words.facts(runs[0])))
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

"""`tutti mpi bench`: collectives and multicasts over MPI, with the prediction of a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tutti.cli import mpi_options, options
from tutti.cli.mpi_bench_shown import lines, print_line, show_blocks
from tutti.study.console import record_table, remark, wrote
from tutti.study.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from tutti.mpi.bench import Benchmark, Settings
    from tutti.mpi.underneath import Mpi
    from tutti.platforms.machine import Platform

_MULTICAST = "multicast"
_PANEL = "Multicasts"

_FITTED = ("#sends", "statistic", "alpha_p (us)", "alpha_r (us)", "residual (us)")
What = Annotated[
    str, typer.Argument(metavar="WHAT", help="A collective, such as all_reduce, or multicast.")
]
Smallest = Annotated[str, typer.Option("-b", "--begin", metavar="SIZE", help="Smallest size.")]
End = Annotated[
    str | None, typer.Option("-e", "--end", metavar="SIZE", help="Largest size; default: -b.")
]
Factor = Annotated[
    int, typer.Option("-f", "--factor", min=2, help="Factor between consecutive sizes.")
]
Blocks = Annotated[
    int,
    typer.Option(
        "-n", "--repetitions", min=1, help="Number of repetitions: blocks per case, or multicasts."
    ),
]
Warmup = Annotated[
    int, typer.Option("-w", "--warmup", min=0, help="Warm-up blocks, which are not recorded.")
]
Check = Annotated[int, typer.Option("--check", min=0, max=1, help="Check the results.")]
Operation = Annotated[str, typer.Option("--op", help="Reduction: sum, prod, min or max.")]
Datatype = Annotated[
    str, typer.Option("-d", "--datatype", help="Datatype, such as float32 or int64.")
]
Each = Annotated[int, typer.Option("--each", min=1, help="Back-to-back collectives in a block.")]
Align = Annotated[
    bool,
    typer.Option("--align/--no-align", help="Start each block at a time that all ranks agree on."),
]
Root = Annotated[int, typer.Option("--root", min=0, help="Root of a rooted collective.")]
Ranks = Annotated[
    str, typer.Option("--ranks", "-r", help="Rank counts: 4,8,12 or 4:64; one run each.")
]
Algorithms = Annotated[
    list[str] | None,
    typer.Option(
        "--algorithm",
        "-a",
        metavar="NAME[:ARG]",
        help="Algorithm; own; call:NAME[:ARG]; every; every:40. May be repeated.",
    ),
]
Platform_ = Annotated[
    str | None,
    typer.Option("--platform", "-p", help="Name or file of a platform that predicts the times."),
]
Peers = Annotated[
    int, typer.Option("--peers", min=1, help="Maximum peers.", rich_help_panel=_PANEL)
]
Out = Annotated[Path, typer.Option("--out", "-o", metavar="FOLDER", help="Output folder.")]


def bench(
    what: What = "all_reduce",
    smallest: Smallest = "8",
    end: End = None,
    factor: Factor = 2,
    blocks: Blocks = 250,
    warmup: Warmup = 2,
    check: Check = 1,
    operation: Operation = "sum",
    datatype: Datatype = "float32",
    each: Each = 10,
    align: Align = True,
    root: Root = 0,
    ranks: Ranks = "2",
    algorithm: Algorithms = None,
    emulate: mpi_options.Emulate = None,
    platform: Platform_ = None,
    peers: Peers = 16,
    mpicc: mpi_options.Mpicc = None,
    launcher: mpi_options.Launcher = None,
    launcher_option: mpi_options.LauncherOptions = None,
    to: Out = Path("out/mpi_bench"),
) -> None:
    """Measure collectives or multicasts over MPI, and check the results in the same run.

    A block is a batch of back-to-back calls, which all ranks start together; candidates take turns.
    `own` is the native collective, other names are schedules run by libtutti_mpi, and call:NAME is
    an application's call that libtutti_mpi intercepts. `every` is each schedule of recursive
    multiplying, every:40 at most 40 of them. With --emulate a model delays messages between ranks
    of one host, and every output states it. Writes results.parquet, with a row for each block.

    \b
    Examples:
      tutti mpi bench all_reduce -b 8 -e 32K -f 8 -n 20 -a own -a ring
      tutti mpi bench all_reduce --ranks 4 -a every --each 1 -n 5 \\
        --emulate 'pipelining_postal:alpha_p=4 ms,alpha_r=1 ms'
      tutti mpi bench multicast --peers 3 -n 20
    """
    from tutti.base.files.extras import check_extra
    from tutti.mpi.bench import Benchmark, Settings
    from tutti.study.files import folder

    check_extra("reports")
    settings = Settings(
        blocks=blocks, each=each, warmup=warmup, check=bool(check), aligned=align,
        distance=mpi_options.distance(emulate), options=launcher_option or [],
    )  # fmt: skip
    if what == _MULTICAST:
        _multicasts(_found(mpicc, launcher, settings), peers, settings, folder(to))
        return
    element = options.datatype(datatype) or datatype
    benchmarks = [
        Benchmark(what, count, _sizes(smallest, end, factor), element, operation, root)
        for count in options.expanded_ranks(ranks)
    ]
    mpi = _found(mpicc, launcher, settings)
    _collectives(
        mpi, benchmarks, algorithm or [_usual(what)], settings, _machine(platform, settings),
        folder(to),
    )  # fmt: skip


def _usual(collective: str) -> str:
    return "recursive_doubling" if collective == "all_reduce" else "direct"


def _found(mpicc: str | None, launcher: str | None, settings: Settings) -> Mpi:
    """Finds the MPI library, prints it, and compiles the library."""
    from tutti.mpi.library import built
    from tutti.mpi.underneath import find_mpi

    mpi = find_mpi(mpicc, launcher)
    remark(f"{mpi}" + (f"; {settings.distance.note}" if settings.distance else ""))
    built(mpi, starting=lambda: remark(f"compiling the library for {mpi}, once ..."))
    return mpi


# --- collectives ----------------------------------------------------------------------------------


def _collectives(
    mpi: Mpi,
    benchmarks: Sequence[Benchmark],
    names: list[str],
    settings: Settings,
    machine: Platform | None,
    into: Path,
) -> None:
    """Measures for each number of ranks, and exits with an error if results were wrong."""
    import polars as pl

    from tutti.base.errors import ExitCode
    from tutti.collectives.frames import write
    from tutti.mpi.bench import summarise
    from tutti.mpi.view import plot_blocks

    every = pl.concat([_measured(mpi, one, names, settings, machine) for one in benchmarks])
    summary = summarise(every)
    record_table("results", summary)
    wrote(
        write(every, into / "results.parquet"),
        write(summary, into / "summary.csv"),
        plot_blocks(into / "times.svg", every),
    )
    wrong = int(summary["wrong"].sum())
    if wrong:
        remark(f"{wrong} wrong elements in {benchmarks[0].collective}: see the column `wrong`")
        raise typer.Exit(int(ExitCode.FAILED))


def _measured(
    mpi: Mpi, benchmark: Benchmark, names: list[str], settings: Settings, machine: Platform | None
) -> pl.DataFrame:
    from tutti.mpi.bench import measure, summarise
    from tutti.mpi.bench_candidates import candidates_of

    chosen = candidates_of(
        names, collective=benchmark.collective, ranks=benchmark.ranks,
        size=benchmark.sizes[0], machine=machine,
    )  # fmt: skip
    work = settings.blocks * len(chosen) * len(benchmark.sizes)
    with Progress(
        f"{benchmark.ranks} ranks", work=work, total=work, handles_interrupts=True
    ) as progress:
        frame = measure(
            mpi, benchmark, chosen, settings, model=machine,
            done=lambda written, expected: progress.reach(written, expected, written),
        )  # fmt: skip
    _print_caveats(frame, settings)
    show_blocks(summarise(frame), settings)
    return frame


# --- multicasts -----------------------------------------------------------------------------------


def _multicasts(mpi: Mpi, peers: int, settings: Settings, into: Path) -> None:
    from tutti.collectives.frames import write
    from tutti.mpi.bench_multicast import fit, measure_multicasts
    from tutti.mpi.view import plot_multicasts

    work = settings.blocks * peers * 2
    with Progress("multicasts", work=work, total=work, handles_interrupts=True) as progress:
        frame = measure_multicasts(
            mpi, peers, settings,
            done=lambda written, expected: progress.reach(written, expected, written),
        )  # fmt: skip
    _print_caveats(frame, settings)
    record_table("multicasts", frame)
    written = [
        write(frame, into / "multicasts.parquet"),
        plot_multicasts(into / "multicasts.svg", frame),
    ]
    if peers > 1:
        fitted = fit(frame)
        record_table("fit", fitted)
        written.append(write(fitted, into / "fit.csv"))
        if settings.distance is not None:
            print_line(f"# {settings.distance.note}")
        for line in lines(_FITTED, *map(_fitted, fitted.iter_rows(named=True))):
            print_line(line)
    wrote(*written)


def _print_caveats(frame: pl.DataFrame, settings: Settings) -> None:
    """Prints what limits the significance of the times."""
    from tutti.view.quantity import format_time

    if settings.distance is None and frame["crowded"].any():
        remark("more ranks than cores: times depend on the operating system's scheduler")
    error = max(frame["clock_error_ps"].to_list())
    if error:
        remark(f"clock error between the hosts: up to {format_time(error)}")


def _fitted(row: dict[str, Any]) -> tuple[str, ...]:
    return (
        "blocking" if row["blocking"] else "non-blocking",
        str(row["statistic"]),
        _interval(row, "alpha_p"),
        _interval(row, "alpha_r"),
        f"{row['residual_ps'] / 1e6:.3g}",
    )


def _interval(row: dict[str, float], name: str) -> str:
    value, low, high = (row[f"{name}{end}_ps"] / 1e6 for end in ("", "_low", "_high"))
    return f"{value:.4g} ({low:.4g} to {high:.4g})"


# --- options --------------------------------------------------------------------------------------


def _machine(name: str | None, settings: Settings) -> Platform | None:
    """Returns the platform that predicts the times."""
    if name is None:
        return settings.distance.platform if settings.distance is not None else None
    from tutti.platforms import platform

    return platform(name)


def _sizes(smallest: str, end: str | None, factor: int) -> list[int]:
    from tutti import _core
    from tutti.base.files.mistakes import mistake
    from tutti.collectives.sizes import growing

    first = _core.parse_size(options.size(smallest, "-b"))
    last = _core.parse_size(options.size(end, "-e")) if end is not None else first
    if last < first:
        raise mistake(
            "is smaller than -b", source="-e", value=str(end), expected=f"{smallest} or more"
        )
    return growing(first, last, factor)

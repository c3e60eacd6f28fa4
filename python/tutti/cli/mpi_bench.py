"""`tutti mpi bench`: collectives and multicasts on real ranks, beside what a model says."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tutti.cli import options
from tutti.cli.console import out, remark
from tutti.cli.progress import Progress

if TYPE_CHECKING:
    import polars as pl

    from tutti.mpi.bench import Candidate, Settings
    from tutti.mpi.distance import Distance
    from tutti.mpi.host import Host
    from tutti.platform import Platform

_MULTICAST = "multicast"
_PANEL = "Multicasts"

_HEADINGS = (
    "#size", "count", "type", "redop", "root", "time", "algbw", "busbw", "#wrong",
    "min", "quartiles", "model", "ratio", "schedule",
)  # fmt: skip
_UNITS = (
    "#(B)", "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", "",
    "(us)", "(us)", "(us)", "", "",
)  # fmt: skip
_FITTED = ("#sends", "of", "alpha_p (us)", "alpha_r (us)", "rest (us)")
_ROOTED = {"broadcast", "reduce", "gather", "scatter"}
_FOLDING = {"all_reduce", "reduce", "reduce_scatter"}


def bench(
    what: Annotated[
        str, typer.Argument(metavar="WHAT", help="A collective, such as all_reduce, or multicast.")
    ] = "all_reduce",
    begin: Annotated[
        str, typer.Option("-b", "--begin", metavar="SIZE", help="Smallest size.")
    ] = "8",
    end: Annotated[
        str | None, typer.Option("-e", "--end", metavar="SIZE", help="Largest size; the smallest.")
    ] = None,
    factor: Annotated[
        int, typer.Option("-f", "--factor", min=2, help="Each size is this many times the last.")
    ] = 2,
    blocks: Annotated[
        int, typer.Option("-n", "--blocks", min=1, help="Blocks of each, or multicasts.")
    ] = 250,
    warmup: Annotated[
        int, typer.Option("-w", "--warmup", min=0, help="Blocks before, which are not counted.")
    ] = 2,
    check: Annotated[
        int, typer.Option("-c", "--check", min=0, max=1, help="Whether results are checked.")
    ] = 1,
    operation: Annotated[
        str, typer.Option("-o", "--op", help="Of reductions: sum, prod, min or max.")
    ] = "sum",
    datatype: Annotated[str, typer.Option("-d", "--datatype", help="Of an element.")] = "float32",
    each: Annotated[
        int, typer.Option("--each", min=1, help="Collectives in a row in a block.")
    ] = 10,
    align: Annotated[
        bool,
        typer.Option("--align/--no-align", help="Begin each block at a time that ranks agree on."),
    ] = True,
    root: Annotated[int, typer.Option("-r", "--root", min=0, help="Of a rooted collective.")] = 0,
    ranks: Annotated[
        str, typer.Option("--ranks", help="Rank counts: 4,8,12 or 4:64; each is a run.")
    ] = "2",
    algorithm: Annotated[
        list[str] | None,
        typer.Option(
            "--algorithm",
            "-a",
            metavar="NAME[:ARG]",
            help="A schedule; host; call:NAME[:ARG]; every; every:40. May be repeated.",
        ),
    ] = None,
    emulate: Annotated[
        str | None,
        typer.Option(
            "--emulate", metavar="MODEL", help="Keep ranks apart by a model with its parameters."
        ),
    ] = None,
    platform: Annotated[
        str | None,
        typer.Option("--platform", help="A platform whose prediction stands beside."),
    ] = None,
    peers: Annotated[
        int,
        typer.Option("--peers", min=1, help="Of multicasts, at most.", rich_help_panel=_PANEL),
    ] = 16,
    mpicc: Annotated[
        str | None, typer.Option("--mpicc", help="Compiler wrapper of the MPI to use.")
    ] = None,
    to: Annotated[Path, typer.Option("--out", help="Folder for results.")] = Path("out/mpi_bench"),
) -> None:
    """Measure collectives on real ranks, or multicasts, with correctness checked in the same run.

    Blocks of collectives in a row, which all ranks begin at once; what is compared takes turns.
    Schedules run through libtutti_mpi, `host` is the MPI's own code, and call:NAME a call as of an
    application, which the library answers. `every` is each schedule of recursive multiplying,
    every:40 at most 40 of them. With --emulate ranks of one machine are kept apart by a model, and
    every output says that distance is emulated. Writes results.parquet, a row for each block.

    \b
    Examples:
      tutti mpi bench all_reduce -b 8 -e 1M -f 4 --ranks 2 -a host -a recursive_doubling
      tutti mpi bench all_reduce --ranks 8 -a every \\
        --emulate 'pipelining_postal:alpha_p=4 ms,alpha_r=1 ms' -n 20
      tutti mpi bench multicast --peers 8
    """
    from tutti.cli.files import folder
    from tutti.mpi.bench import Settings
    from tutti.mpi.host import find_host

    distance = _distance(emulate)
    settings = Settings(
        blocks=blocks, each=each, warmup=warmup, check=bool(check), distance=distance, aligned=align
    )
    host = find_host(mpicc)
    into = folder(to)
    remark(f"{host}" + (f"; distance is emulated: {distance}" if distance else ""))
    if what == _MULTICAST:
        _multicasts(host, peers, settings, into)
        return
    asked = _Asked(
        what, _sizes(begin, end, factor), options.datatype(datatype) or datatype, operation, root
    )
    names = algorithm or ["recursive_doubling" if what == "all_reduce" else "direct"]
    frames = [
        _measured(host, asked, count, names, settings, _machine(platform, distance))
        for count in _rank_counts(ranks)
    ]
    _finish(frames, into, asked)


# --- collectives ----------------------------------------------------------------------------------


class _Asked:
    """What the options say of a collective."""

    def __init__(
        self, collective: str, sizes: list[int], datatype: str, operation: str, root: int
    ) -> None:
        self.collective, self.sizes, self.datatype = collective, sizes, datatype
        self.operation, self.root = operation, root


def _measured(
    host: Host,
    asked: _Asked,
    ranks: int,
    names: list[str],
    settings: Settings,
    machine: Platform | None,
) -> pl.DataFrame:
    from tutti.mpi.bench import Asked, measure, summarise
    from tutti.mpi.bench_candidates import candidates_of
    from tutti.mpi.library import built

    question = Asked(
        asked.collective, ranks, asked.sizes, asked.datatype, asked.operation, asked.root
    )
    chosen = candidates_of(
        names, collective=asked.collective, ranks=ranks, size=asked.sizes[0], machine=machine
    )
    built(host, starting=lambda: remark(f"compiling the library for {host}"))
    work = settings.blocks * len(chosen) * len(asked.sizes)
    with Progress(f"{ranks} ranks", work=work, total=work) as progress:
        frame = measure(
            host, question, chosen, settings, model=machine,
            done=lambda written, expected: progress.reach(written, expected, written),
        )  # fmt: skip
    _show(summarise(frame), ranks, settings, chosen)
    return frame


def _show(summary: pl.DataFrame, ranks: int, settings: Settings, chosen: list[Candidate]) -> None:
    console = out()
    way = f"{len(chosen)} in turn, " if len(chosen) > 1 else ""
    console.print(
        f"# {ranks} ranks; medians of {settings.blocks} blocks of {settings.each}, {way}"
        f"until the last rank was done"
    )
    if settings.distance is not None:
        _say(f"# distance is emulated: {settings.distance}")
    for line in _lines(_HEADINGS, _UNITS, *map(_cells, summary.iter_rows(named=True))):
        _say(line)
    wrong = int(summary["wrong"].sum())
    verdict = "not checked" if not settings.check else "OK" if not wrong else "WRONG"
    console.print(f"# Out of bounds values : {wrong} {verdict}")


def _lines(*rows: tuple[str, ...]) -> list[str]:
    """A table in the manner of nccl-tests: as wide as it is, with headings behind a `#`."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell if column == len(widths) - 1 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]


def _say(line: str) -> None:
    """Prints a line as wide as it is."""
    out().print(line, markup=False, soft_wrap=True)


def _cells(row: dict[str, object]) -> tuple[str, ...]:
    def us(name: str) -> str:
        value = row[name]
        return "" if value is None else f"{float(value) / 1e6:.2f}"  # type: ignore[arg-type]

    collective = str(row["collective"])
    model, median = row["model_ps"], row["median_ps"]
    ratio = f"{int(median) / int(model):.3f}" if model else ""  # type: ignore[call-overload]
    return (
        str(row["size_bytes"]),
        str(row["count"]),
        str(row["datatype"]),
        str(row["operation"]) if collective in _FOLDING else "none",
        str(row["root"]) if collective in _ROOTED else "-1",
        us("median_ps"),
        f"{float(row['algbw_bytes_per_s']) / 1e9:.2f}",  # type: ignore[arg-type]
        f"{float(row['busbw_bytes_per_s']) / 1e9:.2f}",  # type: ignore[arg-type]
        str(row["wrong"]),
        us("least_ps"),
        f"{us('lower_quartile_ps')} {us('upper_quartile_ps')}",
        us("model_ps"),
        ratio,
        _shown(str(row["way"]), str(row["schedule"])),
    )


def _shown(way: str, schedule: str) -> str:
    return "host" if way == "host" else f"call:{schedule}" if way == "call" else schedule


def _finish(frames: list[pl.DataFrame], into: Path, asked: _Asked) -> None:
    """Writes what was measured, and ends with an error where results were wrong."""
    import polars as pl

    from tutti.errors import ExitCode
    from tutti.mpi.bench import summarise
    from tutti.report.boxes import plot_blocks
    from tutti.results import write

    every = pl.concat(frames)
    summary = summarise(every)
    written = [
        write(every, into / "results.parquet"),
        write(summary, into / "summary.csv"),
        plot_blocks(into / "times.svg", every),
    ]
    for path in written:
        out().print(f"wrote {path}", markup=False)
    wrong = int(summary["wrong"].sum())
    if wrong:
        remark(f"{wrong} wrong elements in {asked.collective}: see the column `wrong`")
        raise typer.Exit(int(ExitCode.FAILED))


# --- multicasts -----------------------------------------------------------------------------------


def _multicasts(host: Host, peers: int, settings: Settings, into: Path) -> None:
    from tutti.mpi.bench_multicast import fit, measure_multicasts
    from tutti.mpi.library import built
    from tutti.report.boxes import plot_multicasts
    from tutti.results import write

    built(host, starting=lambda: remark(f"compiling the library for {host}"))
    work = settings.blocks * peers * 2
    with Progress("multicasts", work=work, total=work) as progress:
        frame = measure_multicasts(
            host, peers, settings,
            done=lambda written, expected: progress.reach(written, expected, written),
        )  # fmt: skip
    if settings.distance is None and settings.is_quiet(peers + 1):
        remark(
            f"{peers + 1} ranks are more than this machine has cores: times are of the scheduler"
        )
    written = [
        write(frame, into / "multicasts.parquet"),
        plot_multicasts(into / "multicasts.svg", frame),
    ]
    if peers > 1:
        fitted = fit(frame)
        written.append(write(fitted, into / "fit.csv"))
        if settings.distance is not None:
            _say(f"# distance is emulated: {settings.distance}")
        for line in _lines(_FITTED, *map(_fitted, fitted.iter_rows(named=True))):
            _say(line)
    for path in written:
        out().print(f"wrote {path}", markup=False)


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


def _distance(text: str | None) -> Distance | None:
    from tutti.mpi.distance import Distance

    return Distance.parse(text) if text is not None else None


def _machine(name: str | None, distance: Distance | None) -> Platform | None:
    """The machine whose prediction stands beside what is measured."""
    if name is None:
        return distance.platform if distance is not None else None
    from tutti.platforms import platform

    return platform(name)


def _sizes(begin: str, end: str | None, factor: int) -> list[int]:
    from tutti import _core
    from tutti.config.mistakes import mistake

    first = _core.parse_size(options.size(begin, "-b"))
    last = _core.parse_size(options.size(end, "-e")) if end is not None else first
    if last < first:
        raise mistake(
            "is smaller than -b", source="-e", value=str(end), expected=f"{begin} or more"
        )
    sizes = [first]
    while first and sizes[-1] * factor <= last:
        sizes.append(sizes[-1] * factor)
    return sizes


def _rank_counts(text: str) -> list[int]:
    counts: list[int] = []
    for one in options.rank_counts(text):
        if isinstance(one, int):
            counts.append(one)
            continue
        count = one["from"]
        while count <= one["to"]:
            counts.append(count)
            count *= max(one["factor"], 2)
    return counts

"""`tutti search`: the fastest all_reduce schedule on a platform."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import polars as pl
import typer
from rich.table import Table

from tutti.base.files.mistakes import did_you_mean, mistake
from tutti.base.units import Size
from tutti.cli import options
from tutti.collectives.frames import write
from tutti.collectives.schedule_search import FAMILY, KINDS, MULTIPLYING_KINDS
from tutti.collectives.schedule_search import search as find
from tutti.collectives.size_ranges import thresholds
from tutti.platforms.conditions import Conditions
from tutti.study.console import out, record, record_table, remark, wrote
from tutti.study.files import folder
from tutti.study.progress import Progress
from tutti.view.breakable import Breakable
from tutti.view.quantity import format_share, format_time, plural

if TYPE_CHECKING:
    from collections.abc import Callable

    from tutti.collectives.files.resolve import Experiment
    from tutti.collectives.schedule_search import SearchResult


def search(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE]",
            help="The experiment file (TOML). Default: options alone.",
            show_default=False,
        ),
    ] = None,
    size: Annotated[
        str | None,
        typer.Option("--size", "-s", metavar="SIZE", help="Size: one, which prints a ranking."),
    ] = None,
    begin: options.Begin = None,
    end: options.End = None,
    datatype: options.Datatype = None,
    ranks: options.Ranks = None,
    kind: Annotated[
        list[str] | None,
        typer.Option(
            "--kind", help="Kind of schedules: factored, split, merged or other; may be repeated."
        ),
    ] = None,
    platform: options.Platform = None,
    model: options.Model = None,
    top: Annotated[int, typer.Option("--top", min=1, help="Rows of a ranking.")] = 10,
    exhaustive: Annotated[bool, typer.Option("--exhaustive", help="Score every schedule.")] = False,
    threads: options.Threads = 0,
    verify: options.Verify = True,
    to: options.Out = None,
) -> None:
    """Find the fastest all_reduce schedules, with a proof or a bound on the gap.

    The search covers recursive multiplying (kinds factored, split and merged) and every other
    algorithm with its radix, levels or segments (kind other). Proofs and lower bounds hold within
    the searched kinds.

    For one size, prints a ranking of schedules. For several sizes, prints the size range in which
    each schedule is the best. Writes search.parquet and search.csv to the output folder. Options
    override keys of the file, as in `tutti compare`.

    \b
    Examples:
      tutti search experiment.toml --ranks 13 --size 8
      tutti search experiment.toml --ranks 1000000 --size 8
      tutti search experiment.toml --ranks 96 -b 8 -e 1MiB
      tutti search experiment.toml --ranks 48 --kind factored --exhaustive
      tutti search --platform torus:4x2 --size 1MiB
    """
    overrides = options.Overrides(
        size=size,
        begin=begin,
        end=end,
        datatype=datatype,
        ranks=ranks,
        platform=platform,
        model=model,
        out=to,
    )
    experiment = overrides.load(file)
    _check(experiment)
    record(
        collective=experiment.collective,
        platform=experiment.platform.name,
        model=experiment.model,
    )
    folder(experiment.output)
    kinds = _kinds(kind)
    if len(experiment.sizes) == 1:
        settings = {"exhaustive": exhaustive, "threads": threads, "verify": verify}
        frame = _rankings(experiment, kinds, top, **settings)
    else:
        frame = _thresholds(experiment, kinds, verify=verify)
    record_table("results", frame)
    if "other" not in kinds:
        remark(f"searched {family(kinds)} only; --kind other searches other algorithms")
    for suffix in ("parquet", "csv"):
        path = write(frame, experiment.output / f"search.{suffix}")
        wrote(path, wrap=True)


def _check(experiment: Experiment) -> None:
    """Refuses collectives other than all_reduce; reports the conditions that are ignored."""
    if experiment.collective != "all_reduce":
        raise mistake(
            f"cannot search schedules of {experiment.collective}",
            source=experiment.source,
            key="collective",
            expected='collective = "all_reduce"',
        )
    if experiment.conditions() != Conditions():
        remark("the search ignores noise, skew and per-rank speeds")


def _kinds(selected: list[str] | None) -> tuple[str, ...]:
    for kind in selected or ():
        if kind not in KINDS:
            raise mistake(
                f"unknown kind of schedule `{kind}`",
                source="--kind",
                expected=f"one of {', '.join(KINDS)}",
                hint=did_you_mean(kind, KINDS),
            )
    return tuple(kind for kind in KINDS if not selected or kind in selected)


def family(kinds: tuple[str, ...]) -> str:
    """Returns the name of the searched schedules."""
    of_family = [kind for kind in kinds if kind != "other"]
    chosen = f"{' and '.join(of_family)} " if len(of_family) < len(MULTIPLYING_KINDS) else ""
    names = [f"{chosen}schedules of {FAMILY.replace('_', ' ')}"] if of_family else []
    return " and ".join(names + ["other algorithms"] * ("other" in kinds))


def _searched(kinds: tuple[str, ...]) -> str:
    """Returns the name of the searched schedules in a sentence on proofs and bounds."""
    return "searched schedules" if "other" in kinds else family(kinds)


def _rankings(
    experiment: Experiment,
    kinds: tuple[str, ...],
    top: int,
    **settings: Any,  # noqa: ANN401 - the keywords of `tutti.search`
) -> pl.DataFrame:
    """Prints the ranking at each rank count; returns the rows of all."""
    frames = []
    size = experiment.sizes[0]
    for ranks in experiment.ranks:
        with Progress(f"searching {ranks:,} ranks") as progress:
            found = find(
                experiment.machine(),
                ranks=ranks,
                size=size,
                datatype=experiment.datatype,
                kinds=kinds,
                top=top,
                done=progress.reach,
                **settings,
            )
        _show(experiment, found, top)
        columns = [pl.lit(ranks).alias("ranks"), pl.lit(size.bytes).alias("size_bytes")]
        frames.append(found.frame.select(*columns, pl.all()))
    return pl.concat(frames)


def _show(experiment: Experiment, found: SearchResult, top: int) -> None:
    record_table("proofs", [_proof(found)])
    console = out()
    console.print(
        f"[bold]{found.ranks:,}[/] ranks of [bold]{experiment.platform.name}[/], model "
        f"{experiment.model}, all_reduce of {found.size}: {family(found.kinds)}"
    )
    console.print(ranking(found.frame.head(top + 2)))
    console.print(verdict(found), markup=False)
    for name, reason in found.left_out.items():
        remark(f"left out: {name}: {reason}")
    if found.not_verified is not None:
        remark(f"{found.schedule.name} is not verified: {found.not_verified}")


def _proof(found: SearchResult) -> dict[str, Any]:
    """Returns how certain the first place at a rank count is, for `--json`."""
    return {
        "ranks": found.ranks,
        "size_bytes": found.size.bytes,
        "scored": found.scored,
        "exhaustive": found.exhaustive,
        "proved_optimal": found.proved,
        "bound_ps": found.bound_ps,
        "gap": found.gap,
        "not_verified": found.not_verified,
    }


def ranking(frame: pl.DataFrame) -> Table:
    """Returns a table of schedules, fastest first."""
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), expand=True)
    table.add_column("", justify="right", no_wrap=True)
    table.add_column("schedule", ratio=1)
    table.add_column("kind", no_wrap=True)
    table.add_column("time", justify="right", no_wrap=True)
    table.add_column("slower", justify="right", no_wrap=True)
    table.add_column("method", no_wrap=True)
    for row in frame.iter_rows(named=True):
        table.add_row(
            str(row["place"]),
            Breakable(row["schedule"].removeprefix(f"{FAMILY}:")),
            row["kind"],
            format_time(row["time_ps"]),
            "" if row["place"] == 1 else _longer(row["above_best"]),
            row["method"],
        )
    return table


def _longer(share: float) -> str:
    return f"{share + 1:,.0f} x" if share > 9 else format_share(share)


def verdict(found: SearchResult) -> str:
    """Returns a sentence on how certain the first place is."""
    scored, searched = f"{plural(found.scored, 'schedule')} scored", _searched(found.kinds)
    if found.exhaustive:
        return f"{scored}: all {searched}"
    if found.proved:
        return f"{scored}; verified optimal: none of the {searched} is faster"
    if found.frame["method"][0] == "estimate":
        return "too large to simulate: ordered by estimates"
    bound, gap = format_time(found.bound_ps), format_share(found.gap)
    return f"{scored}; lower bound of the {searched}: {bound}; the first is {gap} slower"


def _thresholds(experiment: Experiment, kinds: tuple[str, ...], *, verify: bool) -> pl.DataFrame:
    """Prints the size range of each best schedule, at each rank count."""
    frames = []
    first, last = experiment.sizes[0], experiment.sizes[-1]
    for ranks in experiment.ranks:
        with Progress(f"searching {ranks:,} ranks") as progress:
            frame = thresholds(
                experiment.machine(),
                ranks=ranks,
                start=first,
                end=last,
                datatype=experiment.datatype,
                kinds=kinds,
                done=_by_doublings(first, last, progress),
                verify=verify,
            )
        out().print(
            f"[bold]{ranks:,}[/] ranks of [bold]{experiment.platform.name}[/], model "
            f"{experiment.model}: fastest of the {family(kinds)} by size"
        )
        out().print(_sizes(frame))
        out().print(proof(frame, kinds), markup=False)
        unverified = frame.filter(~pl.col("verified"))["schedule"].unique(maintain_order=True)
        for name in unverified.to_list():
            remark(f"not verified: {name}")
        frames.append(frame.select(pl.lit(ranks).alias("ranks"), pl.all()))
    return pl.concat(frames)


def proof(frame: pl.DataFrame, kinds: tuple[str, ...]) -> str:
    """Returns a sentence on how certain the best schedules are."""
    gap = max(frame["gap"])
    if gap == 0:
        searched = _searched(kinds)
        return f"verified optimal at both ends of each range: none of the {searched} is faster"
    longer = f"at most {format_share(gap)} above the lower bound of the {_searched(kinds)}"
    return f"at both ends of each range {longer}"


def _by_doublings(first: Size, last: Size, progress: Progress) -> Callable[[Size], None]:
    """Returns a callback that reports progress in doublings of the size."""

    def done(size: Size) -> None:
        doublings = math.log2(size.bytes / first.bytes), math.log2(last.bytes / first.bytes)
        progress.reach(round(100 * doublings[0]), max(1, round(100 * doublings[1])))

    return done


def _sizes(frame: pl.DataFrame) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), expand=True)
    table.add_column("from size", justify="right", no_wrap=True)
    table.add_column("to size", justify="right", no_wrap=True)
    table.add_column("schedule", ratio=1)
    table.add_column("kind", no_wrap=True)
    table.add_column("time", justify="right", no_wrap=True)
    table.add_column("to time", justify="right", no_wrap=True)
    for row in frame.iter_rows(named=True):
        table.add_row(
            str(Size(bytes=row["from_bytes"])),
            str(Size(bytes=row["to_bytes"])),
            Breakable(row["schedule"].removeprefix(f"{FAMILY}:")),
            row["kind"],
            format_time(row["time_from_ps"]),
            format_time(row["time_to_ps"]),
        )
    return table

"""`tutti search`: the fastest all_reduce schedule on a platform."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from tutti.base.files.mistakes import known_name
from tutti.cli import options
from tutti.cli.grouped import grouped
from tutti.collectives.schedule_search import KINDS
from tutti.collectives.study.search import search as search_schedules


@dataclass
class Searched:
    """Options that replace keys of the experiment file."""

    file: Annotated[
        Path | None,
        typer.Argument(metavar="[FILE]", show_default=False,
                       help="The experiment file (TOML). Default: options alone."),
    ] = None  # fmt: skip
    size: options.Size = None
    begin: options.Begin = None
    end: options.End = None
    datatype: options.Datatype = None
    ranks: options.Ranks = None
    platform: options.Platform = None
    model: options.Model = None
    to: options.ExperimentOut = None


@grouped
def search(
    of: Searched,
    *,
    kind: Annotated[
        list[str] | None,
        typer.Option(
            "--kind", help="Kind of schedules: factored, split, merged or other; may be repeated."
        ),
    ] = None,
    top: Annotated[int, typer.Option("--top", min=1, help="Rows of a ranking.")] = 10,
    exhaustive: Annotated[bool, typer.Option("--exhaustive", help="Score every schedule.")] = False,
    threads: options.Threads = 0,
    verify: options.Verify = True,
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
    search_schedules(
        options.experiment(of, of.file),
        _kinds(kind),
        top=top,
        exhaustive=exhaustive,
        threads=threads,
        verify=verify,
    )


def _kinds(selected: list[str] | None) -> tuple[str, ...]:
    for kind in selected or ():
        known_name(kind, KINDS, what="kind of schedule", source="--kind")
    return tuple(kind for kind in KINDS if not selected or kind in selected)

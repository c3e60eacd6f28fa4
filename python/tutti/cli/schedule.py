"""`tutti schedule`: lists algorithms; shows, verifies and draws schedules."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from tutti.cli import options
from tutti.cli.grouped import grouped
from tutti.schedules.study import draw_schedule, show_algorithms, verify_schedule
from tutti.schedules.text import SCHEDULE_SUFFIX, find_schedule
from tutti.study.console import echo
from tutti.study.study import read

app = options.group("List, show, verify and draw schedules.")

Notation = Annotated[
    str,
    typer.Argument(metavar="SCHEDULE", show_default=False,
                   help=f"An algorithm as NAME[:ARG], or a schedule file (*{SCHEDULE_SUFFIX})."),
]  # fmt: skip


@dataclass
class Layout:
    """The layout of an algorithm; a schedule file defines it."""

    ranks: Annotated[
        int | None, typer.Option("--ranks", "-r", help="Rank count; a file defines it.")
    ] = None
    collective: Annotated[
        str | None,
        typer.Option("--collective", "-c", help="Collective. Default: all_reduce, or the file's."),
    ] = None
    root: Annotated[
        int | None, typer.Option("--root", help="Root of a rooted collective. Default: 0.")
    ] = None
    blocks: Annotated[
        str | None,
        typer.Option(
            "--blocks",
            help="Relative sizes of the blocks of an all_to_all_v: uniform, zipf:S, or a CSV file "
            "of bytes, a row per source.",
        ),
    ] = None


@app.command("list")
def list_(
    collective: Annotated[
        str | None,
        typer.Option("--collective", "-c", help="Collective that the algorithms perform."),
    ] = None,
    ranks: Annotated[
        int | None, typer.Option("--ranks", "-r", help="Rank count that the algorithms support.")
    ] = None,
) -> None:
    """List the algorithms and the collectives that each performs.

    \b
    Examples:
      tutti schedule list
      tutti schedule list --collective all_reduce --ranks 12
    """
    show_algorithms(collective, ranks)


@app.command()
@grouped
def show(notation: Notation, *, layout: Layout) -> None:
    """Print a schedule in its text form, which you can edit and read back.

    \b
    Examples:
      tutti schedule show recursive_multiplying:a3,a2 --ranks 6
      tutti schedule show ring --ranks 4 --collective all_gather
      tutti schedule show direct --ranks 4 -c all_to_all_v --blocks zipf:1.2
      tutti schedule show binomial --ranks 8 > mine.schedule
    """
    echo(read("laying out", lambda: find_schedule(notation, **asdict(layout)).to_text()))


@app.command()
@grouped
def verify(notation: Notation, *, layout: Layout) -> None:
    """Verify that a schedule performs its collective, or report where it fails (exit code 3).

    \b
    Examples:
      tutti schedule verify recursive_multiplying:m1g2a3,n1g3a2 --ranks 7
      tutti schedule verify mine.schedule
    """
    verify_schedule(notation, **asdict(layout))


@app.command()
@grouped
def draw(
    notation: Notation,
    *,
    layout: Layout,
    to: Annotated[
        Path,
        typer.Option(
            "--out", "-o", metavar="FILE", help="Output file: .svg, .png, .pdf, .dot or .graphml."
        ),
    ] = Path("schedule.svg"),
) -> None:
    """Draw the program graph of a schedule: the ops of each rank and their dependencies.

    \b
    Examples:
      tutti schedule draw recursive_multiplying:a3,a2 --ranks 6
      tutti schedule draw ring --ranks 4 -o ring.dot
    """
    draw_schedule(notation, to, **asdict(layout))

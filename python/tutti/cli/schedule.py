"""`tutti schedule`: lists algorithms; shows, verifies and draws schedules."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tutti import _core, algorithms
from tutti.base.files.mistakes import did_you_mean, mistake
from tutti.base.files.reader import missing
from tutti.cli import options
from tutti.cli.grouped import grouped
from tutti.schedules.errors import VerificationError
from tutti.schedules.ir import check_ranks, schedule
from tutti.schedules.mpi_names import collective_name
from tutti.schedules.text import read_schedule
from tutti.study.console import echo, wrote
from tutti.study.files import written
from tutti.study.progress import Progress

if TYPE_CHECKING:
    from tutti.schedules.ir import Schedule

app = options.group("List, show, verify and draw schedules.")

_SUFFIX = ".schedule"

Notation = Annotated[
    str,
    typer.Argument(
        metavar="SCHEDULE",
        help=f"An algorithm as NAME[:ARG], or a schedule file (*{_SUFFIX}).",
        show_default=False,
    ),
]


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
    from tutti.schedules.view.summary import algorithm_view
    from tutti.study.study import present

    if ranks is not None:
        check_ranks(ranks)
    known = _core.collectives()
    collective = collective_name(collective) if collective else None
    if collective is not None and collective not in known:
        raise mistake(
            f"unknown collective `{collective}`",
            source="--collective",
            expected=f"one of {', '.join(known)}",
            hint=did_you_mean(collective, known),
        )
    for entry in algorithms():
        performed = [collective] if collective else entry.collectives
        if collective and collective not in entry.collectives:
            continue
        if ranks is not None and not any(entry.claims(c, ranks) for c in performed):
            continue
        present(algorithm_view(entry))


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
    with Progress("laying out"):
        text = find(notation, layout).to_text()
    echo(text)


@app.command()
@grouped
def verify(notation: Notation, *, layout: Layout) -> None:
    """Verify that a schedule performs its collective, or report where it fails (exit code 3).

    \b
    Examples:
      tutti schedule verify recursive_multiplying:m1g2a3,n1g3a2 --ranks 7
      tutti schedule verify mine.schedule
    """
    try:
        with Progress("verifying"):
            laid_out = find(notation, layout)
            proof = laid_out.verify()
    except VerificationError as error:
        problem = f"{notation}: {error.problem}"
        raise VerificationError(
            problem, kind=error.kind, hint=error.hint, fields=error.fields
        ) from None
    from tutti.schedules.view.summary import proof_view
    from tutti.study.study import present

    present(proof_view(laid_out, proof))


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
    laid_out = find(notation, layout)
    with Progress("drawing", writes=True):
        from tutti.schedules.view.program_graph import draw_program_graph

        path = written(draw_program_graph, to, laid_out)
    wrote(path, wrap=True)


def find(notation: str, layout: Layout) -> Schedule:
    """Returns the schedule of a notation, or of a file.

    Raises:
        ConfigError: The rank count is missing, or the file is unreadable or contradicts an option.
        AlgorithmError: The algorithm is unknown, or does not support the collective or the ranks.
        NotationError: The file is not a schedule.
    """
    if notation.endswith(_SUFFIX):
        written = read_schedule(Path(notation))
        for name, value in asdict(layout).items():
            _agrees(notation, f"--{name}", value, getattr(written, name, None))
        return written
    expected = f"an algorithm, or a file that ends in {_SUFFIX}"
    if Path(notation).is_file():
        raise mistake("is a file without the suffix of a schedule", source=notation,
                      expected=expected)  # fmt: skip
    if ":" not in notation and ("/" in notation or Path(notation).suffix):
        raise missing(Path(notation), expected)
    if layout.ranks is None:
        raise mistake("the rank count is missing", source=notation,
                      expected="--ranks N, such as --ranks 8")  # fmt: skip
    return schedule(
        notation,
        collective=layout.collective or "all_reduce",
        ranks=layout.ranks,
        root=layout.root or 0,
        blocks=layout.blocks,
    )


def _agrees(file: str, option: str, value: object, written: object) -> None:
    """Refuses an option that contradicts the file."""
    if value is not None and value != written:
        raise mistake(
            f"{option} {value} contradicts the file",
            source=file,
            expected=f"no {option}" if written is None else f"{option} {written}, or none",
        )

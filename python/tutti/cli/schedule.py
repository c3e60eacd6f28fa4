"""`tutti schedule`: what algorithms there are, what they lay out, and whether it is right."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.padding import Padding
from rich.text import Text

from tutti import _core, algorithms
from tutti.cli import options
from tutti.cli.console import out, wrote
from tutti.cli.files import written
from tutti.errors import VerificationError
from tutti.files.mistakes import did_you_mean, mistake
from tutti.files.reader import missing
from tutti.report import draw_program_graph
from tutti.schedule import check_ranks, schedule
from tutti.schedule_file import read_schedule

if TYPE_CHECKING:
    from tutti.schedule import Schedule

app = options.group("List, show, verify and draw schedules.")

_SUFFIX = ".schedule"

Notation = Annotated[
    str,
    typer.Argument(
        metavar="SCHEDULE",
        help=f"An algorithm as NAME[:ARG], or a file in the text form that ends in {_SUFFIX}.",
        show_default=False,
    ),
]
Ranks = Annotated[
    int | None, typer.Option("--ranks", "-r", help="How many ranks; a file says so itself.")
]
Collective = Annotated[
    str | None,
    typer.Option(
        "--collective", "-c", help="What it is to perform: all_reduce, unless a file says so."
    ),
]
Root = Annotated[
    int | None, typer.Option("--root", help="The root of a rooted collective: 0, if not given.")
]


@app.command("list")
def list_(
    collective: Annotated[
        str | None, typer.Option("--collective", "-c", help="Only those that perform this.")
    ] = None,
    ranks: Annotated[
        int | None, typer.Option("--ranks", "-r", help="Only those for this many ranks.")
    ] = None,
) -> None:
    """List the algorithms, and what each performs.

    \b
    Examples:
      tutti schedule list
      tutti schedule list --collective all_reduce --ranks 12
    """
    if ranks is not None:
        check_ranks(ranks)
    known = _core.collectives()
    if collective is not None and collective not in known:
        raise mistake(
            f"there is no collective `{collective}`",
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
        _describe(entry)


def _describe(entry: _core.Algorithm) -> None:
    """One algorithm as a paragraph: a table of them does not fit a terminal."""
    facts = {
        "performs": ", ".join(entry.collectives),
        "ranks": entry.ranks,
        "ARG": entry.argument,
        "source": entry.source,
    }
    console = out()
    console.print(f"{entry.name}:ARG" if entry.argument else entry.name, style="bold")
    console.print(Padding(Text(entry.summary), (0, 0, 0, 2)))
    for name, fact in facts.items():
        if fact:
            console.print(Padding(Text(f"{name}: {fact}", style="dim"), (0, 0, 0, 2)))


@app.command()
def show(
    notation: Notation,
    ranks: Ranks = None,
    collective: Collective = None,
    root: Root = None,
) -> None:
    """Print a schedule in its text form, which can be changed by hand and read back.

    \b
    Examples:
      tutti schedule show recursive_multiplying:a3,a2 --ranks 6
      tutti schedule show ring --ranks 4 --collective all_gather
      tutti schedule show binomial --ranks 8 > mine.schedule
    """
    typer.echo(find(notation, ranks, collective, root).to_text(), nl=False)


@app.command()
def verify(
    notation: Notation,
    ranks: Ranks = None,
    collective: Collective = None,
    root: Root = None,
) -> None:
    """Prove that a schedule does what it is meant to do, or say where it fails (exit code 3).

    \b
    Examples:
      tutti schedule verify recursive_multiplying:m1g2a3,n1g3a2 --ranks 7
      tutti schedule verify mine.schedule
    """
    laid_out = find(notation, ranks, collective, root)
    try:
        proof = laid_out.verify()
    except VerificationError as error:
        problem = f"{notation}: {error.problem}"
        raise VerificationError(
            problem, kind=error.kind, hint=error.hint, fields=error.fields
        ) from None
    facts = {
        "steps": f"{proof.steps:,}, all ranks together",
        "messages": f"{proof.messages:,}",
        "reductions": f"{proof.reductions:,}",
        "bits": proof.reproducibility if proof.reductions else "as sent: nothing is reduced",
        "buffering": "none: safe with rendezvous"
        if proof.rendezvous_safe
        else f"{_messages(proof.buffering)} to a rank must be able to wait there",
    }
    console = out()
    console.print(f"{laid_out.name} performs {laid_out.collective} on {laid_out.ranks:,} ranks")
    for name, value in facts.items():
        console.print(f"  {name + ':':<12}{value}", markup=False)


@app.command()
def draw(
    notation: Notation,
    ranks: Ranks = None,
    collective: Collective = None,
    root: Root = None,
    to: Annotated[
        Path, typer.Option("--out", "-o", help="File; .svg, .png, .pdf, .dot or .graphml.")
    ] = Path("schedule.svg"),
) -> None:
    """Draw the program graph of a schedule: what each rank does, and who waits for whom.

    \b
    Examples:
      tutti schedule draw recursive_multiplying:a3,a2 --ranks 6
      tutti schedule draw ring --ranks 4 -o ring.dot
    """
    laid_out = find(notation, ranks, collective, root)
    wrote(written(draw_program_graph, to, laid_out), wrap=True)


def find(notation: str, ranks: int | None, collective: str | None, root: int | None) -> Schedule:
    """The schedule of that notation, or in that file.

    Raises:
        ConfigError: No rank count, a file that cannot be read, or that says something else.
        AlgorithmError: The algorithm does not exist, or not for this.
        NotationError: The file is no schedule.
    """
    if notation.endswith(_SUFFIX):
        written = read_schedule(Path(notation))
        _agrees(notation, "--ranks", ranks, written.ranks)
        _agrees(notation, "--collective", collective, written.collective)
        _agrees(notation, "--root", root, written.root)
        return written
    if Path(notation).is_file():
        raise mistake(
            "is a file, but no schedule by its name",
            source=notation,
            expected=f"an algorithm, or a file that ends in {_SUFFIX}",
        )
    if ":" not in notation and ("/" in notation or Path(notation).suffix):
        raise missing(Path(notation), f"an algorithm, or a file that ends in {_SUFFIX}")
    if ranks is None:
        raise mistake(
            "an algorithm is laid out for a number of ranks",
            source=notation,
            expected="--ranks N, such as --ranks 8",
        )
    return schedule(notation, collective=collective or "all_reduce", ranks=ranks, root=root or 0)


def _agrees(file: str, option: str, asked: object, written: object) -> None:
    """Refuses an option that says something else than the file."""
    if asked is not None and asked != written:
        raise mistake(
            f"{option} {asked} is not what the file says",
            source=file,
            expected=f"no {option}" if written is None else f"{option} {written}, or none",
        )


def _messages(count: int) -> str:
    return "1 message" if count == 1 else f"{count:,} messages"

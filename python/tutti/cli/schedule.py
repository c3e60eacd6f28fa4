"""`tutti schedule`: what algorithms there are, what they lay out, and whether it is right."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tutti.cli.console import out

if TYPE_CHECKING:
    from tutti.schedule import Schedule

app = typer.Typer(
    help="List, show, verify and draw schedules.",
    rich_markup_mode=None,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)

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
Collective = Annotated[str, typer.Option("--collective", "-c", help="What it is to perform.")]
Root = Annotated[int, typer.Option("--root", help="The root of a rooted collective.")]


@app.command("list")
def list_(
    collective: Annotated[
        str | None, typer.Option("--collective", "-c", help="Only those that perform this.")
    ] = None,
    ranks: Annotated[
        int | None, typer.Option("--ranks", "-r", help="Only those for this many ranks.")
    ] = None,
) -> None:
    """List the algorithms, what they perform and where they were published.

    \b
    Examples:
      tutti schedule list
      tutti schedule list --collective all_reduce --ranks 12
    """
    from rich.table import Table

    from tutti import _core, algorithms
    from tutti.config.mistakes import did_you_mean, mistake

    known = _core.collectives()
    if collective is not None and collective not in known:
        raise mistake(
            f"there is no collective `{collective}`",
            source="--collective",
            expected=f"one of {', '.join(known)}",
            hint=did_you_mean(collective, known),
        )
    table = Table("algorithm", "what it does", "performs", "ranks", box=None, pad_edge=False)
    for entry in algorithms():
        performed = [collective] if collective else entry.collectives
        if collective and collective not in entry.collectives:
            continue
        if ranks is not None and not any(entry.claims(c, ranks) for c in performed):
            continue
        name = f"{entry.name}[dim]:ARG[/]" if entry.argument else entry.name
        what = f"{entry.summary}\n[dim]{entry.source}[/]"
        if entry.argument:
            what += f"\n[dim]ARG: {entry.argument}[/]"
        table.add_row(name, what, ", ".join(entry.collectives), entry.ranks)
    out().print(table)


@app.command()
def show(
    notation: Notation,
    ranks: Ranks = None,
    collective: Collective = "all_reduce",
    root: Root = 0,
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
    collective: Collective = "all_reduce",
    root: Root = 0,
) -> None:
    """Prove that a schedule does what it is meant to do, or say where it fails (exit code 3).

    \b
    Examples:
      tutti schedule verify recursive_multiplying:m1g2a3,n1g3a2 --ranks 7
      tutti schedule verify mine.schedule
    """
    laid_out = find(notation, ranks, collective, root)
    proof = laid_out.verify()
    facts = {
        "steps": f"{proof.steps:,}",
        "messages": f"{proof.messages:,}",
        "reductions": f"{proof.reductions:,}",
        "bits": proof.reproducibility,
        "buffering": "none: safe with rendezvous"
        if proof.rendezvous_safe
        else f"sends that {proof.buffering} messages to a rank can wait in",
    }
    console = out()
    console.print(f"{laid_out.name} performs {laid_out.collective} on {laid_out.ranks} ranks")
    for name, value in facts.items():
        console.print(f"  {name + ':':<12}{value}", markup=False)


@app.command()
def draw(
    notation: Notation,
    ranks: Ranks = None,
    collective: Collective = "all_reduce",
    root: Root = 0,
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
    from tutti.cli.files import written
    from tutti.report import draw_program_graph

    laid_out = find(notation, ranks, collective, root)
    out().print(f"wrote {written(draw_program_graph, to, laid_out)}", markup=False)


def find(notation: str, ranks: int | None, collective: str, root: int) -> Schedule:
    """The schedule of that notation, or in that file.

    Raises:
        ConfigError: No rank count, or a file that cannot be read.
        AlgorithmError: The algorithm does not exist, or not for this.
        NotationError: The file is no schedule.
    """
    from tutti.config import read_schedule
    from tutti.config.mistakes import mistake
    from tutti.schedule import schedule

    if notation.endswith(_SUFFIX):
        return read_schedule(Path(notation))
    if ranks is None:
        raise mistake(
            "an algorithm is laid out for a number of ranks",
            source=notation,
            expected="--ranks N",
            hint=f"tutti schedule show {notation} --ranks 8",
        )
    return schedule(notation, collective=collective, ranks=ranks, root=root)

"""`tutti paper`: the figures and tables of published papers, made again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tutti.cli.console import out, remark

if TYPE_CHECKING:
    import polars as pl
    from rich.console import JustifyMethod
    from rich.table import Table

    from tutti.papers import Exhibit, ExhibitResult, Paper

_SHOWN = 16
"""Rows of a table that are printed; the file has them all."""


def paper(
    name: Annotated[
        str | None, typer.Argument(metavar="[PAPER]", help="Which paper, as this verb lists them.")
    ] = None,
    figure: Annotated[
        list[int] | None, typer.Option("--figure", help="Only this figure; may be repeated.")
    ] = None,
    table: Annotated[
        list[int] | None, typer.Option("--table", help="Only this table; may be repeated.")
    ] = None,
    to: Annotated[Path, typer.Option("--out", "-o", help="Folder for figures and values.")] = Path(
        "out/papers"
    ),
) -> None:
    """Make a paper's figures and tables again, beside the published values.

    \b
    Examples:
      tutti paper
      tutti paper recursive-multiplying --figure 20 --figure 21
    """
    from tutti.cli.files import folder as made
    from tutti.papers import find_paper, papers

    if name is None:
        for known in papers().values():
            _list(known)
        return
    chosen = find_paper(name)
    exhibits = _chosen(chosen, figure or [], table or [])
    folder = made(to / chosen.name)
    for label, exhibit in exhibits:
        remark(f"{label}: {exhibit.title}")
        _report(label, exhibit.make(folder), folder)


def _list(paper: Paper) -> None:
    console = out()
    console.print(f"{paper.name}: {paper.citation}", markup=False)
    for label, exhibit in _all(paper):
        console.print(f"  {label}: {exhibit.title}", markup=False)


def _all(paper: Paper) -> list[tuple[str, Exhibit]]:
    figures = [(f"figure {number}", e) for number, e in sorted(paper.figures.items())]
    tables = [(f"table {number}", e) for number, e in sorted(paper.tables.items())]
    return figures + tables


def _chosen(paper: Paper, figures: list[int], tables: list[int]) -> list[tuple[str, Exhibit]]:
    from tutti.errors import ConfigError

    asked = [f"figure {n}" for n in figures] + [f"table {n}" for n in tables]
    known = dict(_all(paper))
    for label in asked:
        if label not in known:
            problem = f"{paper.name} has no {label} here: expected one of {', '.join(known)}"
            raise ConfigError(problem, kind="invalid")
    return [(label, known[label]) for label in asked] or list(known.items())


def _report(label: str, result: ExhibitResult, folder: Path) -> None:
    stem = label.replace(" ", "_")
    result.frame.write_csv(folder / f"{stem}.csv")
    console = out()
    console.print(f"source: {result.source}", markup=False)
    console.print(_table(result.frame, f"{label}: ours"))
    if result.published is not None:
        result.published.write_csv(folder / f"{stem}_published.csv")
        console.print(_table(result.published, f"{label}: published beside ours"))
    for name, table in result.tables.items():
        table.write_csv(folder / f"{stem}_{name}.csv")
        console.print(_table(table, f"{label}: {name}"))
    for line in result.notes:
        console.print(line, markup=False)
    for file in (*result.figures, folder / f"{stem}.csv"):
        console.print(f"wrote {file}", markup=False, soft_wrap=True)


def _table(frame: pl.DataFrame, title: str) -> Table:
    """The first rows of a frame; nothing in them is cut off."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(
        title=title, title_justify="left", caption_justify="left", box=SIMPLE_HEAD, pad_edge=False
    )
    for name, dtype in frame.schema.items():
        justify: JustifyMethod = "right" if dtype.is_numeric() else "left"
        table.add_column(name.replace("_", " "), justify=justify, overflow="fold")
    for row in frame.head(_SHOWN).iter_rows():
        table.add_row(*(_cell(cell) for cell in row))
    if frame.height > _SHOWN:
        table.caption = f"and {frame.height - _SHOWN} more rows in the file"
    return table


def _cell(cell: object) -> str:
    """A cell as it is shown: what stands beside something else stands below it."""
    return f"{cell:.4g}" if _long(cell) else str(cell).replace(" | ", "\n")


def _long(cell: object) -> bool:
    """Whether a number has more digits than anybody reads."""
    return isinstance(cell, float) and cell != round(cell, 1)

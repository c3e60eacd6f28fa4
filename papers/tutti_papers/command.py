"""`tutti paper`: reproduces the figures and tables of published papers."""

from __future__ import annotations

import functools
import json
import textwrap
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import polars as pl
import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from tutti.base.errors import ConfigError
from tutti.base.progress import watching
from tutti.study.console import out, record_table, remark, wrote
from tutti.study.files import folder as made
from tutti.study.progress import Progress
from tutti.view.breakable import Breakable
from tutti_papers import find_paper
from tutti_papers.claims import conclusions_frame, frame_of
from tutti_papers.overview import Overview, overview
from tutti_papers.summary import comparison_of, dumped, store, stored

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rich.console import JustifyMethod

    from tutti_papers import Conclusion, Exhibit, ExhibitResult, Paper

_SHOWN, _COMPARED = 16, 32
"""Rows printed of results and of comparisons; the files have all rows."""
FOLDER = Path("out/papers")
"""The default output folder."""
_BETWEEN = 2
"""Spaces between two columns."""


def paper(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[PAPER]", help="The paper. Default: compare all papers."),
    ] = None,
    figure: Annotated[
        list[int] | None, typer.Option("--figure", help="Only this figure; may be repeated.")
    ] = None,
    table: Annotated[
        list[int] | None, typer.Option("--table", help="Only this table; may be repeated.")
    ] = None,
    reading: Annotated[
        str | None,
        typer.Option("--reading", metavar="NAME", help="Another reading of what the text of "
                     "aries leaves open: a name, or answers such as wires=1,chunks=16."),
    ] = None,
    blocks: Annotated[
        int | None,
        typer.Option("-n", "--repetitions", min=1, help="Number of repetitions: blocks of "
                     "recursive-multiplying-live --figure 16. Default: up to 40, in a minute."),
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FOLDER",
                     help="Output folder. Default: out/papers."),
    ] = None,
) -> None:  # fmt: skip
    """Reproduce a paper's figures and tables, next to the published values.

    Without a name, prints the stored comparison of all papers: published values that agree,
    conclusions that hold or do not hold, and why.

    With --reading, the results are written to a folder of the reading, next to the default ones.

    \b
    Papers:
      ace                    endpoint engines for training (Rashidi 2021).
      aries                  collectives on chiplets with bypass wires (Yin 2023).
      recursive-multiplying  all_reduce in fewer steps, each with several
                             partners (Ruefenacht 2017).
      recursive-multiplying-live  on real ranks with emulated latency
                             (Ruefenacht 2017).
      smart                  single-cycle multicast and reduction on chip
                             (Krishna 2014).

    \b
    Examples:
      tutti paper
      tutti paper recursive-multiplying --figure 20 --figure 21
      tutti paper aries --figure 5 --reading one-wire
    """
    if name is None:
        given = {"--reading": reading, "--figure": figure, "--table": table,
                 "--repetitions": blocks, "--out": to}  # fmt: skip
        option = next((each for each, value in given.items() if value), None)
        if option is not None:
            problem = f"{option}: expected a paper"
            raise ConfigError(problem, kind="invalid", hint="for example `tutti paper aries`")
        _overview()
        return
    chosen = find_paper(name)
    folder = (to or FOLDER) / chosen.name
    if reading is not None:
        chosen, folder = _read_as(chosen, reading), folder / _file_name(reading)
    if blocks is not None:
        chosen = _with_blocks(chosen, blocks)
    exhibits = _chosen(chosen, figure or [], table or [])
    changed = "--reading" if reading is not None else "--repetitions" if blocks is not None else ""
    default = dict(find_paper(name).exhibits()) if changed else {}
    folder = made(folder, extra="reports")
    for label, exhibit in exhibits:
        remark(f"{label}: {exhibit.title}")
        if default.get(label) == exhibit:
            remark(f"{changed} has no effect on {label}")
        with ExitStack() as shown:
            # Until the exhibit reports progress; an exhibit without parts also draws.
            shown.enter_context(Progress(label, writes=True))
            with watching(functools.partial(_progress, shown)):
                result = exhibit.make(folder)
        _report(label, result, folder)
        compared = comparison_of(chosen.name, label, exhibit.title, result)
        record_table("exhibits", lambda: json.loads(dumped([compared])))  # noqa: B023 - called here
        store(folder, compared)


def _read_as(chosen: Paper, reading: str) -> Paper:
    """Returns the paper under a reading."""
    if chosen.read_as is None:
        problem = f"--reading {reading}: the exhibits of {chosen.name} have one reading"
        compared = chosen.compared_in
        hint = f"other readings are compared in {compared}" if compared else "omit --reading"
        raise ConfigError(problem, kind="invalid", hint=hint)
    return chosen.read_as(reading)


def _with_blocks(chosen: Paper, blocks: int) -> Paper:
    """Returns the paper with a number of measured blocks."""
    if chosen.with_blocks is None:
        problem = f"--repetitions {blocks}: {chosen.name} measures nothing on real ranks"
        raise ConfigError(problem, kind="invalid", hint="omit --repetitions")
    return chosen.with_blocks(blocks)


def _file_name(reading: str) -> str:
    """Returns the name of the folder of a reading."""
    return "reading-" + "".join(one if one.isalnum() or one in "-=." else "_" for one in reading)


def _overview() -> None:
    """Prints the stored comparison of all papers."""
    record_table("exhibits", lambda: json.loads(dumped(stored())))
    for found in overview():
        _show(found)
    out().print("docs/papers/README.md lists every value; `make papers` computes them again.")


@contextmanager
def _progress(before: ExitStack, what: str, total: int) -> Iterator[Callable[[], None]]:
    """Shows the progress of a part of an exhibit; closes the display before it."""
    before.close()
    finished = 0
    with Progress(what, work=total, total=total, handles_interrupts=True) as progress:

        def done() -> None:
            nonlocal finished
            finished += 1
            progress.advance(1, finished)

        yield done


def _show(found: Overview) -> None:
    """Prints a paper: its verdict, its exhibits, and the conclusions with the reasons."""
    console = out()
    console.print(f"{found.paper.name}: {found.paper.citation}", markup=False)
    if found.comparisons:
        console.print(f"{found.verdict}. Computed by tutti {', '.join(found.versions)}.")
    console.print("\nexhibits")
    for label, title, counts in found.exhibits():
        _hanging(f"{label}: {title} ({counts})")
    if found.readings:
        console.print("\nreadings of what the text leaves open")
    for each in found.readings:
        _hanging(f"{each.name}: {each.met} of {each.values} simulated values: {each.meaning}")
    _print_conclusions(found.conclusions)
    differing = [one for one in found.claims if one[1].verdict == "differs" and not one[1].variant]
    if differing:
        console.print()
        exhibits = pl.Series("exhibit", [exhibit for exhibit, _ in differing])
        values = frame_of(claim for _, claim in differing).drop("method", "verdict", "source")
        values.insert_column(0, exhibits)
        for table in tables(values, f"{found.paper.name}: values that differ", console.width):
            console.print(table)
    console.print()


def _print_conclusions(conclusions: Sequence[Conclusion]) -> None:
    """Prints conclusions with their evidence: those that do not hold first."""
    for heading, holds in (("that do not hold", False), ("that hold", True)):
        chosen = [one for one in conclusions if one.holds is holds]
        if chosen:
            out().print(f"\nconclusions of the paper {heading}")
        for one in chosen:
            _hanging(one.statement)
            _hanging(one.why, 4)


def _hanging(text: str, indent: int = 2) -> None:
    """Prints a line that continues further to the right."""
    console = out()
    filled = textwrap.fill(
        text, console.width, initial_indent=" " * indent, subsequent_indent=" " * (indent + 2),
        break_on_hyphens=False, break_long_words=False,
    )  # fmt: skip
    console.print(filled, markup=False, soft_wrap=True)


def _chosen(paper: Paper, figures: list[int], tables: list[int]) -> list[tuple[str, Exhibit]]:
    selected = [f"figure {n}" for n in figures] + [f"table {n}" for n in tables]
    known = dict(paper.exhibits())
    for label in selected:
        if label not in known:
            problem = f"{paper.name} has no {label}: expected one of {', '.join(known)}"
            raise ConfigError(problem, kind="invalid")
    return [(label, known[label]) for label in selected] or list(known.items())


def _report(label: str, result: ExhibitResult, folder: Path) -> None:
    stem = label.replace(" ", "_")
    result.frame.write_csv(folder / f"{stem}.csv")
    console = out()
    console.print(f"source: {result.source}", markup=False)
    published = frame_of(result.published)
    if not result.frame.equals(published):
        _print(result.frame, f"{label}: ours")
    for name, table in {"published": published, **result.tables}.items():
        if not table.is_empty():
            table.write_csv(folder / f"{stem}_{name}.csv")
            _print(table, f"{label}: {name}", _COMPARED)
    if result.conclusions:
        conclusions_frame(result.conclusions).write_csv(folder / f"{stem}_conclusions.csv")
        _print_conclusions(result.conclusions)
        console.print()
    for line in (result.verdict, *result.notes):
        console.print(line, markup=False)
    for file in (*result.figures, folder / f"{stem}.csv"):
        wrote(file)


def _print(frame: pl.DataFrame, title: str, shown: int = _SHOWN) -> None:
    """Prints the first rows of a frame."""
    console = out()
    for table in tables(frame.head(shown), title, console.width):
        console.print(table)
        console.print()
    if frame.height > shown:
        console.print(f"{frame.height - shown} more rows in the file\n")


def tables(frame: pl.DataFrame, title: str, width: int) -> list[Table]:
    """Returns a frame as tables; columns that exceed the width continue in a further table."""
    columns = {name: _column(frame, name) for name in frame.columns}
    return [
        _table(frame.schema, {key: columns[key] for key in group}, name, width)
        for number, group in enumerate(_groups(columns, width))
        for name in [title if number == 0 else f"{title}, continued"]
    ]


def _column(frame: pl.DataFrame, name: str) -> list[Breakable]:
    """Returns heading and cells."""
    return [Breakable(name.replace("_", " ")), *map(_cell, frame[name])]


def _least(column: list[Breakable]) -> int:
    """Returns the minimum width of a column without broken words."""
    return max(cell.least for cell in column)


def _groups(columns: dict[str, list[Breakable]], width: int) -> list[list[str]]:
    """Groups columns that fit the width; each group starts with the first column."""
    first, *others = columns
    groups = [[first]]
    for name in others:
        together = [_least(columns[one]) for one in (*groups[-1], name)]
        if len(groups[-1]) > 1 and _wide(together) > width:
            groups.append([first])
        groups[-1].append(name)
    return groups


def _wide(widths: Sequence[int]) -> int:
    return sum(widths) + _BETWEEN * (len(widths) - 1)


def _table(schema: pl.Schema, columns: dict[str, list[Breakable]], title: str, most: int) -> Table:
    """Returns a table of columns without truncation."""
    table = Table(
        title=title,
        title_justify="left",
        box=SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, _BETWEEN - 1, 0, 0),
    )
    for (name, column), width in zip(columns.items(), _widths(columns, most), strict=True):
        justify: JustifyMethod = "right" if schema[name].is_numeric() else "left"
        table.add_column(column[0], justify=justify, width=width)
    for row in zip(*(column[1:] for column in columns.values()), strict=True):
        table.add_row(*row)
    return table


def _widths(columns: dict[str, list[Breakable]], width: int) -> list[int]:
    """Returns widths without broken words; spare width goes first to columns that need little."""
    widths = {name: _least(column) for name, column in columns.items()}
    most = {
        name: max((cell.most for cell in column[1:]), default=0) for name, column in columns.items()
    }
    left = width - _wide(list(widths.values()))
    for name in sorted(columns, key=lambda name: most[name] - widths[name]):
        more = max(0, min(most[name] - widths[name], left))
        widths[name] += more
        left -= more
    return list(widths.values())


def _cell(cell: object) -> Breakable:
    """Returns a cell; parts separated by ` | ` are on separate lines."""
    if _long(cell):
        return Breakable(f"{cell:.4g}")
    return Breakable(*str(cell).replace(" %", "\N{NO-BREAK SPACE}%").split(" | "))


def _long(cell: object) -> bool:
    """Returns whether a number has more than one decimal."""
    return isinstance(cell, float) and cell != round(cell, 1)

"""What a result shows, declared once.

The terminal, `--json`, the HTML report, the notebook and the files are renderings of a `View`:
`terminal.py`, `fields.py`, `page.py`, `notebook.py` and `folder.py`. The numbers of a result are
`Column`s with a `key`, which tables, facts, `--json` and files share.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from .tables import frame_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from rich.console import RenderableType

    from .page import Finding, Section
    from .tables import Column, ReportTable


@dataclass(frozen=True, slots=True)
class Fact:
    """A name and a text about a result, and perhaps a figure of `--json`.

    Attributes:
        name: The name; equal to the previous one if the text continues it.
        text: The text; empty for a fact of `--json` only.
        key: The name of the value in `--json`; empty if it is not there.
        value: The value, or a function that returns it.
    """

    name: str
    text: str = ""
    key: str = ""
    value: Any = None


@dataclass(frozen=True, slots=True)
class Data:
    """A data frame for `--json` and files.

    Attributes:
        name: The name among the tables of `--json`; empty if it is not there.
        frame: Returns a data frame; without files, also mappings or dataclasses.
        files: The names of its files, with the suffix `.parquet` or `.csv`.
    """

    name: str
    frame: Callable[[], Any]
    files: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class View:
    """What a result shows.

    Attributes:
        kind: The kind of report in the glossary.
        kicker: The kind of report in words, above the question.
        title: The title that the user gave to the experiment.
        question: The question that the result answers; empty if it has no page.
        answer: One to three sentences with the most important values.
        headline: What was run; a page omits it if it has no name.
        inputs: Settings of the run. The terminal omits them if it shows tables.
        facts: Values of the result; a page shows them in its sections.
        tables: The tables of the terminal and of notebooks.
        data: Data frames for `--json` and files.
        below: Further tables and texts of the terminal; those with `no_wrap` may exceed its width.
        drawings: Functions that draw a file, by the file's name.
        inline: Returns the drawing of a notebook as SVG.
        sections: Returns the sections of the page.
        findings: Further findings of the page, each group with a heading.
        remarks: Sentences below the answer of the page.
        log: Remarks on stderr and in `--json`.
        conventions: Definitions of terms and units, at the end of the page.
        provenance: Names and values of what produced the data, at the end of the page.
    """

    kind: str = ""
    kicker: str = ""
    title: str = ""
    question: str = ""
    answer: Sequence[str] = ()
    headline: Fact = Fact("")
    inputs: Sequence[Fact] = ()
    facts: Sequence[Fact] = ()
    tables: Sequence[ReportTable[Any]] = ()
    data: Sequence[Data] = ()
    below: Sequence[RenderableType] = ()
    drawings: Mapping[str, Callable[[Path], Path]] = field(default_factory=dict)
    inline: Callable[[], str] | None = None
    sections: Callable[[], Sequence[Section]] = tuple
    findings: Sequence[tuple[str, Sequence[str | Finding]]] = ()
    remarks: Sequence[str] = ()
    log: Sequence[str] = ()
    conventions: str = ""
    provenance: Sequence[tuple[str, str]] = ()

    def with_page(self, report: bool) -> View:
        """Returns the view with its page, or without one."""
        return self if report else replace(self, question="")

    @property
    def every_fact(self) -> list[Fact]:
        """Headline, inputs and facts."""
        return [self.headline, *self.inputs, *self.facts]


def facts_of(columns: Iterable[Column[Any]], row: object) -> list[Fact]:
    """Returns the facts that columns have on a row; columns without a value have none.

    Args:
        columns: The quantities of a result.
        row: The result.
    """
    facts = (column.fact_of(row) for column in columns)
    return [Fact(*fact) for fact in facts if fact]


def figures_of(columns: Iterable[Column[Any]], row: object) -> list[Fact]:
    """Returns the facts that columns have on a row, with the values of `--json`.

    Args:
        columns: The quantities of a result.
        row: The result.
    """
    return [
        Fact(*(column.fact_of(row) or ("", "")), column.key, column.value(row))
        for column in columns
    ]


def json_facts(**values: object) -> list[Fact]:
    """Returns facts of `--json` only, by key; a value may be a function that returns it."""
    return [Fact(key, key=key, value=value) for key, value in values.items()]


def results(
    columns: Sequence[Column[Any]],
    rows: Sequence[Any],
    name: str = "results",
    suffixes: Sequence[str] = (".parquet",),
) -> Data:
    """Returns the data of quantities: a row per result, a column per quantity with a key.

    Args:
        columns: The quantities.
        rows: The results, in order.
        name: The name in `--json`, and of the files without suffix.
        suffixes: The suffixes of the files.
    """
    return Data(name, lambda: frame_of(columns, rows), [f"{name}{suffix}" for suffix in suffixes])

"""The page of every report: summary and facts, then sections of charts and tables.

A page is one self-contained file, including plotly.js, which opens from disk without a network.
Pages are reproducible byte by byte: charts have fixed ids, and no time is written.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from functools import partial
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tutti._core import __version__
from tutti.glossary import glossary

from .breakable import MARKS, unbroken

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from markupsafe import Markup

    from .charts import Figure
    from .tables import ReportTable

_CODE = re.compile(r"`([^`]+)`")


@dataclass(frozen=True, slots=True)
class Choice:
    """A selector above charts, which shows the traces whose `meta` equals its value."""

    id: str
    label: str
    options: Sequence[tuple[int, str]]
    first: int
    hint: str


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a page.

    Attributes:
        heading: A noun phrase.
        lead: The content of the charts and the table.
        charts: Charts by id; None is skipped.
        table: The table below the charts.
        choice: The selector of the charts.

        note: A text below the table.
        part: The heading of the part of the report that starts with this section.
    """

    heading: str
    lead: str = ""
    charts: Mapping[str, Figure | None] = field(default_factory=dict)
    table: ReportTable[Any] | None = None
    choice: Choice | None = None
    note: str = ""
    part: str = ""

    @property
    def drawn(self) -> dict[str, Figure]:
        """The charts without None."""
        return {name: chart for name, chart in self.charts.items() if chart is not None}


@dataclass(frozen=True, slots=True)
class Finding:
    """A line of the summary: name with colour, finding and reason."""

    name: str
    found: str
    why: str = ""
    colour: str = ""

    def __str__(self) -> str:
        return f"{self.name} {self.found} {self.why}".strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A report.

    Attributes:
        kind: The kind of report in the glossary, which lists its terms.
        kicker: The kind of report in words, above the title.
        title: The title of the page.
        answers: The summaries, each with a heading, which may be empty.
        facts: Name and value of the inputs.
        sections: The sections, from top to bottom.

        conventions: Definitions of terms and units, at the end.
        notes: Sentences below the summary.
        provenance: Name and value of the identification of the results, at the end.
    """

    kind: str
    kicker: str
    title: str
    answers: Sequence[tuple[str, Sequence[str | Finding]]]
    facts: Sequence[tuple[str, str]]
    sections: Sequence[Section]
    conventions: str = ""
    notes: Sequence[str] = ()
    provenance: Sequence[tuple[str, str]] = ()

    def write(self, path: str | Path) -> Path:
        """Writes the page.

        Args:
            path: The file to write; its folder must exist.

        Returns:
            The path written.
        """
        from plotly.offline import get_plotlyjs

        charts = {name: one for section in self.sections for name, one in section.drawn.items()}
        return write_html(path, "report", self.kind, data=charts, page=self, plotly=get_plotlyjs())


def write_html(path: str | Path, name: str, kind: str, *, data: object, **shown: object) -> Path:
    """Writes the template `name` with its style and script, and data for the script.

    Args:
        path: The file to write; its folder must exist.
        name: The name of the template, style and script among the assets.
        kind: The kind of report in the glossary, whose terms the page defines at its end.
        data: The data of the script, serialised as JSON.
        **shown: The variables of the template.

    Returns:
        The path written.
    """
    import jinja2

    environment = jinja2.Environment(
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        loader=jinja2.FunctionLoader(_asset),
    )
    environment.filters |= {"breakable": _breakable, "coded": _coded, "unbroken": unbroken}
    terms = glossary().report_terms(kind)
    text = _json(data)
    page = environment.get_template(f"{name}.html.j2").render(
        version=__version__,
        data=text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"),
        css=_asset("base.css") + _asset(f"{name}.css"),
        script=_asset(f"{name}.js"),
        terms=terms,
        references=glossary().cited(terms),
        **shown,
    )
    target = Path(path)
    target.write_text(page, encoding="utf-8", newline="\n")
    return target


def _json(data: object) -> str:
    """Returns data as JSON; numbers that JSON lacks, such as NaN, are null."""
    write = partial(json.dumps, separators=(",", ":"), ensure_ascii=True)
    try:
        return write(data, allow_nan=False)
    except ValueError:
        return write(json.loads(write(data), parse_constant=lambda _: None))


def _breakable(text: str) -> Markup:
    """Returns the text with break opportunities after the delimiters of arguments."""
    from markupsafe import Markup, escape

    return Markup(MARKS.sub(r"\1<wbr>", str(escape(text))))  # noqa: S704 - escaped first


def _coded(text: str) -> Markup:
    """Returns the text with its parts between backticks as code."""
    from markupsafe import Markup, escape

    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(text))))  # noqa: S704 - escaped first


def _asset(name: str) -> str:
    return resources.files(__package__).joinpath("assets", name).read_text(encoding="utf-8")

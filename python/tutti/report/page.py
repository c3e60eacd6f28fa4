"""The page of every report: an answer and facts, then charts and tables one below the other.

A page is one file that opens from disk without a network and holds everything it needs (plotly.js
too). The same input gives the same bytes: charts have fixed ids, and nothing reads a clock.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from tutti._core import __version__

from .breakable import MARKS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import plotly.graph_objects as go

    from .tables import ReportTable


@dataclass(frozen=True, slots=True)
class Choice:
    """A selector above charts: a chart shows the traces whose `meta` is the chosen value."""

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
        lead: What the charts and the table show.
        charts: By id; None are left out.
        table: Below the charts.
        choice: The selector of what the charts show.
        note: Below the table.
        part: The heading of the part of the report that starts here.
    """

    heading: str
    lead: str = ""
    charts: Mapping[str, go.Figure | None] = field(default_factory=dict)
    table: ReportTable[Any] | None = None
    choice: Choice | None = None
    note: str = ""
    part: str = ""

    @property
    def drawn(self) -> dict[str, go.Figure]:
        """The charts that there are."""
        return {name: chart for name, chart in self.charts.items() if chart is not None}


@dataclass(frozen=True, slots=True)
class Finding:
    """A line of the answer that starts with a name: its colour, what is found, and why."""

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
        kicker: The kind of report, above the title.
        title: The question.
        answers: What answers it, each with a heading, which may be empty.
        facts: The input, name and value.
        sections: From top to bottom.
        conventions: What words and units mean, at the end.
        notes: Sentences below the answer.
        provenance: Name and value of what identifies the results, at the end.
    """

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
            path: where to; the folder must exist.

        Returns:
            The path written.
        """
        from plotly.offline import get_plotlyjs

        charts = {name: one for section in self.sections for name, one in section.drawn.items()}
        plain = {name: json.loads(figure.to_json()) for name, figure in charts.items()}
        return write_html(path, "report", plain, page=self, plotly=get_plotlyjs())


def write_html(path: str | Path, name: str, data: object, **shown: object) -> Path:
    """Writes the template `name` with its style and script, and data for the script.

    Args:
        path: where to; the folder must exist.
        name: of the template, style and script among the assets.
        data: what the script draws, as JSON has it.
        **shown: what the template shows.

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
    environment.filters["breakable"] = _breakable
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=True)
    page = environment.get_template(f"{name}.html.j2").render(
        version=__version__,
        data=text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"),
        css=_asset("base.css") + _asset(f"{name}.css"),
        script=_asset(f"{name}.js"),
        **shown,
    )
    target = Path(path)
    target.write_text(page, encoding="utf-8", newline="\n")
    return target


def _breakable(text: str) -> Markup:
    """The text with places at which a narrow column may break it: after a name's marks."""
    return Markup(MARKS.sub(r"\1<wbr>", str(escape(text))))  # noqa: S704 - escaped first


def _asset(name: str) -> str:
    return resources.files(__package__).joinpath("assets", name).read_text(encoding="utf-8")

"""The page of every report: question, answer and facts, then sections of charts and tables.

The title is the question, and the first screen has the answer. Each chart has a caption with its
axes and what to look for. Tables are exported as CSV. Pages of more than `LIMIT` bytes are
down-sampled and state it.

A page is one self-contained file, including plotly.js, which opens from disk without a network.
plotly.js is compressed, as it would take 4.8 MB of a page. Pages are reproducible byte by byte:
charts have fixed ids, and no time is written.
"""

from __future__ import annotations

import json
import re
import zlib
from base64 import b64encode
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tutti._core import __version__
from tutti.base.cache import store, writable_cache
from tutti.base.glossary import glossary

from .breakable import MARKS, unbroken
from .palette import DARK
from .quantity import sentence
from .sampling import fewer_points
from .tables import MOST_ROWS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from jinja2 import FileSystemBytecodeCache
    from markupsafe import Markup

    from .charts import Figure
    from .tables import ReportTable
    from .view import View

LIMIT = 10_000_000
"""Maximum size of a page in bytes."""
SORTING = "Select a heading to sort the table."
MOST_SENTENCES = 3
"""Sentences of an answer, which fits the first screen."""
_CODE = re.compile(r"`([^`]+)`")
_FEWEST_ROWS = 375
_MOST_REDUCTIONS = 12


@dataclass(frozen=True, slots=True)
class Chart:
    """A figure with its caption.

    Attributes:
        figure: The figure.
        axes: The axes with their units, as sentences.
        look: What to look for, as a sentence.
        counted: The plural of what the figure shows, if a page shows only some of it.
    """

    figure: Figure
    axes: str
    look: str
    counted: str = "points"

    def __post_init__(self) -> None:
        """Checks the caption."""
        if not (self.axes.endswith(".") and self.look.endswith(".")):
            raise ValueError(f"incomplete caption of a chart: {self.axes!r}, {self.look!r}")


def captioned(figure: Figure | None, axes: str, look: str, counted: str = "points") -> Chart | None:
    """Returns the chart of a figure, or None without a figure."""
    return None if figure is None else Chart(figure, axes, look, counted)


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
        lead: The content of the section.
        charts: Charts by id; None is skipped.
        table: The table below the charts.
        choice: The selector of the charts.
        note: A text below the table.
        part: The heading of the part of the report that starts with this section.
        source: The file with all data, if the page shows only some of it.
    """

    heading: str
    lead: str = ""
    charts: Mapping[str, Chart | None] = field(default_factory=dict)
    table: ReportTable[Any] | None = None
    choice: Choice | None = None
    note: str = ""
    part: str = ""
    source: str = "the results file"

    @property
    def drawn(self) -> dict[str, Chart]:
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
        kicker: The kind of report in words, above the question.
        title: The title that the user gave to the experiment, above the question.
        question: The question that the report answers; the title of the page.
        answer: One to three sentences with the most important values.
        facts: Name and value of the inputs.
        sections: The sections, from top to bottom.
        findings: Further findings below the facts, each group with a heading, which may be empty.
        conventions: Definitions of terms and units, at the end.
        notes: Sentences below the answer.
        provenance: Name and value of the identification of the results, at the end.
    """

    kind: str
    kicker: str
    question: str
    answer: Sequence[str]
    facts: Sequence[tuple[str, str]]
    sections: Sequence[Section]
    title: str = ""
    findings: Sequence[tuple[str, Sequence[str | Finding]]] = ()
    conventions: str = ""
    notes: Sequence[str] = ()
    provenance: Sequence[tuple[str, str]] = ()

    def __post_init__(self) -> None:
        """Checks question and answer."""
        if not self.question.endswith("?"):
            raise ValueError(f"the title of a report is a question, not {self.question!r}")
        if not 1 <= len(self.answer) <= MOST_SENTENCES:
            raise ValueError(f"an answer has 1 to {MOST_SENTENCES} sentences: {self.answer}")

    def write(self, path: str | Path, limit: int = LIMIT) -> Path:
        """Writes the page, with fewer rows and points if it would exceed a size.

        Args:
            path: The file to write; its folder must exist.
            limit: The maximum size in bytes.

        Returns:
            The path written.
        """
        target = Path(path)
        text = next(text for text, last in self._reduced(limit) if len(text) <= limit or last)
        target.write_bytes(text)
        return target

    def _reduced(self, limit: int) -> Iterator[tuple[bytes, bool]]:
        """Yields pages with fewer and fewer rows and points, and whether no smaller one follows.

        Tables lose rows first, because files have all rows.
        """
        charts = {name: one for section in self.sections for name, one in section.drawn.items()}
        full, notes = {name: one.figure for name, one in charts.items()}, dict[str, str]()
        figures, rows, library = full, MOST_ROWS, _plotly()
        longest = max((len(one.table.rows) for one in self.sections if one.table), default=0)
        keep = 1.0
        for attempt in range(_MOST_REDUCTIONS + 1):
            text = render("report", self.kind, data=figures, page=self, plotly=library, rows=rows,
                          sampled=notes)  # fmt: skip
            page = text.encode()
            yield page, attempt == _MOST_REDUCTIONS
            if min(rows, longest) > _FEWEST_ROWS:
                rows = min(rows, longest) // 2
                continue
            full = json.loads(_json(full))
            size = len(_json(figures))
            keep *= min(max(size - (len(page) - limit), 0) / size, 0.7) if size else 0.7
            figures, notes = {}, {}
            for name, figure in full.items():
                figures[name], shown, total = fewer_points(figure, keep)
                if shown < total:
                    notes[name] = f"Shows {shown:,} of {total:,} {charts[name].counted}"


class _Library(NamedTuple):
    """A script: its licence, and itself in zlib's format as base64."""

    licence: str
    packed: str


_LICENCE = 1024
"""Bytes at the start of the script that contain its licence."""
_LEVEL = 4
"""The level of compression: 9 takes three times as long for 4 % fewer bytes."""


def _plotly() -> _Library:
    """Returns plotly's script, from its package without importing it, which takes 60 ms.

    Raises:
        ModuleNotFoundError: plotly is not installed.
    """
    found = find_spec("plotly")
    if found is None or found.origin is None:
        raise ModuleNotFoundError("No module named 'plotly'", name="plotly")
    script = Path(found.origin).parent / "package_data" / "plotly.min.js"
    with script.open("rb") as file:
        licence = file.read(_LICENCE).partition(b"*/")[0].decode().removeprefix("/**").strip()
    return _Library(licence, _packed(script, licence))


def _packed(script: Path, licence: str) -> str:
    """Returns a script in zlib's format as base64, stored as it takes 60 ms to compress.

    The name of the stored file changes with the script: its size, its time, its licence, which has
    its version, and the level.
    """
    state, folder = script.stat(), writable_cache("scripts")
    key = f"{state.st_size}-{state.st_mtime_ns}-{zlib.crc32(licence.encode()):08x}-{_LEVEL}"
    stored = None if folder is None else folder / f"{script.stem}-{key}.b64"
    with suppress(OSError):
        if stored is not None and stored.is_file():
            return stored.read_text("ascii")
    packed = b64encode(zlib.compress(script.read_bytes(), _LEVEL)).decode()
    if stored is not None:
        store(stored, packed)
    return packed


def page_of(view: View) -> Page:
    """Returns the report of a view."""
    return Page(
        kind=view.kind,
        kicker=view.kicker,
        title=view.title,
        question=view.question,
        answer=view.answer,
        notes=[sentence(text) for text in view.remarks],
        facts=[(fact.name, fact.text) for fact in (view.headline, *view.inputs) if fact.name],
        sections=view.sections(),
        findings=view.findings,
        conventions=view.conventions,
        provenance=view.provenance,
    )


def render(name: str, kind: str, *, data: object, **shown: object) -> str:
    """Returns the template `name` with its style and script, and data for the script.

    Args:
        name: The name of the template, style and script among the assets.
        kind: The kind of report in the glossary, whose terms the page defines at its end.
        data: The data of the script, serialised as JSON.
        **shown: The variables of the template.
    """
    import jinja2

    environment = jinja2.Environment(
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        loader=jinja2.FunctionLoader(_asset),
        bytecode_cache=_compiled(),
    )
    environment.filters |= {"breakable": _breakable, "coded": _coded, "unbroken": unbroken}
    terms = glossary().report_terms(kind)
    text = _json(data)
    return environment.get_template(f"{name}.html.j2").render(
        version=__version__,
        data=text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"),
        css=_asset("base.css") + _asset(f"{name}.css"),
        script=_asset(f"{name}.js"),
        terms=terms,
        references=glossary().cited(terms),
        dark=lambda colour: DARK.get(colour, colour),
        shades={light: dark for light, dark in DARK.items() if light in text},
        **shown,
    )


def _compiled() -> FileSystemBytecodeCache | None:
    """Returns the stored compiled templates, which take 40 ms to compile; None without a cache.

    The names of files contain versions, as compiled templates depend on the code that uses them.
    """
    import jinja2

    folder = writable_cache("templates")
    if folder is None:
        return None
    versions = f"{__version__}-{jinja2.__version__}"
    return jinja2.FileSystemBytecodeCache(str(folder), f"{versions}-%s.cache")


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

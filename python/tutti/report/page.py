"""A report as a page of sections: an answer and facts, then charts and tables one below the other.

Each page is one file that opens from disk without a network, and the same input gives the same
bytes.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tutti._core import __version__

from .html import _asset, embedded

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import plotly.graph_objects as go


def write_page(
    path: str | Path,
    *,
    kicker: str,
    title: str,
    answer: Sequence[str],
    facts: Sequence[tuple[str, str]],
    sections: Sequence[Mapping[str, Any]],
    charts: Mapping[str, go.Figure],
    conventions: str,
) -> Path:
    """Writes a page.

    Args:
        path: where to; the folder must exist.
        kicker: what kind of report it is, above the title.
        title: the question.
        answer: sentences that answer it.
        facts: what was asked, name and value.
        sections: each with ``heading`` and ``lead``; ``chart``, the name of one of the charts;
            ``table``, with ``columns`` as (name, ``"text"`` or ``"number"``) and ``rows`` of
            (value to sort by, text).
        charts: by name.
        conventions: what words and units mean, at the end.

    Returns:
        The path written.
    """
    import jinja2
    from plotly.offline import get_plotlyjs

    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    page = environment.from_string(_asset("page.html.j2")).render(
        kicker=kicker,
        title=title,
        version=__version__,
        answer=answer,
        facts=facts,
        sections=sections,
        conventions=conventions,
        figures=embedded(charts),
        plotly=get_plotlyjs(),
        css=_asset("report.css"),
        script=_asset("report.js"),
    )
    target = Path(path)
    target.write_text(page, encoding="utf-8", newline="\n")
    return target

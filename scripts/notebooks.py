"""Runs the notebooks of docs/notebooks without Jupyter, and writes them as pages.

Notebooks are stored without outputs. Cells run in one namespace, as in a kernel; the value of the
last expression of a cell is its output, as HTML if it has `_repr_html_`. Magics are not supported.
"""

from __future__ import annotations

import ast
import contextlib
import html
import io
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class Cell:
    """A cell of a notebook; `kind` is `markdown` or `code`."""

    kind: str
    source: str


@dataclass(frozen=True)
class Output:
    """The output of a code cell: what it prints, and the HTML of its value, if any."""

    text: str = ""
    html: str = ""


def cells(notebook: Path) -> list[Cell]:
    """Returns the cells of a notebook."""
    found = json.loads(notebook.read_text("utf-8"))["cells"]
    return [Cell(one["cell_type"], "".join(one["source"])) for one in found]


def outputs(notebook: Path) -> list[Output]:
    """Runs a notebook in its folder; returns an output per cell, empty for Markdown."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    before = Path.cwd()
    os.chdir(notebook.parent)
    try:
        return [
            _output(one.source, namespace, f"{notebook.name}, cell {number}")
            if one.kind == "code"
            else Output()
            for number, one in enumerate(cells(notebook))
        ]
    finally:
        os.chdir(before)


def _output(source: str, namespace: dict[str, Any], name: str) -> Output:
    body = ast.parse(source, name).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    value = None
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(ast.Module(body, []), name, "exec"), namespace)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), name, "eval"), namespace)
    if value is None:
        return Output(out.getvalue())
    if not hasattr(value, "_repr_html_"):
        return Output(f"{out.getvalue()}{value!r}\n")
    return Output(out.getvalue(), value._repr_html_())


def page(notebook: Path, markdown: Callable[[str], str], *, run: bool) -> str:
    """Returns a notebook as Markdown, with outputs if it is run.

    Args:
        notebook: The notebook.
        markdown: Applied to the text of Markdown cells, such as to rewrite links.
        run: Whether to run the code cells.
    """
    found = cells(notebook)
    shown = outputs(notebook) if run else [Output()] * len(found)
    link = f'<p><a href="{notebook.name}" download>Download the notebook</a></p>'
    parts = [markdown(found[0].source), link]
    for cell, output in zip(found[1:], shown[1:], strict=True):
        is_code = cell.kind == "code"
        parts.append(f"```python\n{cell.source}\n```" if is_code else markdown(cell.source))
        if output.text:
            parts.append(f"<pre><code>{html.escape(output.text)}</code></pre>")
        if output.html:
            # On one line, since Markdown ends a block of HTML at an empty line.
            parts.append(f'<div class="output">{" ".join(output.html.splitlines())}</div>')
    return "\n\n".join(parts) + "\n"

"""What a file format shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tutti.view.terminal import indented
from tutti.view.view import Data, Fact, View

if TYPE_CHECKING:
    from tutti.formats.formats import Format


def format_view(each: Format) -> View:
    """Returns a format as a paragraph: a table would not fit a terminal."""
    row = {name: getattr(each, name) for name in ("name", "content", "summary", "endings")}
    row |= {"reads": bool(each.read), "writes": bool(each.write)}
    directions = " and ".join(name for name in ("read", "write") if getattr(each, name))
    files = indented(f"files: *{', *'.join(each.endings)}", "dim")
    return View(
        headline=Fact("name", f"{each.name}: {each.content}, {directions}"),
        below=[indented(each.summary), files],
        data=[Data("formats", lambda: [row])],
    )

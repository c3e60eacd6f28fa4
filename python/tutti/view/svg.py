"""Elements of inline SVG for notebooks, in the colour of the surrounding text.

The standard library writes them, so that showing a result imports nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

if TYPE_CHECKING:
    from collections.abc import Iterable

WIDTH = 760
"""Default width of a drawing, in pixels."""


def drawing(width: float, height: float, title: str) -> ET.Element:
    """Returns an empty drawing that shrinks with the page; screen readers announce the title."""
    root = ET.Element(
        "svg", xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {width:g} {height:g}",
        width=f"{width:g}", style="max-width:100%;height:auto;font:12px sans-serif", role="img",
    )  # fmt: skip
    ET.SubElement(root, "title").text = title
    return root


def shape(parent: ET.Element, tag: str, tip: str = "", **values: float | str) -> ET.Element:
    """Appends a shape.

    Args:
        parent: The drawing or group.
        tag: The SVG element, such as `rect`.
        tip: The tooltip, if any.
        values: The attributes. `_` in a name stands for `-`; numbers have up to two decimals.
    """
    written = {
        name.rstrip("_").replace("_", "-"): value if isinstance(value, str) else short(value)
        for name, value in values.items()
    }
    element = ET.SubElement(parent, tag, written)
    if tip:
        ET.SubElement(element, "title").text = tip
    return element


def text(
    parent: ET.Element, at: tuple[float, float], label: str, anchor: str = "start", **values: str
) -> ET.Element:
    """Appends a text at a position; `anchor` is start, middle or end."""
    given = {"fill": "currentColor", "text_anchor": anchor} | values
    element = shape(parent, "text", "", x=at[0], y=at[1], **given)
    element.text = label
    return element


def legend(
    parent: ET.Element, entries: Iterable[tuple[str, str]], at: tuple[float, float] = (0, 4)
) -> None:
    """Appends a row of colours with their names."""
    x, y = at
    for name, colour in entries:
        shape(parent, "rect", x=x, y=y, width=11, height=11, fill=colour)
        text(parent, (x + 15, y + 10), name)
        x += 30 + 6.6 * len(name)


def short(value: float) -> str:
    """Formats a number with up to two decimals."""
    text = f"{value:.2f}"
    return text.rstrip("0").rstrip(".")


def written(root: ET.Element) -> str:
    """Returns the text of a drawing."""
    return ET.tostring(root, encoding="unicode")

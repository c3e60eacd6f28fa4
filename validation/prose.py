"""Markdown of docs/validation.md that its sections share."""

from __future__ import annotations

import textwrap


def paragraph(text: str) -> str:
    """Returns the text in lines of at most 100 columns."""
    return textwrap.fill(text, 100, break_long_words=False, break_on_hyphens=False)


def bullets(items: list[str]) -> str:
    """Returns a list of items, each wrapped at 100 columns."""
    return "\n".join(
        textwrap.fill(
            item,
            100,
            initial_indent="- ",
            subsequent_indent="  ",
            break_long_words=False,
            break_on_hyphens=False,
        )
        for item in items
    )

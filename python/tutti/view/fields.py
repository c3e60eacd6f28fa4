"""Views as fields of `--json`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from .view import View


def figures(view: View) -> dict[str, Any]:
    """Returns the values of facts with a key, by key; a value may be a function that returns it."""
    return {fact.key: fact.value for fact in view.every_fact if fact.key}


def legends(view: View) -> list[str]:
    """Returns the captions of the tables."""
    captions = (getattr(part, "caption", "") for part in (*view.tables, *view.below))
    return [str(caption) for caption in captions if caption]


def tables(view: View) -> dict[str, Callable[[], Any]]:
    """Returns functions that return the tables, by name."""
    return {data.name: data.frame for data in view.data if data.name}

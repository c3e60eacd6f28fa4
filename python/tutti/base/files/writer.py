"""Writes tables as TOML."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def document(comments: Iterable[str], tables: Mapping[str, Any]) -> str:
    """Returns a TOML file with leading comments; sourced numbers are inline tables."""
    import tomlkit

    document = tomlkit.document()
    for line in comments:
        # A comment is one line; file names may contain line breaks.
        document.add(tomlkit.comment("".join(c if c.isprintable() else "?" for c in line)))
    document.add(tomlkit.nl())
    for key, value in tables.items():
        document.add(key, _item(value))
    return tomlkit.dumps(document)


def _item(value: object) -> Any:  # noqa: ANN401 - tomlkit's types
    import tomlkit

    if isinstance(value, list) and value and all(isinstance(one, dict) for one in value):
        tables = tomlkit.aot()
        for one in value:
            tables.append(_item(one))
        return tables
    if not isinstance(value, dict):
        return tomlkit.item(value)
    is_number = "source" in value and not any(
        isinstance(one, dict | list) for one in value.values()
    )
    table = tomlkit.inline_table() if is_number else tomlkit.table()
    for key, one in value.items():
        table.add(key, _item(one))
    return table

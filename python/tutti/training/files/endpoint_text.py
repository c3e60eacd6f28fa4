"""Endpoint configurations as tables of a training file."""

from __future__ import annotations

from dataclasses import MISSING, fields, is_dataclass
from typing import TYPE_CHECKING, Any

from tutti.base.files.described import keys_of
from tutti.base.units import TimePerByte

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tutti.training.endpoint import Configuration

_WIDTH = 100


def endpoint_text(configuration: Configuration) -> str:
    """Returns a configuration as a table of `[[configurations]]`, without keys of default value."""
    return "\n".join(_section("configurations", configuration, "[[configurations]]")) + "\n"


def _section(path: str, described: object, heading: str) -> Iterator[str]:
    """Yields the lines of a table: first its keys, then its tables."""
    yield heading
    tables = []
    for key, value in _given(described):
        if is_dataclass(value) and not hasattr(type(value), "parse"):
            tables.append((f"{path}.{key}", value))
        else:
            yield from _lines(key, value)
    for name, table in tables:
        yield ""
        yield from _section(name, table, f"[{name}]")


def _given(described: Any) -> Iterator[tuple[str, Any]]:  # noqa: ANN401 - any dataclass
    """Yields the keys whose value is not the default."""
    keys = keys_of(type(described))  # type: ignore[arg-type] # a class is hashable
    for one in fields(described):
        value = getattr(described, one.name)
        default = one.default if one.default_factory is MISSING else one.default_factory()
        if one.name in keys and value is not None and value != default:
            yield one.name, value


def _lines(key: str, value: object) -> Iterator[str]:
    """Yields a key and its value, a list that is too long for a line with an element per line."""
    line = f"{key} = {_inline(value)}"
    if len(line) <= _WIDTH or not isinstance(value, tuple):
        yield line
        return
    yield f"{key} = ["
    yield from (f"  {_inline(one)}," for one in value)
    yield "]"


def _inline(value: object) -> str:
    """Returns a value as TOML."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, tuple):
        return f"[{', '.join(map(_inline, value))}]"
    if is_dataclass(value) and not hasattr(type(value), "parse"):
        return f"{{ {', '.join(f'{key} = {_inline(one)}' for key, one in _given(value))} }}"
    return f'"{_exact(value)}"'


def _exact(value: object) -> str:
    """Returns a quantity as text that parses to the same quantity."""
    text = str(value)
    if isinstance(value, TimePerByte) and TimePerByte.parse(text) != value:
        return f"{round(value.core.bytes_per_second)} B/s"
    return text

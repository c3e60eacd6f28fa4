"""The JSON document of a command with `--json`.

Verbs record the figures and tables that they show; the root command prints them as one document.
A `ContextVar` holds the document of the call, so that calls in one process share nothing. Threads
that print progress have no document: their lines are no remarks.
"""

from __future__ import annotations

import enum
import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, fields, is_dataclass
from typing import TYPE_CHECKING, Any

from tutti.base.errors import TuttiError

if TYPE_CHECKING:
    import polars as pl

    Rows = pl.DataFrame | Iterable[Any]

SCHEMA = "tutti.result/1"
"""The schema of the documents. Within a version, fields are added, never renamed or removed."""


@dataclass
class Document:
    """What a command has recorded so far."""

    command: str = ""
    is_active: bool = False
    """Whether stdout gets the document instead of text."""
    is_written: bool = False
    may_replace: bool = True
    """Whether `Study.write` may replace a file with other content; it then remarks on it."""
    result: dict[str, Any] = field(default_factory=dict)
    tables: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    legends: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    errors: list[dict[str, str]] = field(default_factory=list)

    def activate(self, command_path: str) -> None:
        """Starts the document of a command; its path starts with the name of the program."""
        self.is_active = True
        self.command = command_path.partition(" ")[2]

    def fail(self, error: TuttiError) -> None:
        """Adds an error."""
        self.errors.append(error_of(error))

    def crash(self, error: BaseException) -> None:
        """Adds an error that no command expects, which `tutti.cli.internal` reports."""
        parts = error_of(TuttiError(str(error), kind="internal"))
        self.errors.append(parts | {"class": type(error).__name__, "see": _INTERNAL})

    def write(self, exit_code: int) -> None:
        """Writes the document to stdout, unless it is not active or already written."""
        if not self.is_active or self.is_written:
            return
        self.is_written = True
        from tutti import __version__

        parts = {"schema": SCHEMA, "version": __version__, "command": self.command}
        lines = [f"{_text(name)}: {_text(value)}" for name, value in parts.items()]
        lines.append(f'"exit_code": {exit_code}')
        lines.append(f'"result": {_block("{}", _items(self.result, _text))}')
        lines.append(f'"tables": {_block("{}", _items(self.tables, _rows))}')
        lists = ("legends", "remarks", "files", "errors")
        lines += _items({name: getattr(self, name) for name in lists}, _rows)
        sys.stdout.write("{\n" + ",\n".join(lines) + "\n}\n")
        sys.stdout.flush()


def error_of(error: TuttiError) -> dict[str, str]:
    """Returns the parts of an error; absent parts are empty."""
    parts = {name: str(error.fields.get(name, "")) for name in _OF_MISTAKES}
    parts["problem"] = parts["problem"] or error.problem
    kind = {"class": type(error).__name__, "kind": error.kind}
    return {**kind, **parts, "hint": error.hint or "", "see": error.anchor}


_INTERNAL = "docs/reference/errors.md#exit-codes"
_OF_MISTAKES = ("problem", "source", "key", "value", "expected")

_current: ContextVar[Document | None] = ContextVar("document", default=None)


@contextmanager
def recording() -> Iterator[Document]:
    """Yields the document of one call of the command line."""
    document = Document()
    token = _current.set(document)
    try:
        yield document
    finally:
        _current.reset(token)


def active() -> Document | None:
    """Returns the document that replaces text on stdout, if there is one."""
    document = _current.get()
    return document if document is not None and document.is_active else None


def started() -> Document | None:
    """Returns the document of the current call, active or not."""
    return _current.get()


def record(**figures: object) -> None:
    """Records figures of the result; units are part of the names, such as `time_ps`.

    A callable is called with `--json` only.
    """
    if document := active():
        values = {name: value() if callable(value) else value for name, value in figures.items()}
        document.result |= plain(values)


def record_table(name: str, rows: Rows | Callable[[], Rows]) -> None:
    """Records a table: a frame, or mappings or dataclasses as rows.

    Rows of the same name are appended. A callable is called with `--json` only.
    """
    if document := active():
        found: Any = rows() if callable(rows) else rows
        each = found.iter_rows(named=True) if hasattr(found, "iter_rows") else found
        document.tables.setdefault(name, []).extend(plain(row) for row in each)


def record_legends(legends: Iterable[str]) -> None:
    """Records legends of tables, each once."""
    if document := active():
        document.legends = list(dict.fromkeys([*document.legends, *legends]))


def publish() -> None:
    """Writes the document now: the command serves until it is interrupted."""
    if document := active():
        document.write(0)


def withhold() -> None:
    """Writes no document: another process of the command does."""
    if document := active():
        document.is_written = True


def plain(value: Any) -> Any:  # noqa: ANN401 - any value of a result
    """Returns a value as JSON: null for NaN and infinity, lists of rows for frames."""
    if isinstance(value, enum.Enum):
        value = value.value
    elif hasattr(value, "iter_rows"):
        value = value.iter_rows(named=True)
    elif hasattr(value, "_asdict"):  # a named tuple
        value = value._asdict()
    elif is_dataclass(value) and not isinstance(value, type):
        value = {one.name: getattr(value, one.name) for one in fields(value)}
    if isinstance(value, Mapping):
        return {_key(key): plain(item) for key, item in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str):
        return [plain(item) for item in value]
    return _scalar(value)


def _scalar(value: Any) -> bool | int | float | str | None:  # noqa: ANN401 - as above
    if hasattr(value, "item"):  # of NumPy
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def _key(key: object) -> str:
    return str(key.value) if isinstance(key, enum.Enum) else str(key)


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _items(values: Mapping[str, Any], written: Callable[[Any], str]) -> Iterator[str]:
    return (f"{_text(name)}: {written(value)}" for name, value in values.items())


def _rows(rows: Iterable[object]) -> str:
    return _block("[]", map(_text, rows))


def _block(brackets: str, items: Iterable[str]) -> str:
    """Returns items in brackets, one per line."""
    lines = ",\n".join(items)
    return f"{brackets[0]}\n{lines}\n{brackets[1]}" if lines else brackets

"""Changes keys of a file from the command line, each by `--set KEY=VALUE`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tutti.base.errors import TuttiError
from tutti.base.files import key_paths as paths
from tutti.base.files.mistakes import did_you_mean, mistake, shown
from tutti.base.files.reader import parse_toml, read_toml
from tutti.base.files.validate import models_in

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pydantic import BaseModel

    Values = Mapping[str, tuple[str, Any]]


def read_changed(
    path: Path,
    changes: Sequence[str],
    model: type[BaseModel],
    *,
    example: str,
    output: Path | None,
) -> tuple[dict[str, Any], str]:
    """Reads a file and applies changes.

    Args:
        path: The file.
        changes: Key paths and values, each ``KEY=VALUE``.
        model: The model of the file.
        example: Valid changes, for messages.
        output: Replaces the folder for results of the file.

    Returns:
        The changed tables, and the name of the file in messages.

    Raises:
        ConfigError: The file or a change is invalid.
    """
    tables = with_changes(read_toml(path), changes, model, example=example)
    if output is not None:
        tables = {**tables, "output": str(output)}
    return tables, f"{path} with --set" if changes else str(path)


def with_changes(
    tables: dict[str, Any], changes: Sequence[str], model: type[BaseModel], *, example: str
) -> dict[str, Any]:
    """Returns the tables with values replaced, for example by ``router.vcs=8``.

    Args:
        tables: The tables of the file.
        changes: Key paths and values, each ``KEY=VALUE``, in order.
        model: The model of the tables.
        example: Valid changes, for messages.

    Raises:
        ConfigError: A change is malformed, or its key does not exist.
    """
    for change in changes:
        tables = _changed(tables, change, model, example)
    return tables


def with_values(tables: dict[str, Any], values: Values) -> dict[str, Any]:
    """Returns the tables with the values of options.

    Args:
        tables: The tables.
        values: Option and value by key path.

    Raises:
        ConfigError: A value along a path is not a table.
    """
    for key, (option, value) in values.items():
        try:
            tables = paths.with_value(tables, paths.parse(key) or (), value)
        except paths.NoSuchPlaceError as error:
            raise mistake(error.problem, source=option, key=paths.written(error.at)) from None
    return tables


def _changed(
    tables: dict[str, Any], change: str, model: type[BaseModel], example: str
) -> dict[str, Any]:
    known = list(model.model_fields)
    key, equals, text = change.partition("=")
    path = paths.parse(key.strip())
    if not equals or path is None:
        raise mistake(
            "is not a change",
            source="--set",
            value=shown(change),
            expected=f"KEY=VALUE, such as {example}",
        )
    if path[0] not in known:
        raise mistake(
            f"unknown key `{path[0]}`",
            source="--set",
            expected=f"a path that starts with one of {', '.join(known)}",
            hint=in_a_table(model, key.strip()) or did_you_mean(str(path[0]), known),
        )
    try:
        changed: dict[str, Any] = paths.with_value(tables, path, value_of(text))
    except paths.NoSuchPlaceError as error:
        problem = f"does not exist: {paths.written(error.at)} {error.problem}"
        raise mistake(problem, source="--set", key=key) from None
    return changed


def in_a_table(model: type[BaseModel], key: str) -> str:
    """Returns ``did you mean `mesh.vcs`?`` if a table has the key, else ""."""
    name = key.partition(".")[0].partition("[")[0]
    for table, info in model.model_fields.items():
        if any(name in inner.model_fields for inner in models_in(info.annotation)):
            return f"did you mean `{table}.{key}`?"
    return ""


def value_of(text: str) -> object:
    """Returns the text parsed as a TOML value, or the text itself if it is not one value."""
    try:
        tables = parse_toml(f"value = {text}", source="--set")
    except TuttiError:
        return text.strip()
    return tables["value"] if tables.keys() == {"value"} else text.strip()

"""Distinguishes kinds of files by their keys, for files given to the wrong command."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from pydantic import BaseModel

from tutti.errors import ConfigError
from tutti.files.mistakes import mistake
from tutti.files.validate import validated

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

M = TypeVar("M", bound=BaseModel)


class _Kind(NamedTuple):
    model: type[BaseModel]
    what: str
    verb: str


def _kinds() -> tuple[_Kind, ...]:
    from tutti import config  # imports the models lazily: their modules use this one

    return (
        _Kind(config.RawExperiment, "an experiment", "tutti run {file}, or tutti compare {file}"),
        _Kind(config.RawNoc, "a network of routers", "tutti noc run {file}"),
        _Kind(config.RawSmart, "a mesh of several hops per cycle", "tutti noc run {file}"),
        _Kind(config.RawCoherence, "kernels on a chip", "tutti coherence run {file}"),
        _Kind(config.RawSweep, "a sweep", "tutti sweep {file}"),
        _Kind(config.RawTraining, "a training step", "tutti train run {file}"),
        _Kind(config.RawPlatform, "a platform", 'platform = "{file}" in an experiment'),
    )


def validated_file(
    model: type[M], tables: Mapping[str, Any], *, source: str, folder: Path | None = None
) -> M:
    """Returns the model that a file's tables describe; paths of recordings start from `folder`.

    Raises:
        ConfigError: The first error; a file of another kind is reported as such.
    """
    try:
        return validated(model, tables, source=source, folder=folder)
    except ConfigError as error:
        raise _of_another_kind(model, tables, source) or error from None


def _of_another_kind(
    model: type[BaseModel], tables: Mapping[str, Any], source: str
) -> ConfigError | None:
    """Returns the error for a file of another kind than `model`, or None.

    A file is of another kind if that kind has more of its keys, and requires one of them.
    """
    kinds = _kinds()
    expected = next((kind for kind in kinds if kind.model is model), None)
    if expected is None:
        return None
    best = max(kinds, key=lambda kind: (_known(kind.model, tables), kind is expected))
    if best is expected or not _required(best.model) & tables.keys():
        return None
    return mistake(
        f"is not {expected.what}: this looks like {best.what}",
        source=source,
        expected=f"{expected.what}, with {_listed(sorted(_required(model)))}",
        hint=best.verb.format(file=source.split(" with ", 1)[0]),
    )


def _known(model: type[BaseModel], tables: Mapping[str, Any]) -> int:
    return len(model.model_fields.keys() & tables.keys())


def _required(model: type[BaseModel]) -> set[str]:
    return {name for name, field in model.model_fields.items() if field.is_required()}


def _listed(names: list[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last

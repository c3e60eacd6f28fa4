"""Distinguishes kinds of files by their keys, for files given to the wrong command."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from pydantic import BaseModel

from tutti.base.errors import ConfigError
from tutti.base.files.mistakes import mistake
from tutti.base.files.validate import validated

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

M = TypeVar("M", bound=BaseModel)


class TableKind(NamedTuple):
    """A kind of TOML file: the place of its tables, what it is, and the command that reads it."""

    place: str
    what: str
    verb: str

    @property
    def model(self) -> type[BaseModel]:
        """The tables of the kind; their module is imported on first use."""
        module, _, name = self.place.partition(":")
        model: type[BaseModel] = getattr(import_module(f"tutti.{module}"), name)
        return model


_KINDS = (
    TableKind(
        "collectives.files.tables:RawExperiment",
        "an experiment",
        "tutti run {file}, or tutti compare {file}",
    ),
    TableKind("networks.flit.files.tables:RawNoc", "a network of routers", "tutti noc run {file}"),
    TableKind(
        "networks.mesh.files:RawSmart",
        "a mesh of several hops per cycle",
        "tutti noc run {file}",
    ),
    TableKind(
        "networks.coherence.files:RawCoherence", "kernels on a chip", "tutti coherence run {file}"
    ),
    TableKind("sweeps.files:RawSweep", "a sweep", "tutti sweep {file}"),
    TableKind("training.files.tables:RawTraining", "a training step", "tutti train run {file}"),
    TableKind(
        "platforms.files.platform_file:RawPlatform",
        "a platform",
        'platform = "{file}" in an experiment',
    ),
)
"""The kinds of files, by the place of their tables; only an error needs all of them."""


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
    expected = next((kind for kind in _KINDS if kind.model is model), None)
    if expected is None:
        return None
    best = kind_of_tables(tables, expected)
    if best is expected or best is None:
        return None
    return mistake(
        f"is not {expected.what}: this looks like {best.what}",
        source=source,
        expected=f"{expected.what}, with {_listed(sorted(_required(model)))}",
        hint=best.verb.format(file=source.split(" with ", 1)[0]),
    )


def kind_of_tables(
    tables: Mapping[str, Any], expected: TableKind | None = None
) -> TableKind | None:
    """Returns the kind of a file with these tables, `expected` among equals; None if unknown."""
    best = max(_KINDS, key=lambda kind: (_known(kind.model, tables), kind is expected))
    return best if _required(best.model) & tables.keys() else None


def _known(model: type[BaseModel], tables: Mapping[str, Any]) -> int:
    return len(model.model_fields.keys() & tables.keys())


def _required(model: type[BaseModel]) -> set[str]:
    return {name for name, field in model.model_fields.items() if field.is_required()}


def _listed(names: list[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last

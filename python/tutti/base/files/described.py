"""Tables of files that describe classes: each parameter is declared once for both.

A field of a pydantic class is a key of the table, with the same type, range, default and
description. So is a field of a dataclass whose default is a `key`, or that is `Annotated` with a
pydantic `Field`. Other fields of dataclasses are not in files.
"""

from __future__ import annotations

from copy import copy
from dataclasses import MISSING, field, fields
from functools import cache
from inspect import cleandoc
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

from annotated_types import Ge, Le, Lt
from pydantic import BaseModel, Field, create_model
from pydantic.fields import FieldInfo
from pydantic_core import core_schema

from tutti.base.files.tables import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping
    from dataclasses import Field as DataclassField

    from pydantic import GetCoreSchemaHandler
    from pydantic_core import CoreSchema

T = TypeVar("T", bound=Table)
D = TypeVar("D")

Count = Annotated[int, Field(ge=0, lt=1 << 32)]
Positive = Annotated[int, Field(ge=1, lt=1 << 32)]


def key(default: D, **described: Any) -> D:  # noqa: ANN401 - the parameters of `Field`
    """Returns the default of a field of a dataclass that is in files.

    Args:
        default: The default.
        described: The description and the limits, as of a pydantic `Field`.
    """
    found: D = field(default=default, metadata={"key": Field(**described)})
    return found


@cache
def table_of(described: type[Any]) -> type[Table]:
    """Returns the table of files that describes a dataclass."""
    doc = cleandoc(described.__doc__ or "").partition("\n\nAttributes:")[0]
    base = type(described.__name__, (Table,), {"__doc__": doc, "__module__": described.__module__})
    return described_by(described)(base)


def described_by(
    described: type[Any],
    *,
    without: Collection[str] = (),
    typed: Callable[[FieldInfo], tuple[Any, FieldInfo]] | None = None,
) -> Callable[[type[T]], type[T]]:
    """Adds the keys of a class to a table of files.

    Args:
        described: The class. Fields that the table declares itself are not changed.
        without: Fields that are not in the table.
        typed: Returns the type and the `Field` of a key, for a pydantic class; by default those of
            the class.
    """

    def with_keys(table: type[T]) -> type[T]:
        all_keys: dict[str, Any] = (
            {name: (typed or _same)(info) for name, info in described.model_fields.items()}
            if issubclass(described, BaseModel)
            else {one.name: (kind, _default(one)) for one, kind in _annotated(described)}
        )
        excluded = {*without, *table.model_fields}
        keys = {name: key for name, key in all_keys.items() if name not in excluded}
        return create_model(
            table.__name__,
            __base__=table,
            __doc__=table.__doc__,
            __module__=table.__module__,
            **keys,
        )

    return with_keys


@cache
def bounds_of(described: type[Any]) -> Mapping[str, tuple[int, int]]:
    """Returns the least and the largest value of each integer or list of integers, by field."""
    bounds = ((one.name, bounds_in(annotation)) for one, annotation in _annotated(described))
    return {name: both for name, both in bounds if both is not None}


def bounds_in(annotation: object) -> tuple[int, int] | None:
    """Returns the least and the largest integer of a type, None if it does not state both."""
    least = most = None
    for limit in _limits(annotation):
        if isinstance(limit, Ge):
            least = limit.ge
        elif isinstance(limit, Le):
            most = limit.le
        elif isinstance(limit, Lt) and isinstance(limit.lt, int):
            most = limit.lt - 1
    return (least, most) if isinstance(least, int) and isinstance(most, int) else None


def _annotated(described: type[Any]) -> list[tuple[DataclassField[Any], Any]]:
    """Returns the fields that are in files, with their annotations."""
    hints = get_type_hints(described, include_extras=True)
    annotated = {
        one.name: Annotated[hints[one.name], one.metadata["key"]]
        if "key" in one.metadata
        else hints[one.name]
        for one in fields(described)
    }
    return [
        (one, annotated[one.name])
        for one in fields(described)
        if get_origin(annotated[one.name]) is Annotated
    ]


@cache
def keys_of(described: type[Any]) -> frozenset[str]:
    """Returns the fields of a dataclass that are keys of its table of files."""
    return frozenset(one.name for one, _ in _annotated(described))


def _limits(annotation: object) -> Iterator[object]:
    for part in get_args(annotation):
        if isinstance(part, FieldInfo):
            yield from part.metadata
        else:
            yield from _limits(part)


def _same(info: FieldInfo) -> tuple[Any, FieldInfo]:
    return info.annotation, copy(info)


def _default(one: DataclassField[Any]) -> Any:  # noqa: ANN401 - of the field's type
    if one.default_factory is not MISSING:
        return Field(default_factory=one.default_factory)
    return ... if one.default is MISSING else one.default


class InFiles:
    """A dataclass that is a table of files: pydantic models may use it as a type."""

    __slots__ = ()

    @classmethod
    def table(cls) -> type[Table]:
        """Returns the table of files."""
        return table_of(cls)  # type: ignore[arg-type] # mypy: a class has a hash

    @classmethod
    def __get_pydantic_core_schema__(
        cls, _source: type[Any], handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        def built(value: object, validated: core_schema.ValidatorFunctionWrapHandler) -> object:
            return value if isinstance(value, cls) else cls(**dict(validated(value)))

        return core_schema.no_info_wrap_validator_function(
            built, handler.generate_schema(cls.table())
        )

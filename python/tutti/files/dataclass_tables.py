"""Tables of files that describe dataclasses: one declaration of each parameter for both.

A field of the dataclass that is `Annotated` with a pydantic `Field` is a key of its table, with
the same type, range, default and description. Other fields are not in files.
"""

from __future__ import annotations

from dataclasses import MISSING, fields
from functools import cache
from inspect import cleandoc
from typing import TYPE_CHECKING, Annotated, Any, get_origin, get_type_hints

from pydantic import Field, create_model
from pydantic_core import core_schema

from tutti.files.tables import Table

if TYPE_CHECKING:
    from dataclasses import Field as DataclassField

    from pydantic import GetCoreSchemaHandler
    from pydantic_core import CoreSchema

Count = Annotated[int, Field(ge=0, lt=1 << 32)]
Positive = Annotated[int, Field(ge=1, lt=1 << 32)]


@cache
def table_of(described: type[Any]) -> type[Table]:
    """Returns the table of files that describes a dataclass."""
    keys: dict[str, Any] = {
        one.name: (annotation, _default(one))
        for one, annotation in _annotated(described)
        if get_origin(annotation) is Annotated
    }
    return create_model(
        described.__name__,
        __base__=Table,
        __doc__=cleandoc(described.__doc__ or "").partition("\n\nAttributes:")[0],
        __module__=described.__module__,
        **keys,
    )


def _annotated(described: type[Any]) -> list[tuple[DataclassField[Any], Any]]:
    hints = get_type_hints(described, include_extras=True)
    return [(one, hints[one.name]) for one in fields(described)]


def _default(one: DataclassField[Any]) -> Any:  # noqa: ANN401 - of the field's type
    if one.default_factory is not MISSING:
        return Field(default_factory=one.default_factory)
    return ... if one.default is MISSING else one.default


class InFiles:
    """A dataclass that files have as a table: a model of files may use it as a type."""

    __slots__ = ()

    @classmethod
    def table(cls) -> type[Table]:
        """Returns the table of files."""
        return table_of(cls)  # type: ignore[arg-type] # mypy: a class has a hash

    @classmethod
    def __get_pydantic_core_schema__(
        cls, _source: type[Any], handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        def made(value: object, validated: core_schema.ValidatorFunctionWrapHandler) -> object:
            return value if isinstance(value, cls) else cls(**dict(validated(value)))

        return core_schema.no_info_wrap_validator_function(
            made, handler.generate_schema(cls.table())
        )

"""Numbers of configuration files that may say where they come from.

A number stands either by itself (`alpha_p = "1.34 us"`) or with its source
(`alpha_p = { value = "1.34 us", source = "...", inferred = false }`).
"""

from __future__ import annotations

import inspect
import types
from typing import TYPE_CHECKING, Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, Discriminator, Field, Tag, create_model

from tutti.files.described import described_by
from tutti.files.tables import Table, kind_of
from tutti.units import Size, Time, TimePerByte

if TYPE_CHECKING:
    from collections.abc import Collection

    from pydantic.fields import FieldInfo

    from tutti.parameters import Parameters


class Sourced(Table):
    """What a number carries beside its value."""

    source: Annotated[str, Field(min_length=1, description="Where the number comes from.")]
    inferred: Annotated[
        bool, Field(default=False, description="Whether it was derived or assumed, not measured.")
    ]


class SourcedTime(Sourced):
    """A time and where it comes from."""

    value: Annotated[Time, Field(description="The time.")]


class SourcedTimePerByte(Sourced):
    """A time per byte, or a rate, and where it comes from."""

    value: Annotated[TimePerByte, Field(description="The time per byte, or the rate.")]


class SourcedSize(Sourced):
    """A size and where it comes from."""

    value: Annotated[Size, Field(description="The size.")]


Count = Annotated[int, Field(ge=0, lt=1 << 32)]


class SourcedCount(Sourced):
    """A count and where it comes from."""

    value: Annotated[Count, Field(description="The count.")]


TimeParameter = Annotated[
    Annotated[Time, Tag("value")] | Annotated[SourcedTime, Tag("table")],
    Discriminator(kind_of),
]
PerByteParameter = Annotated[
    Annotated[TimePerByte, Tag("value")] | Annotated[SourcedTimePerByte, Tag("table")],
    Discriminator(kind_of),
]
SizeParameter = Annotated[
    Annotated[Size, Tag("value")] | Annotated[SourcedSize, Tag("table")],
    Discriminator(kind_of),
]
CountParameter = Annotated[
    Annotated[Count, Tag("value")] | Annotated[SourcedCount, Tag("table")],
    Discriminator(kind_of),
]


_WITH_SOURCE: dict[object, object] = {
    Time: TimeParameter,
    TimePerByte: PerByteParameter,
    Size: SizeParameter,
    int: CountParameter,
}


def sourced_table(
    declared: type[Parameters],
    *,
    without: Collection[str] = (),
    **more: Any,  # noqa: ANN401 - the fields of any table
) -> type[Table]:
    """Returns the table of a file for a class: its parameters, each with its source if it has one.

    Args:
        declared: The class.
        without: Fields that the table lacks.
        more: Further fields, each with its type and its `Field`.
    """
    doc = inspect.cleandoc(declared.__doc__ or "").partition("\n\n")[0]
    title = f"{declared.__name__}Table"
    made: type[Table] = create_model(title, __base__=Table, __doc__=doc, **more)
    return described_by(declared, without=without, typed=_sourced)(made)


def _sourced(info: FieldInfo) -> tuple[Any, FieldInfo]:
    """The key of a field: its type, and its default as a file has it."""
    default: dict[str, Any] = {"default": info.default}
    if isinstance(info.default, Time | TimePerByte | Size):
        default = {"default": str(info.default)}
    elif isinstance(info.default, BaseModel):
        default = {"default_factory": lambda: info.default}
    field: FieldInfo = Field(alias=info.alias, description=info.description, **default)
    return _with_source(info.annotation), field


def _with_source(kind: Any) -> Any:  # noqa: ANN401 - the annotation of any field
    """The same, where a quantity or a count may also be a table with its source."""
    if get_origin(kind) is types.UnionType:
        return Union[tuple(_with_source(one) for one in get_args(kind))]  # noqa: UP007 - made here
    return _WITH_SOURCE.get(kind, kind)


def written(parameter: Any) -> Any:  # noqa: ANN401 - whatever the parameter measures
    """The value of a parameter, with or without its source."""
    if isinstance(parameter, SourcedTime | SourcedTimePerByte | SourcedSize | SourcedCount):
        return parameter.value
    return parameter

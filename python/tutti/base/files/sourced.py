"""Parameters of configuration files that may state their source.

A parameter is either a value (`alpha_p = "1.34 us"`) or a value with its source
(`alpha_p = { value = "1.34 us", source = "...", inferred = false }`).
"""

from __future__ import annotations

import inspect
import types
from typing import TYPE_CHECKING, Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, Discriminator, Field, Tag, create_model

from tutti.base.files.described import described_by
from tutti.base.files.tables import Table, kind_of
from tutti.base.units import Size, Time, TimePerByte

if TYPE_CHECKING:
    from collections.abc import Collection

    from pydantic.fields import FieldInfo

    from tutti.base.parameters import Parameters


class Sourced(Table):
    """The source of a value."""

    source: str = Field(min_length=1, description="The source of the value.")
    inferred: bool = Field(default=False, description="Whether the value is derived or assumed.")


class SourcedTime(Sourced):
    """A time with its source."""

    value: Time = Field(description="The time.")


class SourcedTimePerByte(Sourced):
    """A time per byte, or a rate, with its source."""

    value: TimePerByte = Field(description="The time per byte, or the rate.")


class SourcedSize(Sourced):
    """A size with its source."""

    value: Size = Field(description="The size.")


Count = Annotated[int, Field(ge=0, lt=1 << 32)]


Names = Annotated[list[Annotated[str, Field(min_length=1)]], Field(min_length=1)]


class SourcedSwitches(Sourced):
    """Names of switches, or whether all are meant, with the source."""

    value: bool | Names = Field(description="All or none, or the names.")


class SourcedCount(Sourced):
    """A count with its source."""

    value: Count = Field(description="The count.")


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
SwitchesParameter = Annotated[
    Annotated[bool, Tag("value")]
    | Annotated[Names, Tag("list")]
    | Annotated[SourcedSwitches, Tag("table")],
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
    """Returns the table of a class in files, whose parameters may state their sources.

    Args:
        declared: The class.
        without: Fields that the table lacks.
        more: Further fields, each with type and `Field`.
    """
    doc = inspect.cleandoc(declared.__doc__ or "").partition("\n\n")[0]
    title = f"{declared.__name__}Table"
    base: type[Table] = create_model(title, __base__=Table, __doc__=doc, **more)
    return described_by(declared, without=without, typed=_sourced)(base)


def _sourced(info: FieldInfo) -> tuple[Any, FieldInfo]:
    """Returns the type of a field, and its default as written in a file."""
    default: dict[str, Any] = {"default": info.default}
    if info.default_factory is not None:
        default = {"default_factory": info.default_factory}
    elif isinstance(info.default, Time | TimePerByte | Size):
        default = {"default": str(info.default)}
    elif isinstance(info.default, BaseModel):
        default = {"default_factory": lambda: info.default}
    field: FieldInfo = Field(alias=info.alias, description=info.description, **default)
    return _with_source(info.annotation), field


def _with_source(kind: Any) -> Any:  # noqa: ANN401 - the annotation of any field
    """Returns the annotation with quantities and counts that may also be tables with a source."""
    if get_origin(kind) is types.UnionType:
        return Union[tuple(_with_source(one) for one in get_args(kind))]  # noqa: UP007 - built at run time
    return _WITH_SOURCE.get(kind, kind)


def written(parameter: Any) -> Any:  # noqa: ANN401 - any quantity
    """Returns the value of a parameter, without its source."""
    if isinstance(
        parameter, SourcedTime | SourcedTimePerByte | SourcedSize | SourcedCount | SourcedSwitches
    ):
        return parameter.value
    return parameter

"""Numbers of configuration files that may say where they come from.

A number stands either by itself (`alpha_p = "1.34 us"`) or with its source
(`alpha_p = { value = "1.34 us", source = "...", inferred = false }`).
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Discriminator, Field, Tag

from tutti.files.tables import Table, kind_of
from tutti.units import Size, Time, TimePerByte


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


def written(parameter: Any) -> Any:  # noqa: ANN401 - whatever the parameter measures
    """The value of a parameter, with or without its source."""
    if isinstance(parameter, SourcedTime | SourcedTimePerByte | SourcedSize | SourcedCount):
        return parameter.value
    return parameter

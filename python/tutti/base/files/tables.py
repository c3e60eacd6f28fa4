"""The base class of all tables of configuration files."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Count = Annotated[int, Field(ge=0, lt=1 << 53)]
"""An integer that a double represents exactly."""
Positive = Annotated[int, Field(ge=1, lt=1 << 53)]
"""A `Count` of at least 1."""


class Table(BaseModel):
    """A table of a TOML file: unknown keys are errors, and no value is converted."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, validate_default=True, defer_build=True
    )


def kind_of(value: object) -> str | None:
    """Returns whether a value is a table, a list or a single value, so that errors match it."""
    if isinstance(value, dict | BaseModel):
        return "table"
    if isinstance(value, list | tuple):
        return "list"
    return "value"

"""What all tables of configuration files share."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Count = Annotated[int, Field(ge=0, lt=1 << 53)]
"""A whole number that a double holds exactly."""
Positive = Annotated[int, Field(ge=1, lt=1 << 53)]
"""The same from 1."""


class Table(BaseModel):
    """A table of a TOML file: unknown keys are refused, no value is converted."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, validate_default=True)


def kind_of(value: object) -> str | None:
    """Tells a table, a list and a single value apart: errors speak of the one written."""
    if isinstance(value, dict | BaseModel):
        return "table"
    if isinstance(value, list | tuple):
        return "list"
    return "value"

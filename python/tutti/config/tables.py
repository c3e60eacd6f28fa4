"""What all tables of configuration files share."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


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

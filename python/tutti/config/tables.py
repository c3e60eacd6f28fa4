"""What all tables of configuration files share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pydantic import BaseModel, ConfigDict
from pydantic_core import PydanticCustomError

if TYPE_CHECKING:
    from typing import LiteralString

CHOICE: Final = "choice"
"""The type of errors of a value that is neither of what is accepted."""
REFUSED: Final = "refused"
"""The type of errors that say all there is to say, what was expected included."""


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


def refused(problem: LiteralString, **context: object) -> PydanticCustomError:
    """The error of a validator that knows what is wrong with a table.

    Args:
        problem: With names of the context in braces.
        context: Values for them; `key` names the one of the table's keys that is wrong.
    """
    return PydanticCustomError(REFUSED, problem, context)

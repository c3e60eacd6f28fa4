"""Custom pydantic error types, whose messages `tutti.base.files.validate` reports unmodified."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pydantic_core import PydanticCustomError

if TYPE_CHECKING:
    from typing import LiteralString

CHOICE: Final = "choice"
"""A value of none of the accepted types."""
REFUSED: Final = "refused"
"""A table whose keys contradict each other; the text states the expectation, too."""


def refused(problem: LiteralString, **context: object) -> PydanticCustomError:
    """Returns the error of a validator that rejects a table.

    Args:
        problem: The message, with names of `context` in braces.
        context: Values of these names; `key` names the invalid key of the table.

    Returns:
        An error of type `REFUSED`, to be raised.
    """
    return PydanticCustomError(REFUSED, problem, context)

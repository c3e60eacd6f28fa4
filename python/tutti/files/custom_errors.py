"""Our own types of pydantic's errors, which `tutti.files.validate` reports in their own words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pydantic_core import PydanticCustomError

if TYPE_CHECKING:
    from typing import LiteralString

CHOICE: Final = "choice"
"""A value that is none of what is accepted."""
REFUSED: Final = "refused"
"""A table that is wrong as a whole; the text says what was expected, too."""


def refused(problem: LiteralString, **context: object) -> PydanticCustomError:
    """Makes the error of a validator that knows what is wrong with a table.

    Args:
        problem: With names of the context in braces.
        context: Values for them; `key` names the one of the table's keys that is wrong.

    Returns:
        An error of type `REFUSED`, to be raised.
    """
    return PydanticCustomError(REFUSED, problem, context)

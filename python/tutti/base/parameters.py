"""The base class of parameter classes: validation and errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import BaseModel, ConfigDict, ValidationError

from tutti.base.errors import ConfigError, TuttiError
from tutti.base.files.validate import models_in, of_another_file, problem_of, range_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic_core import ErrorDetails


class Parameters(BaseModel):  # noqa: PLW1641 - pydantic gives frozen models their hash
    """A frozen class of named values; unknown names are errors.

    Quantities are given as text with a unit. Other fields are marked strict one by one, as type
    checkers would reject text for quantities of a strict model.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    refused_as: ClassVar[type[TuttiError]] = ConfigError
    """The error of an invalid value."""

    def __init__(self, **values: Any) -> None:  # noqa: ANN401 - each field checks its own
        """Validates the values.

        Raises:
            ConfigError: A name is unknown or missing, or a value is invalid.
        """
        try:
            super().__init__(**values)
        except ValidationError as error:
            errors = error.errors(include_url=False)
            raise of_another_file(errors) or _explained(type(self), errors[0]) from None

    # Within tables, pydantic validates the fields, so that errors have complete key paths.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]

    def texts(self, declared: type[Parameters]) -> dict[str, str]:
        """Returns the parameters of a declared class that are not None, as text by name."""
        fields = {info.alias or name: name for name, info in declared.model_fields.items()}
        values = ((name, getattr(self, field)) for name, field in fields.items())
        return {name: _text(value) for name, value in values if value is not None}

    def __eq__(self, other: object) -> bool:
        """Returns whether all values are equal, regardless of cached values."""
        if type(other) is not type(self):
            return NotImplemented
        names = type(self).model_fields
        return all(getattr(self, name) == getattr(other, name) for name in names)


def _text(value: object) -> str:
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _owner(model: type[BaseModel], path: Sequence[int | str]) -> type[BaseModel]:
    """Returns the model of the table at a path, which may contain the kinds of tables."""
    here = [model]
    for part in path:
        fields = [one.model_fields.get(str(part)) for one in here]
        inner = [found for field in fields if field for found in models_in(field.annotation)]
        kinds = {one: one.model_fields.get("kind") for one in here}
        tagged = [one for one, kind in kinds.items() if kind and kind.default == part]
        here = inner or tagged or here
    return here[0]


def _explained(model: type[Parameters], error: ErrorDetails) -> TuttiError:
    """Returns the error of the first finding, with the accepted names."""
    key = ".".join(str(part) for part in error["loc"])
    cause = error.get("ctx", {}).get("error")
    hint = None
    if isinstance(cause, TuttiError):
        problem, hint = cause.problem, cause.hint
    elif error["type"] == "missing":
        problem = "is missing"
    elif error["type"] == "extra_forbidden":
        owner = _owner(model, error["loc"][:-1])
        names = [field.alias or name for name, field in owner.model_fields.items()]
        problem = f"is unknown: expected one of {', '.join(names)}"
    elif both := range_of(model, key, error["type"]):
        problem = f"is {error['input']!r}: expected {both}"
    elif error["type"] == "literal_error":
        problem = f"{error['input']!r} is unknown: expected {error['ctx']['expected']}"
    else:
        problem = f"{error['input']!r} {problem_of(error, key)}"
    place = f"{model.__name__}: `{key}`" if key else model.__name__
    fields = {"key": key, "value": error["input"]}
    kind = "invalid" if model.refused_as is ConfigError else "out_of_range"
    return model.refused_as(f"{place}: {problem}", kind=kind, hint=hint, fields=fields)

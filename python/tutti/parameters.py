"""What the classes that carry numbers share: how they are checked and report a mistake."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

from pydantic import BaseModel, ConfigDict, ValidationError

from tutti.errors import ConfigError, TuttiError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic_core import ErrorDetails

__all__ = ["Parameters", "models_in", "of_another_file"]


class Parameters(BaseModel):  # noqa: PLW1641 - pydantic gives frozen models their hash
    """Named values: frozen, unknown names refused.

    Quantities are given as text with a unit. Fields of other types are marked strict one by one:
    a strict model would tell type checkers that quantities cannot be text.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    def __init__(self, **values: Any) -> None:  # noqa: ANN401 - each field checks its own
        """Checks the values.

        Raises:
            ConfigError: a name that is unknown or missing, or a value that is refused.
        """
        try:
            super().__init__(**values)
        except ValidationError as error:
            errors = error.errors(include_url=False)
            raise of_another_file(errors) or _explained(type(self), errors[0]) from None

    # Within tables, pydantic checks the fields itself, so that errors have complete key paths.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]

    def __eq__(self, other: object) -> bool:
        """Whether all values are equal, whatever has been made of them meanwhile."""
        if type(other) is not type(self):
            return NotImplemented
        names = type(self).model_fields
        return all(getattr(self, name) == getattr(other, name) for name in names)


def models_in(annotation: object) -> list[type[BaseModel]]:
    """Returns every model that a type mentions."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    if isinstance(annotation, type) and hasattr(annotation, "table"):  # a dataclass in files
        return [annotation.table()]
    return [model for argument in get_args(annotation) for model in models_in(argument)]


def of_another_file(errors: Sequence[ErrorDetails]) -> ConfigError | None:
    """Returns the error of a file that a validator reads: it names that file and the line."""
    causes = (error.get("ctx", {}).get("error") for error in errors)
    return next((e for e in causes if isinstance(e, ConfigError) and "source" in e.fields), None)


def _owner(model: type[BaseModel], path: Sequence[int | str]) -> type[BaseModel]:
    """Returns the model of the table at a path, which has the kinds of tables too."""
    here = [model]
    for part in path:
        fields = [one.model_fields.get(str(part)) for one in here]
        inner = [found for field in fields if field for found in models_in(field.annotation)]
        kinds = {one: one.model_fields.get("kind") for one in here}
        tagged = [one for one, kind in kinds.items() if kind and kind.default == part]
        here = inner or tagged or here
    return here[0]


def _explained(model: type[BaseModel], error: ErrorDetails) -> ConfigError:
    """The first finding, with the names that would have been accepted."""
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
    else:
        problem = f"{error['input']!r} is refused: {error['msg']}"
    place = f"{model.__name__}: `{key}`" if key else model.__name__
    fields = {"key": key, "value": error["input"]}
    return ConfigError(f"{place}: {problem}", kind="invalid", hint=hint, fields=fields)

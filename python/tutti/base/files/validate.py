"""Validates tables against a pydantic model, and reports its errors as one `ConfigError`.

Pydantic's errors are identified by `type` and `ctx`; its messages are not used. Expectations come
from the model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args, get_origin

from annotated_types import Ge, Le
from pydantic import BaseModel, ValidationError

from tutti.base.errors import ConfigError, TuttiError
from tutti.base.files.custom_errors import CHOICE, REFUSED
from tutti.base.files.mistakes import did_you_mean, mistake, shown

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic_core import ErrorDetails

M = TypeVar("M", bound=BaseModel)

_TAGS = frozenset({"value", "table", "list"})
"""Tags of union members, which pydantic adds to the path of an error."""


def validated(
    model: type[M], tables: Mapping[str, Any], *, source: str, folder: Path | None = None
) -> M:
    """Returns the model that the tables describe.

    Args:
        model: The class of the model.
        tables: The tables of the file.
        source: The file, for messages.
        folder: Base of the relative paths of recordings; by default the current folder.

    Raises:
        ConfigError: The first error, and the number of further errors.
    """
    try:
        return model.model_validate(tables, context={"folder": folder})
    except ValidationError as error:
        errors = error.errors(include_url=False)
        raise of_another_file(errors) or _first(model, tables, errors, source) from None
    except RecursionError:
        raise mistake("values are nested too deeply to be read", source=source) from None


def _first(
    model: type[BaseModel], tables: Mapping[str, Any], errors: Sequence[ErrorDetails], source: str
) -> ConfigError:
    # An unknown key is most often the cause of a missing one.
    first = next((e for e in errors if e["type"] == "extra_forbidden"), errors[0])
    loc = _without_tags(first["loc"], tables)
    problem, expected, hint = _explained(first, loc, model, tables)
    more = len(errors) - 1
    if more:
        keys = sorted({_path(_without_tags(e["loc"], tables)) for e in errors if e is not first})
        also = f"{more} more to fix: {', '.join(keys[:4])}{', ...' if len(keys) > 4 else ''}"
        hint = f"{hint}; {also}" if hint else also
    missing = first["type"] in {"missing", "union_tag_not_found"}
    given = first["input"]
    tag = _tag(_models_at(model, loc)) if first["type"] == "union_tag_invalid" else ""
    if tag and isinstance(given, Mapping):  # show the kind only, not the entire table
        loc, given = [*loc, tag], given.get(tag)
    key = first.get("ctx", {}).get("key")
    if isinstance(key, str) and isinstance(given, Mapping):  # a key of the table
        missing = key not in given
        loc, given = [*loc, key], given.get(key)
    value = "" if missing or first["type"] == "extra_forbidden" else shown(given)
    return mistake(
        problem, source=source, key=_path(loc), value=value, expected=expected, hint=hint
    )


_PROBLEMS = {
    "missing": "`{key}` is missing",
    "int_type": "is not an integer",
    "int_from_float": "is not an integer",
    "float_type": "is not a number",
    "finite_number": "is not finite",
    "greater_than": "should be greater than {gt}",
    "greater_than_equal": "should be greater than or equal to {ge}",
    "less_than": "should be less than {lt}",
    "less_than_equal": "should be less than or equal to {le}",
    "string_type": "is not text",
    "string_too_short": "is empty",
    "too_short": "is empty",
    "too_long": "has more than {max_length} values",
    "model_type": "is not a table",
    "model_attributes_type": "is not a table",
    "dict_type": "is not a table",
    "list_type": "is not a list",
    "tuple_type": "is not a list",
    "bool_type": "is neither true nor false",
    "value_error": "{error}",
}
"""Problems by the type of pydantic's error, with names of its context in braces."""


def _explained(  # noqa: PLR0911 - one return per type of error
    error: ErrorDetails,
    loc: Sequence[int | str],
    model: type[BaseModel],
    tables: Mapping[str, Any],
) -> tuple[str, str, str]:
    """Returns problem, expectation and hint."""
    context, kind, given = error.get("ctx", {}), error["type"], error["input"]
    key = str(loc[-1]) if loc else ""
    owner = _owner(model, loc[:-1], tables)
    if kind == "extra_forbidden":
        known = _keys(owner)
        return f"unknown key `{key}`", _one_of(known), did_you_mean(key, known)
    if kind == "literal_error":
        name = next((part for part in reversed(loc) if isinstance(part, str)), "")
        return _unknown(key, str(given), _words(_field(owner, name) if owner else None))
    if kind in {"union_tag_not_found", "union_tag_invalid"}:
        members = _models_at(model, loc)
        if tag := _tag(members):
            known = [word for member in members for word in _words(_field(member, tag))]
            return _unknown(tag, str(context.get("tag", "")), known)
    if kind == REFUSED:
        return error["msg"], "", ""
    refusal = context.get("error")
    if isinstance(refusal, TuttiError):
        return refusal.problem, "", refusal.hint
    hint = "text needs quotes" if kind == "string_type" else ""
    if kind in {"list_type", "tuple_type"} and isinstance(given, str):
        each = ", ".join(f'"{name.strip()}"' for name in given.split(","))
        hint = f"a list needs brackets: {key} = [{each}]"
    if both := range_of(owner, key, kind):
        return "is out of range", both, hint
    return problem_of(error, key), _description(owner, key), hint


def range_of(model: type[BaseModel] | None, name: str, kind: str = "less_than_equal") -> str:
    """Returns the range of a field with two bounds; empty for errors of other types."""
    fields = model.model_fields if model else {}
    if kind not in {"greater_than_equal", "less_than_equal"} or name not in fields:
        return ""
    bounds = fields[name].metadata
    least = next((one.ge for one in bounds if isinstance(one, Ge)), None)
    most = next((one.le for one in bounds if isinstance(one, Le)), None)
    return "" if least is None or most is None else f"{least} to {most}"


def _unknown(what: str, word: str, known: list[str]) -> tuple[str, str, str]:
    problem = f"unknown {what} `{word}`" if word else f"`{what}` is missing"
    return problem, _one_of(known), did_you_mean(word, known)


def problem_of(error: ErrorDetails, key: str) -> str:
    """Returns the problem in words that do not depend on the version of pydantic."""
    if error["type"] == CHOICE:
        return error["msg"]
    numbers = {
        name: int(value) if isinstance(value, float) and value.is_integer() else value
        for name, value in error.get("ctx", {}).items()
    }
    return _PROBLEMS.get(error["type"], "does not fit").format_map({"key": key, **numbers})


def _tag(members: Sequence[type[BaseModel]]) -> str:
    """Returns the key that distinguishes several tables, or "" without one."""
    for name in members[0].model_fields if members else ():
        if all(len(_words(_field(member, name))) == 1 for member in members):
            return name
    return ""


def _words(annotation: object) -> list[str]:
    """Returns the words of the `Literal` types in an annotation."""
    if get_origin(annotation) is Literal:
        return [str(word) for word in get_args(annotation)]
    return [word for inner in get_args(annotation) for word in _words(inner)]


def _without_tags(loc: Sequence[int | str], tables: object) -> list[int | str]:
    """Returns the path as written in the file, without the tags that pydantic adds."""
    path: list[int | str] = []
    here: Any = tables
    for position, part in enumerate(loc):
        last = position == len(loc) - 1
        inside = (isinstance(here, Mapping) and part in here) or (
            isinstance(here, list) and isinstance(part, int) and part < len(here)
        )
        if inside:
            path.append(part)
            here = here[part]
        elif last and isinstance(here, Mapping) and part not in _TAGS:
            path.append(part)  # a missing key
    return path


def _path(loc: Sequence[int | str]) -> str:
    text = ""
    for part in loc:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{part}" if text else part
    return text if len(text) <= 120 else text[:117] + "..."


def _owner(
    model: type[BaseModel], path: Sequence[int | str], tables: Mapping[str, Any]
) -> type[BaseModel] | None:
    """Returns the model of the table at `path`."""
    value: Any = tables
    for part in path:
        value = value[part]
    here = _models_at(model, path)
    return next((owner for owner in here if _fits(owner, value)), here[0])


def _models_at(model: type[BaseModel], path: Sequence[int | str]) -> list[type[BaseModel]]:
    """Returns the models that the value at `path` may have."""
    here = [model]
    for part in path:
        if isinstance(part, str):
            inner = [_field(owner, part) for owner in here]
            here = [m for annotation in inner if annotation for m in models_in(annotation)] or here
    return here


def _fits(owner: type[BaseModel], value: object) -> bool:
    kind = owner.model_fields.get("kind")
    if kind is None or not isinstance(value, Mapping):
        return True
    return value.get("kind") in get_args(kind.annotation)


def _field(owner: type[BaseModel], key: str) -> object:
    for name, info in owner.model_fields.items():
        if key in (name, info.alias):
            return info.annotation
    return None


def models_in(annotation: object) -> list[type[BaseModel]]:
    """Returns every model that an annotation contains."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    if isinstance(annotation, type) and hasattr(annotation, "table"):  # a subclass of `InFiles`
        return [annotation.table()]
    return [model for argument in get_args(annotation) for model in models_in(argument)]


def of_another_file(errors: Sequence[ErrorDetails]) -> ConfigError | None:
    """Returns the first error of a file that a validator read; it names that file and the line."""
    causes = (error.get("ctx", {}).get("error") for error in errors)
    return next((e for e in causes if isinstance(e, ConfigError) and "source" in e.fields), None)


def _keys(owner: type[BaseModel] | None) -> list[str]:
    return [info.alias or name for name, info in owner.model_fields.items()] if owner else []


def _description(owner: type[BaseModel] | None, key: str) -> str:
    if owner is None:
        return ""
    for name, info in owner.model_fields.items():
        if key in (name, info.alias):
            text = info.description or ""
            return text[:1].lower() + text[1:].rstrip(".")
    return ""


def _one_of(known: Sequence[str]) -> str:
    return f"one of {', '.join(known)}" if known else ""

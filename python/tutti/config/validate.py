"""Tables checked against a model; what pydantic finds becomes one `ConfigError`."""

from __future__ import annotations

import re
import types
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from tutti.config.kinds import of_another_kind
from tutti.config.mistakes import did_you_mean, mistake, shown
from tutti.errors import ConfigError, TuttiError

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

M = TypeVar("M", bound=BaseModel)

_TAGS = frozenset({"value", "table", "list"})
"""Which form of a value was written; pydantic puts it into the path, where it helps nobody."""


def validated(model: type[M], tables: Mapping[str, Any], *, source: str) -> M:
    """The model that the tables describe.

    Raises:
        ConfigError: The first thing that is wrong, and how many more there are.
    """
    try:
        return model.model_validate(tables)
    except ValidationError as error:
        other = of_another_kind(model, tables, source)
        raise other or _first(model, tables, error.errors(include_url=False), source) from None
    except RecursionError:
        raise mistake("values are nested too deeply to be read", source=source) from None


def _first(
    model: type[BaseModel], tables: Mapping[str, Any], errors: Sequence[ErrorDetails], source: str
) -> ConfigError:
    # An unknown key is most often the cause of a missing one.
    first = next((e for e in errors if e["type"] == "extra_forbidden"), errors[0])
    loc = _without_tags(first["loc"], tables)
    owner = _owner(model, loc[:-1], tables)
    problem, expected, hint = _explained(first, str(loc[-1]) if loc else "", owner)
    more = len(errors) - 1
    if more:
        keys = sorted({_path(_without_tags(e["loc"], tables)) for e in errors if e is not first})
        also = f"{more} more to fix: {', '.join(keys[:4])}{', ...' if len(keys) > 4 else ''}"
        hint = f"{hint}; {also}" if hint else also
    missing = first["type"] in {"missing", "union_tag_not_found"}
    given = first["input"]
    if first["type"] == "union_tag_invalid" and isinstance(given, Mapping):
        tag = _discriminator(first)
        if tag in given:  # not the whole table, but its kind
            loc, given = [*loc, tag], given[tag]
    key = first.get("ctx", {}).get("key")
    if isinstance(key, str) and isinstance(given, Mapping):  # one of the table's keys
        missing = key not in given
        loc, given = [*loc, key], given.get(key)
    value = "" if missing or first["type"] == "extra_forbidden" else shown(given)
    return mistake(
        problem, source=source, key=_path(loc), value=value, expected=expected, hint=hint
    )


_PROBLEMS = {
    "int_type": "is no whole number",
    "string_type": "is no text",
    "string_too_short": "is empty",
    "too_short": "is empty",
    "model_type": "is no table",
    "dict_type": "is no table",
    "list_type": "is no list",
    "bool_type": "is neither true nor false",
}
"""What is wrong, where pydantic's words are about Python."""


def _explained(
    error: ErrorDetails, key: str, owner: type[BaseModel] | None
) -> tuple[str, str, str]:
    """What is wrong, what was expected, and a hint."""
    context = error.get("ctx", {})
    kind = error["type"]
    if kind == "extra_forbidden":
        known = _keys(owner)
        return f"unknown key `{key}`", _one_of(known), did_you_mean(key, known)
    if kind in {"union_tag_not_found", "union_tag_invalid", "literal_error"}:
        is_literal = kind == "literal_error"
        what = key if is_literal else _discriminator(error)
        known = re.findall(r"'([^']*)'", context["expected"]) if is_literal else _kinds(error)
        asked = str(error["input"] if is_literal else context.get("tag", ""))
        problem = f"there is no {what} `{asked}`" if asked else f"`{what}` is missing"
        return problem, _one_of(known), did_you_mean(asked, known)
    if isinstance(context.get("error"), TuttiError):
        refusal = context["error"]
        return refusal.problem, "", refusal.hint
    if kind == "missing":
        return f"`{key}` is missing", _description(owner, key), ""
    if kind in {"default_model", "topology", "origin"}:
        return error["msg"], "", ""
    words = error["msg"].removeprefix("Input ")
    problem = _PROBLEMS.get(kind, words[:1].lower() + words[1:])
    hint = "text stands in quotes" if kind == "string_type" else ""
    if kind == "list_type" and isinstance(error["input"], str):
        each = ", ".join(f'"{name.strip()}"' for name in error["input"].split(","))
        hint = f"a list stands in brackets: {key} = [{each}]"
    return problem, _description(owner, key), hint


def _discriminator(error: ErrorDetails) -> str:
    """The key that says which of several tables is meant."""
    named = str(error.get("ctx", {}).get("discriminator", "'kind'"))
    # A function tells some tables apart; it has no key.
    return named.strip("'") if named.startswith("'") else "kind"


def _kinds(error: ErrorDetails) -> list[str]:
    from tutti.config import disturbance, platform, training_tables

    tag = _discriminator(error)
    if tag == "model":
        members = get_args(get_args(training_tables.ComputeTable)[0])
    elif "models" in error["loc"]:
        members = get_args(get_args(platform.Model)[0])
    elif "detours" in error["loc"]:
        union = disturbance.Noise.model_fields["detours"].annotation
        members = get_args(get_args(get_args(union)[0])[0])
    else:
        members = get_args(get_args(disturbance.Distribution)[0])
        members += (disturbance.PerRankTime,) if error["loc"] == ("arrival",) else ()
    return [get_args(member.model_fields[tag].annotation)[0] for member in members]


def _without_tags(loc: Sequence[int | str], tables: object) -> list[int | str]:
    """The path as it is written in the file: what is no key of the tables is pydantic's own."""
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
    """The model of the table at `path`."""
    here: list[type[BaseModel]] = [model]
    value: Any = tables
    for part in path:
        value = value[part]
        if isinstance(part, str):
            inner = [_field(owner, part) for owner in here]
            found = [m for annotation in inner if annotation for m in models_in(annotation)]
            here = found or here
    fitting = [owner for owner in here if _fits(owner, value)]
    return (fitting or here)[0]


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
    """Every model that a type mentions."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    if get_origin(annotation) in (Annotated, Union, list, dict, types.UnionType):
        return [m for argument in get_args(annotation) for m in models_in(argument)]
    return []


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

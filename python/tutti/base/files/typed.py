"""Checks values of Python callers: fields of dataclasses, and arguments of functions.

Files are validated by pydantic, and type checkers read annotations. Neither sees a call from a
notebook, whose wrong values the core would refuse without the name of the parameter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields
from functools import cache
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from annotated_types import MinLen
from pydantic.fields import FieldInfo

from tutti.base.files.described import bounds_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tutti.base.errors import TuttiError

T = TypeVar("T")
_WORDS: dict[Any, str] = {
    NoneType: "None",
    int: "an integer",
    float: "a number",
    str: "text",
    Any: "any value",
    Iterable: "several values",
    Callable: "a function",
}


def refuse_fields(
    instance: object, error: type[TuttiError], /, *, words: bool = False, **types: type[Any]
) -> None:
    """Refuses an instance of a dataclass with fields of a wrong type or out of range.

    Args:
        instance: The instance.
        error: The class of the error.
        words: Whether to refuse unknown words of a `Literal`; else the core does, and suggests one.
        types: Classes of the annotations that its module imports for type checkers only.

    Raises:
        TuttiError: A value is wrong: an `error` that names class, field, value and expectation.
    """
    described = type(instance)
    values = {one.name: getattr(instance, one.name) for one in fields(instance)}  # type: ignore[arg-type] # a dataclass
    hints = _hints(described, tuple(types.items()))  # type: ignore[arg-type] # mypy: a class has a hash
    for name, problem in _wrong(values, hints):
        if words or not _is_word(values[name], hints[name]):
            raise _refused(error, described.__name__, name, problem, "wrong_type")
    for name, problem in _out_of_range(values, hints):
        raise _refused(error, described.__name__, name, problem, "out_of_range")


def refuse_arguments(
    function: str, error: type[TuttiError], /, **arguments: tuple[object, Any]
) -> None:
    """Refuses arguments of a function that have a wrong type or are out of range.

    Args:
        function: The name of the function, for messages.
        error: The class of the error.
        arguments: By name, the value and its type.

    Raises:
        TuttiError: A value is wrong: an `error` that names function, argument and expectation.
    """
    values = {name: value for name, (value, _) in arguments.items()}
    hints = {name: hint for name, (_, hint) in arguments.items()}
    for name, problem in _wrong(values, hints):
        raise _refused(error, f"{function}()", name, problem, "wrong_type")
    for name, problem in _out_of_range(values, hints):
        raise _refused(error, f"{function}()", name, problem, "out_of_range")


def every_of(
    function: str, error: type[TuttiError], name: str, values: Iterable[T], kind: type[T]
) -> tuple[T, ...]:
    """Returns an argument of several values, such as a generator, if all have a type.

    Args:
        function: The name of the function, for messages.
        error: The class of the error.
        name: The name of the argument.
        values: The argument.
        kind: The class of each value.

    Raises:
        TuttiError: The argument is not several values of the class.
    """
    refuse_arguments(function, error, **{name: (values, Iterable)})
    every = tuple(values)
    refuse_arguments(function, error, **{name: (every, tuple[kind, ...])})  # type: ignore[valid-type] # mypy: a class
    return every


def _refused(error: type[TuttiError], place: str, name: str, problem: str, kind: str) -> TuttiError:
    message = f"{place}: `{name}` {problem}"
    return error(message, kind=kind, fields={"what": name})


@cache
def _hints(described: type[Any], types: tuple[tuple[str, type[Any]], ...]) -> Mapping[str, Any]:
    """Returns the type of each field, with the limits of keys of files."""
    hints = get_type_hints(described, localns=dict(types), include_extras=True)
    return {
        one.name: Annotated[hints[one.name], one.metadata["key"]]
        if "key" in one.metadata
        else hints[one.name]
        for one in fields(described)
    }


def _wrong(values: Mapping[str, object], hints: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yields the values that do not fit their types: name and problem."""
    for name, value in values.items():
        if not fits(value, hints[name]):
            yield name, f"is {_written(value)}: expected {expected(hints[name])}"


def _out_of_range(
    values: Mapping[str, object], hints: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    """Yields the integers, also in tuples, outside the limits of their types."""
    for name, value in values.items():
        bounds = bounds_in(hints[name])
        for one in value if isinstance(value, tuple | list) else (value,):
            if bounds and isinstance(one, Integral) and not bounds[0] <= int(one) <= bounds[1]:
                yield name, f"is {value!r}: expected {_range(value, *bounds)}"


def _range(value: object, least: int, most: int) -> str:
    noun = "integers" if isinstance(value, tuple | list) else "an integer"
    return f"{noun} from {least} to {most}"


def _is_word(value: object, hint: Any) -> bool:  # noqa: ANN401 - any type
    """Returns whether a value is text, and a type has words."""
    origins = {get_origin(hint), *(get_origin(one) for one in get_args(hint))}
    if get_origin(hint) is Annotated:
        return _is_word(value, get_args(hint)[0])
    return isinstance(value, str) and Literal in origins


def _written(value: object) -> str:
    """Returns a value as in Python if it is short, else its type."""
    is_plain = value is None or isinstance(value, str | bytes | int | float | tuple | list)
    text = repr(value) if is_plain else ""
    return text if 0 < len(text) <= _LONGEST else f"of type {type(value).__name__}"


_LONGEST = 60
"""Characters of a value in a message."""


def fits(value: object, hint: Any) -> bool:  # noqa: ANN401, PLR0911 - any type; a case for each kind
    """Returns whether a value has a type; lists may stand for tuples, integers for numbers."""
    origin, inside = get_origin(hint), get_args(hint)
    if origin is Annotated:
        shortest = max((limit.min_length for limit in _limits(hint)), default=0)
        is_short = isinstance(value, str) and len(value) < shortest
        return fits(value, inside[0]) and not is_short
    if origin in {Union, UnionType}:
        return any(fits(value, one) for one in inside)
    if origin is Literal:
        return any(type(value) is type(one) and value == one for one in inside)
    if origin is tuple:
        if not isinstance(value, tuple | list):
            return False
        each = [inside[0]] * len(value) if inside[-1] is ... else inside
        return len(value) == len(each) and all(map(fits, value, each))
    if hint in {int, float}:
        kind = Integral if hint is int else Real
        return isinstance(value, kind) and not isinstance(value, bool)
    return hint is Any or isinstance(value, NoneType if hint is None else origin or hint)


def expected(hint: Any) -> str:  # noqa: ANN401 - any type
    """Returns a type in words."""
    *most, last = dict.fromkeys(_options(hint))
    return f"{', '.join(most)} or {last}" if most else last


def _options(hint: Any) -> list[str]:  # noqa: ANN401 - any type
    """Returns the values that a type accepts, in words."""
    origin, inside = get_origin(hint), get_args(hint)
    if origin is Annotated:
        is_filled = any(limit.min_length for limit in _limits(hint))
        return ["non-empty text" if is_filled and each == "text" else each
                for each in _options(inside[0])]  # fmt: skip
    if origin in {Union, UnionType}:
        return [each for one in inside for each in _options(one)]
    if origin is Literal:
        return [repr(one) for one in inside]
    if origin is tuple:
        is_open = inside[-1] is ...
        several = f"each {expected(inside[0])}" if is_open else ", ".join(map(expected, inside))
        return [f"a tuple ({several})"]
    if hint is bool:
        return ["True", "False"]
    kind = NoneType if hint is None else origin or hint
    name = getattr(kind, "__name__", str(kind))
    return [_WORDS.get(kind, f"{'an' if name[0] in 'AEIOU' else 'a'} {name}")]


def _limits(hint: Any) -> list[MinLen]:  # noqa: ANN401 - any type
    """Returns the limits of the length of text, which the field or the key states."""
    found = [one for part in get_args(hint)[1:] if isinstance(part, FieldInfo)
             for one in part.metadata]  # fmt: skip
    return [one for one in found if isinstance(one, MinLen)]

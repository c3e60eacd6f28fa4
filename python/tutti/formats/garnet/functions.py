"""Functions of Python, and methods of lists and dictionaries, that topology scripts may call."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from tutti.formats.garnet.values import (
    MOST_TEXT,
    Budget,
    Builtin,
    Instance,
    Made,
    Names,
    Options,
    ScriptError,
    checked,
    described,
    number,
)

if TYPE_CHECKING:
    from collections.abc import Callable

IGNORED: Final = frozenset({"print", "inform", "warn"})
"""Calls whose arguments are not read."""
STOPS: Final = frozenset({"fatal", "panic", "exit"})
"""Calls that stop gem5 with a message."""
_MATH: Final = ("sqrt", "ceil", "floor", "log", "log2", "log10", "pow", "fabs")


def builtins(budget: Budget) -> Names:
    """Returns the functions; `budget` limits the lists that they return."""
    functions: dict[str, Callable[..., Any]] = {
        "range": _range,
        "xrange": _range,
        "len": _length,
        "int": lambda value=0: checked(int(_convertible(value))),
        "float": lambda value=0.0: checked(float(_convertible(value))),
        "str": lambda value="": checked(str(value)) if _is_plain(value) else described(value),
        "bool": bool,
        "abs": lambda value: abs(number(value)),
        "round": lambda value, digits=None: round(number(value), digits),
        "divmod": lambda a, b: divmod(number(a), number(b)),
        "pow": lambda a, b: power(number(a), number(b)),
        "list": lambda values=(): budget.list(values),
        "tuple": lambda values=(): tuple(budget.list(values)),
        "sorted": lambda values, reverse=False: sorted(budget.list(values), reverse=reverse),
        "reversed": lambda values: budget.list(values)[::-1],
        "enumerate": lambda values, start=0: list(enumerate(budget.list(values), number(start))),
        "zip": lambda *values: list(zip(*map(budget.list, values), strict=False)),
        "sum": lambda values, start=0: checked(
            sum(map(number, budget.list(values)), number(start))
        ),
        "min": lambda *values: min(map(number, _arguments(budget, values))),
        "max": lambda *values: max(map(number, _arguments(budget, values))),
        "any": lambda values: any(budget.list(values)),
        "all": lambda values: all(budget.list(values)),
        "getattr": attribute,
        "hasattr": lambda of, name: attribute(of, name, _MISSING) is not _MISSING,
    }
    values: dict[str, Any] = {name: Builtin(name, call) for name, call in functions.items()}
    values["math"] = Instance("module math", _math())
    values |= {name: Builtin(f"math.{name}", values["math"].values[name].call) for name in _MATH
               if name not in values}  # fmt: skip
    return Names(values)


_MISSING: Final = object()


def attribute(of: Any, name: Any, default: Any = _MISSING) -> Any:  # noqa: ANN401 - any value
    """Returns an attribute of an object of the script.

    Raises:
        ScriptError: It has none of this name.
    """
    if not isinstance(of, Options | Instance | Made) or not isinstance(name, str):
        raise ScriptError(f"{described(of)} has no attribute `{str(name)[:60]}` that is read")
    if isinstance(of, Options):
        of.read.add(name)
    if name in of.values:
        return of.values[name]
    if default is not _MISSING:
        return default
    if isinstance(of, Options):
        raise ScriptError(
            f"the script needs the option `{name}`",
            f"{name}=VALUE after the file",
            f"gem5 takes it from its command line: add {name}=VALUE",
        )
    raise ScriptError(f"{described(of)} has no attribute `{name}`")


def method(budget: Budget, of: Any, name: str) -> Builtin:  # noqa: ANN401 - any value
    """Returns a method of a list, a dictionary or a text.

    Raises:
        ScriptError: The value has no such method that is read.
    """
    methods: dict[str, Callable[..., Any]] = {}
    if isinstance(of, list):
        methods = {
            "append": lambda value: of.extend(budget.list((value,))),
            "extend": lambda values: of.extend(budget.list(values)),
            "insert": lambda place, value: of.insert(number(place), budget.list((value,))[0]),
            "pop": of.pop,
            "index": of.index,
            "count": of.count,
            "remove": of.remove,
            "reverse": of.reverse,
        }
    elif isinstance(of, dict):
        methods = {
            "get": of.get,
            "keys": lambda: budget.list(of),
            "values": lambda: budget.list(list(of.values())),
            "items": lambda: budget.list(list(of.items())),
        }
    elif isinstance(of, str):
        methods = {
            "startswith": lambda start: of.startswith(str(start)),
            "endswith": lambda end: of.endswith(str(end)),
            "lower": of.lower,
            "upper": of.upper,
            "format": lambda *_, **__: of[:MOST_TEXT],
        }
    if name not in methods:
        raise ScriptError(
            f"`{name}` of {described(of)} is not read",
            f"one of {', '.join(methods)}" if methods else "",
        )
    return Builtin(name, methods[name])


def power(a: Any, b: Any) -> Any:  # noqa: ANN401 - numbers
    """Returns a power; the exponent is at most 64."""
    if abs(b) > 64:
        raise ScriptError("an exponent is too large", "at most 64")
    value = a**b
    if isinstance(value, complex):
        raise ScriptError("a power is not a real number")
    return checked(value)


def _math() -> dict[str, Any]:
    functions: dict[str, Any] = {name: getattr(math, name) for name in _MATH}

    def call(name: str) -> Callable[..., Any]:
        return lambda *values: checked(functions[name](*map(number, values)))

    return {name: Builtin(f"math.{name}", call(name)) for name in functions}


def _range(*values: Any) -> range:  # noqa: ANN401 - integers
    integers = [checked(number(value)) for value in values]
    if not all(isinstance(value, int) for value in integers):
        given = ", ".join(map(str, integers))
        raise ScriptError(f"range({given}) is not of integers", "integers",
                          "divide with `//`, or convert with int()")  # fmt: skip
    return range(*integers)


def _length(values: Any) -> int:  # noqa: ANN401 - any value
    if not isinstance(values, list | tuple | dict | str | range):
        raise ScriptError(f"{described(values)} has no length", "a list")
    return len(values)


def _arguments(budget: Budget, values: tuple[Any, ...]) -> list[Any]:
    return budget.list(values[0]) if len(values) == 1 else list(values)


def _convertible(value: Any) -> Any:  # noqa: ANN401 - a number or a text
    if isinstance(value, str) and len(value) <= 32:
        return value
    return number(value)


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, bool | int | float | str)

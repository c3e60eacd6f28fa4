"""Values of a topology script: what its names refer to while it is read.

Numbers, texts, lists, tuples, dictionaries and ranges are those of Python, within limits. All else
is one of the classes here, so that no Python object with behaviour is reachable from a script.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import ast
    from collections.abc import Callable, Mapping

MOST_STEPS: Final = 1 << 21
MOST_ELEMENTS: Final = 1 << 18
MOST_TEXT: Final = 1 << 12
MOST_NUMBER: Final = 2**53


class ScriptError(Exception):
    """What is wrong at a line of a script; the reader adds the place.

    Attributes:
        line: The line, or None for that of the statement.
    """

    def __init__(self, problem: str, expected: str = "", hint: str = "") -> None:
        super().__init__(problem)
        self.problem, self.expected, self.hint = problem, expected, hint
        self.line: int | None = None


@dataclass(eq=False, slots=True)
class Made:
    """A router, a link or a controller; `kind` is its class in gem5."""

    kind: str
    line: int
    values: dict[str, Any]


@dataclass(eq=False, slots=True)
class Maker:
    """The class of routers or links that a script calls."""

    kind: str


@dataclass(eq=False, slots=True)
class Instance:
    """The topology (`self`), or the network, with its attributes."""

    name: str
    values: dict[str, Any] = field(default_factory=dict)
    functions: dict[str, ast.FunctionDef] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class Options:
    """The options of gem5's command line, and the names of those that were read."""

    values: Mapping[str, Any]
    read: set[str] = field(default_factory=set)


@dataclass(eq=False, slots=True)
class Function:
    """A function of the script, with the names around it and its first argument, if bound."""

    node: ast.FunctionDef
    around: Names
    bound: tuple[Any, ...] = ()


@dataclass(eq=False, slots=True)
class Builtin:
    """A function of Python, or a method of a value."""

    name: str
    call: Callable[..., Any]


@dataclass(eq=False, slots=True)
class Unknown:
    """A name of gem5 that is imported; only its use is an error."""

    name: str


@dataclass(eq=False, slots=True)
class Names:
    """Names of a function, and those around it."""

    values: dict[str, Any]
    around: Names | None = None

    def find(self, name: str) -> Any:  # noqa: ANN401 - any value
        """Returns the value of a name.

        Raises:
            ScriptError: It is unknown.
        """
        names: Names | None = self
        while names is not None:
            if name in names.values:
                return names.values[name]
            names = names.around
        raise ScriptError(f"the name `{name}` is unknown", "names that the script defines")


class Budget:
    """Limits the work and the memory of a script."""

    def __init__(self) -> None:
        self._steps, self._elements = MOST_STEPS, MOST_ELEMENTS

    def step(self) -> None:
        """Counts a step."""
        self._steps -= 1
        if self._steps < 0:
            raise ScriptError("the script is too long to read", f"at most {MOST_STEPS:,} steps")

    def spend(self, count: int) -> None:
        """Counts elements of lists, before they are created."""
        self._elements -= count
        if self._elements < 0:
            raise ScriptError("lists are too long", f"at most {MOST_ELEMENTS:,} elements in all")

    def list(self, values: Any) -> list[Any]:  # noqa: ANN401 - any value
        """Returns the elements of an iterable value."""
        if isinstance(values, dict):
            values = list(values)
        if not isinstance(values, list | tuple | range | str):
            raise ScriptError(f"{described(values)} cannot be iterated", "a list or a range")
        self.spend(len(values))
        return list(values)


def described(value: object) -> str:
    """Returns a value in words, for errors."""
    texts: dict[type, Callable[[Any], str]] = {
        Made: lambda made: f"an object of {made.kind}",
        Maker: lambda made: f"an object of {made.kind}",
        Unknown: lambda name: f"`{name.name}` of gem5",
        Instance: lambda instance: f"the {instance.name}",
        Function: lambda function: f"the function {function.node.name}",
        Builtin: lambda function: f"the function {function.name}",
        **dict.fromkeys((type(None), bool, int, float), str),
    }
    return texts.get(type(value), lambda other: f"a {type(other).__name__}")(value)


def checked(value: Any) -> Any:  # noqa: ANN401 - any value
    """Returns a number or a text, if it is within the limits."""
    if isinstance(value, str) and len(value) > MOST_TEXT:
        raise ScriptError("a text is too long", f"at most {MOST_TEXT:,} characters")
    if isinstance(value, float) and not math.isfinite(value):
        raise ScriptError("a number is too large", "finite numbers")
    if isinstance(value, int | float) and abs(value) > MOST_NUMBER:
        raise ScriptError("a number is too large", "at most 2^53")
    return value


def number(value: Any) -> Any:  # noqa: ANN401 - an int or a float
    """Returns a number, or raises an error."""
    if not isinstance(value, int | float):
        raise ScriptError(f"{described(value)} is not a number", "a number")
    return value

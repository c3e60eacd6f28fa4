"""Functions of the link length that RapidChiplet's packaging files state as Python text.

The text is read, never executed: `lambda`, numbers, its argument, arithmetic, and functions of
`math` that `FUNCTIONS` lists.

Examples:
    >>> function_of("lambda x : 0.25 * x", source="p.json", key="link_latency")(8.0)
    2.0
"""

from __future__ import annotations

import ast
import math
import operator
from typing import TYPE_CHECKING, Final

from tutti.base.files.mistakes import mistake, shown

if TYPE_CHECKING:
    from collections.abc import Callable

    from tutti.base.errors import ConfigError

FUNCTIONS: Final[dict[str, Callable[..., float]]] = {
    "abs": abs, "ceil": math.ceil, "exp": math.exp, "floor": math.floor, "int": int,
    "log": math.log, "max": max, "min": min, "round": round, "sqrt": math.sqrt,
}  # fmt: skip
_OPERATORS: Final[dict[type[ast.operator], Callable[[float, float], float]]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.Div: operator.truediv, ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
}  # fmt: skip
_MOST_TEXT: Final = 1 << 10
_EXPECTED: Final = "such as `lambda x: 0.25 * x`, of numbers, + - * / // % ** and " + ", ".join(
    sorted(FUNCTIONS)
)


def function_of(text: str, *, source: str, key: str) -> Callable[[float], float]:
    """Returns the function of the length in mm that a text states.

    Args:
        text: The text, a lambda of one argument.
        source: The file, for errors.
        key: The key, for errors.

    Raises:
        ConfigError: It is not such a function; also when the result is called, if the value is not
            a finite number.
    """

    def refused(problem: str) -> ConfigError:
        return mistake(problem, source=source, key=key, value=shown(text), expected=_EXPECTED)

    try:
        if len(text) > _MOST_TEXT:
            raise ValueError(text[:0])
        body = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise refused("is not a function that can be read") from None
    if not isinstance(body, ast.Lambda) or len(body.args.args) != 1 or _others(body.args):
        raise refused("is not a lambda of one argument")
    name, term = body.args.args[0].arg, body.body

    def call(length: float) -> float:
        try:
            value = float(_value(term, name, length))
        except _Unreadable as error:
            raise refused(f"{error} is not read") from None
        except (ArithmeticError, ValueError, TypeError, RecursionError):
            raise refused(f"has no value for a length of {length:g} mm") from None
        if not math.isfinite(value):
            raise refused(f"is not finite for a length of {length:g} mm")
        return value

    call(1.0)
    return call


class _Unreadable(Exception):  # noqa: N818 - names what cannot be read
    """A part of a function that is neither a number nor arithmetic."""


def _others(arguments: ast.arguments) -> bool:
    return bool(
        arguments.posonlyargs or arguments.kwonlyargs or arguments.vararg or arguments.kwarg
        or arguments.defaults
    )  # fmt: skip


def _value(node: ast.expr, name: str, length: float) -> float:  # noqa: PLR0911 - one per term
    """Returns the value of a term at a length."""
    match node:
        case ast.Constant(value=bool()):
            pass
        case ast.Constant(value=int() | float() as value):
            return float(value)
        case ast.Name(id=used) if used == name:
            return length
        case ast.UnaryOp(op=ast.USub(), operand=term):
            return -_value(term, name, length)
        case ast.UnaryOp(op=ast.UAdd(), operand=term):
            return _value(term, name, length)
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return math.pow(_value(left, name, length), _value(right, name, length))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_value(left, name, length), _value(right, name, length))
        case (
            ast.Call(func=ast.Name(id=called), args=terms, keywords=[])
            | ast.Call(
                func=ast.Attribute(value=ast.Name(id="math"), attr=called), args=terms, keywords=[]
            )
        ) if called in FUNCTIONS:
            return FUNCTIONS[called](*(_value(term, name, length) for term in terms))
    raise _Unreadable(f"`{ast.unparse(node)[:40]}`")

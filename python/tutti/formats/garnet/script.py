"""Reads topology scripts of gem5 (`configs/topologies/*.py`) without executing them.

The reader interprets the syntax tree of `makeTopology`: assignments, arithmetic, `for`, `while`,
`if`, lists, functions of the script, and calls of `IntLink`, `ExtLink` and `Router`. Everything
else is an error with its line. Imports are not followed.
"""

from __future__ import annotations

import ast
import operator
from typing import TYPE_CHECKING, Any, Final

from tutti.formats.garnet import functions
from tutti.formats.garnet.values import (
    Budget,
    Builtin,
    Function,
    Instance,
    Made,
    Maker,
    Names,
    Options,
    ScriptError,
    Unknown,
    checked,
    described,
    number,
)
from tutti.view.quantity import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_BINARY: Final[dict[type[ast.operator], Callable[[Any, Any], Any]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: functions.power,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.RShift: operator.rshift,
    ast.LShift: lambda a, b: functions.power(2, b) * a,
}
_COMPARE: Final[dict[type[ast.cmpop], Callable[[Any, Any], Any]]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}
_UNARY: Final[dict[type[ast.unaryop], Callable[[Any], Any]]] = {
    ast.Not: operator.not_,
    ast.USub: lambda value: -number(value),
    ast.UAdd: number,
    ast.Invert: lambda value: ~number(value),
}
_DEEPEST: Final = 40


class _Return(Exception):  # noqa: N818 - a jump, not an error
    def __init__(self, value: Any) -> None:  # noqa: ANN401 - any value
        super().__init__()
        self.value = value


class _Break(Exception):  # noqa: N818 - a jump
    pass


class _Continue(Exception):  # noqa: N818 - a jump
    pass


class Interpreter:
    """Evaluates statements and expressions of a script."""

    def __init__(self) -> None:
        self._budget = Budget()
        self.globals = Names({}, functions.builtins(self._budget))
        self._depth = 0

    # --- statements -------------------------------------------------------------------------------

    def run(self, body: list[ast.stmt], names: Names) -> None:
        """Executes statements.

        Raises:
            ScriptError: A statement is not read or fails; it has the line.
        """
        for statement in body:
            try:
                self._statement(statement, names)
            except ScriptError as error:
                error.line = error.line or statement.lineno
                raise
            except (ArithmeticError, TypeError, ValueError, LookupError, AttributeError) as error:
                failed = ScriptError(f"the statement fails: {str(error)[:200] or 'no value'}")
                failed.line = statement.lineno
                raise failed from None

    def _statement(self, node: ast.stmt, names: Names) -> None:
        self._budget.step()
        name = type(node).__name__
        known = getattr(self, f"_do_{name.lower()}", None)
        if known is None:
            raise ScriptError(
                f"statements of the kind {name} are not read",
                "assignments, for, while, if, assert, return, def and calls",
                "use the config.ini of a run, which lists all links",
            )
        known(node, names)

    def _do_pass(self, _node: ast.Pass, _names: Names) -> None:
        pass

    def _do_import(self, node: ast.Import | ast.ImportFrom, names: Names) -> None:
        for alias in node.names:
            name = (alias.asname or alias.name).partition(".")[0]
            if name != "*" and name not in functions.IGNORED | functions.STOPS:
                try:
                    names.find(name)
                except ScriptError:
                    names.values[name] = Unknown(name)

    _do_importfrom = _do_import

    def _do_expr(self, node: ast.Expr, names: Names) -> None:
        if not isinstance(node.value, ast.Constant):
            self.value(node.value, names)

    def _do_assign(self, node: ast.Assign, names: Names) -> None:
        value = self.value(node.value, names)
        for target in node.targets:
            self._assign(target, value, names)

    def _do_annassign(self, node: ast.AnnAssign, names: Names) -> None:
        if node.value is not None:
            self._assign(node.target, self.value(node.value, names), names)

    def _do_augassign(self, node: ast.AugAssign, names: Names) -> None:
        load = ast.copy_location(_loaded(node.target), node)
        before, by = self.value(load, names), self.value(node.value, names)
        if isinstance(before, list) and isinstance(node.op, ast.Add):
            before.extend(self._budget.list(by))
            return
        self._assign(node.target, self._binary(node.op, before, by), names)

    def _do_for(self, node: ast.For, names: Names) -> None:
        def assigned() -> Iterator[None]:
            values = self.value(node.iter, names)
            for value in values if isinstance(values, range) else self._budget.list(values):
                self._budget.step()
                self._assign(node.target, value, names)
                yield

        self._repeat(node, assigned(), names)

    def _do_while(self, node: ast.While, names: Names) -> None:
        def holds() -> Iterator[None]:
            while self.value(node.test, names):
                self._budget.step()
                yield

        self._repeat(node, holds(), names)

    def _repeat(self, node: ast.For | ast.While, turns: Iterator[None], names: Names) -> None:
        """Runs the body of a loop once per turn, and its `else` unless the body breaks."""
        for _ in turns:
            try:
                self.run(node.body, names)
            except _Break:
                return
            except _Continue:
                continue
        self.run(node.orelse, names)

    def _do_if(self, node: ast.If, names: Names) -> None:
        self.run(node.body if self.value(node.test, names) else node.orelse, names)

    def _do_assert(self, node: ast.Assert, names: Names) -> None:
        if not self.value(node.test, names):
            raise ScriptError(
                f"the assertion fails: {ast.unparse(node.test)[:200]}",
                "controllers and options that fit the topology",
                "num_cpus, num_l2caches, num_dirs and num_dmas set the number of controllers",
            )

    def _do_return(self, node: ast.Return, names: Names) -> None:
        raise _Return(None if node.value is None else self.value(node.value, names))

    def _do_break(self, _node: ast.Break, _names: Names) -> None:
        raise _Break

    def _do_continue(self, _node: ast.Continue, _names: Names) -> None:
        raise _Continue

    def _do_functiondef(self, node: ast.FunctionDef, names: Names) -> None:
        names.values[node.name] = Function(node, names)

    def _do_raise(self, node: ast.Raise, _names: Names) -> None:
        raise ScriptError(f"the script stops: {ast.unparse(node)[:200]}")

    def _assign(self, target: ast.expr, value: Any, names: Names) -> None:  # noqa: ANN401
        if isinstance(target, ast.Name):
            names.values[target.id] = value
        elif isinstance(target, ast.Attribute):
            of = self.value(target.value, names)
            if not isinstance(of, Instance | Made):
                raise ScriptError(f"attributes of {described(of)} cannot be set")
            of.values[target.attr] = value
        elif isinstance(target, ast.Subscript):
            of, key = self.value(target.value, names), self.value(target.slice, names)
            if not isinstance(of, list | dict):
                raise ScriptError(f"elements of {described(of)} cannot be set")
            self._budget.spend(isinstance(of, dict))
            of[key] = value
        elif isinstance(target, ast.Tuple | ast.List):
            values = self._budget.list(value)
            if len(values) != len(target.elts):
                expected = plural(len(target.elts), "name")
                raise ScriptError(f"{plural(len(values), 'value')} for {expected}")
            for each, one in zip(target.elts, values, strict=True):
                self._assign(each, one, names)
        else:
            raise ScriptError("this assignment is not read", "a name, an attribute or an element")

    # --- expressions ------------------------------------------------------------------------------

    def value(self, node: ast.expr, names: Names) -> Any:  # noqa: ANN401 - any value
        """Returns the value of an expression.

        Raises:
            ScriptError: The expression is not read or fails.
        """
        self._budget.step()
        name = type(node).__name__
        known = getattr(self, f"_of_{name.lower()}", None)
        if known is None:
            raise ScriptError(
                f"`{ast.unparse(node)[:80]}` ({name}) is not read",
                "numbers, texts, lists, arithmetic, comparisons and calls",
                "use the config.ini of a run, which lists all links",
            )
        return known(node, names)

    def _of_constant(self, node: ast.Constant, _names: Names) -> Any:  # noqa: ANN401
        if node.value is not None and not isinstance(node.value, bool | int | float | str):
            raise ScriptError(f"`{ast.unparse(node)[:80]}` is not read", "a number or a text")
        return checked(node.value)

    def _of_name(self, node: ast.Name, names: Names) -> Any:  # noqa: ANN401
        return names.find(node.id)

    def _of_list(self, node: ast.List, names: Names) -> list[Any]:
        self._budget.spend(len(node.elts))
        return [self.value(each, names) for each in node.elts]

    def _of_tuple(self, node: ast.Tuple, names: Names) -> tuple[Any, ...]:
        self._budget.spend(len(node.elts))
        return tuple(self.value(each, names) for each in node.elts)

    def _of_dict(self, node: ast.Dict, names: Names) -> dict[Any, Any]:
        self._budget.spend(len(node.keys))
        pairs = zip(node.keys, node.values, strict=True)
        return {self.value(key, names): self.value(value, names) for key, value in pairs if key}

    def _of_joinedstr(self, node: ast.JoinedStr, _names: Names) -> str:
        return ast.unparse(node)[:200]

    def _of_ifexp(self, node: ast.IfExp, names: Names) -> Any:  # noqa: ANN401
        return self.value(node.body if self.value(node.test, names) else node.orelse, names)

    def _of_boolop(self, node: ast.BoolOp, names: Names) -> Any:  # noqa: ANN401
        found: Any = None
        for each in node.values:
            found = self.value(each, names)
            if bool(found) == isinstance(node.op, ast.Or):
                return found
        return found

    def _of_unaryop(self, node: ast.UnaryOp, names: Names) -> Any:  # noqa: ANN401
        return _UNARY[type(node.op)](self.value(node.operand, names))

    def _of_binop(self, node: ast.BinOp, names: Names) -> Any:  # noqa: ANN401
        return self._binary(node.op, self.value(node.left, names), self.value(node.right, names))

    def _binary(self, kind: ast.operator, a: Any, b: Any) -> Any:  # noqa: ANN401
        if isinstance(kind, ast.Add) and isinstance(a, list | tuple) and type(a) is type(b):
            return type(a)([*self._budget.list(a), *self._budget.list(b)])
        if isinstance(kind, ast.Mult) and isinstance(a, list) and isinstance(b, int):
            self._budget.spend(len(a) * max(b, 0))
            return a * b
        if isinstance(a, str):
            if isinstance(kind, ast.Add) and isinstance(b, str):
                return checked(a + b)
            if isinstance(kind, ast.Mod):
                return a  # a format, in messages only
        if type(kind) not in _BINARY:
            raise ScriptError(f"the operator {type(kind).__name__} is not read")
        return checked(_BINARY[type(kind)](number(a), number(b)))

    def _of_compare(self, node: ast.Compare, names: Names) -> bool:
        left = self.value(node.left, names)
        for kind, each in zip(node.ops, node.comparators, strict=True):
            right = self.value(each, names)
            if not _COMPARE[type(kind)](left, right):
                return False
            left = right
        return True

    def _of_subscript(self, node: ast.Subscript, names: Names) -> Any:  # noqa: ANN401
        of = self.value(node.value, names)
        if not isinstance(of, list | tuple | dict | str | range):
            raise ScriptError(f"{described(of)} has no elements", "a list")
        if isinstance(node.slice, ast.Slice):
            parts = (node.slice.lower, node.slice.upper, node.slice.step)
            ends = [None if part is None else self.value(part, names) for part in parts]
            return self._budget.list(of)[slice(*ends)]
        place = self.value(node.slice, names)
        try:
            return of[place]
        except LookupError:
            size = len(of)
            raise ScriptError(f"index {place} is out of range", f"one of {size} elements",
                              "check num_cpus and mesh_rows") from None  # fmt: skip

    def _of_listcomp(self, node: ast.ListComp | ast.GeneratorExp, names: Names) -> list[Any]:
        found: list[Any] = []
        inner = Names({}, names)

        def add() -> None:
            self._budget.spend(1)
            found.append(self.value(node.elt, inner))

        self._comprehend(node.generators, inner, add)
        return found

    _of_generatorexp = _of_listcomp

    def _of_dictcomp(self, node: ast.DictComp, names: Names) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        inner = Names({}, names)

        def add() -> None:
            self._budget.spend(1)
            found[self.value(node.key, inner)] = self.value(node.value, inner)

        self._comprehend(node.generators, inner, add)
        return found

    def _comprehend(
        self, parts: list[ast.comprehension], names: Names, add: Callable[[], None]
    ) -> None:
        if not parts:
            add()
            return
        values = self.value(parts[0].iter, names)
        for value in values if isinstance(values, range) else self._budget.list(values):
            self._budget.step()
            self._assign(parts[0].target, value, names)
            if all(self.value(test, names) for test in parts[0].ifs):
                self._comprehend(parts[1:], names, add)

    def _of_attribute(self, node: ast.Attribute, names: Names) -> Any:  # noqa: ANN401
        of = self.value(node.value, names)
        if isinstance(of, Instance) and node.attr in of.functions:
            return self._bound(of, node.attr)
        if isinstance(of, list | dict | str):
            return functions.method(self._budget, of, node.attr)
        return functions.attribute(of, node.attr)

    def _bound(self, of: Instance, name: str) -> Function:
        node = of.functions[name]
        plain = {"staticmethod"} & {ast.unparse(each) for each in node.decorator_list}
        return Function(node, self.globals, () if plain else (of,))

    # --- calls ------------------------------------------------------------------------------------

    def _of_call(self, node: ast.Call, names: Names) -> Any:  # noqa: ANN401
        if isinstance(node.func, ast.Name):
            called = node.func.id
            if called in functions.IGNORED:
                return None
            if called in functions.STOPS:
                raise ScriptError(f"the script stops: {ast.unparse(node)[:200]}")
            if called == "super":
                return Instance("base class", {"__init__": Builtin("__init__", lambda *_: None)})
        function = self.value(node.func, names)
        arguments = [self.value(each, names) for each in node.args]
        if any(each.arg is None for each in node.keywords):
            raise ScriptError("`**` arguments are not read", "keywords such as latency=1")
        keywords = {str(each.arg): self.value(each.value, names) for each in node.keywords}
        return self.call(function, arguments, keywords, node.lineno)

    def call(
        self,
        function: object,
        arguments: list[Any],
        keywords: dict[str, Any],
        line: int = 0,
    ) -> Any:  # noqa: ANN401 - any value
        """Calls a function, or creates a link or a router.

        Raises:
            ScriptError: It cannot be called, or fails.
        """
        if isinstance(function, Maker):
            if arguments:
                raise ScriptError(f"{function.kind} has arguments without keywords",
                                  "keywords such as src_node=routers[0]")  # fmt: skip
            self._budget.spend(1 + len(keywords))
            return Made(function.kind, line, keywords)
        if isinstance(function, Builtin):
            return function.call(*arguments, **keywords)
        if not isinstance(function, Function):
            raise ScriptError(f"{described(function)} is not called",
                              "IntLink, ExtLink, Router, or a function of the script")  # fmt: skip
        if self._depth == _DEEPEST:
            raise ScriptError("calls are nested too deeply", f"at most {_DEEPEST} levels")
        names = self._parameters(function, [*function.bound, *arguments], keywords)
        self._depth += 1
        try:
            self.run(function.node.body, names)
        except _Return as found:
            return found.value
        finally:
            self._depth -= 1
        return None

    def _parameters(
        self, function: Function, arguments: list[Any], keywords: dict[str, Any]
    ) -> Names:
        of = function.node.args
        known = [each.arg for each in (*of.posonlyargs, *of.args)]
        values = dict(zip(known, arguments, strict=False))
        wrong = sorted(set(keywords) - {*known, *(each.arg for each in of.kwonlyargs)})
        if len(arguments) > len(known) or wrong or of.vararg or of.kwarg:
            raise ScriptError(f"the arguments of {function.node.name} do not fit",
                              f"its parameters: {', '.join(known) or 'none'}")  # fmt: skip
        values |= keywords
        defaults = list(zip(known[len(known) - len(of.defaults) :], of.defaults, strict=True))
        defaults += [(each.arg, default) for each, default in
                     zip(of.kwonlyargs, of.kw_defaults, strict=True) if default]  # fmt: skip
        for name, default in defaults:
            if name not in values:
                values[name] = self.value(default, function.around)
        missing = [name for name in known if name not in values]
        if missing:
            raise ScriptError(f"{function.node.name} is called without `{missing[0]}`")
        return Names(values, function.around)


def _loaded(target: ast.expr) -> ast.expr:
    """Returns the expression that reads what an assignment sets."""
    if isinstance(target, ast.Name):
        return ast.Name(target.id, ast.Load())
    return target


__all__ = ["Instance", "Interpreter", "Made", "Maker", "Names", "Options", "ScriptError"]

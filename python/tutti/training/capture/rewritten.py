"""The code of a program, in which `int`, `in` and indices call functions.

`int` loses the values that a number has on other ranks, Python reads an index without a call of the
number, and a container compares it one by one (:mod:`tutti.training.capture.followed`). So does a
loop in which each rank has its turn (:mod:`tutti.training.capture.turns`). Lines and names remain.
Files of bytecode are neither read nor written.

Examples:
    >>> import ast
    >>> print(ast.unparse(_Rewriting().visit(ast.parse("x: list[int] = part[int(rank):9]"))))
    x: list[int] = part[__tutti_index__(__tutti_int__(rank)):9]
"""

from __future__ import annotations

import ast
import contextlib
import itertools
import sys
from importlib.machinery import PathFinder, SourceFileLoader
from typing import TYPE_CHECKING, Any, TypeVar

from tutti.training.capture.turns import with_turns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from importlib.machinery import ModuleSpec
    from types import CodeType, ModuleType

__all__ = ["importing", "rewritten"]

_REPLACED = ("int", "range")
_Function = TypeVar("_Function", ast.FunctionDef, ast.AsyncFunctionDef)


def rewritten(source: bytes, file: str) -> CodeType:
    """Returns the code of a script.

    Args:
        source: The text of the script.
        file: Its name, for errors.

    Raises:
        SyntaxError: It is not Python.
        ValueError: It has null bytes.
    """
    tree = ast.parse(source, file)
    stored = {node.id for node in ast.walk(tree)
              if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}  # fmt: skip
    if not stored & set(_REPLACED):
        tree = ast.fix_missing_locations(_Rewriting().visit(tree))
    return compile(tree, file, "exec", dont_inherit=True)


@contextlib.contextmanager
def importing(names: Mapping[str, Any], is_users: Callable[[str], bool]) -> Iterator[None]:
    """Rewrites modules of the program that are imported meanwhile.

    Args:
        names: The functions that their code calls.
        is_users: Returns whether a file is one of the program.
    """
    finder: Any = _Finder(names, is_users)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


class _Finder:
    def __init__(self, names: Mapping[str, Any], is_users: Callable[[str], bool]) -> None:
        self._names, self._is_users = names, is_users

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path, target)
        file = (spec and spec.origin) or ""
        if spec is None or type(spec.loader) is not SourceFileLoader or not self._is_users(file):
            return None
        spec.loader = _Loader(name, file, self._names)
        return spec


class _Loader(SourceFileLoader):
    def __init__(self, name: str, path: str, names: Mapping[str, Any]) -> None:
        super().__init__(name, path)
        self._names = names

    def get_code(self, fullname: str) -> CodeType:
        file = self.get_filename(fullname)
        return rewritten(self.get_data(file), file)

    def exec_module(self, module: ModuleType) -> None:
        vars(module).update(self._names)
        super().exec_module(module)


class _Rewriting(ast.NodeTransformer):
    def __init__(self) -> None:
        self._turns = itertools.count()

    def visit_For(self, node: ast.For) -> list[ast.stmt]:
        marks = with_turns(node, self._turns)
        self.generic_visit(node)
        return [*marks, node]

    def visit_Call(self, node: ast.Call) -> ast.Call:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id == "int":
            node.func = ast.copy_location(ast.Name("__tutti_int__", ast.Load()), node.func)
        elif isinstance(node.func, ast.Name) and node.func.id == "range":
            node.args = [_index(one) for one in node.args]
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        self.generic_visit(node)
        if len(node.ops) != 1 or not isinstance(node.ops[0], ast.In | ast.NotIn):
            return node
        name = ast.Name("__tutti_in__", ast.Load())
        call: ast.expr = ast.Call(name, [node.comparators[0], node.left], [])
        found = ast.UnaryOp(ast.Not(), call) if isinstance(node.ops[0], ast.NotIn) else call
        return ast.copy_location(found, node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.Subscript:
        self.generic_visit(node)
        node.slice = _index(node.slice)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AnnAssign:
        if node.value is not None:
            node.value = self.visit(node.value)
        return node

    def visit_arg(self, node: ast.arg) -> ast.arg:
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        return self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AsyncFunctionDef:
        return self._function(node)

    def _function(self, node: _Function) -> _Function:
        """Rewrites a function without the annotation of its result."""
        returns, node.returns = node.returns, None
        self.generic_visit(node)
        node.returns = returns
        return node


def _index(node: ast.expr) -> ast.expr:
    """Returns an index whose numbers pass through a function."""
    if isinstance(node, ast.Tuple):
        node.elts = [_index(one) for one in node.elts]
        return node
    if isinstance(node, ast.Slice):
        for name in ("lower", "upper", "step"):
            part = getattr(node, name)
            setattr(node, name, part and _index(part))
        return node
    operand = node.operand if isinstance(node, ast.UnaryOp) else node
    if isinstance(operand, ast.Constant | ast.Starred):
        return node
    function = ast.Name("__tutti_index__", ast.Load())
    return ast.copy_location(ast.Call(function, [node], []), node)

r"""Loops in which each rank has its turn: `for each in range(world): if rank == each: ...`.

Compared one by one, each rank would be a separate branch. If only the number differs between
iterations, all ranks whose number comes as often take the same branches: they do the same in their
turn, in which the loop's number is followed like the rank.

Examples:
    >>> loop = ast.parse("for each in range(8):\n if rank == each: print(each)").body[0]
    >>> print("\n".join(map(ast.unparse, [*with_turns(loop, iter([1])), loop])))
    __tutti_turns_1__ = __tutti_turns__()
    for each in range(8):
        if __tutti_turns_1__.comes(rank, each):
            each = __tutti_turns_1__.number
            print(each)
            each = __tutti_turns_1__.value
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

__all__ = ["with_turns"]

_NEUTRAL = frozenset({"print", "barrier", "synchronize", "flush", "sleep", "debug", "info",
                      "warning", "log"})  # fmt: skip
"""Functions that do the same in the turn of any rank."""
_RANKS = frozenset({"get_rank", "get_local_rank", "get_node_local_rank", "int", "len", "str"})
"""Functions whose results do not change during a loop."""
_GROUP = "new_group"
_OF_GROUPS = frozenset({_GROUP, "list", "tuple", "sorted", "range"})
"""Functions that create process groups, which are interchangeable if they have the same shape."""


def with_turns(node: ast.For, numbers: Iterator[int]) -> list[ast.stmt]:
    """Marks the turns of ranks in a loop, and returns the statements that have to precede it.

    Args:
        node: The loop, which changes.
        numbers: Numbers that no other turn of the program has.
    """
    found: list[ast.stmt] = []
    for branch, rank, each in _turns_of(node):
        name = f"__tutti_turns_{next(numbers)}__"
        (before,) = ast.parse(f"{name} = __tutti_turns__()").body
        call = ast.parse(f"{name}.comes(rank, {each})", mode="eval").body
        start, end = ast.parse(f"{each} = {name}.number\n{each} = {name}.value").body
        for made, place in ((before, node), (call, branch.test), (start, branch.body[0]),
                            (end, branch.body[-1])):  # fmt: skip
            _locate(made, place)
        call.args[0] = rank  # type: ignore[attr-defined]
        branch.test, branch.body = call, [start, *branch.body, end]
        found.append(before)
    return found


def _locate(made: ast.AST, place: ast.AST) -> None:
    """Gives a node and its parts the line of another one."""
    for part in ast.walk(made):
        ast.copy_location(part, place)


def _turns_of(node: ast.For) -> list[tuple[ast.If, ast.expr, str]]:
    """Returns the branches of a loop that are turns, with the rank and the name of the number.

    Empty if iterations may differ in more than the number.
    """
    targets = _stored([node.target])
    turns, others = [], []
    for one in node.body:
        found = _turn(one, targets)
        if found is None:
            others.append(one)
        else:
            turns.append(found)
    creates = any(_called(part) == _GROUP for one in others for part in ast.walk(one))
    if node.orelse or not all(_is_neutral(one, creates=creates) for one in others):
        return []
    changing = targets | _stored(others)
    for branch, rank, each in turns:
        read, written = _loaded(branch.body), _stored(branch.body)
        # Which process group has the rank is known to be interchangeable.
        hidden = targets if creates else changing
        if read & (hidden - {each}) or (written | _loaded([rank])) & changing:
            return []
        leaves = any(isinstance(part, ast.Break | ast.Return) for part in ast.walk(branch))
        if leaves or _loaded([rank]) & written:
            return []
    return turns


def _turn(node: ast.stmt, targets: set[str]) -> tuple[ast.If, ast.expr, str] | None:
    """Returns a branch that compares a number of the loop with a rank; None for others."""
    if not isinstance(node, ast.If) or node.orelse or not isinstance(node.test, ast.Compare):
        return None
    test = node.test
    if len(test.ops) != 1 or not isinstance(test.ops[0], ast.Eq):
        return None
    sides = [test.left, test.comparators[0]]
    for each, rank in (sides, sides[::-1]):
        calls = {_called(part) for part in ast.walk(rank)} - {""}
        if isinstance(each, ast.Name) and each.id in targets and calls <= _RANKS:
            return node, rank, each.id
    return None


def _is_neutral(node: ast.stmt, *, creates: bool) -> bool:
    """Returns whether a statement does the same in the turn of any rank.

    Args:
        node: The statement.
        creates: Whether the loop creates process groups.
    """
    if isinstance(node, ast.Pass):
        return True
    calls = {_called(part) for part in ast.walk(node)} - {""}
    if isinstance(node, ast.Expr) and calls and calls <= _NEUTRAL | _RANKS:
        return True
    if not creates or not isinstance(node, ast.Assign | ast.Expr):
        return False
    targets = node.targets if isinstance(node, ast.Assign) else []
    return all(isinstance(one, ast.Name) for one in targets) and calls <= _OF_GROUPS


def _called(node: ast.AST) -> str:
    """Returns the name of the function or method that a node calls; empty if it calls none."""
    if not isinstance(node, ast.Call):
        return ""
    function = node.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else "?"


def _stored(nodes: Iterable[ast.AST]) -> set[str]:
    return _names(nodes, (ast.Store, ast.Del))


def _loaded(nodes: Sequence[ast.AST]) -> set[str]:
    return _names(nodes, (ast.Load,))


def _names(nodes: Iterable[ast.AST], contexts: tuple[type[ast.expr_context], ...]) -> set[str]:
    return {part.id for node in nodes for part in ast.walk(node)
            if isinstance(part, ast.Name) and isinstance(part.ctx, contexts)}  # fmt: skip

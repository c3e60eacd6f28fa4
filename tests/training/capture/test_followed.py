"""Which ranks take the branches of a program, without torch."""

from __future__ import annotations

import copy
import importlib
import json
import pickle
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tutti.training.capture.followed import NAMES, Followed, Number, Text
from tutti.training.capture.rewritten import importing, rewritten

if TYPE_CHECKING:
    from pathlib import Path

WORLD, RANK = 8, 5


def followed(*, from_program: bool = True) -> Followed:
    return Followed(RANK, WORLD, is_users=lambda file: from_program and file == "train.py")


def evaluated(text: str, **more: bool) -> tuple[object, list[int]]:
    """Returns the value of an expression, and the ranks whose branches are the same."""
    ranks = followed(**more)
    values = np.arange(WORLD)
    names = {**NAMES, "rank": Number.of(ranks, values), "text": Text.of(ranks, "5", values)}
    exec(rewritten(f"out = {text}".encode(), "train.py"), names)
    ranks.end([(0, 1, 2, 3), (4, 5, 6, 7)])
    return names["out"], np.flatnonzero(ranks.alike).tolist()


@pytest.mark.parametrize(
    ("text", "value", "alike"),
    [
        ("rank == 5", True, [5]),
        ("rank != 3.0", True, [0, 1, 2, 4, 5, 6, 7]),
        ("3 < rank", True, [4, 5, 6, 7]),
        ("rank in (3, 7)", False, [0, 1, 2, 4, 5, 6]),
        ("rank // 2 not in {1, 3}", True, [0, 1, 4, 5]),
        ("rank in [rank - 1, rank]", True, list(range(WORLD))),
        # Which process group has the rank, and which other ranges.
        (
            "[group for group in ([0, 1, 2, 3], [4, 5, 6, 7]) if rank in group]",
            [[4, 5, 6, 7]],
            list(range(WORLD)),
        ),
        (
            "[group for group in ([0, 1, 2, 3], [4, 5, 6, 7])[1:] if rank in group]",
            [[4, 5, 6, 7]],
            [4, 5, 6, 7],
        ),
        ("[part for part in (range(3), range(3, 6)) if rank in part]", [range(3, 6)], [3, 4, 5]),
        ("rank in range(4, 8)", True, [4, 5, 6, 7]),
        ("not rank", False, [1, 2, 3, 4, 5, 6, 7]),
        ("divmod(rank, 4)[0] == 1 and (rank + 1) % 2 == 0", True, [5, 7]),
        ("7 - rank > rank - 7", True, [0, 1, 2, 3, 4, 5, 6]),
        ("-rank < -abs(3)", True, [4, 5, 6, 7]),
        ("min(rank, 3)", 3, [4, 5, 6, 7]),
        ("rank == rank // 1", True, list(range(WORLD))),
        ("int(text) > 2", True, [3, 4, 5, 6, 7]),
        ("text == '5'", True, [5]),
        ("text != 'all'", True, list(range(WORLD))),
        ("{'5': 1}[text]", 1, [5]),
        # Indices, lengths and keys: only equal numbers are known to do the same.
        ("'abcdefgh'[rank]", "f", [5]),
        ("'abcdefgh'[rank // 4:][0]", "b", [4, 5, 6, 7]),
        ("len(range(rank))", 5, [5]),
        ("[0] * (rank // 4)", [0], [4, 5, 6, 7]),
        ("rank & 1", 1, [5]),
        ("rank / 2", 2.5, [5]),
        # Numbers that are printed divide nothing.
        ("f'{rank} {rank:02d} %d' % rank", "5 05 5", list(range(WORLD))),
        ("int('12') + int('f', 16)", 27, list(range(WORLD))),
    ],
)
def test_comparisons_divide_the_ranks(text: str, value: object, alike: list[int]) -> None:
    assert evaluated(text) == (value, alike)
    assert evaluated(text, from_program=False)[0] == value


@pytest.mark.parametrize(
    ("loop", "alike"),
    [
        ("for r in range(8):\n if rank == r: out.append(r)\n barrier()", list(range(WORLD))),
        ("for r in (3, 5):\n if r == rank: print(r)", [3, 5]),
        ("for r in (3, 5, 6, 5):\n if r == rank: print(r)", [5]),
        ("for r in range(8):\n if r == rank: out.append([4, 3, 3, 4] [r // 2])", [4, 5]),
        ("for r in range(2):\n group = new_group([r])\n if rank // 4 == r: out.append(group)",
         list(range(WORLD))),
        # Iterations differ in more than the number, or the turns of later ranks are unknown.
        ("for r in range(8):\n if rank == r: break", [5]),
        ("for r, n in enumerate('aabbccdd'):\n if rank == r: out.append(n)", [5]),
        ("m = iter('aabbccdd')\nfor r in range(8):\n n = next(m)\n if rank == r: out.append(n)",
         [5]),
        ("for r in range(8):\n if rank == r: print(r)\n else: out.append(r)", [5]),
        ("for r in range(8):\n if rank == r: rank += 0", [5]),
        ("for r in map(float, range(8)):\n if rank == r: print(r)", [5]),
        ("for r in '567':\n if text == r: print(r)", [5]),
        ("for r in '67':\n if text == r: print(r)", [5]),
    ],
)  # fmt: skip
def test_ranks_take_turns_in_a_loop(loop: str, alike: list[int]) -> None:
    """They are alike if only the loop's number differs in their turn."""
    ranks, out = followed(), list[object]()
    values, plain = np.arange(WORLD), list[object]()
    names = {"barrier": list, "new_group": list, "print": repr}
    exec(loop, {**names, "out": plain, "rank": RANK, "text": "5"})
    numbers = {"rank": Number.of(ranks, values), "text": Text.of(ranks, "5", values)}
    exec(rewritten(loop.encode(), "train.py"), {**NAMES, **names, **numbers, "out": out})
    ranks.end([])
    assert np.flatnonzero(ranks.alike).tolist() == alike
    assert out == plain


def test_other_code_divides_nothing() -> None:
    assert evaluated("rank == 5 or {rank: 1}", from_program=False) == (True, list(range(WORLD)))
    rank = followed().number(range(WORLD))
    assert [rank == 5, hash(rank), bool(rank), int(rank)] == [True, 5, True, 5]
    assert [type(one) for one in (copy.deepcopy(rank), pickle.loads(pickle.dumps(rank)))] == [
        int,
        int,
    ]
    assert json.dumps({"rank": rank}) == '{"rank": 5}'
    assert rank.followed.alike.all()


def test_annotations_and_names_of_the_program_remain() -> None:
    """A program that defines `int` keeps its own."""
    names: dict[str, Any] = dict(NAMES)
    text = "def twice(x: list[int]) -> tuple[int, ...]: return int(x[0]), int\n"
    exec(rewritten(text.encode(), "train.py"), names)
    assert str(names["twice"].__annotations__) == str({"x": list[int], "return": tuple[int, ...]})
    assert names["twice"](["3"]) == (3, int)
    exec(rewritten(b"int = str\nout = int(5)", "train.py"), names)
    assert names["out"] == "5"
    with pytest.raises(SyntaxError, match="line 1"):
        rewritten(b"def", "train.py")


def test_modules_of_the_program_are_rewritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own_part.py").write_text("def converted(text): return int(text)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with importing(NAMES, lambda file: file.startswith(str(tmp_path))):
        own_part = importlib.import_module("own_part")
    monkeypatch.delitem(sys.modules, "own_part")
    ranks = followed()
    found = own_part.converted(Text.of(ranks, "5", np.arange(WORLD)))
    assert type(found) is Number
    assert found == RANK
    assert not list(tmp_path.rglob("*.pyc"))

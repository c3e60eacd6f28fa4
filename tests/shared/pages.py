"""The commands and code of Markdown pages, and the output that pages show."""

from __future__ import annotations

import difflib
import re
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A code block of a page.

    Attributes:
        language: The word after the opening fence.
        line: The line of the page on which the code starts, from 1.
        code: The lines between the fences.
    """

    language: str
    line: int
    code: str


def blocks(text: str, *languages: str) -> list[Block]:
    """The blocks of a page in these languages, in order."""
    return [
        Block(found[1], text.count("\n", 0, found.start(2)) + 1, found[2])
        for found in _FENCE.finditer(text)
        if found[1] in languages
    ]


def commands(block: Block) -> list[tuple[int, str]]:
    """The commands of a shell block that start with ``tutti``, each with its line.

    In ``console`` blocks commands follow ``$`` and the rest is output; in ``sh`` blocks every line
    is a command. A line that ends in a backslash continues on the next.
    """
    code = block.code.replace("\\\n", " \0")
    found = []
    line = block.line
    for text in code.splitlines():
        command = text.removeprefix("$ ") if block.language == "console" else text
        shown = block.language == "sh" or command != text
        if shown and command.startswith("tutti "):
            found.append((line, command.replace("\0", "")))
        line += 1 + text.count("\0")
    return found


def outputs(block: Block) -> dict[int, list[str]]:
    """The output lines shown below each command of a ``console`` block, by the command's line."""
    found: dict[int, list[str]] = {}
    shown: list[str] = []
    is_continued = False
    for line, text in enumerate(block.code.splitlines(), block.line):
        if text.startswith("$ "):
            shown = found.setdefault(line, [])
        elif not is_continued:
            shown.append(text)
        is_continued = text.endswith("\\") and (is_continued or text.startswith("$ "))
    return found


_FOLDER = re.compile(r" (?:-o|--out) \S+")
_READ = re.compile(r"\bout/(\w+)")
"""The folders of results that a command reads: their names are in the command that wrote them."""


def repeated(pages: Iterable[Path]) -> set[tuple[Path, int]]:
    """The commands of summaries that another page runs, too, by page and line.

    Commands with documented output always run. Commands that differ in their output folder only
    are the same, unless a later command of the page reads the folder.
    """
    found: dict[str, list[tuple[bool, Path, int]]] = defaultdict(list)
    for page in pages:
        all_blocks = blocks(page.read_text("utf-8"), "sh", "console")
        listed = [(block, *one) for block in all_blocks for one in commands(block)]
        for at, (block, line, command) in enumerate(listed):
            is_shown = block.language == "console" and bool(outputs(block).get(line))
            later = (_FOLDER.sub("", text) for *_, text in listed[at + 1 :])
            is_read = any(name in command for text in later for name in _READ.findall(text))
            text = _FOLDER.sub("", command.partition("  #")[0])
            found[" ".join(text.split())].append((is_shown or is_read, page, line))
    skipped: set[tuple[Path, int]] = set()
    for places in found.values():
        first = min(places, key=lambda one: (not one[0], _is_summary(one[1])))
        others = (place for place in places if place != first)
        skipped |= {(page, line) for kept, page, line in others if not kept and _is_summary(page)}
    return skipped


def _is_summary(page: Path) -> bool:
    """Whether a page lists commands that guides explain: an example, or the command reference."""
    return page.name == "cli.md" or "examples" in page.parts[-3:-1]


def missing_lines(shown: list[str], output: str) -> list[str]:
    """The shown lines that are not in the output; measured times and `...` are not compared."""
    printed = {" ".join(line.split()) for line in output.splitlines()}
    expected = (" ".join(line.split()) for line in shown if not _VARIES.search(line))
    return [line for line in expected if line and line not in printed]


_VARIES = re.compile(r"\.\.\.|\d s$|\d s,|\d s by| in \d")
"""Lines that are shortened, or show how long something took."""


def refreshed(text: str, line: int, output: str) -> str:
    """The page with another output below the command of a line.

    Lines `...` stay. Each stretch between them becomes that of the output from the line that is
    most like its first one to the line that is most like its last one.
    """
    lines, printed = text.splitlines(), [row.rstrip() for row in output.splitlines()]
    at = line
    while lines[at - 1].endswith("\\"):
        at += 1
    while not lines[at].startswith(("```", "$ ")):
        if lines[at] == "...":
            at += 1
            continue
        end = at
        while lines[end] != "..." and not lines[end].startswith(("```", "$ ")):
            end += 1
        start = _most_like(lines[at], printed)
        new = printed[start : start + _most_like(lines[end - 1], printed[start:]) + 1]
        lines[at:end], printed = new, printed[start + len(new) :]
        at += len(new)
    return "\n".join(lines) + "\n"


def _most_like(line: str, printed: list[str]) -> int:
    def likeness(at: int) -> float:
        return difflib.SequenceMatcher(None, line, printed[at], autojunk=False).ratio()

    return max(range(len(printed)), key=likeness, default=0)

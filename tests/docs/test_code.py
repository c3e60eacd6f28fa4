"""All code in README, docs, examples and docstrings runs and says what it claims to say.

Python blocks of a page share one namespace and run in order. What a statement prints is compared
with the comment at the end of it, where there is one. Of shell blocks the `tutti` commands run, in
order and in one folder per page; `# exit code N` says that one is meant to fail.
"""

from __future__ import annotations

import ast
import contextlib
import doctest
import importlib
import io
import os
import pkgutil
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import tutti

ROOT = Path(__file__).parents[2]

PAGES = sorted(
    path
    for pattern in ("*.md", "docs/**/*.md", "examples/**/*.md", "validation/**/*.md")
    for path in ROOT.glob(pattern)
)
"""Everything that people read."""

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A code block and where it stands.

    Attributes:
        language: what stands behind the opening fence.
        line: of the page, counted from 1, on which the code starts.
        code: the lines between the fences.
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
    is a command. A line that ends in a backslash goes on in the next.
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


def name(path: Path) -> str:
    """A page's path in the repository."""
    return str(path.relative_to(ROOT))


_COMMENT = re.compile(r"[^#]*(?<!\S)#\s?(.*)$")
_EXIT_CODE = re.compile(r"# exit code (\d+)")
_BIN = Path(sys.executable).parent

WITH_PYTHON = [page for page in PAGES if blocks(page.read_text("utf-8"), "python")]
WITH_COMMANDS = [
    page
    for page in PAGES
    if any(commands(block) for block in blocks(page.read_text("utf-8"), "sh", "console"))
]
MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(tutti.__path__, "tutti.")
    if module.name != "tutti._core" and not module.name.endswith("__main__")
)


@pytest.mark.timeout(120)
@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("page", WITH_PYTHON, ids=name)
def test_python_of_a_page_runs(page: Path) -> None:
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for block in blocks(page.read_text("utf-8"), "python"):
        # Blank lines in front make line numbers in tracebacks those of the page.
        source = "\n" * (block.line - 1) + block.code
        for statement in ast.parse(source, str(page)).body:
            said = _executed(statement, namespace, str(page))
            claimed = _claim(source.splitlines()[(statement.end_lineno or 1) - 1])
            if claimed is not None and said:
                assert said == claimed, f"{name(page)}:{statement.end_lineno}"


def _executed(statement: ast.stmt, namespace: dict[str, Any], file: str) -> str:
    """What a statement prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(ast.Module([statement], []), file, "exec"), namespace)
    return out.getvalue().strip()


def _claim(line: str) -> str | None:
    found = _COMMENT.fullmatch(line)
    return found[1].strip() if found else None


@pytest.mark.timeout(300)
@pytest.mark.parametrize("page", WITH_COMMANDS, ids=name)
def test_commands_of_a_page_run(page: Path, folder: Path) -> None:
    path = f"{_BIN}{os.pathsep}{os.environ['PATH']}"
    for block in blocks(page.read_text("utf-8"), "sh", "console"):
        for line, command in commands(block):
            meant = _EXIT_CODE.search(command)
            done = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", command],
                cwd=folder,
                env=os.environ | {"PATH": path},
                capture_output=True,
                text=True,
                check=False,
            )
            said = f"{name(page)}:{line}: {command}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
            assert done.returncode == (int(meant[1]) if meant else 0), said


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("module", ["tutti", *MODULES])
def test_docstrings_say_what_happens(module: str) -> None:
    options = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    failed, _ = doctest.testmod(importlib.import_module(module), optionflags=options)
    assert failed == 0

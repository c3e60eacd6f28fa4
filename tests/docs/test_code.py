"""All code in README, docs, examples and docstrings runs, with the documented output.

Python blocks of a page share a namespace and run in order. The output of a statement is compared
with the comment at its end, if it has one. The `tutti` commands of shell blocks run in order, in
one folder per page; `# exit code N` states an expected failure. They run in this process, which is
faster, unless they need a shell.
"""

from __future__ import annotations

import ast
import contextlib
import doctest
import importlib
import io
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tutti
from called import call
from pages import blocks, commands, missing_lines, outputs, refreshed, repeated

ROOT = Path(__file__).parents[2]

PAGES = sorted(
    path
    for pattern in ("*.md", "docs/**/*.md", "examples/**/*.md", "validation/**/*.md")
    for path in ROOT.glob(pattern)
)
"""The Markdown pages."""


def name(path: Path) -> str:
    """A page's path in the repository."""
    return str(path.relative_to(ROOT))


_COMMENT = re.compile(r"[^#]*(?<!\S)#\s?(.*)$")
_EXIT_CODE = re.compile(r"# exit code (\d+)")
_BIN = Path(sys.executable).parent
_SHELL_SYNTAX = re.compile(r"[|<>&;$`*?]")
_SMALL_DECODER = "--set model=gpt:layers=32,hidden=4096,tokens=2048,vocabulary=128256"
_SMALL_CHIP = "--scale tiny --set mesh.columns=4 --set mesh.rows=4"
SMALLER = {
    "tutti coherence run ": _SMALL_CHIP,
    "tutti bypass search double_binary_tree:nccl --mesh 8x8 ": "--trials 3 --mesh 4x4",
    "tutti bypass search ": "--trials 3",
    "tutti compare examples/01_which_all_reduce/experiment.toml": "-e 4K --ranks 4,16,96",
    "tutti compare experiment.toml -b 8 -e 128MiB -f 2 --ranks ": "--ranks 4:16",
    "tutti compare examples/17_in_network/experiment.toml": "-e 1K",
    "tutti compare examples/17_in_network/experiment.toml ": "-e 128K",
    "tutti mpi bench all_reduce -b 8 -e 32K -f 8 -n 20 -a own -a ring": "-e 64 -n 3",
    "tutti mpi bench multicast --peers 3 -n 20": "-n 3",
    "tutti search examples/06_best_schedule/experiment.toml -b ": "-e 512 --ranks 16",
    "tutti search experiment.toml --ranks 96 -b ": "-e 512 --ranks 16",
    "tutti train disturb examples/26_stragglers/training.toml ": "--draws 2",
    "tutti train run examples/10_training_step/training.toml": "--set model=dlrm_small",
    "tutti train run examples/10_training_step/training.toml ": "--set model=dlrm_small",
    "tutti train run examples/11_parallelism/training.toml": "--set model=transformer:16",
    "tutti train run examples/21_large_step/training.toml": _SMALL_DECODER,
    "tutti train run examples/21_large_step/training.toml ": _SMALL_DECODER,
    "tutti train search examples/20_choose_algorithms/training.toml": "--limit 2",
    "tutti train search examples/20_choose_algorithms/training.toml -a ": "--limit 2",
    "tutti train search examples/20_choose_algorithms/training.toml --limit ": "--limit 2",
    "tutti tune all_reduce broadcast --ranks 2 --by measurement ": "-e 1K -n 3 -a ring",
}
"""Options appended to slow commands; the last value of an option counts. A key is a command without
documented output, or the start of one if it ends with a space."""


def reduction(command: str, *, has_output: bool) -> str | None:
    """Returns the options that make a command fast, if it is slow."""
    for key, options in SMALLER.items():
        is_start = key.endswith(" ") and command.startswith(key)
        if is_start or (command == key and not has_output):
            return options
    return None


UPDATES = "TUTTI_UPDATE_PAGES" in os.environ
"""Whether the pages get today's output instead of a comparison: `make outputs`."""
MEASURED = ("tutti mpi bench", "tutti mpi exec", "tutti mpi info", "--by both", "--by measurement")
"""Parts of commands whose output depends on the machine."""

NEEDS_A_SETUP = (
    "tutti calibrate --live",
    "tutti tune all_reduce all_gather --ranks 2 --by measurement",
    "tutti mpi info --mpicc",
    "tutti noc from-netrace blackscholes",
    "tutti mpi plan --ranks 6",
    "tutti trace run",
    "tutti train capture",
    "tutti train run step ",
    "tutti train search step ",
    "tutti train run train.py",
    "tutti train export",
    "tutti train measure",
    "tutti train calibrate",
    "tutti train plan llama3_8b -p dgx_h100_cluster -g 64",
)
"""Commands of the reference that need MPI, PyTorch or files of the reader; other tests run them."""

SERVERS = ("tutti explore",)
"""Commands that run until Ctrl-C."""

WITH_PYTHON = [page for page in PAGES if blocks(page.read_text("utf-8"), "python")]
FIRST_PATHS = ROOT / "docs" / "start"
"""Pages for new users: `tests/repository/test_wheel.py` runs them with an installed wheel."""
WITH_COMMANDS = [
    page
    for page in PAGES
    if page.parent != FIRST_PATHS
    and any(commands(block) for block in blocks(page.read_text("utf-8"), "sh", "console"))
]
REPEATED = repeated(WITH_COMMANDS)
PACKAGE = Path(tutti.__file__).parent
MODULES = sorted(
    ".".join(path.with_suffix("").relative_to(PACKAGE.parent).parts).removesuffix(".__init__")
    for path in PACKAGE.rglob("*.py")
    if path.name != "__main__.py"
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
            output = _executed(statement, namespace, str(page))
            claimed = _claim(source.splitlines()[(statement.end_lineno or 1) - 1])
            if claimed is not None and output:
                assert output == claimed, f"{name(page)}:{statement.end_lineno}"


def _executed(statement: ast.stmt, namespace: dict[str, Any], file: str) -> str:
    """What a statement prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(ast.Module([statement], []), file, "exec"), namespace)
    return out.getvalue().strip()


def _claim(line: str) -> str | None:
    found = _COMMENT.fullmatch(line)
    return found[1].strip() if found else None


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("page", WITH_COMMANDS, ids=name)
def test_commands_of_a_page_run(page: Path, folder: Path) -> None:
    for block in blocks(page.read_text("utf-8"), "sh", "console"):
        shown = outputs(block) if block.language == "console" else {}
        for line, command in commands(block):
            if name(page) == "docs/reference/cli.md" and command.startswith(NEEDS_A_SETUP):
                continue
            if command.startswith(SERVERS) or (page, line) in REPEATED:
                continue
            expected = _EXIT_CODE.search(command)
            smaller = reduction(command, has_output=bool(shown.get(line)))
            code, output = _ran(command, folder, smaller or "")
            where = f"{name(page)}:{line}: {command}\n{output[-4000:]}"
            assert code == (int(expected[1]) if expected else 0), where
            if smaller is None and not any(part in command for part in MEASURED):
                missing = missing_lines(shown.get(line, []), output)
                if missing and UPDATES:
                    _refresh(page, command, output)
                else:
                    assert not missing, where


def _refresh(page: Path, command: str, output: str) -> None:
    """Writes an output to a page, below the first command of this text."""
    text = page.read_text("utf-8")
    at = {found: line for block in blocks(text, "console")[::-1] for line, found in commands(block)}
    page.write_text(refreshed(text, at[command], output), "utf-8")


def test_tutti_runs_as_a_program(folder: Path) -> None:
    code, output = _in_a_shell("tutti platforms", folder)
    assert (code, "cray_xc30" in output) == (0, True), output


def _ran(command: str, folder: Path, more: str) -> tuple[int, str]:
    """Runs a command with more options; returns its exit code and output."""
    if _SHELL_SYNTAX.search(_EXIT_CODE.sub("", command)):
        return _in_a_shell(f"{command} {more}", folder)
    words = shlex.split(f"{_EXIT_CODE.split(command)[0]} {more}", comments=True)
    done = call(*words[1:], cwd=folder)
    return done.returncode, done.stdout + done.stderr


def _in_a_shell(command: str, folder: Path) -> tuple[int, str]:
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command],
        cwd=folder,
        env=os.environ | {"PATH": f"{_BIN}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("module", MODULES)
def test_docstring_examples_have_the_documented_output(module: str) -> None:
    options = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    try:
        imported = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        pytest.skip("needs PyTorch: `make test-torch` imports it")
    failed, _ = doctest.testmod(imported, optionflags=options)
    assert failed == 0

"""Errors wrap at the width of a terminal; in a file each line stays complete."""

from __future__ import annotations

import re
import sys

import pytest

from tutti.base.errors import ConfigError
from tutti.study import console

PROBLEM = "experiment.toml: ranks: 96 ranks exceed the platform's topology"
HINT = "use fewer ranks, a larger topology, or another platform"


def test_long_lines_wrap_between_words() -> None:
    text = f"{PROBLEM}\nhint: {HINT}"
    lines = console.wrapped(text, 40).splitlines()
    assert max(map(len, lines)) <= 40
    assert lines[1].startswith("  ")
    assert " ".join(line.strip() for line in lines) == text.replace("\n", " ")


@pytest.mark.parametrize("line", ["a" * 50, f"  {'excerpt ' * 8}^", "short", "", "see a#b-c"])
def test_words_and_excerpts_stay_complete(line: str) -> None:
    assert console.wrapped(line, 40) == line


def test_the_first_line_leaves_space_for_the_label() -> None:
    assert console.wrapped("aaa bbb ccc ddd", 14, 7) == "aaa bbb\n  ccc ddd"
    assert console.wrapped(f"{'a' * 50}: bbb", 40, 7) == f"{'a' * 50}:\n  bbb"


def test_commands_stay_on_a_line() -> None:
    text = f"hint: {'word ' * 4}`tutti run direct -c all_to_all`; or more"
    assert "\n  `tutti run direct -c all_to_all`; or\n" in console.wrapped(text, 40)
    assert max(map(len, console.wrapped(text.replace("-c", "-c " * 20), 40).split("\n"))) <= 40


@pytest.mark.parametrize(("terminal", "lines"), [(True, 4), (False, 2)])
def test_errors_wrap_on_terminals_only(
    *,
    terminal: bool,
    lines: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    console.fail(ConfigError(PROBLEM, kind="none of the reference", hint=HINT))
    shown = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().err)
    assert len(shown.splitlines()) == lines
    assert shown.startswith("error: experiment.toml")
    assert max(map(len, shown.splitlines())) <= 50 or not terminal

"""The language check reports wrong terms, long sentences and long lines, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from script_modules import load

SCRIPT = Path(__file__).parents[2] / "scripts" / "check_language.py"


@pytest.fixture(scope="module")
def checker() -> Any:
    return load(SCRIPT)


def findings(
    checker: Any, monkeypatch: pytest.MonkeyPatch, folder: Path, name: str, text: str
) -> list[str]:
    monkeypatch.setattr(checker, "ROOT", folder)
    path = folder / name
    path.write_text(text, "utf-8")
    listed = checker.terms()
    return [f"{line}: {what}" for line, what in checker.findings(path, listed)]


# Terms of the list, as single words: the check skips texts without a blank.
VERB, PRONOUN, NOUN, PARTICIPLE, ADJECTIVE = "told", "nobody", "circles", "asked", "whole"


def notebook(*sources: str) -> str:
    found = [
        {
            "cell_type": "code" if "=" in text else "markdown",
            "source": text.splitlines(keepends=True),
        }
        for text in sources
    ]
    return json.dumps({"cells": found}, indent=1)


WRONG = {
    "cell.ipynb": (
        notebook("# Title", f"It waits.\n\nThe packet is {VERB} to wait."),
        f"14: instead of '{VERB}'",
    ),
    "code.ipynb": (notebook("# Title", f"x = 1  # {PRONOUN} waits"), f"12: instead of '{PRONOUN}'"),
    "wide.ipynb": (notebook("x" * 101), "6: 101 columns"),
    "page.md": (f"# Title\n\nThe packet is\n{VERB} to wait.\n", f"4: instead of '{VERB}'"),
    "wide.md": ("x" * 101 + "\n", "1: 101 columns"),
    "long.md": ("One" + "\nword" * 41 + " ends.\n", "1: a sentence of 43 words"),
    "code.py": (f'"""A module."""\n\nx = 1  # {PRONOUN} waits\n', f"3: instead of '{PRONOUN}'"),
    "name.py": (f"def {VERB}() -> None:\n    pass\n", f"1: name `{VERB}`"),
    "code.rs": (f"/// Two\n/// {NOUN}.\nfn f() {{}}\n", f"2: instead of '{NOUN}'"),
    "name.rs": (f"let {PARTICIPLE} = 1;\n", f"1: name `{PARTICIPLE}`"),
    "text.c": (f'puts("it is {VERB} to stop");\n', f"1: instead of '{VERB}'"),
    "case.toml": (f"# The {ADJECTIVE} case.\n", f"1: instead of '{ADJECTIVE}'"),
}


@pytest.mark.parametrize("name", WRONG)
def test_finding_has_its_line_number(
    checker: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    text, expected = WRONG[name]
    (found,) = findings(checker, monkeypatch, tmp_path, name, text)
    assert found.startswith(expected)


RIGHT = {
    "code.md": f"`{VERB}` and\n\n```sh\n{VERB}\n```\n\nA 4-way exchange in step $s$.\n",
    "list.md": "- " + "w " * 30 + "\n- " + "w " * 30 + "\n",
    "name.py": f'threshold = "{VERB}"\n',
    "code.rs": "let untold_story = 'a';\n",
}


@pytest.mark.parametrize("name", RIGHT)
def test_code_lists_and_allowed_contexts_pass(
    checker: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    assert findings(checker, monkeypatch, tmp_path, name, RIGHT[name]) == []

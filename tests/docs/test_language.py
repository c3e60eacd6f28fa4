"""The check of terms, sentences and columns finds what it should, and nothing else."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "check_language.py"


@pytest.fixture(scope="module")
def checker() -> Any:
    spec = importlib.util.spec_from_file_location("check_language", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def findings(
    checker: Any, monkeypatch: pytest.MonkeyPatch, folder: Path, name: str, text: str
) -> list[str]:
    monkeypatch.setattr(checker, "ROOT", folder)
    path = folder / name
    path.write_text(text, "utf-8")
    listed, _ = checker.terms()
    return [f"{line}: {what}" for line, what in checker.findings(path, listed)]


WRONG = {
    "page.md": ("# Title\n\nThe packet is\ntold to wait.\n", "4: instead of 'told'"),
    "wide.md": ("x" * 101 + "\n", "1: 101 columns"),
    "long.md": ("One" + "\nword" * 41 + " ends.\n", "1: a sentence of 43 words"),
    "code.py": ('"""A module."""\n\nx = 1  # nobody waits\n', "3: instead of 'nobody'"),
    "name.py": ("def told() -> None:\n    pass\n", "1: name `told`"),
    "code.rs": ("/// Two\n/// circles.\nfn f() {}\n", "2: instead of 'circles'"),
    "name.rs": ("let asked = 1;\n", "1: name `asked`"),
    "text.c": ('puts("it is told to stop");\n', "1: instead of 'told'"),
    "case.toml": ("# The whole case.\n", "1: instead of 'whole'"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_finding_names_its_line(
    checker: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    text, expected = WRONG[name]
    (found,) = findings(checker, monkeypatch, tmp_path, name, text)
    assert found.startswith(expected)


RIGHT = {
    "code.md": "`told` and\n\n```sh\ntold\n```\n\nA 4-way exchange in step $s$.\n",
    "list.md": "- " + "w " * 30 + "\n- " + "w " * 30 + "\n",
    "name.py": 'threshold = "told"\n',
    "code.rs": "let untold_story = 'a';\n",
}


@pytest.mark.parametrize("name", RIGHT)
def test_code_lists_and_allowed_contexts_pass(
    checker: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    assert findings(checker, monkeypatch, tmp_path, name, RIGHT[name]) == []

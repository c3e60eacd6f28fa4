"""The notebooks of the docs run from start to end, and show what their text announces."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from script_modules import load

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts" / "notebooks.py"
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
SHOWN = {
    "choose-all-reduce": ["my_cluster", "Decision map", "prefers-reduced-motion", "Timeline"],
    "network-on-chip": ["saturated at", "minimal_adaptive", "sfo_greedy"],
    "training-step": ["exposed communication", "Timeline of NPU 0", "gradient buckets"],
}
"""Texts in the outputs of each notebook."""


@pytest.fixture(scope="module")
def runner() -> Any:
    return load(SCRIPT)


def names(path: Path) -> str:
    return path.stem


@pytest.mark.parametrize("path", NOTEBOOKS, ids=names)
def test_a_notebook_runs(runner: Any, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)
    page = runner.page(path, str, run=True)
    assert [text for text in SHOWN[path.stem] if text not in page] == []
    assert all(output.count("<svg") == output.count("</svg>") for output in page.splitlines())


@pytest.mark.parametrize("path", NOTEBOOKS, ids=names)
def test_a_notebook_is_stored_without_outputs(path: Path) -> None:
    found = json.loads(path.read_text("utf-8"))
    assert (found["nbformat"], found["nbformat_minor"]) == (4, 5)
    assert found["metadata"]["kernelspec"]["name"] == "python3"
    ids = [cell["id"] for cell in found["cells"]]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", one) for one in ids)
    code = [cell for cell in found["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)


def test_links_of_notebooks_exist() -> None:
    for path in NOTEBOOKS:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", path.read_text("utf-8")):
            assert (path.parent / target).exists(), f"{path.name}: {target}"

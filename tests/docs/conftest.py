"""A folder in which what the pages say can be typed."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

EXPERIMENT = """
platform = "cray_xc30"
collective = "all_reduce"
algorithms = ["ring"]
ranks = 32
sizes = "8 B"
datatype = "float64"
output = "out/demo"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder but for the examples and an `experiment.toml`."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / "experiment.toml").write_text(EXPERIMENT)
    monkeypatch.chdir(tmp_path)
    return tmp_path

"""A small sweep for every test that needs one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tutti.sweeps.files import Sweep, resolve_sweep

EXPERIMENT = {
    "platform": "cray_xc30",
    "collective": "all_reduce",
    "algorithms": ["ring", "recursive_doubling"],
    "sizes": ["8 B", "1 KiB"],
    "repetitions": 2,
    "noise": {"step": {"kind": "exponential", "mean": "200 ns"}},
}
GRID = {"ranks": [4, 6, 8], "platform.models.minimum.alpha_p": ["1 us", "2 us"]}


@pytest.fixture
def tables() -> dict[str, Any]:
    """The tables of a sweep file: 6 points with 8 measurements each."""
    return {"experiment": dict(EXPERIMENT), "sweep": {"grid": dict(GRID)}}


@pytest.fixture
def small(tables: dict[str, Any]) -> Sweep:
    """The small sweep, read."""
    return resolve_sweep(tables, source="s.toml", folder=Path())

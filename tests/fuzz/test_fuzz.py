"""Runs fixed cases of the fuzzer for a minute; `make fuzz` runs others for a given time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FUZZER = Path(__file__).with_name("fuzzer.py")
CASES = 130
"""Cases per seed: 30 s on a core of 2026. Limits are in processor time, not wall time."""


@pytest.mark.slow
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("seed", [1, 2])
def test_every_case_ends_in_a_result_or_an_error(seed: int, tmp_path: Path) -> None:
    words = ("--seed", seed, "--cases", CASES, "--seconds", 0, "--out", tmp_path)
    command = [sys.executable, FUZZER, *words]
    done = subprocess.run(
        [str(word) for word in command], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, (
        f"{done.stdout}\n{done.stderr}\nrepeat one: make fuzz CASE=SEED:NUMBER"
    )
    assert f"{CASES:,} cases" in done.stdout

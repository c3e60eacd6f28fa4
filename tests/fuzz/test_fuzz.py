"""Runs fixed cases of the fuzzers; `make fuzz` and `make fuzz-readers` run others."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FUZZER = Path(__file__).with_name("fuzzer.py")
READERS = FUZZER.with_name("fuzz_readers.py")
CASES = 30
"""Cases: 7 s on a core of 2026. Limits are in processor time, not wall time."""
DAMAGED = 30
"""Damaged files per reader: most defects are in readers, and these cases cost a millisecond."""


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_every_case_ends_in_a_result_or_an_error(tmp_path: Path) -> None:
    words = ("--seed", 1, "--cases", CASES, "--seconds", 0, "--out", tmp_path)
    command = [sys.executable, FUZZER, *words]
    done = subprocess.run(
        [str(word) for word in command], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, (
        f"{done.stdout}\n{done.stderr}\nrepeat one: make fuzz CASE=SEED:NUMBER"
    )
    assert f"{CASES:,} cases" in done.stdout


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_readers_reject_damaged_files_with_an_error() -> None:
    command = [sys.executable, READERS, "--count", DAMAGED, "--seed", 1]
    done = subprocess.run(
        [str(word) for word in command], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, (
        f"{done.stdout}\n{done.stderr}\nrepeat one: make fuzz-readers CASE=READER:SEED:NUMBER"
    )
    assert "format-chakra: " in done.stdout

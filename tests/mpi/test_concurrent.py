"""Several communicators at once, from one thread and from many."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from runs import mixture, run_program

if TYPE_CHECKING:
    from pathlib import Path

    from runs import Bench


@pytest.mark.timeout(300)
def test_interleaved_communicators_and_threads(bench: Bench, tmp_path: Path) -> None:
    """The world, its reverse, rows and columns in turn; then four threads, one on each."""
    cases, threads = 100, 4
    done = run_program(bench, "concurrent", mixture(2, 4), tmp_path, cases, 3, threads,
                       ranks=4, timeout=280)  # fmt: skip
    assert done["covered"] > 0.8 * done["cases"] > 4 * cases


@pytest.mark.timeout(300)
def test_memory_and_communicators_do_not_leak(bench: Bench, tmp_path: Path) -> None:
    """The full soak test has 100,000 calls: `make test-mpi`."""
    done = run_program(bench, "soak", mixture(2, 4), tmp_path, 3_000, 4, ranks=4, timeout=280)
    assert done["covered"] > 7_500
    assert done["communicators"] > 150
    assert done["growth_kib"] < 4096

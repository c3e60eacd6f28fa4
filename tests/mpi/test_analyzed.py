"""The library's sources under gcc's static analysis, with the headers of both MPI libraries."""

from __future__ import annotations

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from runs import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from runs import Bench

FLAGS = [
    "-std=c11", "-D_GNU_SOURCE", "-O1", "-fPIC", "-c", "-o", os.devnull, "-Werror", "-Wall",
    "-Wextra", "-Wpedantic", "-fanalyzer", "-Wno-analyzer-use-of-uninitialized-value",
]  # fmt: skip
"""gcc 12 does not know that `fread` writes, so the buffer counts as uninitialised."""


def test_the_analyzer_finds_nothing(bench: Bench) -> None:
    mpicc, include = str(bench.mpi.mpicc), f"-I{ROOT / 'mpi' / 'include'}"
    probe = [mpicc, "-fanalyzer", "-E", "-x", "c", os.devnull]
    if subprocess.run(probe, capture_output=True, check=False).returncode:
        pytest.skip("this compiler has no -fanalyzer")

    def problems(source: Path) -> str:
        command = [mpicc, *FLAGS, include, str(source)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.stderr if done.returncode else ""

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = list(pool.map(problems, sorted((ROOT / "mpi" / "src").glob("*.c"))))
    assert len(found) > 20
    assert not any(found), "".join(found)

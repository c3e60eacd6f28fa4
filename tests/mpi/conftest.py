"""Both MPIs, the library compiled for each, and the checker in C."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "support"))

from runs import Bench, bench_of


@pytest.fixture(params=["openmpi", "mpich"], scope="session")
def bench(request: pytest.FixtureRequest) -> Bench:
    """One MPI with library and checker; every test that takes it runs on both."""
    return bench_of(request.param)


@pytest.fixture(params=["openmpi", "mpich"], scope="session")
def sanitized(request: pytest.FixtureRequest) -> Bench:
    """The same with library and checker compiled with AddressSanitizer and UBSan."""
    return bench_of(request.param, sanitize="address,undefined")

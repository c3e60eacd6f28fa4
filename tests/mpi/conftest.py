"""Both MPI libraries, the library compiled for each, and the checker in C."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "support"))

from runs import LONGEST_SECONDS, Bench, bench_of


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Runs of ranks may be slow on a busy machine, which is not a failure.

    No test repeats a run that hangs: after this limit, it fails.
    """
    for item in items:
        of_here = item.path.is_relative_to(Path(__file__).parent)
        if of_here and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(LONGEST_SECONDS + 50))


@pytest.fixture(params=["openmpi", "mpich"], scope="session")
def bench(request: pytest.FixtureRequest) -> Bench:
    """One MPI library with library and checker; every test that takes it runs on both."""
    return bench_of(request.param)


@pytest.fixture(params=["openmpi", "mpich"], scope="session")
def sanitized(request: pytest.FixtureRequest) -> Bench:
    """One MPI library with library and checker compiled with AddressSanitizer and UBSan."""
    return bench_of(request.param, sanitize="address,undefined")

"""The order of all tests, and what makes their collection fast."""

from __future__ import annotations

import gc
import os
import sys
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# pytest rewrites the asserts of every test module. Where PYTHONDONTWRITEBYTECODE is set, it would
# do so at each start: 6 s. Loading what it wrote takes 0.3 s.
sys.dont_write_bytecode = False

# Modules, functions and parameters of all tests stay until the end: searching them for garbage
# takes a fifth of the collection.
gc.disable()


# Tests do not fail because a machine is slow.
settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One worker more than cores: a quarter of the tests wait for MPI ranks that sleep."""
    return (os.cpu_count() or 1) + 1


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Selects tests before plugins inspect them; long ones first, so that none is left alone."""
    mark: Any = config.pluginmanager.get_plugin("mark")
    mark.pytest_collection_modifyitems(items, config)
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


def pytest_collection_finish() -> None:
    """Collects garbage again, except among what the collection of tests made."""
    gc.enable()
    gc.freeze()

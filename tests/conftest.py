"""The order of all tests, and their bytecode."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

# pytest rewrites the asserts of every test module. Where PYTHONDONTWRITEBYTECODE is set, it would
# do so at each start: 6 s. Loading what it wrote takes 0.3 s.
sys.dont_write_bytecode = False


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long tests first, so that no process is left alone with one at the end."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)

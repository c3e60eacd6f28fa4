"""The platforms that tutti brings along: one file each, every number with its source.

>>> platform("cray_xc30").model.kind
'pipelining_postal'
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tutti.platform import Platform

__all__ = ["names", "platform"]


def names() -> list[str]:
    """Their names, in alphabetical order."""
    from tutti.config import platform_names

    return platform_names()


def platform(name: str | Path, *, model: str | None = None) -> Platform:
    """A platform by name, or from a file.

    Args:
        name: one of `names()`, or a path that ends in ``.toml``.
        model: one of its models; without it, its default.

    Raises:
        ConfigError: there is no such platform or model, or its file cannot be used.
    """
    from tutti.config import find_platform
    from tutti.config.machine import machine
    from tutti.config.resolve import chosen_model

    found = find_platform(str(name), folder=Path())
    source = str(name)
    return machine(found, chosen_model(found, model, source=source), source=source)

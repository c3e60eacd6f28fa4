"""The platforms that tutti brings along: one file each, every number with its source.

>>> platform("cray_xc30").model.kind
'pipelining_postal'
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tutti.platforms.machine import Platform


def names() -> list[str]:
    """Their names, in alphabetical order."""
    from tutti.platforms.files.presets import platform_names

    return platform_names()


def platform(name: str | Path, *, model: str | None = None) -> Platform:
    """Returns a platform by name, from a file, or from a topology and keys of its tables.

    Args:
        name: One of `names()`, a path that ends in ``.toml``, or a topology such as
            ``torus:4x4x4,rate=25GB/s,latency=500ns``; docs/concepts/topology.md has the syntax.
        model: One of its models; if absent, its default.

    Raises:
        ConfigError: There is no such platform or model, or its file is invalid.

    Examples:
        >>> platform("torus:4x4,rate=25GB/s").routes.topology.ranks
        16
    """
    from tutti.platforms.files.builder import machine
    from tutti.platforms.files.presets import chosen_model, find_platform

    found = find_platform(str(name), folder=Path())
    source = str(name)
    return machine(found, chosen_model(found, model, source=source), source=source)

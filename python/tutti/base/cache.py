"""The folder of what is computed once for a user: compiled libraries and templates."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder(name: str) -> Path:
    """Returns a folder in TUTTI_CACHE, or in the user's cache, which may not exist."""
    named = os.environ.get("TUTTI_CACHE")
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return (Path(named) if named else Path(caches) / "tutti").absolute() / name

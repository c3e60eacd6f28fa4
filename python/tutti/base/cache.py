"""Folders of what is computed once for a user: compiled libraries and templates, scripts."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder(name: str) -> Path:
    """Returns a folder in TUTTI_CACHE, or in the user's cache, which may not exist."""
    named = os.environ.get("TUTTI_CACHE")
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return (Path(named) if named else Path(caches) / "tutti").absolute() / name


def writable_cache(name: str) -> Path | None:
    """Returns a folder as `cache_folder` does, and creates it; None if it cannot be written."""
    try:
        folder = cache_folder(name)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # RuntimeError: there is no home
        return None
    return folder if os.access(folder, os.W_OK) else None


def store(path: Path, text: str) -> None:
    """Writes a file of a cache, which other processes may read; a full disk leaves none."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        partial.write_text(text, encoding="ascii")
        partial.replace(path)
    except OSError:
        partial.unlink(missing_ok=True)

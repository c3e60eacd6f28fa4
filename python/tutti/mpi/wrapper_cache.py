"""What compiler wrappers said of themselves, kept with the libraries that they compiled.

Where a library is in the cache, no compiler is needed any more.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["cache_folder", "identity", "remember", "remembered"]

_FILE: Final = "wrapper.json"


def cache_folder() -> Path:
    """Where compiled libraries are kept: TUTTI_CACHE, or tutti's folder among the user's caches."""
    named = os.environ.get("TUTTI_CACHE")
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return (Path(named) if named else Path(caches) / "tutti").absolute() / "mpi"


def identity(mpicc: Path) -> list[str | int]:
    """What changes with a compiler wrapper: its path, size and time of change."""
    status = mpicc.stat()
    return [str(mpicc), status.st_size, status.st_mtime_ns]


def remember(mpicc: Path, facts: Sequence[str], folder: Path) -> None:
    """Keeps what a compiler wrapper said in the folder of a library."""
    kept = {"wrapper": identity(mpicc), "said": list(facts)}
    (folder / _FILE).write_text(json.dumps(kept) + "\n", "utf-8")


def remembered(mpicc: Path) -> list[str] | None:
    """What a compiler wrapper said when a library was compiled with it; None if none was."""
    for path in cache_folder().glob(f"*/{_FILE}"):
        try:
            kept = json.loads(path.read_text("utf-8"))
            if kept["wrapper"] == identity(mpicc):
                return [str(fact) for fact in kept["said"]]
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return None

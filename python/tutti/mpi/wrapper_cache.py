"""Properties of compiler wrappers, stored with the libraries that they compiled.

If a library is in the cache, no compiler is needed.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from tutti.base import cache as base

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_FILE: Final = "wrapper.json"


def cache_folder() -> Path:
    """Returns the folder of compiled libraries: TUTTI_CACHE, or a folder in the user's cache."""
    return base.cache_folder("mpi")


def identity(mpicc: Path) -> list[str | int]:
    """Returns the path, size and modification time of a compiler wrapper."""
    status = mpicc.stat()
    return [str(mpicc), status.st_size, status.st_mtime_ns]


def remember(mpicc: Path, facts: Sequence[str], folder: Path) -> None:
    """Stores the properties of a compiler wrapper in the folder of a library."""
    record = {"wrapper": identity(mpicc), "facts": list(facts)}
    (folder / _FILE).write_text(json.dumps(record) + "\n", "utf-8")


def remembered(mpicc: Path) -> list[str] | None:
    """Returns the stored properties of a compiler wrapper, or None."""
    for path in cache_folder().glob(f"*/{_FILE}"):
        try:
            record = json.loads(path.read_text("utf-8"))
            if record["wrapper"] == identity(mpicc):
                return [str(fact) for fact in record["facts"]]
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return None

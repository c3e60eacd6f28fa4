"""The exact identity of the simulator: results of different simulators are never mixed."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

from tutti import _core

FORMAT = 1
"""The version of cache records; incremented when their meaning changes."""

_UNCONCERNED = frozenset({"cli", "papers", "platforms", "report", "sweep"})
"""Parts of the package without effect on measurements; platforms are part of the key."""
_CODE_AND_TABLES = frozenset({".py", ".toml", ".csv", ".json"})


@functools.cache
def simulator() -> str:
    """Returns the version and a hash of all code and tables that affect results."""
    package = Path(__file__).parents[1]
    digest = hashlib.sha256(Path(_core.__file__).read_bytes())
    for path in sorted(package.rglob("*")):
        inside = path.relative_to(package)
        if path.suffix in _CODE_AND_TABLES and inside.parts[0] not in _UNCONCERNED:
            digest.update(f"\0{inside}\0".encode())
            digest.update(path.read_bytes())
    return f"{_core.__version__}+{digest.hexdigest()[:16]}"

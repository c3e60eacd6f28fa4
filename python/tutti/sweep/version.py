"""Which simulator this is, to the bit: results of two of them are never mixed."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

from tutti import _core

FORMAT = 1
"""Of the cache's records; raised when what stands in them changes its meaning."""

_UNCONCERNED = frozenset({"cli", "papers", "platforms", "report", "sweep"})
"""Parts of the package that no measurement depends on; a platform is part of the question."""


@functools.cache
def simulator() -> str:
    """The version, and a hash of everything that decides what comes out: code, compiled and not."""
    package = Path(__file__).parents[1]
    digest = hashlib.sha256(Path(_core.__file__).read_bytes())
    for path in sorted(package.rglob("*.py")):
        inside = path.relative_to(package)
        if inside.parts[0] not in _UNCONCERNED:
            digest.update(f"\0{inside}\0".encode())
            digest.update(path.read_bytes())
    return f"{_core.__version__}+{digest.hexdigest()[:16]}"

"""Damaged copies of a file, for tests of readers."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from tutti.base.errors import TuttiError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def refused(read: Callable[[Path], object], data: bytes, path: Path, *, count: int) -> int:
    """Reads damaged copies; any error other than a `TuttiError` fails the test.

    Returns:
        The number of copies that were refused.
    """
    random, found = Random(7), 0
    for _ in range(count):
        copy = bytearray(data)
        for _ in range(random.randint(1, 3)):
            start = random.randrange(len(copy))
            end = min(len(copy), start + random.randint(1, 12))
            kind = random.randrange(5)
            if kind == 0:
                del copy[start:end]
            elif kind == 1:
                copy[start] = random.randrange(256)
            elif kind == 2:
                copy[start:start] = copy[start:end]
            elif kind == 3:
                copy[start:end] = random.choice([b"0", b"-1", b"99999999999", b"1e9", b"nan", b'"'])
            else:
                del copy[start:]
            if not copy:
                break
        path.write_bytes(copy)
        try:
            read(path)
        except TuttiError:
            found += 1
    return found

"""Reads logs of jobs, which hold bytes of any encoding."""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING, Final

from tutti.base.files.limits import Bytes
from tutti.base.files.reader import read_bytes

if TYPE_CHECKING:
    from pathlib import Path

_UTF_16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_START: Final = 1024


def read_log(path: Path, expected: str, most: int = Bytes.LOG) -> str:
    """Returns the text of a log without a byte order mark; U+FFFD replaces invalid bytes.

    A log is in UTF-8, or in UTF-16 with a byte order mark, which redirections of Windows PowerShell
    write: the other byte of Latin characters is 0.

    Args:
        path: The file.
        expected: What the file should be, for errors.
        most: The largest size, in bytes.

    Raises:
        ConfigError: The file is missing, not a regular file, or too large.
    """
    data = read_bytes(path, most, expected)
    start = data[:_START]
    is_wide = start.startswith(_UTF_16) and 3 * start.count(0) > len(start)
    return data.decode("utf-16" if is_wide else "utf-8", "replace").removeprefix("\ufeff")

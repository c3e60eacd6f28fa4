"""Reads logs of jobs, which hold bytes of any encoding."""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING, Final

from tutti.base.files.limits import Bytes
from tutti.base.files.reader import read_bytes

if TYPE_CHECKING:
    from pathlib import Path

_UTF_16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def read_log(path: Path, expected: str, most: int = Bytes.LOG) -> str:
    """Returns the text of a log without a byte order mark; U+FFFD replaces invalid bytes.

    A log is in UTF-8, or in UTF-16 if its byte order mark says so, as redirections of Windows
    PowerShell write.

    Args:
        path: The file.
        expected: What the file should be, for errors.
        most: The largest size, in bytes.

    Raises:
        ConfigError: The file is missing, not a regular file, or too large.
    """
    data = read_bytes(path, most, expected)
    encoding = "utf-16" if data.startswith(_UTF_16) else "utf-8"
    return data.decode(encoding, "replace").removeprefix("\ufeff")

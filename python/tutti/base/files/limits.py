"""Limits of all files that are read; `tutti.base.files.reader` enforces them."""

from __future__ import annotations

from typing import Final

LINE: Final = 1 << 20
"""Characters of a line of a table: a column for each rank makes long ones."""
LOG_LINE: Final = 1 << 12
"""Characters of a line of a log or of a text that people write."""
FIELD: Final = 1 << 12
"""Characters of a field of a table, and of a word of text workloads."""
DIGITS: Final = 20
"""Digits of an integer: 2^64 has 20."""
DEPTH: Final = 64
"""Levels of nested tables and lists."""
RANKS: Final = 1 << 24
"""The number of rank ids of the core."""
MOST: Final = 2**63 - 1
"""The largest integer: results are columns of signed 64-bit integers."""


class Bytes:
    """The largest file of each kind, in bytes; larger files are rejected before they are read."""

    NETWORK: Final = 1 << 16
    """Networks of ASTRA-sim (YAML), which have four keys."""
    CONFIG: Final = 1 << 20
    """No configuration that a person wrote is larger."""
    SCHEDULE: Final = 64 << 20
    """Schedules in text form."""
    LOG: Final = 64 << 20
    """Output of benchmarks: nccl-tests writes one line per size."""
    TABLE: Final = 256 << 20
    """Recordings, results and graphs: a trace of a day has millions of lines."""
    TRACE: Final = 1 << 30
    """The Chakra trace or the profile of a rank, packed or unpacked."""
    ARCHIVE: Final = 16 << 30
    """The Chakra traces of all ranks in an archive, packed or unpacked."""


def parse_count(text: str, most: int = MOST) -> int | None:
    """Returns the integer from 0 to `most` that a text represents; None for other text."""
    if len(text) > DIGITS or not (text.isascii() and text.isdecimal()):
        return None
    value = int(text)
    return value if value <= most else None

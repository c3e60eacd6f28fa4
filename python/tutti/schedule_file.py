"""Schedule files in text form."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tutti.errors import TuttiError
from tutti.files import limits
from tutti.files.mistakes import mistake
from tutti.files.reader import read_text
from tutti.schedule import Schedule

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["SCHEDULE_SUFFIX", "read_schedule"]

SCHEDULE_SUFFIX = ".schedule"
"""Suffix that distinguishes schedule files from algorithms."""


def read_schedule(path: Path) -> Schedule:
    """Reads a schedule file.

    Raises:
        ConfigError: The file is missing, not a regular file, too large, not UTF-8 or not a
            schedule.
    """
    text = read_text(path, limits.Bytes.SCHEDULE, "a schedule in text form")
    try:
        return Schedule.from_text(text)
    except TuttiError as error:
        raise mistake(error.problem, source=str(path), hint=error.hint) from None

"""Schedule files in text form."""

from __future__ import annotations

import re
from pathlib import Path

from tutti.base.errors import TuttiError
from tutti.base.files import limits
from tutti.base.files.mistakes import mistake
from tutti.base.files.reader import read_text
from tutti.schedules.ir import Schedule

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


def content(notation: str) -> str:
    """Returns the text that represents an algorithm in hashes; for a file, its schedule."""
    if notation.endswith(SCHEDULE_SUFFIX):
        return read_schedule(Path(notation)).to_text()
    return notation


def renamed(schedule: Schedule, name: str) -> Schedule:
    """Returns the same schedule with another name."""
    line = f"name {name}"
    text = re.sub(r"^name .*$", lambda _: line, schedule.to_text(), count=1, flags=re.MULTILINE)
    return Schedule.from_text(text)

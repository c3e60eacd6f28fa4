"""Schedule files in text form, and schedules by the name of a file or an algorithm."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from tutti.base.errors import TuttiError
from tutti.base.files import limits
from tutti.base.files.mistakes import mistake
from tutti.base.files.reader import missing, read_text
from tutti.schedules.ir import Schedule, schedule

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


def find_schedule(notation: str, *, ranks: int | None = None, **layout: Any) -> Schedule:  # noqa: ANN401 - the arguments of `schedule`
    """Returns the schedule of an algorithm or of a file.

    Args:
        notation: ``name[:argument]``, or the path of a schedule file.
        ranks: The number of ranks; None for that of a file.
        layout: Further arguments of :func:`tutti.schedule`; None for the default, or for that of a
            file.

    Raises:
        ConfigError: The rank count is missing, or the file is unreadable or contradicts an
            argument.
        AlgorithmError: The algorithm is unknown, or does not support the collective or the ranks.
    """
    if notation.endswith(SCHEDULE_SUFFIX):
        written = read_schedule(Path(notation))
        for name, value in {"ranks": ranks, **layout}.items():
            _check_agrees(notation, f"--{name}", value, getattr(written, name, None))
        return written
    expected = f"an algorithm, or a file that ends in {SCHEDULE_SUFFIX}"
    if Path(notation).is_file():
        raise mistake("is a file without the suffix of a schedule", source=notation,
                      expected=expected)  # fmt: skip
    if ":" not in notation and ("/" in notation or Path(notation).suffix):
        raise missing(Path(notation), expected)
    if ranks is None:
        raise mistake("the rank count is missing", source=notation,
                      expected="--ranks N, such as --ranks 8")  # fmt: skip
    stated = {name: value for name, value in layout.items() if value is not None}
    return schedule(notation, ranks=ranks, **stated)


def _check_agrees(file: str, option: str, value: object, written: object) -> None:
    """Refuses an option that contradicts the file."""
    if value is not None and value != written:
        raise mistake(
            f"{option} {value} contradicts the file",
            source=file,
            expected=f"no {option}" if written is None else f"{option} {written}, or none",
        )

"""Schedule files of tutti, as a format of `tutti convert`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tutti.schedules.text import read_schedule

if TYPE_CHECKING:
    from pathlib import Path

    from tutti.formats.formats import Options
    from tutti.schedules.ir import Schedule


def read(path: Path, _options: Options) -> tuple[Schedule, tuple[str, ...]]:
    """Reads a schedule."""
    return read_schedule(path), ()


def write(schedule: Schedule, path: Path, _options: Options) -> tuple[str, ...]:
    """Writes a schedule."""
    path.write_text(schedule.to_text(), encoding="utf-8")
    return ()

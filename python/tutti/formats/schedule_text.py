"""Schedule files of tutti, as a format of `tutti convert`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tutti.formats.formats import Format, Options
from tutti.schedules.text import SCHEDULE_SUFFIX, read_schedule

if TYPE_CHECKING:
    from pathlib import Path

    from tutti.schedules.ir import Schedule

__all__ = ["FORMATS"]


def _read(path: Path, _options: Options) -> tuple[Schedule, tuple[str, ...]]:
    return read_schedule(path), ()


def _write(schedule: Schedule, path: Path, _options: Options) -> tuple[str, ...]:
    path.write_text(schedule.to_text(), encoding="utf-8")
    return ()


FORMATS = (
    Format(
        name="schedule",
        content="schedule",
        endings=(SCHEDULE_SUFFIX,),
        summary="Schedules of tutti in text form.",
        source="docs/guides/write-a-schedule.md",
        read=_read,
        write=_write,
        matches=lambda head: head.lstrip().startswith(b"tutti schedule"),
    ),
)

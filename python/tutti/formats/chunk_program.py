"""Chunk programs in Python, as a format that `tutti convert` writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tutti.formats.formats import Format, Options
from tutti.schedules.language import decompile

if TYPE_CHECKING:
    from pathlib import Path

    from tutti.schedules.ir import Schedule

__all__ = ["FORMATS"]


def _write(schedule: Schedule, path: Path, _options: Options) -> tuple[str, ...]:
    path.write_text(decompile(schedule), encoding="utf-8")
    return ()


FORMATS = (
    Format(
        name="chunk-program",
        content="schedule",
        endings=(".py",),
        summary="Chunk programs in Python. Write-only: `--from python MODULE:build` executes them.",
        source="docs/guides/write-a-schedule.md",
        write=_write,
    ),
)

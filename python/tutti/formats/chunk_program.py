"""Chunk programs in Python, as a format that `tutti convert` writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tutti.schedules.language import decompile

if TYPE_CHECKING:
    from pathlib import Path

    from tutti.formats.formats import Options
    from tutti.schedules.ir import Schedule


def write_program(schedule: Schedule, path: Path, _options: Options) -> tuple[str, ...]:
    """Writes the program of a schedule."""
    path.write_text(decompile(schedule), encoding="utf-8")
    return ()

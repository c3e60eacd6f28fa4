"""Errors of algorithms, schedules and chunk programs."""

from __future__ import annotations

from typing import ClassVar

from tutti.base.errors import ExitCode, TuttiError


class LayoutError(TuttiError, ValueError):
    """Raised for a payload that cannot be divided into chunks."""

    @property
    def _meant(self) -> str:
        """The nearest sizes with equal parts."""
        given = [self.fields.get(name) for name in ("size", "chunks", "element")]
        if self.kind != "unequal_parts" or not all(isinstance(one, int) for one in given):
            return super()._meant
        size, chunks, element = (int(str(one)) for one in given)
        unit = chunks * element
        sizes = [one for one in (size // unit * unit, -(-size // unit) * unit) if one]
        return f"nearest: {' and '.join(f'{one:,} B' for one in sizes)};"


class AlgorithmError(TuttiError, ValueError):
    """Raised for an unknown algorithm, or one that does not support the request."""


class ScheduleError(TuttiError, ValueError):
    """Raised for an invalid schedule, or a rank or step that a schedule does not have."""


class TextError(ScheduleError):
    """Raised for text that is not a schedule; ``line`` counts from 1."""


class VerificationError(TuttiError):
    """Raised for a schedule that is not correct.

    Places are (rank, step), waits are (place, awaited rank), chunks are (start, end) and
    contributions are (rank, chunk).
    """

    exit_code: ClassVar[ExitCode] = ExitCode.FAILED


class ProgramError(ScheduleError):
    """Raised for a statement of a chunk program; ``file`` and ``line`` are those of the statement.

    ``overwritten`` is the file and line of the statement that overwrote a stale chunk.
    """

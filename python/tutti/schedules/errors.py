"""Errors of algorithms, schedules and chunk programs."""

from __future__ import annotations

from typing import ClassVar

from tutti.base.errors import ExitCode, TuttiError


class LayoutError(TuttiError, ValueError):
    """Raised for a payload that cannot be divided into chunks."""


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

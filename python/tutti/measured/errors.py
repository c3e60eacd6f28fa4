"""Errors of calibration and tuning: insufficient measurements and unsupported rules."""

from __future__ import annotations

from typing import ClassVar

from tutti.base.errors import ExitCode, TuttiError


class CalibrationError(TuttiError, ValueError):
    """Raised for measurements that do not permit a calibration."""


class TuningError(TuttiError, ValueError):
    """Raised for a tuning that cannot be computed, written or verified."""


class ProofError(TuttiError):
    """Raised for a run in which the library did not follow its rules."""

    exit_code: ClassVar[ExitCode] = ExitCode.FAILED

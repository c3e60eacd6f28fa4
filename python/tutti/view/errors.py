"""Errors of reports and drawings."""

from __future__ import annotations

from tutti.base.errors import TuttiError


class ReportError(TuttiError, ValueError):
    """Raised for input that cannot be reported or drawn."""

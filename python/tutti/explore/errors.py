"""Errors of the web application."""

from __future__ import annotations

from tutti.base.errors import TuttiError


class ExploreError(TuttiError):
    """Raised if the web application of `tutti explore` cannot start."""

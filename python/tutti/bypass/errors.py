"""Errors of bypass meshes and their configurations."""

from __future__ import annotations

from tutti.base.errors import TuttiError


class BypassError(TuttiError, ValueError):
    """Raised for an invalid bypass network, or a configuration that does not match it."""

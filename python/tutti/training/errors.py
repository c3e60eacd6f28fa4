"""Errors of the endpoints that process collectives."""

from __future__ import annotations

from tutti.base.errors import TuttiError


class EndpointError(TuttiError, ValueError):
    """Raised for an invalid endpoint, or one that cannot process a collective."""


class CaptureError(TuttiError, ValueError):
    """Raised for a PyTorch program whose training step cannot be captured."""

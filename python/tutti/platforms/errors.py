"""Errors of network models and of noise."""

from __future__ import annotations

from tutti.base.errors import TuttiError


class ModelError(TuttiError, ValueError):
    """Raised for an unknown network model, or invalid parameters of one."""


class NoiseError(TuttiError, ValueError):
    """Raised for an invalid disturbance: a distribution, a load or the speed of a rank."""

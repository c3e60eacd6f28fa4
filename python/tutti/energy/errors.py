"""Errors of energy and area."""

from __future__ import annotations

from tutti.base.errors import TuttiError


class EnergyError(TuttiError, ValueError):
    """Raised for invalid constants, hardware or events of an energy or area model."""

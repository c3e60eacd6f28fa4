"""Errors of topologies and their routes."""

from __future__ import annotations

from tutti.base.errors import TuttiError


class TopologyError(TuttiError, ValueError):
    """Raised for an invalid topology, or routes that do not match it."""

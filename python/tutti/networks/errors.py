"""Errors of router networks, their traffic, and coherent chips on them."""

from __future__ import annotations

from tutti.base.errors import SimulationError, TuttiError


class NocError(TuttiError, ValueError):
    """Raised for an invalid router network, or a routing that does not match it."""


class TrafficError(TuttiError, ValueError):
    """Raised for invalid traffic: a pattern, an injection process, packet sizes or a trace."""


class CoherenceError(TuttiError, ValueError):
    """Raised for an invalid chip with coherent caches, or a kernel that does not match it."""


class CoherenceRunError(SimulationError):
    """Raised for a program on a chip with coherent caches that gives no result."""

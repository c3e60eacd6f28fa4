"""Errors of workloads and traces."""

from __future__ import annotations

from tutti.base.errors import TuttiError


class WorkloadError(TuttiError, ValueError):
    """Raised for an invalid workload: a model, a training loop, a program or an array."""


class TraceError(TuttiError, ValueError):
    """Raised for an invalid trace of another tool."""

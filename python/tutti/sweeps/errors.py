"""Errors of sweeps: the cache, executors and workers."""

from __future__ import annotations

from tutti.base.errors import ExitCode, TuttiError


class CacheError(TuttiError):
    """Raised for a sweep cache that cannot be used."""


class ExecutorError(TuttiError):
    """Raised if the executor of a sweep is missing or misconfigured."""


class WorkerError(TuttiError, RuntimeError):
    """Raised for a worker that died, or whose input differs from that of the sweep."""

    exit_code = ExitCode.FAILED

"""Errors of sweeps: the cache, executors and workers."""

from __future__ import annotations

from typing import ClassVar

from tutti.base.errors import ExitCode, Kind, TuttiError


class CacheError(TuttiError):
    """Raised for a sweep cache that cannot be used."""

    kinds: ClassVar[dict[str, Kind]] = {
        "folder": Kind(
            "The folder cannot be created, read or written.",
            "name another with --cache",
        ),
        "contradiction": Kind(
            "Two journals contain different results for the same point, so one is wrong.",
            "delete the cache folder and run the sweep again",
        ),
    }


class ExecutorError(TuttiError):
    """Raised if the executor of a sweep is missing or misconfigured."""

    kinds: ClassVar[dict[str, Kind]] = {
        "unknown": Kind("The executor is unknown."),
        "option": Kind("The option does not apply to this executor."),
        "not_started": Kind("The program was not started as the executor requires."),
        "unreachable": Kind(
            "The scheduler does not respond.",
            "is it running, and is that its address?",
        ),
        "other_version": Kind(
            "Workers run another version of tutti, so their results would differ.",
            "install the same version everywhere",
        ),
    }


class WorkerError(TuttiError, RuntimeError):
    """Raised for a worker that died, or whose input differs from that of the sweep."""

    exit_code = ExitCode.FAILED
    kinds: ClassVar[dict[str, Kind]] = {
        "died": Kind(
            "A worker died twice at the same point; the results of other points are stored.",
            "is there enough memory? Run the sweep again: only missing points are simulated",
        ),
        "none_left": Kind(
            "Workers die before they finish any point.",
            "is there enough memory, and can processes be started here?",
        ),
        "other_input": Kind(
            "A worker computed another point than requested: a file has changed, or differs "
            "on the worker's host.",
            "do not change files during a sweep; workers on other hosts need the same files",
        ),
        "other_version": Kind(
            "A worker runs another version of tutti.", "install the same version everywhere"
        ),
    }

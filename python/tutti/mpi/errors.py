"""Errors of runs over MPI: plan files, the MPI library, and launching programs."""

from __future__ import annotations

from typing import ClassVar

from tutti.base.errors import ExitCode, TuttiError


class BenchError(TuttiError, RuntimeError):
    """Raised for a benchmark over MPI that is impossible or failed."""


class LaunchError(TuttiError, RuntimeError):
    """Raised for a program that cannot be started with libtutti_mpi, or did not finish."""

    exit_code: ClassVar[ExitCode] = ExitCode.MISTAKE


class MpiCallError(TuttiError, RuntimeError):
    """Raised for a collective that `tutti.mpi.Communicator` cannot execute."""


class MpiError(TuttiError, RuntimeError):
    """Raised if no MPI library is found, or libtutti_mpi cannot be built for it."""


class PlanError(TuttiError, ValueError):
    """Raised for an unreadable plan file, or a schedule that a plan cannot hold."""

"""Errors of calibration and tuning: measurements that do not tell, and what cannot be expressed."""

from __future__ import annotations

from typing import ClassVar

from tutti.errors.base import ExitCode, Kind, TuttiError

__all__ = ["CalibrationError", "ProofError", "TuningError"]


class CalibrationError(TuttiError, ValueError):
    """A calibration that measurements do not allow."""

    kinds: ClassVar[dict[str, Kind]] = {
        "unknown_model": Kind("No model that can be fitted has that name."),
        "no_points": Kind(
            "Measurements of which a model says nothing.",
            "`--live` measures what every model needs; files need ping-pongs (osu_latency), bursts "
            "(osu_bw) or collectives with their --algorithm",
        ),
        "untold": Kind(
            "Measurements that leave a parameter open.", "measure what is missing, or ask for less"
        ),
        "out_of_range": Kind(
            "Measurements that fit no machine.", "are times in us, and sizes in bytes?"
        ),
        "probe": Kind("The measuring program failed, or wrote something else than samples."),
    }


class TuningError(TuttiError, ValueError):
    """A tuning that cannot be made, written or proved."""

    kinds: ClassVar[dict[str, Kind]] = {
        "asked": Kind("What is to be tuned does not exist, or does not go together."),
        "unknown_target": Kind("No library with rules of that name is known."),
        "nothing": Kind(
            "A library that has none of the schedules that are to be chosen from.",
            "the plan file of libtutti_mpi can express all of them",
        ),
        "bits": Kind(
            "A schedule whose ranks get different bits, for a type that is not exact.",
            "choose another schedule, or tune for integers alone: -d int32",
        ),
        "other_mpi": Kind(
            "Measurements on one MPI, and a file for another, of which no model speaks either.",
            "measure on that MPI (--mpicc), or give a model's machine: --by both --platform NAME",
        ),
        "csel": Kind(
            "A file of MPICH's selections that is not its whole tree.",
            "take maint/tuning/coll/mpir/generic.json from the sources of your MPICH's version",
        ),
        "cannot_prove": Kind("An MPI that does not let itself be watched."),
    }


class ProofError(TuttiError):
    """A run in which the library did not do what its rules say."""

    exit_code: ClassVar[ExitCode] = ExitCode.FAILED
    kinds: ClassVar[dict[str, Kind]] = {
        "other_messages": Kind(
            "Other messages between ranks than the schedule has.",
            "did the library find the file? `--keep` leaves what it wrote",
        ),
        "failed": Kind("The run ended with an error."),
    }

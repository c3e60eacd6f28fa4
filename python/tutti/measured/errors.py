"""Errors of calibration and tuning: insufficient measurements and unsupported rules."""

from __future__ import annotations

from typing import ClassVar

from tutti.base.errors import ExitCode, Kind, TuttiError


class CalibrationError(TuttiError, ValueError):
    """Raised for measurements that do not permit a calibration."""

    kinds: ClassVar[dict[str, Kind]] = {
        "unknown_model": Kind("The model is unknown, or cannot be fitted."),
        "no_points": Kind(
            "The measurements contain no point that the model predicts.",
            "`--live` measures what every model needs; files need ping-pongs (osu_latency), "
            "bursts (osu_bw) or collectives with their --algorithm",
        ),
        "undetermined": Kind(
            "The measurements do not determine a parameter.",
            "measure what is missing, or fit fewer parameters",
        ),
        "out_of_range": Kind(
            "The measurements do not fit any machine.",
            "are times in us, and sizes in bytes?",
        ),
        "probe": Kind("The benchmark program failed, or its output is not samples."),
    }


class TuningError(TuttiError, ValueError):
    """Raised for a tuning that cannot be computed, written or verified."""

    kinds: ClassVar[dict[str, Kind]] = {
        "request": Kind("The requested tuning is invalid, or its settings contradict each other."),
        "unknown_target": Kind("The target library is unknown."),
        "unknown_version": Kind("The version of the library is unknown, or too old for tutti."),
        "lacks": Kind("The version of the library lacks the algorithm."),
        "nothing": Kind(
            "The library supports none of the candidate schedules.",
            "the plan file of libtutti_mpi supports all of them",
        ),
        "bits": Kind(
            "The schedule's results can differ in bits between ranks: the datatype is not exact.",
            "choose another schedule, or tune for integers alone: -d int32",
        ),
        "other_mpi": Kind(
            "The measurements are of another MPI library than the rules, and no model covers it.",
            "measure on that MPI (--mpicc), or give a model's machine: --by both --platform NAME",
        ),
        "csel": Kind(
            "The file of MPICH's selections does not hold the complete tree.",
            "take maint/tuning/coll/mpir/generic.json from the sources of your MPICH version",
        ),
        "no_algorithm": Kind(
            "NCCL's settings exclude every algorithm for the collective.",
            "NCCL ends with an error too: change NCCL_ALGO or NCCL_PROTO",
        ),
        "cannot_prove": Kind("The MPI library does not allow its messages to be observed."),
    }


class ProofError(TuttiError):
    """Raised for a run in which the library did not follow its rules."""

    exit_code: ClassVar[ExitCode] = ExitCode.FAILED
    kinds: ClassVar[dict[str, Kind]] = {
        "other_messages": Kind(
            "The messages between ranks differ from those of the schedule.",
            "did the MPI library find the file? `--keep` leaves what it wrote",
        ),
        "failed": Kind("The run ended with an error."),
    }

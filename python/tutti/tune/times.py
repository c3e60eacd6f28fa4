"""Times to choose from: how each is known, and for which MPI it speaks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

if TYPE_CHECKING:
    from tutti.mpi.underneath import Mpi

__all__ = [
    "EMULATED",
    "ESTIMATED",
    "MEASURED",
    "MODELLED",
    "OWN",
    "TIMES",
    "mpi_of",
    "speaks_for",
]

MODELLED: Final = "model"
ESTIMATED: Final = "estimate"
MEASURED: Final = "measurement"
EMULATED: Final = "emulated"

OWN: Final = "own"
"""Stands where a schedule's name does: the MPI's own code, left to its own choice."""

TIMES: dict[str, type[pl.DataType]] = {
    "collective": pl.String,
    "ranks": pl.Int64,
    "size_bytes": pl.Int64,
    "datatype": pl.String,
    "schedule": pl.String,
    "time_ps": pl.Int64,
    "method": pl.String,
    "conditions": pl.String,
    "mpi": pl.String,
    "blocks": pl.Int64,
    "late": pl.Int64,
    "moves_chunks": pl.Boolean,
    "same_on_all": pl.Boolean,
}
"""The columns of times to choose from.

``method`` is `model`, `measurement` (what this machine and its network took), `emulated` (real
ranks, kept apart by a model) or `estimate` (what a plan's schedule has to beat where a model
decides: :func:`tutti.mpi.usual.to_beat`). ``conditions`` are the model's parameters, of the first
and the last, or the machine that was measured. ``mpi`` is whose ranks were measured, such as
`openmpi 5.0.11`; ``blocks`` is how many count, and ``late`` how many more began too late to count;
all three are null where a model says the time. The schedule `own` is the MPI's own code;
``moves_chunks`` says that a schedule needs equal parts, ``same_on_all`` that every rank gets the
same bits."""

_OF_TARGET: Final = {"openmpi": "openmpi 5.", "openmpi6": "openmpi 6.", "mpich": "mpich "}
"""How the names of MPIs begin that read a library's file."""


def mpi_of(mpi: Mpi) -> str:
    """An MPI as the column ``mpi`` has it."""
    return f"{mpi.kind} {mpi.version}".strip()


def speaks_for(target: str, mpi: str | None) -> bool:
    """Whether what was measured on an MPI may decide for a library's file.

    A plan is for the library of tutti, which is measured on whatever MPI. UCC is never measured.
    """
    if mpi is None:
        return False
    return target == "plan" or (target in _OF_TARGET and mpi.startswith(_OF_TARGET[target]))

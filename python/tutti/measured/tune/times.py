"""Times of candidates: the origin of each, and the MPI library that it applies to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

if TYPE_CHECKING:
    from tutti.mpi.underneath import Mpi

MODELLED: Final = "model"
ESTIMATED: Final = "estimate"
DEFAULT: Final = "default"
MEASURED: Final = "measurement"
EMULATED: Final = "emulated"

OWN: Final = "own"
"""Replaces the schedule's name: the native collective."""

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

``method`` is `model`, `measurement` (of this machine and its network), `emulated` (MPI processes
with distances emulated by a model) or `estimate` (what a plan's schedule has to beat if a model
decides: :func:`tutti.mpi.usual.to_beat`), or `default` (predicted for what a library selects by
itself; ``mpi`` is then its release line). ``conditions`` are the parameters of the model, or the
measured machine. ``mpi`` is the measured MPI library, such as `openmpi 5.0.11`; ``blocks`` is the
number of used blocks, and ``late`` the number of late ones: these were discarded, unless all blocks
of a case were late and were used. All three are null for a model.
The schedule `own` is the native collective; ``moves_chunks``: the schedule needs equal chunks;
``same_on_all``: every rank gets the same bits."""

_OF_TARGET: Final = {
    "openmpi": "openmpi 5.",
    "openmpi4": "openmpi 4.",
    "openmpi6": "openmpi 6.",
    "mpich": "mpich ",
}
"""Prefixes of the MPI libraries that read a library's file."""


def mpi_of(mpi: Mpi) -> str:
    """Returns the name of an MPI library in the column ``mpi``."""
    return f"{mpi.kind} {mpi.version}".strip()


def speaks_for(target: str, mpi: str | None) -> bool:
    """Whether measurements on an MPI library may decide for a library's file.

    A plan is for libtutti_mpi, which is measured on any MPI library. UCC is never measured.
    """
    if mpi is None:
        return False
    return target == "plan" or (target in _OF_TARGET and mpi.startswith(_OF_TARGET[target]))

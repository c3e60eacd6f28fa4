"""The names of communication libraries whose choice replaces collectives of traces."""

from __future__ import annotations

PLATFORM = "platform"
"""The word for the library of a platform."""
NCCL = "nccl"
MPI = ("openmpi", "openmpi4", "openmpi6", "mpich")
NAMES: tuple[str, ...] = (PLATFORM, NCCL, *MPI)
"""The names of libraries, as those of `tutti tune --for`."""

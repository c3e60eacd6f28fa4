"""Errors of programs on chips with coherent caches."""

from __future__ import annotations

from typing import ClassVar

from tutti.errors.base import Kind, TuttiError
from tutti.errors.runs import SimulationError

__all__ = ["CoherenceError", "CoherenceRunError"]


class CoherenceError(TuttiError, ValueError):
    """A chip with coherent caches that cannot be, or a kernel that does not suit it."""

    kinds: ClassVar[dict[str, Kind]] = {
        "unknown_kernel": Kind("No kernel has that name.", "`tutti coherence list` lists them"),
        "unknown_scale": Kind("Kernels have no such scale."),
        "cores": Kind(
            "A kernel that cannot be divided among so many cores.",
            "a larger scale has more work; another mesh, or `cores`, fewer cores",
        ),
        "protocol": Kind("Caches are kept coherent by no such protocol."),
        "collector": Kind("Answers go to nobody of that name."),
        "shared_hint": Kind("Answers tell nothing of that name."),
        "out_of_range": Kind("A setting of a chip out of its range."),
        "threads": Kind("A program for more cores than the mesh has nodes.", "lower `cores`"),
        "memory": Kind("A program with no memory, or with more than lines are counted for."),
    }


class CoherenceRunError(SimulationError):
    """A run of a program on a chip with coherent caches that gives no result."""

    kinds: ClassVar[dict[str, Kind]] = {
        "fabric": Kind("The network refuses a message of the protocol."),
        "address": Kind("A program leaves its memory."),
        "region": Kind("A program begins or ends its region of interest out of order."),
        "incoherent": Kind("The protocol breaks its own rules: a defect of this program."),
        "deadlock": Kind("All cores wait for what will not come."),
        "fabric_stuck": Kind("Packets are under way in the network, and none moves."),
        "no_progress": Kind("No access has been done for long.", "raise `patience`"),
        "endless": Kind("A program takes more cycles than were allowed.", "raise `limit`"),
        "wrong": Kind("A program ends with a result that is not that of the serial one."),
        "stopped": Kind("The run was stopped before it was done.", "run it again"),
    }

"""Errors of programs on chips with coherent caches."""

from __future__ import annotations

from typing import ClassVar

from tutti.errors.base import Kind, TuttiError
from tutti.errors.runs import SimulationError

__all__ = ["CoherenceError", "CoherenceRunError"]


class CoherenceError(TuttiError, ValueError):
    """Raised for an invalid chip with coherent caches, or a kernel that does not match it."""

    kinds: ClassVar[dict[str, Kind]] = {
        "unknown_kernel": Kind("The kernel is unknown.", "`tutti coherence list` lists them"),
        "unknown_scale": Kind("The kernel has no such scale."),
        "cores": Kind(
            "The kernel cannot be divided among this many cores.",
            "a larger scale has more work; a smaller mesh or a lower `cores` has fewer cores",
        ),
        "protocol": Kind("The coherence protocol is unknown."),
        "collector": Kind("The collector of acknowledgements is unknown."),
        "shared_hint": Kind("The value of the sharing hint is unknown."),
        "out_of_range": Kind("A setting of the chip is out of its range."),
        "threads": Kind("The program uses more cores than the mesh has nodes.", "lower `cores`"),
        "memory": Kind("The program has no memory, or more lines than can be counted."),
    }


class CoherenceRunError(SimulationError):
    """Raised for a program on a chip with coherent caches that gives no result."""

    kinds: ClassVar[dict[str, Kind]] = {
        "fabric": Kind("The network rejects a message of the protocol."),
        "address": Kind("The program accesses an address outside its memory."),
        "region": Kind("The program enters or leaves its region of interest out of order."),
        "incoherent": Kind("The protocol violates coherence: a defect of tutti."),
        "deadlock": Kind("All cores wait for events that never occur."),
        "fabric_stuck": Kind("Packets are in flight in the network, and none moves."),
        "no_progress": Kind(
            "No access has completed within `patience` cycles.",
            "raise `patience`",
        ),
        "endless": Kind("The program exceeds the limit of cycles.", "raise `limit`"),
        "wrong": Kind("The result of the program differs from that of the serial program."),
        "stopped": Kind("The run was interrupted before it finished.", "run it again"),
    }

"""Errors of the endpoints that process collectives."""

from __future__ import annotations

from typing import ClassVar

from tutti.base.errors import Kind, TuttiError


class EndpointError(TuttiError, ValueError):
    """Raised for an invalid endpoint, or one that cannot process a collective."""

    kinds: ClassVar[dict[str, Kind]] = {
        "empty": Kind("The chunk size is zero.", "use chunks of at least 1 B"),
        "nothing_left": Kind("Communication uses all resources of the NPU.", "reserve less for it"),
        "no_reservation": Kind(
            "A work-conserving reservation has no memory bandwidth to return to computation.",
            "reserve `memory`, or use `static`",
        ),
        "no_graph": Kind(
            "The model of an endpoint is a graph that is missing, or a graph is given for another.",
            'give `graph` with `kind = "graph"` only',
        ),
        "other_memory": Kind(
            "The memory server of a graph does not have the reserved memory bandwidth.",
            "give both the same rate",
        ),
        "unknown_server": Kind("A graph names a server that it does not have, or has twice."),
        "no_effect": Kind("A setting of a graph has no effect.", "remove it"),
        "no_units": Kind("A server has no units.", "set `units` to at least 1"),
        "memory_units": Kind(
            "The memory server of a graph has several units.",
            "give one unit with the complete rate",
        ),
        "wrong_visits": Kind("An endpoint visits servers that do not exist."),
        "no_chunks": Kind("The number of chunks in flight is zero.", "allow at least one chunk"),
        "no_sms": Kind("No SM moves the data.", "set `sms` to at least 1"),
        "too_few_fsms": Kind(
            "There are fewer FSMs than phases.",
            "give at least one for each phase",
        ),
        "wrong_fsms": Kind("The FSMs are assigned to phases that do not exist."),
        "no_fsm": Kind("A phase has no FSM.", "give at least one for each phase"),
        "wrong_shares": Kind(
            "The number of shares differs from the number of scratchpad partitions.",
            "give one for each phase, and one for finished chunks",
        ),
        "partition_too_small": Kind(
            "A partition of the scratchpad is smaller than a chunk.",
            "enlarge `sram`, or shorten `chunk`",
        ),
    }

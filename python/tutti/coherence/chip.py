"""What a chip with coherent caches has besides its mesh and its protocol."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal

from pydantic import Field, Strict

from tutti.errors import CoherenceError
from tutti.files.described import Count, beyond_bounds

_Count = Annotated[int | None, Field(ge=0, lt=1 << 32)]


@dataclass(frozen=True, kw_only=True)
class Chip:
    """Caches and memory; what is None is as by default, which docs/models/coherence.md lists.

    Delays are in cycles.

    Raises:
        CoherenceError: A count is none.
    """

    homes: Annotated[
        Annotated[tuple[Count, ...], Strict(strict=False)] | None,
        Field(description="Nodes with memory controllers; the four corners if absent."),
    ] = None
    l1_bytes: Annotated[_Count, Field(description="Size of the L1 cache, in bytes.")] = None
    l1_ways: Annotated[_Count, Field(description="Associativity of the L1 cache.")] = None
    l1_cycles: Annotated[_Count, Field(description="Hit latency of the L1 cache.")] = None
    l2_bytes: Annotated[
        _Count,
        Field(description="Size of the private L2 victim cache, in bytes."),
    ] = None
    l2_ways: Annotated[_Count, Field(description="Associativity of the L2 cache.")] = None
    l2_cycles: Annotated[_Count, Field(description="Lookup latency of the L2 cache.")] = None
    snoop_cycles: Annotated[
        _Count, Field(description="Latency from a snoop request to its acknowledgement.")
    ] = None
    data_cycles: Annotated[
        _Count, Field(description="Latency from the acknowledgement to the data.")
    ] = None
    home_cycles: Annotated[
        _Count,
        Field(description="Latency of a home, from accepting a request to sending messages."),
    ] = None
    dram_cycles: Annotated[_Count, Field(description="Latency of reading a line from memory.")] = (
        None
    )
    dram_interval: Annotated[
        _Count, Field(description="Interval between the starts of memory accesses.")
    ] = None
    collector: Annotated[
        Literal["requester", "home"] | None,
        Field(description="With ht: the node that collects acknowledgements."),
    ] = None
    shared_hint: Annotated[
        Literal["or", "never"] | None,
        Field(description="With ht: whether acknowledgements report a shared copy."),
    ] = None
    reissues: Annotated[
        _Count, Field(description="With tc: requests before a persistent request.")
    ] = None
    shortest_timeout: Annotated[
        _Count, Field(description="With tc: the shortest timeout before a request is sent again.")
    ] = None
    data_flits: Annotated[_Count, Field(description="Flits of a message that carries a line.")] = (
        None
    )
    check: Annotated[
        bool, Field(description="Whether to check every access and message, which is slower.")
    ] = False
    patience: Annotated[
        _Count, Field(description="Cycles without a completed access after which a run stops.")
    ] = None
    limit: Annotated[_Count, Field(description="Most cycles of a run.")] = None

    def __post_init__(self) -> None:
        """Refuses what is no count, before anything is run."""
        for name, value, least, most in beyond_bounds(self):
            if name == "homes":
                value = self.homes  # noqa: PLW2901 - the list is shown, not its entry
            message = f"`{name}` is {value!r}: expected whole numbers from {least} to {most}"
            raise CoherenceError(message, kind="out_of_range", fields={"what": name})

    def given(self, protocol: str) -> dict[str, Any]:
        """As the core takes it, with a protocol."""
        found: dict[str, Any] = {one.name: getattr(self, one.name) for one in fields(self)}
        if self.homes is not None:
            found["homes"] = list(self.homes)
        return {"protocol": protocol, **found}

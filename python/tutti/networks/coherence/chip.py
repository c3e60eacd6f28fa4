"""Settings of the caches and the memory of a chip."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal

from pydantic import Field, Strict

from tutti.base.files.described import Count, beyond_bounds
from tutti.networks.errors import CoherenceError

_Count = Annotated[int | None, Field(ge=0, lt=1 << 32)]


@dataclass(frozen=True, kw_only=True)
class Chip:
    """Caches and memory of a chip; docs/models/coherence.md lists the defaults.

    Settings that are `None` have their default value. Delays are in cycles.

    Raises:
        CoherenceError: A number is out of range.
    """

    homes: Annotated[
        Annotated[tuple[Count, ...], Strict(strict=False)] | None,
        Field(description="Home nodes, each with a memory controller; default: the four corners."),
    ] = None
    l1_bytes: Annotated[_Count, Field(description="L1 cache size in bytes.")] = None
    l1_ways: Annotated[_Count, Field(description="L1 associativity.")] = None
    l1_cycles: Annotated[_Count, Field(description="L1 hit latency.")] = None
    l2_bytes: Annotated[
        _Count, Field(description="L2 cache size in bytes; private and exclusive of the L1.")
    ] = None
    l2_ways: Annotated[_Count, Field(description="L2 associativity.")] = None
    l2_cycles: Annotated[_Count, Field(description="L2 lookup latency.")] = None
    snoop_cycles: Annotated[
        _Count, Field(description="Latency from another core's request to the response.")
    ] = None
    data_cycles: Annotated[
        _Count, Field(description="Latency from the response to the data message.")
    ] = None
    home_cycles: Annotated[_Count, Field(description="Latency of a request at its home node.")] = (
        None
    )
    dram_cycles: Annotated[_Count, Field(description="DRAM read latency of a line.")] = None
    dram_interval: Annotated[
        _Count, Field(description="Cycles between the starts of memory accesses.")
    ] = None
    collector: Annotated[
        Literal["requester", "home"] | None,
        Field(description="With ht: the node that collects the responses."),
    ] = None
    shared_hint: Annotated[
        Literal["or", "never"] | None,
        Field(description="With ht: whether combined responses report other sharers."),
    ] = None
    reissues: Annotated[
        _Count, Field(description="With tc: transient requests before a persistent request.")
    ] = None
    shortest_timeout: Annotated[
        _Count, Field(description="With tc: minimum timeout before a request is reissued.")
    ] = None
    data_flits: Annotated[_Count, Field(description="Flits of a data message.")] = None
    work_per_miss: Annotated[
        _Count,
        Field(
            description="Cycles that a core computes after each miss, in addition to the "
            "program's work."
        ),
    ] = None
    check: Annotated[
        bool, Field(description="Check invariants on every access and message; slower.")
    ] = False
    patience: Annotated[
        _Count, Field(description="Cycles without a completed access after which a run fails.")
    ] = None
    limit: Annotated[_Count, Field(description="Cycles after which a run fails.")] = None

    def __post_init__(self) -> None:
        """Refuses numbers out of range."""
        for name, value, least, most in beyond_bounds(self):
            if name == "homes":
                value = self.homes  # noqa: PLW2901 - show the list, not its entry
            message = f"`{name}` is {value!r}: expected integers from {least} to {most}"
            raise CoherenceError(message, kind="out_of_range", fields={"what": name})

    def given(self, protocol: str) -> dict[str, Any]:
        """Returns the settings for the core, with a protocol."""
        found: dict[str, Any] = {one.name: getattr(self, one.name) for one in fields(self)}
        if self.homes is not None:
            found["homes"] = list(self.homes)
        return {"protocol": protocol, **found}

"""Settings of the caches and the memory of a chip."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal

from pydantic import Field, Strict

from tutti.base.files.described import Count, key
from tutti.base.files.typed import refuse_fields
from tutti.networks.errors import CoherenceError

_Count = Annotated[int | None, Field(ge=0, lt=1 << 32)]


@dataclass(frozen=True, kw_only=True)
class Chip:
    """Caches and memory of a chip; docs/models/coherence.md lists the defaults.

    Settings that are `None` have their default value. Delays are in cycles.

    Raises:
        CoherenceError: A value is of a wrong type or out of range.
    """

    homes: Annotated[tuple[Count, ...], Strict(strict=False)] | None = key(
        None, description="Home nodes, each with a memory controller; default: the four corners."
    )
    l1_bytes: _Count = key(None, description="L1 cache size in bytes.")
    l1_ways: _Count = key(None, description="L1 associativity.")
    l1_cycles: _Count = key(None, description="L1 hit latency.")
    l2_bytes: _Count = key(
        None, description="L2 cache size in bytes; private and exclusive of the L1."
    )
    l2_ways: _Count = key(None, description="L2 associativity.")
    l2_cycles: _Count = key(None, description="L2 lookup latency.")
    snoop_cycles: _Count = key(
        None, description="Latency from another core's request to the response."
    )
    data_cycles: _Count = key(None, description="Latency from the response to the data message.")
    home_cycles: _Count = key(None, description="Latency of a request at its home node.")
    dram_cycles: _Count = key(None, description="DRAM read latency of a line.")
    dram_interval: _Count = key(None, description="Cycles between the starts of memory accesses.")
    collector: Literal["requester", "home"] | None = key(
        None, description="With ht: the node that collects the responses."
    )
    shared_hint: Literal["or", "never"] | None = key(
        None, description="With ht: whether combined responses report other sharers."
    )
    reissues: _Count = key(
        None, description="With tc: transient requests before a persistent request."
    )
    shortest_timeout: _Count = key(
        None, description="With tc: minimum timeout before a request is reissued."
    )
    data_flits: _Count = key(None, description="Flits of a data message.")
    work_per_miss: _Count = key(
        None,
        description="Cycles that a core computes after each miss, in addition to the "
        "program's work.",
    )
    check: bool = key(False, description="Check invariants on every access and message; slower.")
    patience: _Count = key(
        None, description="Cycles without a completed access after which a run fails."
    )
    limit: _Count = key(None, description="Cycles after which a run fails.")

    def __post_init__(self) -> None:
        """Refuses values of a wrong type or out of range."""
        refuse_fields(self, CoherenceError)

    def given(self, protocol: str) -> dict[str, Any]:
        """Returns the settings for the core, with a protocol."""
        found: dict[str, Any] = {one.name: getattr(self, one.name) for one in fields(self)}
        if self.homes is not None:
            found["homes"] = list(self.homes)
        return {"protocol": protocol, **found}

"""What a chip with coherent caches has besides its mesh and its protocol."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from tutti.errors import CoherenceError

_MOST = (1 << 32) - 1


@dataclass(frozen=True, kw_only=True)
class Chip:
    """Caches and memory; what is None is as by default, which docs/models/coherence.md lists.

    Delays are in cycles.

    Attributes:
        homes: The nodes that have memory, each once; by default the four corners.
        l1_bytes: Of a core's first cache.
        l1_ways: Lines of its sets.
        l1_cycles: A hit in it.
        l2_bytes: Of a core's second cache, which holds what fell out of the first.
        l2_ways: Lines of its sets.
        l2_cycles: A look into it.
        snoop_cycles: From when a request of another core arrives to the answer.
        data_cycles: From the answer to the data.
        home_cycles: From when a home turns to a request to what it sends.
        dram_cycles: Reading a line from memory.
        dram_interval: From the beginning of an access to memory to that of the next.
        collector: With ht: who gets the answers, the `requester` or the `home`.
        shared_hint: With ht: whether answers tell by `or` that somebody has a copy, or `never`.
        reissues: With tc: how often a core asks again before a persistent request.
        shortest_timeout: With tc: after how long at the least.
        data_flits: Flits of a message with a line.
        check: Whether a checker follows every access and message; slower.
        patience: Cycles without any access done after which a run is given up.
        limit: Cycles after which it is.

    Raises:
        CoherenceError: A count is none.
    """

    homes: tuple[int, ...] | None = None
    l1_bytes: int | None = None
    l1_ways: int | None = None
    l1_cycles: int | None = None
    l2_bytes: int | None = None
    l2_ways: int | None = None
    l2_cycles: int | None = None
    snoop_cycles: int | None = None
    data_cycles: int | None = None
    home_cycles: int | None = None
    dram_cycles: int | None = None
    dram_interval: int | None = None
    collector: str | None = None
    shared_hint: str | None = None
    reissues: int | None = None
    shortest_timeout: int | None = None
    data_flits: int | None = None
    check: bool = False
    patience: int | None = None
    limit: int | None = None

    def __post_init__(self) -> None:
        """Refuses what is no count, before anything is run."""
        for one in fields(self):
            value = getattr(self, one.name)
            if value is None or one.name in _NO_COUNTS:
                continue
            for count in value if one.name == "homes" else (value,):
                if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= _MOST:
                    message = f"`{one.name}` is {value!r}: expected whole numbers from 0 to {_MOST}"
                    raise CoherenceError(message, kind="out_of_range", fields={"what": one.name})

    def given(self, protocol: str) -> dict[str, Any]:
        """As the core takes it, with a protocol."""
        found: dict[str, Any] = {one.name: getattr(self, one.name) for one in fields(self)}
        if self.homes is not None:
            found["homes"] = list(self.homes)
        return {"protocol": protocol, **found}


_NO_COUNTS = ("check", "collector", "shared_hint")

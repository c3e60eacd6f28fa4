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
        Field(description="Nodes with memory, each once; the four corners if left out."),
    ] = None
    l1_bytes: Annotated[_Count, Field(description="Bytes of a core's first cache.")] = None
    l1_ways: Annotated[_Count, Field(description="Lines of its sets.")] = None
    l1_cycles: Annotated[_Count, Field(description="A hit in it.")] = None
    l2_bytes: Annotated[
        _Count,
        Field(
            description="Bytes of a core's second cache, which holds what fell out of the first."
        ),
    ] = None
    l2_ways: Annotated[_Count, Field(description="Lines of its sets.")] = None
    l2_cycles: Annotated[_Count, Field(description="A look into it.")] = None
    snoop_cycles: Annotated[
        _Count, Field(description="From another core's request to the answer.")
    ] = None
    data_cycles: Annotated[_Count, Field(description="From the answer to the data.")] = None
    home_cycles: Annotated[
        _Count, Field(description="From when a home turns to a request to what it sends.")
    ] = None
    dram_cycles: Annotated[_Count, Field(description="Reading a line from memory.")] = None
    dram_interval: Annotated[
        _Count, Field(description="From the start of an access to memory to that of the next.")
    ] = None
    collector: Annotated[
        Literal["requester", "home"] | None,
        Field(description="With ht: who gets the answers."),
    ] = None
    shared_hint: Annotated[
        Literal["or", "never"] | None,
        Field(description="With ht: whether answers tell that somebody has a copy."),
    ] = None
    reissues: Annotated[_Count, Field(description="With tc: requests before a persistent one.")] = (
        None
    )
    shortest_timeout: Annotated[
        _Count, Field(description="With tc: before a request is sent again.")
    ] = None
    data_flits: Annotated[_Count, Field(description="Flits of a message with a line.")] = None
    check: Annotated[
        bool, Field(description="Whether every access and message is checked; slower.")
    ] = False
    patience: Annotated[
        _Count, Field(description="Cycles without an access done that end a run.")
    ] = None
    limit: Annotated[_Count, Field(description="Cycles that end a run.")] = None

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

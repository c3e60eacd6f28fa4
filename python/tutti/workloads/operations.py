"""Traces: the sends, receives, computations and collectives of every rank, with dependencies.

A trace may have millions of operations, so that each rank stores its operations as columns. The
times and sizes are fixed, unlike those of a schedule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, overload

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from tutti import _core

ANY = -1
"""The peer of a receive from any rank, and the tag of a receive of any tag."""


class Kind(IntEnum):
    """The kind of an operation, as stored in `Operations.kinds`."""

    COMPUTE = 0
    SEND = 1
    RECEIVE = 2
    COLLECTIVE = 3
    TIMED = 4


@dataclass(frozen=True, slots=True)
class CollectiveCall:
    """A collective that the ranks of a group start.

    Attributes:
        collective: The collective, such as ``"all_reduce"``.
        group: The ranks, in the order of the communicator.
        root: The root's index in the group; 0 for collectives without a root.
    """

    collective: str
    group: tuple[int, ...]
    root: int = 0


@dataclass(frozen=True, kw_only=True)
class Operations:
    """The operations of a rank. Operation i has element i of each column.

    Attributes:
        kinds: `Kind` of each operation, uint8.
        sizes: Bytes of a message or of a collective's payload, int64; 0 for computations.
        durations: Time of a computation in ps, and of a timed collective after its last rank has
            started it; int64, 0 for other operations.
        peers: The destination or source of a message, the index into `Trace.collectives` of a
            collective, the ranks of a timed collective, -1 of a computation; int32. A receive may
            have `ANY`.
        tags: Tag of a message, number of a timed collective, int64; 0 for other operations. A
            receive may have `ANY`.
        streams: The stream (or CPU thread) that executes the operation, int32. A stream executes
            one operation at a time, in any order that dependencies allow.
        first_dependency: Offsets into `dependencies`, int64, one more than operations.
        dependencies: Indices of operations of this rank that must have completed, int64.
        on_start: Whether the dependency is satisfied when the other operation starts; bool, one
            per dependency.
        names: A name per operation, or empty.
    """

    kinds: NDArray[np.uint8]
    sizes: NDArray[np.int64]
    durations: NDArray[np.int64]
    peers: NDArray[np.int32]
    tags: NDArray[np.int64]
    streams: NDArray[np.int32]
    first_dependency: NDArray[np.int64]
    dependencies: NDArray[np.int64]
    on_start: NDArray[np.bool_]
    names: tuple[str, ...] = ()

    def __len__(self) -> int:
        """Returns the number of operations."""
        return len(self.kinds)

    @classmethod
    def from_columns(cls, columns: Sequence[bytes]) -> Self:
        """Builds operations from the columns of the core, in the order of the attributes."""
        import numpy as np

        named = zip(_TYPES.items(), columns, strict=True)
        arrays: dict[str, Any] = {n: np.frombuffer(column, kind) for (n, kind), column in named}
        return cls(**arrays)

    def columns(self) -> tuple[bytes, ...]:
        """Returns the columns for the core, in the order of the attributes."""
        import numpy as np

        return tuple(
            np.asarray(getattr(self, name), kind).tobytes() for name, kind in _TYPES.items()
        )

    def replaced(self, **columns: Any) -> Self:  # noqa: ANN401 - each column has its type
        """Returns operations with other columns."""
        return replace(self, **columns)


_TYPES: dict[str, str] = {
    "kinds": "u1",
    "sizes": "i8",
    "durations": "i8",
    "peers": "i4",
    "tags": "i8",
    "streams": "i4",
    "first_dependency": "i8",
    "dependencies": "i8",
    "on_start": "?",
}


class StoredRanks(Sequence[Operations]):
    """The operations of each rank of a trace that the core stores; columns are made on access."""

    def __init__(self, core: _core.TraceGraph) -> None:
        """Stores the trace of the core."""
        self.core = core

    def __len__(self) -> int:
        """Returns the number of ranks."""
        return self.core.ranks

    @overload
    def __getitem__(self, rank: int) -> Operations: ...
    @overload
    def __getitem__(self, rank: slice) -> tuple[Operations, ...]: ...
    def __getitem__(self, rank: int | slice) -> Operations | tuple[Operations, ...]:
        """Returns the operations of a rank, or of several."""
        if isinstance(rank, slice):
            return tuple(self[each] for each in range(len(self))[rank])
        return Operations.from_columns(self.core.columns(range(len(self))[rank]))


@dataclass(frozen=True, kw_only=True)
class Trace:
    """The operations of all ranks.

    Attributes:
        name: The name, for results.
        ranks: The operations of each rank; `StoredRanks` if the core stores them.
        collectives: The distinct collectives that operations refer to.
        file: The file that it was read from, or "".
        line: Returns the line of an operation in the file by rank and index; None if unknown.
        cpu: The stream of each rank that is a CPU; empty if none is known to be.
    """

    name: str
    ranks: Sequence[Operations]
    collectives: tuple[CollectiveCall, ...] = ()
    file: str = field(default="", compare=False, repr=False)
    line: Callable[[int, int], int | None] | None = field(default=None, compare=False, repr=False)
    cpu: tuple[int, ...] = field(default=(), compare=False, repr=False)

    @property
    def operations(self) -> int:
        """The number of operations of all ranks."""
        stored = isinstance(self.ranks, StoredRanks)
        return self.core.operations if stored else sum(len(of) for of in self.ranks)

    @cached_property
    def core(self) -> _core.TraceGraph:
        """The trace in the core.

        Raises:
            WorkloadError: A value is out of range, or a collective has no messages.
        """
        if isinstance(self.ranks, StoredRanks):
            return self.ranks.core
        from tutti import _core

        return _core.TraceGraph.of_columns([of.columns() for of in self.ranks])

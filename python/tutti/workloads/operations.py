"""Traces: the sends, receives, computations and collectives of every rank, with dependencies.

A trace may have millions of operations, so that each rank stores its operations as columns. The
times and sizes are fixed, unlike those of a schedule.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Self

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

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
        named = zip(_TYPES, columns, strict=True)
        arrays: dict[str, Any] = {n: np.frombuffer(column, _TYPES[n]) for n, column in named}
        return cls(**arrays)

    def columns(self) -> tuple[bytes, ...]:
        """Returns the columns for the core, in the order of the attributes."""
        return tuple(
            np.asarray(getattr(self, name), kind).tobytes() for name, kind in _TYPES.items()
        )

    def replaced(self, **columns: Any) -> Self:  # noqa: ANN401 - each column has its type
        """Returns operations with other columns."""
        return replace(self, **columns)


_TYPES: dict[str, type[np.generic]] = {
    "kinds": np.uint8,
    "sizes": np.int64,
    "durations": np.int64,
    "peers": np.int32,
    "tags": np.int64,
    "streams": np.int32,
    "first_dependency": np.int64,
    "dependencies": np.int64,
    "on_start": np.bool_,
}


@dataclass(frozen=True, kw_only=True)
class Trace:
    """The operations of all ranks.

    Attributes:
        name: The name, for results.
        ranks: The operations of each rank.
        collectives: The distinct collectives that operations refer to.
        file: The file that it was read from, or "".
        line: Returns the line of an operation in the file by rank and index; None if unknown.
        cpu: The stream of each rank that is a CPU; empty if none is known to be.
    """

    name: str
    ranks: tuple[Operations, ...]
    collectives: tuple[CollectiveCall, ...] = ()
    file: str = field(default="", compare=False, repr=False)
    line: Callable[[int, int], int | None] | None = field(default=None, compare=False, repr=False)
    cpu: tuple[int, ...] = field(default=(), compare=False, repr=False)

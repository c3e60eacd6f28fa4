"""Builds custom schedules.

Examples:
    A custom schedule is written rank by rank; the builder groups the ops of a rank into steps:

    >>> builder = ScheduleBuilder("all_reduce", ranks=2)
    >>> for rank in range(2):
    ...     builder.rank(rank).send(1 - rank).recv(1 - rank, slot=1).reduce(0, [0, 1])
    <RankProgram of rank 0>
    <RankProgram of rank 1>
    >>> builder.build()
    <Schedule explicit: all_reduce on 2 ranks>
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from tutti import _core
from tutti.schedules.block_sizes import block_sizes
from tutti.schedules.errors import ScheduleError
from tutti.schedules.ir import Schedule

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.base.units import Time
    from tutti.schedules.block_sizes import Matrix


class ScheduleBuilder:
    """Builds a custom schedule, op by op.

    The ops of a rank are grouped into steps. In a step sends precede receives, and these precede
    local ops. An op that violates this order starts a new step, and so does a receive into chunks
    that the step sends. A multicast or contribution is a send, a combine is a receive and a
    reduction. A send followed by a receive is therefore an exchange.
    """

    __slots__ = ("_core", "_ranks")

    def __init__(
        self,
        collective: str,
        *,
        ranks: int,
        chunks: int | None = None,
        root: int = 0,
        name: str = "explicit",
        result: int = 0,
        blocks: str | Matrix | None = None,
    ) -> None:
        """Creates an empty schedule.

        Args:
            collective: The collective to perform, such as ``"all_reduce"``.
            ranks: The number of ranks.
            chunks: The number of equal chunks of the payload; 1 by default. An all_to_all_v has a
                chunk per block: ``source * ranks + destination``.
            root: The root of a rooted collective.
            name: The name in results.
            result: The slot that holds the result.
            blocks: The relative sizes of the blocks of an all_to_all_v, as in
                :func:`tutti.schedule`. Default: equal.

        Raises:
            AlgorithmError: The collective is unknown.
            LayoutError: The blocks are not a matrix of sizes for these ranks.
        """
        if chunks is None:
            chunks = ranks * ranks if collective == "all_to_all_v" else 1
        self._core = _core.ScheduleBuilder(name, collective, ranks, chunks, root=root)
        self._core.result(result)
        if blocks is not None:
            self._core.blocks(block_sizes(blocks, ranks))
        self._ranks = ranks

    def rank(self, rank: int) -> RankProgram:
        """Returns the program of a rank, to which ops are added.

        Raises:
            ScheduleError: The rank does not exist.
        """
        if not 0 <= rank < self._ranks:
            message = f"rank {rank} does not exist: the schedule has ranks 0 to {self._ranks - 1}"
            raise ScheduleError(message, kind="no_such_rank", fields={"rank": rank})
        return RankProgram(self._core, rank)

    def build(self) -> Schedule:
        """Returns the schedule, which is not verified yet.

        Raises:
            ScheduleError: An op is invalid; raised for the first one.
        """
        return Schedule(self._core.build())


class RankProgram:
    """The program of a rank; every method appends an op and returns the program.

    ``chunk=2`` selects one chunk, ``chunks=(0, 4)`` the chunks 0, 1, 2, 3; the default is chunk 0.
    Slot 0 holds the rank's data, the others are scratch.
    """

    __slots__ = ("_core", "_rank")

    def __init__(self, core: _core.ScheduleBuilder, rank: int) -> None:
        """Use :meth:`ScheduleBuilder.rank`."""
        self._core = core
        self._rank = rank

    def send(
        self,
        to: int,
        *,
        chunk: int | None = None,
        chunks: tuple[int, int] | None = None,
        slot: int = 0,
    ) -> Self:
        """Sends chunks of ``slot`` to rank ``to``."""
        self._core.send(self._rank, to, slot, _run(chunk, chunks))
        return self

    def recv(
        self,
        source: int,
        *,
        chunk: int | None = None,
        chunks: tuple[int, int] | None = None,
        slot: int = 0,
    ) -> Self:
        """Receives chunks from rank ``source`` into ``slot``."""
        self._core.recv(self._rank, source, slot, _run(chunk, chunks))
        return self

    def multicast(
        self,
        to: Sequence[int],
        *,
        chunk: int | None = None,
        chunks: tuple[int, int] | None = None,
        slot: int = 0,
    ) -> Self:
        """Sends chunks of ``slot`` to all ranks ``to``, as one message if the network forks it."""
        self._core.multicast(self._rank, to, slot, _run(chunk, chunks))
        return self

    def contribute(
        self,
        to: int,
        *,
        chunk: int | None = None,
        chunks: tuple[int, int] | None = None,
        slot: int = 0,
    ) -> Self:
        """Sends chunks of ``slot`` to rank ``to``, which combines them with other contributions."""
        self._core.contribute(self._rank, to, slot, _run(chunk, chunks))
        return self

    def combine(
        self,
        into: int,
        operands: Sequence[tuple[int, int | None]],
        *,
        chunk: int | None = None,
        chunks: tuple[int, int] | None = None,
    ) -> Self:
        """Receives contributions and reduces them into the slot ``into``.

        Each operand is a slot and the rank received into it, or None for data that the slot already
        holds.
        """
        self._core.combine(self._rank, into, operands, _run(chunk, chunks))
        return self

    def reduce(
        self,
        into: int,
        operands: Sequence[int],
        *,
        chunk: int | None = None,
        chunks: tuple[int, int] | None = None,
    ) -> Self:
        """Reduces the slots ``operands``, left to right, into the slot ``into``."""
        self._core.reduce(self._rank, into, operands, _run(chunk, chunks))
        return self

    def copy(
        self,
        slot: int,
        into: int,
        *,
        chunk: int | None = None,
        chunks: tuple[int, int] | None = None,
        to: int | None = None,
    ) -> Self:
        """Copies chunks of ``slot`` to ``into``, starting at chunk ``to``; by default in place."""
        run = _run(chunk, chunks)
        self._core.copy(self._rank, slot, run, into, run[0] if to is None else to)
        return self

    def compute(self, duration: str | Time) -> Self:
        """Performs work of the application, such as ``"1.5 us"``.

        Raises:
            UnitError: The duration cannot be parsed.
        """
        from tutti.base.units import Time

        self._core.compute(self._rank, Time.of_any(duration).ps)
        return self

    def sleep(self, duration: str | Time) -> Self:
        """Waits for a duration.

        Raises:
            UnitError: The duration cannot be parsed.
        """
        from tutti.base.units import Time

        self._core.sleep(self._rank, Time.of_any(duration).ps)
        return self

    def step(self, name: str = "") -> Self:
        """Starts a new step, with a name for drawings."""
        self._core.step(self._rank, name)
        return self

    def __repr__(self) -> str:
        return f"<RankProgram of rank {self._rank}>"


def _run(chunk: int | None, chunks: tuple[int, int] | None) -> tuple[int, int]:
    """Returns a range of chunks from either parameter."""
    if chunk is not None and chunks is not None:
        message = f"both chunk={chunk} and chunks={chunks} are given: expected one of them"
        raise ScheduleError(message, kind="no_such_chunks")
    if chunks is None:
        chunks = (chunk or 0, (chunk or 0) + 1)
    if chunks[0] < 0 or chunks[1] >= 1 << 32:
        message = f"chunks {chunks[0]} to {chunks[1]} do not exist: chunks count from 0"
        raise ScheduleError(message, kind="no_such_chunks")
    return chunks

"""Schedules: what every rank does, in which order, on which part of the payload.

A schedule is free of sizes: chunks are equal fractions of the payload. Its steps are laid out when
they are asked for, so a schedule of a million ranks costs nothing until someone walks it.

>>> ring = schedule("ring", collective="all_reduce", ranks=4)
>>> ring.steps(0)
6
>>> ring.ops(0, 0)[0]
send data[3] to 1

A schedule of one's own is written rank by rank; a rank's ops gather into steps by themselves:

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

from tutti import _core, display
from tutti.errors import AlgorithmError, ScheduleError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.topology import Routes, Topology
    from tutti.units import Time

__all__ = [
    "Op",
    "RankProgram",
    "Schedule",
    "ScheduleBuilder",
    "Verification",
    "algorithms",
    "schedule",
]

_MOST_RANKS = 2**32 - 1
"""The ids of ranks have 32 bits."""
Op = _core.Op
Verification = _core.Verification


class Schedule:
    """A collective algorithm laid out for a number of ranks: a stream of steps per rank."""

    __slots__ = ("_core", "_proof", "_whole")

    def __init__(self, core: _core.Schedule, whole: Schedule | None = None) -> None:
        """Wraps what the core laid out; use :func:`schedule` or a builder."""
        self._core = core
        self._whole = whole
        self._proof: Verification | None = None

    @property
    def name(self) -> str:
        """How it was asked for, in the notation ``name[:argument]``."""
        return self._core.name

    @property
    def collective(self) -> str:
        """The collective it performs, such as ``all_reduce``."""
        return self._core.collective

    @property
    def root(self) -> int | None:
        """The root of a rooted collective."""
        return self._core.root

    @property
    def ranks(self) -> int:
        """How many ranks take part."""
        return self._core.ranks

    @property
    def chunks(self) -> int:
        """How many equal chunks the payload is divided into."""
        return self._core.chunks

    @property
    def slots(self) -> int:
        """How many slots a rank needs: the data slot, then scratch."""
        return self._core.slots

    @property
    def result(self) -> int:
        """The slot that holds the result afterwards."""
        return self._core.result

    @property
    def moves_chunks(self) -> bool:
        """Whether chunks change places: then a size has to divide into equal ones."""
        return self._core.moves_chunks

    def steps(self, rank: int) -> int:
        """How many steps ``rank`` takes.

        Raises:
            ScheduleError: there is no such rank.
        """
        return self._core.steps(rank)

    def ops(self, rank: int, step: int) -> list[Op]:
        """The ops of one step: sends, then receives, then local ops, in order.

        Raises:
            ScheduleError: there is no such rank or step.
        """
        return self._core.ops(rank, step)

    def step_name(self, rank: int, step: int) -> str:
        """A short name for the step, for drawings and traces.

        Raises:
            ScheduleError: there is no such rank or step.
        """
        return self._core.step_name(rank, step)

    def verify(self) -> Verification:
        """Proves that it does what it is meant to do, whatever the timing.

        Every contribution arrives, each exactly once; sends and receives match; no rank waits for
        ever. The result states the buffering needed and which bits are reproducible. It is cached.

        Raises:
            VerificationError: it does not; the message says where and why.
        """
        if self._proof is None:
            self._proof = self._core.verify()
        return self._proof

    @property
    def is_verified(self) -> bool:
        """Whether :meth:`verify` has proved it."""
        return self._proof is not None

    @property
    def whole(self) -> Schedule:
        """The schedule whose proof holds for this one: itself, unless it is a phase or repeated."""
        return self if self._whole is None else self._whole

    @property
    def phases(self) -> int:
        """How many phases it has, between which the network may be set up anew; mostly one."""
        return self._core.phases

    def phase(self, index: int) -> Schedule:
        """One of its phases by itself, counted from 0.

        It can be simulated and drawn. Where there are others it cannot be verified alone, but as
        :attr:`whole`, and has no lower bound.

        Examples:
            >>> rings = schedule("mirrored_ring:4x4", ranks=16)
            >>> [rings.phase(i).steps(0) for i in range(rings.phases)]
            [3, 6, 3]

        Raises:
            ScheduleError: there is no such phase.
        """
        return Schedule(self._core.phase(index), whole=self.whole)

    def repeated(self, count: int) -> Schedule:
        """The same so many times in a row, as benchmarks run it.

        A rank begins again as soon as it has ended. The result cannot be verified as one
        collective, as each time works on what the last one left; :attr:`whole` can.

        Raises:
            ScheduleError: no time at all, or its result is in another slot than its data.
        """
        return Schedule(self._core.repeated(count), whole=self.whole)

    def to_text(self) -> str:
        """The text form: every op on its line, readable by people and by :meth:`from_text`."""
        return self._core.to_text()

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Reads the text form.

        Raises:
            TextError: the text is no schedule; the message names the line.
        """
        return cls(_core.Schedule.from_text(text))

    @property
    def core(self) -> _core.Schedule:
        """The core's schedule."""
        return self._core

    def __repr__(self) -> str:
        return f"<Schedule {self.name}: {self.collective} on {self.ranks} ranks>"

    def _repr_html_(self) -> str:
        """The ops of the first ranks and steps as a table, for notebooks."""
        return display.renderers().schedule_html(self)


class ScheduleBuilder:
    """Builds a schedule of one's own, op by op.

    A rank's ops gather into steps: within a step sends come first, then receives, then local ops;
    an op that would have to go back in that order starts a new step, and so does a receive into
    what the step sends. A multicast or contribution is a send, a combine a receive and a fold. What
    looks sequential is therefore sequential, and a send followed by a receive is an exchange.
    """

    __slots__ = ("_core", "_ranks")

    def __init__(
        self,
        collective: str,
        *,
        ranks: int,
        chunks: int = 1,
        root: int = 0,
        name: str = "explicit",
        result: int = 0,
    ) -> None:
        """Starts an empty schedule.

        Args:
            collective: what it is meant to do, such as ``"all_reduce"``.
            ranks: how many ranks take part.
            chunks: how many equal chunks the payload is divided into.
            root: the root of a rooted collective.
            name: its name in results.
            result: the slot that holds the result afterwards.

        Raises:
            AlgorithmError: there is no such collective.
        """
        self._core = _core.ScheduleBuilder(name, collective, ranks, chunks, root=root)
        self._core.result(result)
        self._ranks = ranks

    def rank(self, rank: int) -> RankProgram:
        """The program of one rank, to which ops are added.

        Raises:
            ScheduleError: there is no such rank.
        """
        if not 0 <= rank < self._ranks:
            message = f"there is no rank {rank}: the schedule has ranks 0 to {self._ranks - 1}"
            raise ScheduleError(message, kind="no_such_rank", fields={"rank": rank})
        return RankProgram(self._core, rank)

    def build(self) -> Schedule:
        """The schedule; it is not verified yet.

        Raises:
            ScheduleError: the first mistake that was made on the way.
        """
        return Schedule(self._core.build())


class RankProgram:
    """The program of one rank; every call adds an op at its end and returns the program.

    Chunks are given as ``chunk=2`` for one or ``chunks=(0, 4)`` for the run 0, 1, 2, 3; chunk 0
    otherwise. Slot 0 holds the rank's own data, the others are scratch.
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
        """Sends chunks of ``slot`` to each of the ranks ``to``; a network that can forks them."""
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
        """Sends chunks of ``slot`` to rank ``to``, which combines them with those of others."""
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
        """Receives what others contribute and folds it into the slot ``into``.

        Each operand is a slot and the rank received into it, None for what it holds already.
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
        """Folds the slots ``operands``, left to right, into the slot ``into``."""
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
        """Copies chunks of ``slot`` to ``into``, from chunk ``to`` on (the same chunks if None)."""
        run = _run(chunk, chunks)
        self._core.copy(self._rank, slot, run, into, run[0] if to is None else to)
        return self

    def compute(self, duration: str | Time) -> Self:
        """Does the application's own work, such as ``"1.5 us"`` of it.

        Raises:
            UnitError: the duration cannot be read.
        """
        from tutti.units import Time

        self._core.compute(self._rank, Time.of_any(duration).ps)
        return self

    def sleep(self, duration: str | Time) -> Self:
        """Waits.

        Raises:
            UnitError: the duration cannot be read.
        """
        from tutti.units import Time

        self._core.sleep(self._rank, Time.of_any(duration).ps)
        return self

    def step(self, name: str = "") -> Self:
        """Starts a new step, under a name for drawings."""
        self._core.step(self._rank, name)
        return self

    def __repr__(self) -> str:
        return f"<RankProgram of rank {self._rank}>"


def _run(chunk: int | None, chunks: tuple[int, int] | None) -> tuple[int, int]:
    """A run of chunks from either way to give it."""
    if chunk is not None and chunks is not None:
        message = f"both chunk={chunk} and chunks={chunks} are given: expected one of them"
        raise ScheduleError(message, kind="no_such_chunks")
    if chunks is None:
        chunks = (chunk or 0, (chunk or 0) + 1)
    if chunks[0] < 0 or chunks[1] >= 1 << 32:
        message = f"there are no chunks {chunks[0]} to {chunks[1]}: they count from 0"
        raise ScheduleError(message, kind="no_such_chunks")
    return chunks


def schedule(
    algorithm: str,
    *,
    ranks: int,
    collective: str = "all_reduce",
    root: int = 0,
    topology: Topology | Routes | None = None,
) -> Schedule:
    """Lays out an algorithm.

    >>> schedule("multi_tree:torus:4x4", ranks=16, collective="all_gather").chunks
    16

    Args:
        algorithm: its notation, ``name[:argument]``, such as ``"recursive_multiplying:a8,a4"``.
        ranks: how many ranks take part; at least two.
        collective: what it is to perform.
        root: the root of a rooted collective.
        topology: the graph for an algorithm that is made for one and does not name it, by its
            shortest paths or by the routes that are given; its first NPUs are the ranks. Other
            algorithms do not look at it.

    Raises:
        AlgorithmError: the name, the argument, the collective or the rank count does not fit.
    """
    check_ranks(ranks)
    if root < 0 or root > _MOST_RANKS:
        message = f"root {root} is not one of the ranks 0 to {ranks - 1}"
        raise AlgorithmError(message, kind="wrong_root")
    met = None
    if topology is not None:
        from tutti.topology import Topology

        met = (topology.routes() if isinstance(topology, Topology) else topology).core
    return Schedule(_core.build_schedule(algorithm, collective, ranks, root=root, routes=met))


_ARGUMENTS: dict[str, tuple[str, ...]] = {
    # Ratios of alpha_p to alpha_r; bytes count like alpha_r, so long messages want pairs.
    "recursive_multiplying": ("", "ratio=1", "ratio=2", "ratio=8", "ratio=16"),
}
"""What follows the colon when all algorithms are asked for; for others only the default."""

_MOST_ON_GRAPHS = 256
"""Ranks; beyond it those that are made for a graph take longer to lay out than people wait."""


def candidates(
    collective: str, ranks: int, *, root: int = 0, routes: Routes | None = None
) -> list[str]:
    """The notations that are tried when all algorithms are asked for.

    Some may choose the same schedule. Those made for a graph are tried where there is one.

    Raises:
        AlgorithmError: no number of ranks that there can be.
    """
    check_ranks(ranks)
    found = []
    most = min(routes.topology.ranks, _MOST_ON_GRAPHS) if routes is not None else 0
    for entry in _core.algorithms():
        if entry.for_graphs:
            if routes is not None and collective in entry.collectives and 2 <= ranks <= most:
                found.append(entry.name)
        elif entry.claims(collective, ranks, root=root):
            arguments = _ARGUMENTS.get(entry.name, ("",))
            found += [f"{entry.name}:{a}" if a else entry.name for a in arguments]
    return found


def check_ranks(ranks: int) -> None:
    """Refuses rank counts that the core has no numbers for.

    Raises:
        AlgorithmError: fewer than no ranks, or more than ids can count.
    """
    if ranks < 0:
        message = f"a collective needs at least 2 ranks, not {ranks}"
        raise AlgorithmError(message, kind="too_few_ranks")
    if ranks > _MOST_RANKS:
        message = f"{ranks} ranks are more than ids can count: expected at most {_MOST_RANKS}"
        raise AlgorithmError(message, kind="too_many_ranks")


def algorithms() -> list[_core.Algorithm]:
    """Every algorithm there is, with its summary, source, collectives and rank counts."""
    return _core.algorithms()

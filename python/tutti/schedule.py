"""Schedules: the ops of every rank, their order, and the chunks of the payload that they use.

A schedule is independent of sizes: chunks are equal fractions of the payload. Steps are generated
on access, so that a schedule of a million ranks takes no memory.

Examples:
    >>> ring = schedule("ring", collective="all_reduce", ranks=4)
    >>> ring.steps(0)
    6
    >>> ring.ops(0, 0)[0]
    send data[3] to 1

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

_MOST_RANKS = 2**32 - 1  # rank ids have 32 bits
Op = _core.Op
Verification = _core.Verification


class Schedule:
    """A collective algorithm for a number of ranks: a sequence of steps per rank."""

    __slots__ = ("_base", "_core", "_proof")

    def __init__(self, core: _core.Schedule, base: Schedule | None = None) -> None:
        """Wraps a schedule of the core; use :func:`schedule` or a builder."""
        self._core = core
        self._base = base
        self._proof: Verification | None = None

    @property
    def name(self) -> str:
        """The notation ``name[:argument]`` of the schedule."""
        return self._core.name

    @property
    def collective(self) -> str:
        """The collective that the schedule performs, such as ``all_reduce``."""
        return self._core.collective

    @property
    def root(self) -> int | None:
        """The root of a rooted collective."""
        return self._core.root

    @property
    def ranks(self) -> int:
        """The number of ranks."""
        return self._core.ranks

    @property
    def chunks(self) -> int:
        """The number of equal chunks of the payload."""
        return self._core.chunks

    @property
    def slots(self) -> int:
        """The number of slots of a rank: the data slot, then scratch."""
        return self._core.slots

    @property
    def result(self) -> int:
        """The slot that holds the result."""
        return self._core.result

    @property
    def moves_chunks(self) -> bool:
        """Whether chunks change position, which requires sizes that divide into equal chunks."""
        return self._core.moves_chunks

    def steps(self, rank: int) -> int:
        """Returns the number of steps of ``rank``.

        Raises:
            ScheduleError: The rank does not exist.
        """
        return self._core.steps(rank)

    def ops(self, rank: int, step: int) -> list[Op]:
        """Returns the ops of a step: sends, then receives, then local ops, in order.

        Raises:
            ScheduleError: The rank or the step does not exist.
        """
        return self._core.ops(rank, step)

    def step_name(self, rank: int, step: int) -> str:
        """Returns a short name of a step, for drawings and traces.

        Raises:
            ScheduleError: The rank or the step does not exist.
        """
        return self._core.step_name(rank, step)

    def verify(self) -> Verification:
        """Verifies the schedule for any timing.

        Every contribution arrives exactly once, sends and receives match, and no rank waits
        forever. The result states the required buffering and which bits are reproducible. It is
        cached.

        Raises:
            VerificationError: The schedule is not correct; the message states place and cause.
        """
        if self._proof is None:
            self._proof = self._core.verify()
        return self._proof

    @property
    def is_verified(self) -> bool:
        """Whether :meth:`verify` has succeeded."""
        return self._proof is not None

    @property
    def base(self) -> Schedule:
        """The schedule that is verified for this one: itself, unless it is a phase or repeated."""
        return self if self._base is None else self._base

    @property
    def phases(self) -> int:
        """The number of phases, between which the network may be reconfigured; usually one."""
        return self._core.phases

    def phase(self, index: int) -> Schedule:
        """Returns a phase as a schedule; phases count from 0.

        A phase can be simulated and drawn. If there are several, a phase can be verified only as
        part of :attr:`base`, and has no lower bound.

        Examples:
            >>> rings = schedule("mirrored_ring:4x4", ranks=16)
            >>> [rings.phase(i).steps(0) for i in range(rings.phases)]
            [3, 6, 3]

        Raises:
            ScheduleError: The phase does not exist.
        """
        return Schedule(self._core.phase(index), base=self.base)

    def repeated(self, count: int) -> Schedule:
        """Returns the schedule repeated `count` times without a barrier, as in benchmarks.

        The repetitions cannot be verified as a collective, as each works on the result of the
        previous one; :attr:`base` can be.

        Raises:
            ScheduleError: `count` is zero, or the result is in another slot than the data.
        """
        return Schedule(self._core.repeated(count), base=self.base)

    def to_text(self) -> str:
        """Returns the text form, with one op per line, which :meth:`from_text` reads."""
        return self._core.to_text()

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Reads the text form.

        Raises:
            TextError: The text is not a schedule; the message names the line.
        """
        return cls(_core.Schedule.from_text(text))

    @property
    def core(self) -> _core.Schedule:
        """The core's schedule."""
        return self._core

    def __repr__(self) -> str:
        return f"<Schedule {self.name}: {self.collective} on {self.ranks} ranks>"

    def _repr_html_(self) -> str:
        """The HTML for notebooks: a table of the ops of the first ranks and steps."""
        return display.renderers().schedule_html(self)


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
        chunks: int = 1,
        root: int = 0,
        name: str = "explicit",
        result: int = 0,
    ) -> None:
        """Creates an empty schedule.

        Args:
            collective: The collective to perform, such as ``"all_reduce"``.
            ranks: The number of ranks.
            chunks: The number of equal chunks of the payload.
            root: The root of a rooted collective.
            name: The name in results.
            result: The slot that holds the result.

        Raises:
            AlgorithmError: The collective is unknown.
        """
        self._core = _core.ScheduleBuilder(name, collective, ranks, chunks, root=root)
        self._core.result(result)
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
        from tutti.units import Time

        self._core.compute(self._rank, Time.of_any(duration).ps)
        return self

    def sleep(self, duration: str | Time) -> Self:
        """Waits for a duration.

        Raises:
            UnitError: The duration cannot be parsed.
        """
        from tutti.units import Time

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


def schedule(
    algorithm: str,
    *,
    ranks: int,
    collective: str = "all_reduce",
    root: int = 0,
    topology: Topology | Routes | None = None,
) -> Schedule:
    """Returns the schedule of an algorithm.

    Args:
        algorithm: The notation ``name[:argument]``, such as ``"recursive_multiplying:a8,a4"``.
        ranks: The number of ranks; at least two.
        collective: The collective to perform.
        root: The root of a rooted collective.
        topology: The graph of an algorithm for graphs whose notation names none, with shortest
            paths or the given routes. Its first NPUs are the ranks. Other algorithms ignore it.

    Examples:
        >>> schedule("multi_tree:torus:4x4", ranks=16, collective="all_gather").chunks
        16

    Raises:
        AlgorithmError: The name, the argument, the collective or the rank count does not fit.
    """
    check_ranks(ranks)
    if root < 0 or root > _MOST_RANKS:
        message = f"root {root} is not one of the ranks 0 to {ranks - 1}"
        raise AlgorithmError(message, kind="wrong_root")
    routes = None
    if topology is not None:
        from tutti.topology import Topology

        routes = (topology.routes() if isinstance(topology, Topology) else topology).core
    return Schedule(_core.build_schedule(algorithm, collective, ranks, root=root, routes=routes))


_ARGUMENTS: dict[str, tuple[str, ...]] = {
    # Ratios of alpha_p to alpha_r; bytes count like alpha_r, so long messages favour pairs.
    "recursive_multiplying": ("", "ratio=1", "ratio=2", "ratio=8", "ratio=16"),
}
"""Arguments of algorithms in `candidates`; other algorithms use only the default."""

_MOST_ON_GRAPHS = 256  # ranks; generating algorithms for graphs takes too long beyond


def candidates(
    collective: str, ranks: int, *, root: int = 0, routes: Routes | None = None
) -> list[str]:
    """Returns the notations of all algorithms for a collective and rank count.

    Some may select the same schedule. Algorithms for graphs are included if `routes` is given.

    Raises:
        AlgorithmError: The rank count is out of range.
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
    """Rejects rank counts that the core cannot represent.

    Raises:
        AlgorithmError: The rank count is negative, or exceeds the largest rank id.
    """
    if ranks < 0:
        message = f"a collective needs at least 2 ranks, not {ranks}"
        raise AlgorithmError(message, kind="too_few_ranks")
    if ranks > _MOST_RANKS:
        message = f"{ranks} ranks are too many: expected at most {_MOST_RANKS}"
        raise AlgorithmError(message, kind="too_many_ranks")


def algorithms() -> list[_core.Algorithm]:
    """Returns all algorithms, with summary, source, collectives and rank counts."""
    return _core.algorithms()

"""Schedules: the ops of every rank, their order, and the chunks of the payload that they use.

A schedule is independent of sizes: chunks are fractions of the payload, equal except in an
all_to_all_v. Steps are generated on access, so that a schedule of a million ranks takes no memory.

Examples:
    >>> ring = schedule("ring", collective="all_reduce", ranks=4)
    >>> ring.steps(0)
    6
    >>> ring.ops(0, 0)[0]
    send data[3] to 1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from tutti import _core
from tutti.schedules.block_sizes import block_sizes
from tutti.schedules.errors import AlgorithmError
from tutti.schedules.mpi_names import algorithm_name, collective_name

if TYPE_CHECKING:
    from tutti.schedules.block_sizes import Matrix
    from tutti.topologies import Routes, Topology

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
        """The number of chunks of the payload, equal unless the schedule has :attr:`blocks`."""
        return self._core.chunks

    @property
    def blocks(self) -> list[list[int]] | None:
        """The relative sizes of the blocks of an all_to_all_v, a row per source; else None.

        The payload's size is that of the largest row. With the sum of that row as the size, sizes
        of blocks are bytes.
        """
        return self._core.blocks

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

    def concurrent(self, channels: int, run: int = 1) -> Schedule:
        """Returns the schedule with channels that progress concurrently, as thread blocks of a GPU.

        A rank's next ops in a channel do not wait for its ops in other channels. Verification does
        not change.

        Args:
            channels: The number of channels.
            run: The chunks that a channel takes at a time: chunk c is in channel c / run, modulo
                their number.

        Raises:
            ScheduleError: The channels do not divide the chunks, or an op belongs to several.
        """
        return Schedule(self._core.concurrent(channels, run), base=self.base)

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

    def data_flow(self) -> str:
        """Returns a text of its messages and their dependencies, without names of chunks and steps.

        Schedules with equal texts take equal times in a training step.

        Raises:
            SimulationError: The schedule has no data flow.
        """
        return self._core.data_flow()

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
        """The HTML for notebooks: an animation of the messages, and the ops of the first ranks."""
        from tutti.schedules.view.notebook import schedule_html

        return schedule_html(self)


def schedule(
    algorithm: str,
    *,
    ranks: int,
    collective: str = "all_reduce",
    root: int = 0,
    topology: Topology | Routes | None = None,
    blocks: str | Matrix | None = None,
) -> Schedule:
    """Returns the schedule of an algorithm.

    Args:
        algorithm: The notation ``name[:argument]``, such as ``"recursive_multiplying:a8,a4"``, or a
            name of MPI libraries, such as ``"rabenseifner"``.
        ranks: The number of ranks; at least two.
        collective: The collective to perform; MPI's names, such as MPI_Bcast, are accepted.
        root: The root of a rooted collective.
        topology: The graph of an algorithm for graphs whose notation names none, with shortest
            paths or the given routes. Its first NPUs are the ranks. Other algorithms ignore it.
        blocks: The relative sizes of the blocks of an all_to_all_v, from each rank to each rank: a
            matrix of integers, or a text of :func:`tutti.schedules.block_sizes.block_sizes`.
            Default: equal.

    Examples:
        >>> schedule("multi_tree:torus:4x4", ranks=16, collective="all_gather").chunks
        16
        >>> blocks = [[0, 300], [100, 0]]
        >>> schedule("direct", ranks=2, collective="all_to_all_v", blocks=blocks).verify().messages
        2

    Raises:
        AlgorithmError: The name, the argument, the collective or the rank count does not fit.
        LayoutError: The blocks are not a matrix of sizes for these ranks.
        ConfigError: The file of blocks is invalid.
    """
    check_ranks(ranks)
    collective = collective_name(collective)
    algorithm = algorithm_name(algorithm, collective)
    if blocks is not None:
        if collective != "all_to_all_v":
            message = f"{collective} has equal chunks: expected all_to_all_v with blocks"
            raise AlgorithmError(message, kind="wrong_collective")
        return Schedule(_core.build_blocks(algorithm, ranks, block_sizes(blocks, ranks)))
    if root < 0 or root > _MOST_RANKS:
        message = f"root {root} is not one of the ranks 0 to {ranks - 1}"
        raise AlgorithmError(message, kind="wrong_root")
    routes = None
    if topology is not None:
        from tutti.topologies import Topology

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

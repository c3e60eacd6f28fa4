"""Programs: collectives as statements on chunks, in the spirit of MSCCLang."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from tutti import _core
from tutti.schedules.block_sizes import block_sizes
from tutti.schedules.errors import AlgorithmError, VerificationError
from tutti.schedules.ir import check_ranks
from tutti.schedules.language.chunk import Chunk
from tutti.schedules.language.compiler import compile_program
from tutti.schedules.language.record import Record, program_error
from tutti.schedules.language.trace import Location, Region, Statement, caller

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.base.units import Time
    from tutti.schedules.block_sizes import Matrix
    from tutti.schedules.ir import Schedule


class RankGroup:
    """Some ranks of a program and a range of its chunks, both renumbered from 0.

    A function that takes a group applies to a complete program too, as a program is a group.
    """

    def __init__(
        self, record: Record, ranks: tuple[int, ...], *, start: int, chunks: int, scale: int
    ) -> None:
        """Use :meth:`group`."""
        self._record = record
        self._ranks = ranks
        self._start = start
        self._chunks = chunks
        self._scale = scale

    @property
    def ranks(self) -> int:
        """The number of ranks."""
        return len(self._ranks)

    @property
    def chunks(self) -> int:
        """The number of chunks of a buffer."""
        return self._chunks

    def chunk(self, rank: int, index: int = 0, *, count: int = 1, buffer: str = "data") -> Chunk:
        """Returns a reference to chunks.

        Args:
            rank: The rank.
            index: The first chunk.
            count: The number of consecutive chunks.
            buffer: The buffer: ``"data"``, or a scratch buffer by any other name. Each rank has
                one of a name, with as many chunks as the data.

        Raises:
            ProgramError: The rank or the chunks do not exist.
        """
        region = self._region(rank, index, count, buffer, caller())
        return Chunk(self, region, self._record.versions(region))

    def group(
        self,
        ranks: Sequence[int],
        *,
        chunks: int | None = None,
        within: tuple[int, int] | None = None,
    ) -> RankGroup:
        """Returns a group of ranks on a range of chunks, for algorithms within a hierarchy.

        Args:
            ranks: The ranks of this group that become 0, 1, and so on.
            chunks: The number of chunks of the new group, into which the range is divided. By
                default as many as are in the range.
            within: The range of chunks of this group, from start to before the end. Default: all.

        Raises:
            ProgramError: A rank or the range does not exist, or does not divide equally.
        """
        location = caller()
        members = tuple(self._rank(each, location) for each in ranks)
        start, end = (0, self._chunks) if within is None else within
        inner = self._region(ranks[0] if ranks else 0, start, end - start, "data", location)
        length = inner.end - inner.start
        chunks = end - start if chunks is None else chunks
        if not members or len(set(members)) != len(members) or chunks < 1 or length % chunks:
            problem = f"ranks {list(ranks)} on chunks {start}..{end} in {chunks} chunks"
            raise program_error("group", location, problem)
        scale = length // chunks
        return RankGroup(self._record, members, start=inner.start, chunks=chunks, scale=scale)

    def perform(self, schedule: Schedule) -> None:
        """Executes a schedule on the ranks and chunks of the group, such as a built-in algorithm.

        Raises:
            ProgramError: The ranks, the chunks or the result buffer of the schedule do not fit.
            VerificationError: The schedule is not correct.
        """
        from tutti.schedules.language.performing import perform

        perform(self, schedule, caller())

    def step(self, name: str = "") -> None:
        """Starts a step: later statements come after earlier ones on each rank of the group.

        Ranks are not synchronised.

        Args:
            name: The name in drawings and traces.

        Raises:
            ProgramError: An exchange is open.
        """
        self._record.start_step(name, self._ranks, caller())

    def exchange(self) -> Exchange:
        """Returns a context in which all statements read the values before it.

        The statements are concurrent and form one step of each rank.

        Raises:
            ProgramError: An exchange is already open.
        """
        return Exchange(self._record)

    def compute(self, rank: int, duration: str | Time) -> None:
        """Performs work of the application on a rank, such as ``"1.5 us"``.

        Raises:
            ProgramError: The rank does not exist.
            UnitError: The duration cannot be parsed.
        """
        self._work("compute", rank, duration, caller())

    def sleep(self, rank: int, duration: str | Time) -> None:
        """Waits on a rank for a duration.

        Raises:
            ProgramError: The rank does not exist.
            UnitError: The duration cannot be parsed.
        """
        self._work("sleep", rank, duration, caller())

    def _work(self, kind: str, rank: int, duration: str | Time, location: Location) -> None:
        from tutti.base.units import Time

        picoseconds = Time.of_any(duration).ps
        at = self._rank(rank, location)
        self._record.add(
            Statement(
                "compute" if kind == "compute" else "sleep",
                location,
                duration_ps=picoseconds,
                rank=at,
            )
        )

    def _rank(self, rank: int, location: Location) -> int:
        if not 0 <= rank < len(self._ranks):
            problem = f"rank {rank} does not exist: expected 0 to {len(self._ranks) - 1}"
            raise program_error("no_such_rank", location, problem)
        return self._ranks[rank]

    def _region(self, rank: int, index: int, count: int, buffer: str, location: Location) -> Region:
        at = self._rank(rank, location)
        if index < 0 or count < 0 or index + count > self._chunks:
            problem = f"chunks {index}..{index + count} do not exist: expected 0..{self._chunks}"
            raise program_error("no_such_chunks", location, problem)
        start = self._start + index * self._scale
        return Region(at, self._record.buffer(buffer), start, start + count * self._scale)

    def _index(self, start: int) -> int:
        return (start - self._start) // self._scale

    def _count(self, region: Region) -> int:
        return (region.end - region.start) // self._scale


class Exchange:
    """Statements that read the values before all of them."""

    __slots__ = ("_record",)

    def __init__(self, record: Record) -> None:
        """Use :meth:`RankGroup.exchange`."""
        self._record = record

    def __enter__(self) -> None:
        self._record.start_exchange(caller())

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._record.end_exchange()


class Program(RankGroup):
    """A collective as statements on chunks, which compile to a verified schedule.

    The order of the statements defines the values. The compiler executes statements concurrently
    unless one depends on another: each message is sent and received in the first step in which
    both ranks can, and a rank's sends and receives of a step are an exchange.

    Examples:
        A ring: each rank passes a chunk on, first to reduce and then to copy.

        >>> with Program("all_reduce", ranks=4, chunks=4, name="my_ring") as program:
        ...     for step in range(6):
        ...         for rank in range(4):
        ...             chunk = program.chunk(rank, (rank - step) % 4)
        ...             if step < 3:
        ...                 _ = program.chunk((rank + 1) % 4, chunk.index).reduce(chunk)
        ...             else:
        ...                 _ = chunk.copy((rank + 1) % 4)
        >>> program.schedule
        <Schedule my_ring: all_reduce on 4 ranks>

    Source:
        M. Cowan et al., "MSCCLang: Microsoft Collective Communication Language", ASPLOS 2023.
    """

    def __init__(
        self,
        collective: str,
        *,
        ranks: int,
        chunks: int | None = None,
        root: int = 0,
        name: str = "program",
        result: str = "data",
        instances: int = 1,
        pipelined: bool = False,
        explicit_steps: bool = False,
        blocks: str | Matrix | None = None,
    ) -> None:
        """Creates an empty program; statements follow in its ``with`` block.

        Args:
            collective: The collective, such as ``"all_reduce"``.
            ranks: The number of ranks.
            chunks: The number of chunks of each buffer. Default: 1, or one per rank for
                collectives with shards, or one per block of an all_to_all_v.
            root: The root of a rooted collective.
            name: The name in results.
            result: The buffer that holds the result.
            instances: The number of parts into which each chunk is divided. Every statement is
                executed once for each part.
            pipelined: Whether statements without a channel use channel 0, so that parts follow
                each other. Otherwise parts are concurrent.
            explicit_steps: Whether the statements between two calls of :meth:`step` are one step
                of a rank, unless one depends on another. Otherwise each statement is in the first
                possible step.
            blocks: The relative sizes of the blocks of an all_to_all_v, as in
                :func:`tutti.schedule`. Default: equal.

        Raises:
            AlgorithmError: The collective, the number of ranks or the root does not fit.
            LayoutError: The blocks are not a matrix of sizes for these ranks.
            ProgramError: `instances` or `chunks` is not positive, or blocks have instances.
        """
        check_ranks(ranks)
        _check_collective(collective, ranks, root)
        chunks = _chunks(collective, ranks) if chunks is None else chunks
        if chunks < 1 or instances < 1 or (collective == "all_to_all_v" and instances > 1):
            problem = f"{collective} with {chunks} chunks and {instances} instances"
            raise program_error("shape", caller(), problem)
        record = Record(collective, ranks=ranks, chunks=chunks, root=root)
        super().__init__(record, tuple(range(ranks)), start=0, chunks=chunks, scale=1)
        self.collective = collective
        self.root = root
        self.name = name
        self.instances = instances
        self.pipelined = pipelined
        self.explicit_steps = explicit_steps
        self._result = record.buffer(result)
        self._blocks = None if blocks is None else block_sizes(blocks, ranks)
        self._schedule: Schedule | None = None

    @property
    def schedule(self) -> Schedule:
        """The verified schedule.

        Raises:
            ProgramError: The ``with`` block has not ended.
        """
        if self._schedule is None:
            raise program_error("not_finished", caller(), "the program has no schedule yet")
        return self._schedule

    def __enter__(self) -> Self:
        if self._schedule is not None:
            raise program_error("closed", caller(), "the program is already complete")
        self._record.is_open = True
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Compiles and verifies the program, unless an exception ends the block.

        Raises:
            ProgramError: A message is never received.
            VerificationError: The result is not that of the collective.
        """
        self._record.is_open = False
        if kind is not None:
            return
        self._record.check_received()
        schedule = compile_program(
            self._record,
            _core.ScheduleBuilder(
                self.name, self.collective, self.ranks, self.chunks * self.instances, root=self.root
            ),
            result=self._result,
            blocks=self._blocks,
            instances=self.instances,
            pipelined=self.pipelined,
            explicit_steps=self.explicit_steps,
        )
        try:
            schedule.verify()
        except VerificationError as refused:
            raise self._located(refused) from None
        self._schedule = schedule

    def _located(self, error: VerificationError) -> VerificationError:
        """Returns the error with the line that last wrote the chunk."""
        rank, chunk = error.fields.get("rank"), error.fields.get("chunk")
        if not isinstance(rank, int) or not isinstance(chunk, int):
            return error
        index = chunk // self.instances
        writer = self._record.writer(rank, self._result, index)
        fields = dict(error.fields)
        name = f"chunk {index} of the program" if self.instances > 1 else "it"
        if writer is None:
            problem = f"{error.problem}; no statement writes {name}"
        else:
            problem = f"{error.problem}; {writer} wrote {name} last"
            fields |= {"file": writer.file, "line": writer.line}
        return VerificationError(problem, kind=error.kind, hint=error.hint, fields=fields)


def _chunks(collective: str, ranks: int) -> int:
    if collective == "all_to_all_v":
        return ranks * ranks
    shards = {"all_gather", "all_to_all", "gather", "reduce_scatter", "scatter"}
    return ranks if collective in shards else 1


def _check_collective(collective: str, ranks: int, root: int) -> None:
    known = _core.collectives()
    if collective not in known:
        problem = f"unknown collective `{collective}`: expected one of {', '.join(known)}"
        raise AlgorithmError(
            problem,
            kind="unknown_collective",
            fields={"name": collective, "known": ", ".join(known)},
        )
    if not 0 <= root < max(ranks, 1):
        problem = f"root {root} is not one of the ranks 0 to {ranks - 1}"
        raise AlgorithmError(problem, kind="wrong_root")

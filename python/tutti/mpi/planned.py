"""Schedules and rules of plans."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Self

from tutti import _core
from tutti.mpi import code
from tutti.mpi.errors import PlanError
from tutti.mpi.lowering import Lowering
from tutti.mpi.rendezvous import deferred, joined, needs_buffers

if TYPE_CHECKING:
    from tutti.schedules.ir import Schedule

COLLECTIVES: Final = tuple(name for name in _core.collectives() if name != "all_to_all_v")
"""The index of a collective is its number in the file. Plans hold no sizes of blocks."""

RANK_ORDER: Final = 1
MOVES_CHUNKS: Final = 2
WRITES_DATA: Final = 4
SAME_ON_ALL: Final = 8
PENDING_SENDS: Final = 16
SAME_ORDER: Final = 32

MOST_CHUNKS: Final = 2**28
MOST_SLOTS: Final = 2**20
"""Keeps sums below 2^32."""

NO_END: Final = 2**64 - 1
"""The upper end of an unlimited rule's sizes, in the file."""


@dataclass(frozen=True)
class PlannedSchedule:
    """A schedule in a plan.

    Attributes:
        name: In the algorithm notation.
        collective: The collective that it performs.
        ranks: Number of ranks.
        chunks: Number of chunks of the payload.
        slots: Number of slots of a rank: the data slot, then scratch.
        result: The slot that holds the result afterwards.
        flags: Bits of its properties, such as `RANK_ORDER`.
        codes: The code of each rank.
    """

    name: str
    collective: str
    ranks: int
    chunks: int
    slots: int
    result: int
    flags: int
    codes: tuple[bytes, ...] = field(repr=False)

    @classmethod
    def of(cls, schedule: Schedule) -> Self:
        """Verifies a schedule, and lowers it to the ops of plans.

        Raises:
            VerificationError: It does not perform its collective.
            PlanError: It is an all_to_all_v, or it has a root other than 0, compute or sleep ops,
                or too many chunks or slots.
        """
        if schedule.collective not in COLLECTIVES:
            message = f"{schedule.name}: {schedule.collective} has sizes of blocks: plans hold none"
            raise PlanError(message, kind="blocks", fields={"collective": schedule.collective})
        if schedule.root:
            message = f"{schedule.name}: root {schedule.root}: expected 0, as in all plans"
            raise PlanError(message, kind="root", fields={"root": schedule.root})
        _check_limits(schedule)
        proof = schedule.verify()
        lowering = Lowering(schedule)
        flags = (
            RANK_ORDER * proof.rank_order
            + MOVES_CHUNKS * lowering.moves_chunks
            + WRITES_DATA * lowering.writes_data
            + SAME_ON_ALL * proof.same_on_all_ranks
            + SAME_ORDER * proof.same_order_on_all_ranks
        )
        planned = cls(schedule.name, schedule.collective, schedule.ranks, schedule.chunks,
                      schedule.slots, schedule.result, flags, lowering.codes)  # fmt: skip
        return planned if proof.rendezvous_safe else planned._without_deadlocks()

    def _without_deadlocks(self) -> Self:
        """Returns a schedule that does not deadlock if sends are not buffered."""
        programs = [joined(self.steps(rank)) for rank in range(self.ranks)]
        flags = self.flags
        if needs_buffers(programs):
            programs = deferred(programs)
            flags += PENDING_SENDS
        return replace(self, flags=flags, codes=tuple(map(code.encoded, programs)))

    @property
    def rank_order(self) -> bool:
        """Whether contributions are combined in rank order."""
        return bool(self.flags & RANK_ORDER)

    @property
    def moves_chunks(self) -> bool:
        """Whether chunks are copied to other indices: then all chunks must be equal."""
        return bool(self.flags & MOVES_CHUNKS)

    @property
    def writes_data(self) -> bool:
        """Whether an op writes to the data slot."""
        return bool(self.flags & WRITES_DATA)

    @property
    def same_on_all_ranks(self) -> bool:
        """Whether results are bitwise identical on all ranks if operands may be exchanged."""
        return bool(self.flags & SAME_ON_ALL)

    @property
    def same_order_on_all_ranks(self) -> bool:
        """Whether results are bitwise identical on all ranks for any operation."""
        return bool(self.flags & SAME_ORDER)

    @property
    def bits_differ(self) -> bool:
        """Whether ranks that share a result may get different bits of inexact operations."""
        return self.collective == "all_reduce" and not self.same_on_all_ranks

    @property
    def pending_sends(self) -> bool:
        """Whether sends may be pending beyond their step, because receivers expect them later."""
        return bool(self.flags & PENDING_SENDS)

    def steps(self, rank: int) -> list[code.PlannedStep]:
        """Decodes the steps of a rank.

        Raises:
            PlanError: The rank does not exist, or its code is invalid.
        """
        if not 0 <= rank < self.ranks:
            message = f"{self.name}: rank {rank}: expected 0 to {self.ranks - 1}"
            raise PlanError(message, kind="no_such_schedule", fields={"rank": rank})
        place = f"schedule {self.name} for {self.ranks} ranks"
        bounds = code.Bounds(rank, self.ranks, self.slots, self.chunks, place,
                             self.moves_chunks, self.pending_sends)  # fmt: skip
        return code.decoded(self.codes[rank], bounds)

    def __repr__(self) -> str:
        return f"<PlannedSchedule {self.name}: {self.collective} on {self.ranks} ranks>"


def _check_limits(schedule: Schedule) -> None:
    for what, has, most in (
        ("chunks", schedule.chunks, MOST_CHUNKS),
        ("slots", schedule.slots, MOST_SLOTS),
    ):
        if has > most:
            message = f"{schedule.name}: {has} {what}: expected at most {most} in a plan"
            raise PlanError(message, kind="too_large", fields={what: has})


@dataclass(frozen=True)
class Rule:
    """A schedule, and the calls that it performs.

    Attributes:
        collective: Such as ``"all_reduce"``.
        ranks: Number of ranks of the communicator.
        schedule: A schedule, or a planned one of another plan.
        sizes: Smallest and largest size in bytes, inclusive, by the collective's convention
            (all_gather and reduce_scatter: all shards together); None for no upper limit.
    """

    collective: str
    ranks: int
    schedule: Schedule | PlannedSchedule
    sizes: tuple[int, int | None] = (0, None)

    def __post_init__(self) -> None:
        """Checks the rule.

        Raises:
            PlanError: The schedule performs another collective, or the sizes are invalid.
        """
        if self.collective not in COLLECTIVES:
            fields = {"name": self.collective, "known": ", ".join(COLLECTIVES)}
            message = f"unknown collective `{self.collective}`: expected one of {fields['known']}"
            raise PlanError(message, kind="rule", fields=fields)
        rule = (self.collective, self.ranks)
        laid_out = (self.schedule.collective, self.schedule.ranks)
        if rule != laid_out:
            message = (
                f"a rule for {rule[0]} on {rule[1]} ranks with schedule {self.schedule.name}, "
                f"which performs {laid_out[0]} on {laid_out[1]}"
            )
            raise PlanError(message, kind="rule")
        first, last = self.sizes
        if first < 0 or not first <= (NO_END if last is None else last) <= NO_END:
            message = (
                f"a rule for {self.collective} for {first} to {last} bytes: expected two sizes, "
                "the smaller first, below 2^64"
            )
            raise PlanError(message, kind="rule")

"""Verifies plans again when they are read: a checksum detects corruption, not a wrong schedule.

The schedules of a plan are rebuilt from its bytes, verified by the core, and compared with their
flags in the file. The cache stores the SHA-256 of a verified plan, so that later runs with the same
bytes skip the verification.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tutti import __version__, _core
from tutti.base.errors import TuttiError
from tutti.mpi import code
from tutti.mpi.errors import PlanError
from tutti.mpi.plan import CollectivePlan
from tutti.mpi.planned import MOVES_CHUNKS, RANK_ORDER, SAME_ON_ALL, SAME_ORDER, WRITES_DATA
from tutti.mpi.rendezvous import needs_buffers
from tutti.mpi.wrapper_cache import cache_folder
from tutti.schedules.ir import Schedule

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence

    from tutti.mpi.plan import PlannedSchedule

_LARGE: Final = 1 << 20
"""Bytes of code that take seconds to verify: a ring of 512 ranks has 11 MB and takes 9 s."""
_CLAIMS = RANK_ORDER | SAME_ON_ALL | SAME_ORDER
"""Flags that allow the library more: the schedule must have these properties."""
_WARNINGS = MOVES_CHUNKS | WRITES_DATA
"""Flags that restrict the library: a schedule with these properties must set them."""


def read_proved(
    path: str | os.PathLike[str], *, starting: Callable[[], object] | None = None
) -> CollectivePlan:
    """Reads a plan, and verifies it unless the same bytes have been verified before.

    Args:
        path: Path of the file.
        starting: Called before a verification that takes seconds.

    Raises:
        PlanError: It cannot be read, or a schedule differs from its description.
    """
    try:
        data = Path(path).read_bytes()
    except OSError:
        return CollectivePlan.read(path)  # raises, with a detailed message
    plan = CollectivePlan.from_bytes(data, source=str(path))
    if not _record(data).is_file():
        sizes = (len(data) for planned in plan.schedules for data in planned.codes)
        if starting is not None and sum(sizes) > _LARGE:
            starting()
        prove(plan, source=str(path))
        _store(data)
    return plan


def remember(path: str | os.PathLike[str]) -> None:
    """Records that the plan in a file is verified, because this process has just written it."""
    with suppress(OSError):
        _store(Path(path).read_bytes())


def prove(plan: CollectivePlan, *, source: str = "plan") -> None:
    """Verifies each schedule of a plan from its bytes.

    Args:
        plan: A plan that was read.
        source: Its name in error messages.

    Raises:
        PlanError: A schedule is wrong, may deadlock, or contradicts its flags.
    """
    for planned in plan.schedules:
        try:
            problem = _problem(planned)
        except TuttiError as error:
            problem = error.problem
        if problem:
            what = f"{planned.name}, {planned.collective} on {planned.ranks} ranks"
            message = f"{source}: a schedule fails verification: {what}: {problem}"
            raise PlanError(message, kind="wrong", fields={"schedule": planned.name})


def _problem(planned: PlannedSchedule) -> str:
    """Returns the error of a schedule, or an empty string."""
    programs = [planned.steps(rank) for rank in range(planned.ranks)]
    proof = _rebuilt(planned, programs).verify()
    if needs_buffers(programs):
        return "its ranks deadlock if messages are not buffered"
    shown = (
        RANK_ORDER * proof.rank_order
        + SAME_ON_ALL * proof.same_on_all_ranks
        + SAME_ORDER * proof.same_order_on_all_ranks
        + MOVES_CHUNKS * code.shifted(programs)
        + WRITES_DATA * any(step.writes_data for steps in programs for step in steps)
    )
    if planned.flags & _CLAIMS & ~shown or shown & _WARNINGS & ~planned.flags:
        return f"its flags are {planned.flags}: expected {shown}"
    return ""


def _rebuilt(planned: PlannedSchedule, programs: Sequence[Sequence[code.PlannedStep]]) -> Schedule:
    """Rebuilds a schedule from its code."""
    builder = _core.ScheduleBuilder(planned.name, planned.collective, planned.ranks, planned.chunks)
    builder.result(planned.result)
    for rank, steps in enumerate(programs):
        for step in steps:
            builder.step(rank, "")
            for peer, slot, first, chunks in step.sends:
                builder.send(rank, peer, slot, (first, first + chunks))
            for peer, slot, first, chunks in step.receives:
                builder.recv(rank, peer, slot, (first, first + chunks))
            for op in step.local:
                run = (op.first, op.first + op.chunks)
                if isinstance(op, code.Copy):
                    builder.copy(rank, op.slot, run, op.into, op.to)
                else:
                    builder.reduce(rank, op.into, list(op.operands), run)
    return Schedule(builder.build())


# --- record of verified plans ---------------------------------------------------------------------


def _record(data: bytes) -> Path:
    """Returns the file that records the verification of these bytes by this version."""
    digest = hashlib.sha256(f"{__version__}\n".encode() + data).hexdigest()
    return cache_folder() / "proved" / digest


def _store(data: bytes) -> None:
    """Records the verification; without a cache, a plan is verified each time."""
    record = _record(data)
    with suppress(OSError):
        record.parent.mkdir(parents=True, exist_ok=True)
        record.touch()

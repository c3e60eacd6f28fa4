"""Plans proved again when they are read: a checksum shows damage, not what somebody wrote.

The schedules of a plan are built from its bytes, verified by the core, and compared with what the
file states about them. A plan that was proved is remembered by its SHA-256 in the cache, so that
the next run with the same bytes only computes that.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tutti import __version__, _core
from tutti.errors import PlanError, TuttiError
from tutti.mpi import code
from tutti.mpi.plan import CollectivePlan
from tutti.mpi.planned import MOVES_CHUNKS, RANK_ORDER, SAME_ON_ALL, SAME_ORDER, WRITES_DATA
from tutti.mpi.rendezvous import needs_buffers
from tutti.mpi.wrapper_cache import cache_folder
from tutti.schedule import Schedule

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence

    from tutti.mpi.plan import PlannedSchedule

__all__ = ["prove", "read_proved", "remember"]

_LARGE: Final = 1 << 20
"""Bytes of a plan whose proof takes a second: a ring of 512 ranks has 9.4 MB and takes 9 s."""
_CLAIMS = RANK_ORDER | SAME_ON_ALL | SAME_ORDER
"""Flags that let the library do more: a schedule must have what they say."""
_WARNINGS = MOVES_CHUNKS | WRITES_DATA
"""Flags that let it do less: a schedule that needs them must have them."""


def read_proved(
    path: str | os.PathLike[str], *, starting: Callable[[], object] | None = None
) -> CollectivePlan:
    """Reads a plan, and proves it unless a plan of the same bytes has been proved before.

    Args:
        path: Of the file.
        starting: Called before a proof that takes seconds.

    Raises:
        PlanError: It cannot be read, or does something else than it states.
    """
    try:
        data = Path(path).read_bytes()
    except OSError:
        return CollectivePlan.read(path)  # raises, and says more
    plan = CollectivePlan.from_bytes(data, source=str(path))
    if not _record(data).is_file():
        if starting is not None and len(data) > _LARGE:
            starting()
        prove(plan, source=str(path))
        _keep(data)
    return plan


def remember(path: str | os.PathLike[str]) -> None:
    """Notes that the plan in a file is proved, as one is that this process has just written."""
    with suppress(OSError):
        _keep(Path(path).read_bytes())


def prove(plan: CollectivePlan, *, source: str = "plan") -> None:
    """Proves each schedule of a plan from its bytes.

    Args:
        plan: A plan that was read.
        source: What errors call it.

    Raises:
        PlanError: A schedule is wrong, may wait for ever, or is not what its flags state.
    """
    for planned in plan.schedules:
        try:
            problem = _problem(planned)
        except TuttiError as error:
            problem = error.problem
        if problem:
            what = f"{planned.name}, {planned.collective} on {planned.ranks} ranks"
            message = f"{source}: does not hold the schedules that were proved: {what}: {problem}"
            raise PlanError(message, kind="wrong", fields={"schedule": planned.name})


def _problem(planned: PlannedSchedule) -> str:
    """What is wrong with a schedule; empty where nothing is."""
    programs = [planned.steps(rank) for rank in range(planned.ranks)]
    proof = _rebuilt(planned, programs).verify()
    if needs_buffers(programs):
        return "its ranks wait for each other where messages are not buffered"
    shown = (
        RANK_ORDER * proof.rank_order
        + SAME_ON_ALL * proof.same_on_all_ranks
        + SAME_ORDER * proof.same_order_on_all_ranks
        + MOVES_CHUNKS * code.shifted(programs)
        + WRITES_DATA * any(step.writes_data for steps in programs for step in steps)
    )
    if planned.flags & _CLAIMS & ~shown or shown & _WARNINGS & ~planned.flags:
        return f"its flags are {planned.flags}, and the schedule has {shown}"
    return ""


def _rebuilt(planned: PlannedSchedule, programs: Sequence[Sequence[code.PlannedStep]]) -> Schedule:
    """The schedule that the bytes stand for."""
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


# --- what has been proved -------------------------------------------------------------------------


def _record(data: bytes) -> Path:
    """The file that says that these bytes are proved, by this version of the verifier."""
    digest = hashlib.sha256(f"{__version__}\n".encode() + data).hexdigest()
    return cache_folder() / "proved" / digest


def _keep(data: bytes) -> None:
    """Without a cache, a plan is proved each time."""
    record = _record(data)
    with suppress(OSError):
        record.parent.mkdir(parents=True, exist_ok=True)
        record.touch()

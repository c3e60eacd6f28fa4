"""Decompiles schedules to Python source in the language of chunk programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tutti.schedules.errors import ScheduleError
from tutti.schedules.language.performing import Performer, buffer_name
from tutti.schedules.language.program import Program
from tutti.schedules.language.rounds import rounds, separate_ends
from tutti.schedules.language.source import Section, sections, source

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.schedules.ir import Schedule


class _Form(NamedTuple):
    """How source expresses a schedule."""

    steps: bool
    loops: bool
    early: bool


_FORMS = (
    _Form(steps=False, loops=True, early=False),
    _Form(steps=True, loops=True, early=False),
    _Form(steps=False, loops=False, early=False),
    _Form(steps=True, loops=False, early=False),
    _Form(steps=False, loops=False, early=True),
    _Form(steps=True, loops=False, early=True),
)
"""Forms of source, the most readable first."""


def decompile(schedule: Schedule) -> str:
    """Returns Python source whose function `build` returns an equivalent schedule.

    In the result each rank has the same sends in the same order and steps, and the same receives,
    reductions and copies in these steps. Numbers of scratch slots may differ, as may names of
    steps. Statements with the same pattern on all ranks are loops.

    Examples:
        >>> import tutti
        >>> source = decompile(tutti.schedule("ring", collective="all_gather", ranks=8))
        >>> for line in source.splitlines()[5:8]:
        ...     print(line.strip())
        for step in range(7):
        for rank in range(8):
        program.chunk(rank, (rank - step) % 8).copy((rank + 1) % 8)

    Raises:
        VerificationError: The schedule is not correct.
        ScheduleError: No program is equivalent.
    """
    schedule.verify()
    for form in _FORMS:
        found = rounds(schedule, early=form.early)
        if found is None:
            break
        parts = sections(found, schedule.ranks, steps=form.steps, loops=form.loops)
        if is_equivalent(schedule, _performed(schedule, parts, explicit_steps=False)):
            return source(schedule, parts, explicit_steps=False)
    parts = sections(separate_ends(schedule), schedule.ranks, steps=False, loops=False)
    if is_equivalent(schedule, _performed(schedule, parts, explicit_steps=True)):
        return source(schedule, parts, explicit_steps=True)
    message = f"no chunk program is equivalent to {schedule.name}"
    raise ScheduleError(message, kind="not_a_program")


def is_equivalent(first: Schedule, second: Schedule) -> bool:
    """Returns whether each rank has the same ops in the same steps, apart from slot numbers."""
    shapes = [(each.collective, each.root, each.ranks, each.chunks) for each in (first, second)]
    return shapes[0] == shapes[1] and all(
        all(a == b for a, b in zip(_steps(first, rank), _steps(second, rank), strict=False))
        and len(_steps(first, rank)) == len(_steps(second, rank))
        for rank in range(first.ranks)
    )


def _steps(schedule: Schedule, rank: int) -> list[list[tuple[object, ...]]]:
    """Returns the ops of the steps of a rank without slot numbers; empty steps are left out.

    Receives of a step are sorted by peer, as they are concurrent.
    """
    found: list[list[tuple[object, ...]]] = []
    for step in range(schedule.steps(rank)):
        ops = schedule.ops(rank, step)
        receives = sorted((op for op in ops if op.kind == "recv"), key=lambda op: op.peer or 0)
        others = [op for op in ops if op.kind != "recv"]
        found.append(
            [
                (op.kind, op.peers, op.chunks, op.to, op.duration_ps, len(op.operands or ()))
                for op in (*others, *receives)
            ]
        )
    return [ops for ops in found if ops]


def _performed(schedule: Schedule, found: Sequence[Section], *, explicit_steps: bool) -> Schedule:
    """Returns the schedule of a program with these sections."""
    program = Program(
        schedule.collective,
        ranks=schedule.ranks,
        chunks=schedule.chunks,
        root=schedule.root or 0,
        name=schedule.name,
        result=buffer_name(schedule.result),
        explicit_steps=explicit_steps,
        blocks=schedule.blocks,
    )
    with program:
        performer = Performer(program)
        for section in found:
            if section.name is not None:
                program.step(section.name)
            performer.run(section.groups[0], exchange=section.exchange)
            for group in section.groups[1:]:
                performer.run(group, exchange=False)
    return program.schedule

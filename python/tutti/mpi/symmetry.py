"""Ranks of a schedule that execute the same ops in relative terms.

The text of a schedule is faster to write than its ops are to read one by one. If rank 1's text,
with its relative numbers replaced by those of another rank, is the text of that rank, then both
have the same code.
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Final

from tutti.mpi.relative import ABSOLUTE

if TYPE_CHECKING:
    from tutti._core import Op
    from tutti.mpi.relative import Relations
    from tutti.schedules.ir import Schedule

SAMPLE: Final = 1
"""The rank whose ops are read."""
_MOST_MESSAGES: Final = 1 << 21
"""The text of schedules with more messages takes hundreds of megabytes."""


class Prediction:
    """The text of each rank, if its ops are rank 1's in relative terms."""

    def __init__(self, schedule: Schedule, relations: Relations) -> None:
        """Reads the ops of rank 1, and the text of all ranks."""
        self._relations = relations
        self._frame = relations.frame(SAMPLE)
        self._places: list[int] = [0]
        lines = []
        for step in range(schedule.steps(SAMPLE)):
            lines.append(f"step {schedule.step_name(SAMPLE, step)}".replace("%", "%%"))
            lines += [self._pattern(op) for op in schedule.ops(SAMPLE, step)]
        self._text = "\n".join(["%d", *lines])
        self._texts: list[str] = []
        if len(self._places) > 1 and schedule.verify().messages <= _MOST_MESSAGES:
            self._texts = schedule.to_text().split("\nrank ")[1:]

    def fits(self, rank: int) -> bool:
        """Whether the code of a rank is rank 1's; False if unknown."""
        if not self._texts:
            return False
        numbers: tuple[int, ...] = itemgetter(*self._places)(
            [rank, *self._relations.meanings(rank)]
        )
        return self._texts[rank].strip() == self._text % numbers

    def _pattern(self, op: Op) -> str:
        """Returns the line of an op, with a gap for each relative number."""
        text = f"  {op!r}".replace("%", "%%")
        peers, chunks, _, slots = self._frame
        if op.chunks is not None and op.slot is not None:
            form, first = slots[op.slot], op.chunks[0]
            if form != ABSOLUTE and f"[{first}]" in text:
                text = text.replace(f"[{first}]", "[%d]", 1)
                self._places.append(1 + self._relations.place(form, chunks[form][first]))
        if op.to is not None and op.into is not None and slots[op.into] != ABSOLUTE:
            form = slots[op.into]
            text = f"{text.rpartition('[')[0]}[%d]"
            self._places.append(1 + self._relations.place(form, chunks[form][op.to]))
        if op.peer is not None:
            text = f"{text.rpartition(' ')[0]} %d"
            self._places.append(1 + peers[op.peer])
        return text

"""Which schedule is the fastest where, and from which size to which that is taken to hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from tutti.tune.targets import counterpart

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["HOST", "TIMES", "Decision", "decide", "table"]

TIMES: dict[str, type[pl.DataType]] = {
    "collective": pl.String,
    "ranks": pl.Int64,
    "size_bytes": pl.Int64,
    "schedule": pl.String,
    "time_ps": pl.Int64,
    "method": pl.String,
    "moves_chunks": pl.Boolean,
}
"""The columns of times to choose from. ``method`` is `model` or `measurement`; the schedule `host`
is the MPI's own code; ``moves_chunks`` says that a schedule needs equal parts."""

HOST = "host"


@dataclass(frozen=True)
class Decision:
    """What is to be done from one size to another.

    Attributes:
        collective: of which.
        ranks: on how many ranks.
        first: smallest size in bytes.
        last: largest, included; None for no end.
        schedule: the fastest that the target has; None where it has none, `host` where the MPI's
            own code was the fastest.
        time_ps: what it takes on the first size that was looked at.
        method: how that is known.
        fallback: the fastest that does with unequal parts, where `schedule` does not.
        best: the fastest of all, whatever the target has.
        best_ps: what that takes.
    """

    collective: str
    ranks: int
    first: int
    last: int | None
    schedule: str | None
    time_ps: int | None
    method: str
    fallback: str | None
    best: str
    best_ps: int

    @property
    def loss(self) -> float:
        """How much longer than the fastest of all it takes: 0.1 is 10 %."""
        return 0.0 if self.time_ps is None else self.time_ps / self.best_ps - 1


def decide(times: pl.DataFrame, target: str) -> list[Decision]:
    """The fastest schedule of each size that a target has, sizes with the same one joined.

    What is the fastest on a size is taken to be so up to the next larger one; on the smallest, from
    nothing on; on the largest, without end.

    Args:
        times: with the columns of :data:`TIMES`.
        target: one of :data:`tutti.tune.targets.TARGETS`.
    """
    found: list[Decision] = []
    for (collective, ranks), some in times.group_by("collective", "ranks", maintain_order=True):
        found += _joined(_of_sizes(some, target, str(collective), int(str(ranks))))
    return found


def _of_sizes(times: pl.DataFrame, target: str, collective: str, ranks: int) -> Iterator[Decision]:
    sizes = times["size_bytes"].unique().sort().to_list()
    for place, size in enumerate(sizes):
        at = times.filter(pl.col("size_bytes") == size).sort("time_ps", maintain_order=True)
        mine = [row for row in at.iter_rows(named=True) if _has(target, row)]
        chosen = mine[0] if mine else None
        spare = next((row for row in mine if not row["moves_chunks"]), None)
        moves = chosen is not None and chosen["moves_chunks"]
        best = at.row(0, named=True)
        yield Decision(
            collective=collective,
            ranks=ranks,
            first=0 if place == 0 else size,
            last=sizes[place + 1] - 1 if place + 1 < len(sizes) else None,
            schedule=chosen["schedule"] if chosen else None,
            time_ps=chosen["time_ps"] if chosen else None,
            method=(chosen or best)["method"],
            fallback=spare["schedule"] if spare and moves else None,
            best=best["schedule"],
            best_ps=best["time_ps"],
        )


def _has(target: str, row: dict[str, object]) -> bool:
    """Whether a target can be told to do it; leaving a call alone is always possible."""
    if target == "plan" or row["schedule"] == HOST:
        return True
    schedule, ranks = str(row["schedule"]), int(str(row["ranks"]))
    return counterpart(target, str(row["collective"]), ranks, schedule) is not None


def _joined(decisions: Iterator[Decision]) -> list[Decision]:
    joined: list[Decision] = []
    for one in decisions:
        last = joined[-1] if joined else None
        same = last is not None and (last.schedule, last.fallback) == (one.schedule, one.fallback)
        if last is not None and same:
            joined[-1] = Decision(**{**vars(last), "last": one.last})
        else:
            joined.append(one)
    return joined


def table(decisions: list[Decision]) -> pl.DataFrame:
    """Decisions as a frame, a row each."""
    rows = [{**vars(one), "loss": one.loss} for one in decisions]
    return pl.DataFrame(rows, infer_schema_length=None)

"""Which schedule is the fastest where, and from which size to which that is taken to hold."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import polars as pl

from tutti.mpi.bits import is_exact
from tutti.tune.targets import counterpart
from tutti.tune.times import ESTIMATED, MODELLED, OWN, speaks_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tutti.tune.targets import Counterpart

__all__ = ["TuningDecision", "decide", "table"]


@dataclass(frozen=True)
class TuningDecision:
    """What is to be done from one size to another.

    Attributes:
        collective: of which.
        ranks: on how many ranks.
        first: smallest size in bytes.
        last: largest, included; None for no end.
        schedule: the fastest that the target has; None where it has none, `own` where the MPI's own
            code was the fastest.
        time_ps: what it takes on the first size that was looked at.
        method: how that is known, as in :data:`tutti.tune.times.TIMES`.
        fallback: the fastest that does with unequal parts and gives all ranks the same bits, where
            `schedule` does not.
        loss: how much longer than the fastest of all it takes, on the size where that is the most:
            0.1 is 10 %.
        loss_size: that size, in bytes.
        best: the fastest of all on that size, whatever the target has.
        datatype: of the elements that times are of.
        conditions: under which they are, as in :data:`tutti.tune.times.TIMES`.
    """

    collective: str
    ranks: int
    first: int
    last: int | None
    schedule: str | None
    time_ps: int | None
    method: str
    fallback: str | None = None
    loss: float = 0.0
    loss_size: int = 0
    best: str = ""
    datatype: str = "float32"
    conditions: str = ""

    @property
    def is_rule(self) -> bool:
        """Whether it names a schedule, and does not leave the call alone."""
        return self.schedule not in {None, OWN}

    def counterpart(self, target: str) -> Counterpart | None:
        """The algorithm of a library that is the schedule; None without a schedule or algorithm."""
        if self.schedule is None or not self.is_rule:
            return None
        return counterpart(target, self.collective, self.ranks, self.schedule)


def decide(times: pl.DataFrame, target: str) -> list[TuningDecision]:
    """The fastest schedule of each size that a target has, sizes with the same one joined.

    What is the fastest on a size is taken to be so up to the next larger one; on the smallest, from
    nothing on; on the largest, without end. For an MPI's own file count times that were measured on
    that MPI, and where there are none those of a model: what another MPI takes says nothing of it.
    An all_reduce with which ranks get different bits is only for a plan, and only where the tuned
    type is exact: then with a fallback for types that are not.

    Args:
        times: with the columns of :data:`tutti.tune.times.TIMES`.
        target: one of :data:`tutti.tune.targets.TARGETS`.

    Returns:
        Nothing for sizes of which no time may decide.
    """
    found: list[TuningDecision] = []
    for (collective, ranks), some in times.group_by("collective", "ranks", maintain_order=True):
        found += _joined(_of_sizes(some, target, str(collective), int(str(ranks))))
    return found


def _of_sizes(
    times: pl.DataFrame, target: str, collective: str, ranks: int
) -> Iterator[TuningDecision]:
    cells = {
        int(size): rows
        for size in times["size_bytes"].unique().sort()
        if (rows := _deciding(times.filter(pl.col("size_bytes") == size), target))
    }
    sizes = list(cells)
    for place, (size, rows) in enumerate(cells.items()):
        mine = [row for row in rows if _has(target, row)]
        chosen = mine[0] if mine else None
        spare = next((row for row in mine if not row["moves_chunks"] and row["same_on_all"]), None)
        narrow = chosen is not None and (chosen["moves_chunks"] or not chosen["same_on_all"])
        how = chosen or rows[0]
        yield TuningDecision(
            collective=collective,
            ranks=ranks,
            first=0 if place == 0 else size,
            last=sizes[place + 1] - 1 if place + 1 < len(sizes) else None,
            schedule=chosen["schedule"] if chosen else None,
            time_ps=chosen["time_ps"] if chosen else None,
            method=how["method"],
            fallback=spare["schedule"] if spare and narrow else None,
            loss=chosen["time_ps"] / max(rows[0]["time_ps"], 1) - 1 if chosen else 0.0,
            loss_size=size,
            best=rows[0]["schedule"],
            datatype=how["datatype"],
            conditions=how["conditions"],
        )


def _deciding(times: pl.DataFrame, target: str) -> list[dict[str, Any]]:
    """The times of one size that may decide for a target, the fastest first."""
    rows = times.sort("time_ps", maintain_order=True).to_dicts()
    rows = [row for row in rows if row["same_on_all"] or is_exact(row["datatype"])]
    measured = [row for row in rows if speaks_for(target, row["mpi"])]
    # An estimate of the MPI's own code says nothing of the algorithms that it can be told to use.
    known = {MODELLED, ESTIMATED} if target == "plan" else {MODELLED}
    return measured or [row for row in rows if row["method"] in known]


def _has(target: str, row: dict[str, Any]) -> bool:
    """Whether a target can be told to do it; leaving a call alone is always possible.

    Rules of MPIs and of UCC hold for every type, so that all ranks must get the same bits.
    """
    if target == "plan" or row["schedule"] == OWN:
        return True
    return (
        row["same_on_all"]
        and counterpart(target, row["collective"], row["ranks"], row["schedule"]) is not None
    )


def _joined(decisions: Iterator[TuningDecision]) -> list[TuningDecision]:
    """Neighbours with the same schedule as one, which tells the greatest loss of all its sizes."""
    joined: list[TuningDecision] = []
    for one in decisions:
        last = joined[-1] if joined else None
        if last is None or _told(last) != _told(one):
            joined.append(one)
            continue
        worse = one if one.loss > last.loss else last
        joined[-1] = replace(
            last, last=one.last, loss=worse.loss, loss_size=worse.loss_size, best=worse.best
        )
    return joined


def _told(decision: TuningDecision) -> tuple[str | None, ...]:
    return decision.schedule, decision.fallback, decision.method, decision.conditions


def table(decisions: Sequence[TuningDecision]) -> pl.DataFrame:
    """Decisions as a frame, a row each."""
    return pl.DataFrame([vars(one) for one in decisions], infer_schema_length=None)

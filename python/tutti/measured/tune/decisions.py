"""Selects the fastest schedule for each range of sizes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, TypeVar

import polars as pl

from tutti.measured.tune.library_defaults import default_of
from tutti.measured.tune.targets import Counterpart, counterpart, library_title
from tutti.measured.tune.times import DEFAULT, EMULATED, ESTIMATED, MEASURED, MODELLED, OWN
from tutti.mpi.usual import LEAST_GAIN
from tutti.schedules.bits import is_exact

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tutti.measured.tune.forced import ChosenAlgorithm


@dataclass(frozen=True)
class TuningDecision:
    """The schedule for a range of sizes.

    Attributes:
        collective: name of the collective.
        ranks: number of ranks.
        first: smallest size in bytes.
        last: largest size, inclusive; None for no limit.
        schedule: the fastest that the target has; None if it has none, `own` if the MPI library's
            default is the fastest.
        time_ps: its time at the first candidate size.
        method: the origin of the time, as in :data:`tutti.measured.tune.times.TIMES`.
        fallback: the fastest schedule that supports unequal chunks and gives all ranks the same
            bits, if `schedule` does not.
        loss: maximum slowdown against the fastest of all schedules: 0.1 is 10 %.
        loss_size: the size of the maximum slowdown, in bytes.
        best: the fastest of all schedules at that size, whatever the target has.
        datatype: datatype of the elements.
        conditions: conditions of the times, as in :data:`tutti.measured.tune.times.TIMES`.
        forced: the library's algorithm if it was measured itself; `schedule` is then its name.
        stays: why a model leaves the default: `gain` if nothing is predicted to beat it, `unknown`
            if the model has no time of it; empty otherwise.
        ranks_per_node: number of ranks on each node that it is for; None for any.
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
    forced: ChosenAlgorithm | None = None
    stays: str = ""
    ranks_per_node: int | None = None

    @property
    def is_rule(self) -> bool:
        """Whether it names a schedule, instead of leaving the default."""
        return self.schedule not in {None, OWN}

    def default_name(self, target: str) -> str:
        """Returns what a call runs without a rule, with the name of the library.

        A plan is for any MPI library: that of the measurements, or the one that a model assumes.
        """
        if target != "plan":
            return f"default of {library_title(target)}"
        if self.method == MEASURED:
            return f"default of {self.conditions.partition(',')[0]}"
        return "MPICH default"

    def counterpart(self, target: str) -> Counterpart | None:
        """The algorithm of a library that is this schedule, or None."""
        if self.forced is not None:
            one = self.forced
            return Counterpart(one.algorithm, one.name, one.segment, one.fan)
        if self.schedule is None or not self.is_rule:
            return None
        return counterpart(target, self.collective, self.ranks, self.schedule)


def decide(
    times: pl.DataFrame, target: str, *, least_gain: float | None = LEAST_GAIN
) -> list[TuningDecision]:
    """Selects the fastest schedule that a target has for each size, and joins equal neighbours.

    A choice holds up to the next larger size. Sizes below the smallest and above the largest are
    left to the default. Rules for an MPI library come from the model here: its own algorithms are
    measured by :mod:`tutti.measured.tune.live`. A model's choice for Open MPI or MPICH must be
    faster than the algorithms that the library selects by itself, of
    :mod:`tutti.measured.tune.library_defaults`; otherwise the default stays. An all_reduce that
    gives ranks different bits is only for a plan, and only if the tuned datatype is exact; a
    fallback then covers other datatypes.

    Args:
        times: with the columns of :data:`tutti.measured.tune.times.TIMES`.
        target: one of :data:`tutti.measured.tune.targets.TARGETS`.
        least_gain: the gain over the library's default that a rule needs, predicted or, for a plan,
            measured; None to ignore the default.

    Returns:
        Nothing for sizes without a usable time.
    """
    found: list[TuningDecision] = []
    for (collective, ranks), some in times.group_by("collective", "ranks", maintain_order=True):
        found += joined(_of_sizes(some, target, str(collective), int(str(ranks)), least_gain))
    return found


def _of_sizes(
    times: pl.DataFrame, target: str, collective: str, ranks: int, least_gain: float | None
) -> Iterator[TuningDecision]:
    cells = {
        int(size): rows
        for size in times["size_bytes"].unique().sort()
        if (rows := _deciding(times.filter(pl.col("size_bytes") == size), target))
    }
    sizes = list(cells)
    for place, (size, rows) in enumerate(cells.items()):
        mine = [row for row in rows if _has(target, row)]
        chosen = _worthwhile(mine, least_gain or 0.0)
        spare = next((row for row in mine if not row["moves_chunks"] and row["same_on_all"]), None)
        narrow = chosen is not None and (chosen["moves_chunks"] or not chosen["same_on_all"])
        how = chosen or rows[0]
        stays, default_ps = _stays(times.filter(size_bytes=size), chosen, target, least_gain)
        time_ps = default_ps if stays else chosen["time_ps"] if chosen else None
        yield TuningDecision(
            collective=collective,
            ranks=ranks,
            first=size,
            last=sizes[place + 1] - 1 if place + 1 < len(sizes) else size,
            schedule=OWN if stays else chosen["schedule"] if chosen else None,
            stays=stays,
            time_ps=time_ps,
            method=how["method"],
            fallback=spare["schedule"] if spare and narrow and not stays else None,
            loss=0.0 if time_ps is None else time_ps / max(rows[0]["time_ps"], 1) - 1,
            loss_size=size,
            best=rows[0]["schedule"],
            datatype=how["datatype"],
            conditions=how["conditions"],
        )


def _deciding(times: pl.DataFrame, target: str) -> list[dict[str, Any]]:
    """Returns the times of one size that a target may use, fastest first."""
    rows = times.sort("time_ps", maintain_order=True).to_dicts()
    rows = [row for row in rows if row["same_on_all"] or is_exact(row["datatype"])]
    # Schedules are measured in libtutti_mpi, so that they do not decide for a library's algorithms.
    measured = [row for row in rows if target == "plan" and row["method"] in {MEASURED, EMULATED}]
    # An estimate of the default does not describe the algorithms that rules can select.
    known = {MODELLED, ESTIMATED} if target == "plan" else {MODELLED}
    return measured or [row for row in rows if row["method"] in known]


def _worthwhile(rows: Sequence[dict[str, Any]], least_gain: float) -> dict[str, Any] | None:
    """Returns the fastest time, or that of the native collective if the gain is too small.

    Medians of separate schedules differ by chance, and each call on a schedule costs a little more.

    Args:
        rows: The times, fastest first.
        least_gain: The share of a measured native time that has to be saved.
    """
    native = next(
        (row for row in rows if (row["schedule"], row["method"]) == (OWN, MEASURED)), None
    )
    if native is None or rows[0]["time_ps"] <= native["time_ps"] * (1 - least_gain):
        return rows[0] if rows else None
    return native


def _stays(
    at_size: pl.DataFrame, chosen: dict[str, Any] | None, target: str, least_gain: float | None
) -> tuple[str, int | None]:
    """Returns why a model's choice does not replace the library's default, and the default's time.

    The reason is empty if it does.
    """
    library = default_of(target)
    if least_gain is None or chosen is None or library is None:
        return "", None
    if chosen["schedule"] == OWN or chosen["method"] != MODELLED:
        return "", None
    of_library = (pl.col("method") == DEFAULT) & (pl.col("mpi") == " ".join(library))
    default = at_size.filter(of_library)["time_ps"].to_list()
    if not default:
        return "unknown", None
    return "gain" if chosen["time_ps"] > default[0] * (1 - least_gain) else "", default[0]


def _has(target: str, row: dict[str, Any]) -> bool:
    """Whether a target has the schedule; leaving the default is always possible.

    Rules of MPI libraries and of UCC hold for every datatype, so all ranks must get the same bits.
    """
    if target == "plan" or row["schedule"] == OWN:
        return True
    return (
        row["same_on_all"]
        and counterpart(target, row["collective"], row["ranks"], row["schedule"]) is not None
    )


def joined(decisions: Iterable[TuningDecision]) -> list[TuningDecision]:
    """Joins neighbours with the same schedule; the result has the maximum slowdown of its sizes."""
    joined: list[TuningDecision] = []
    for one in decisions:
        last = joined[-1] if joined else None
        if last is None or _rule(last) != _rule(one):
            joined.append(one)
            continue
        worse = one if one.loss > last.loss else last
        joined[-1] = replace(
            last, last=one.last, loss=worse.loss, loss_size=worse.loss_size, best=worse.best
        )
    return joined


def _rule(decision: TuningDecision) -> tuple[str | None, ...]:
    return (
        decision.schedule, decision.fallback, decision.method, decision.conditions, decision.stays
    )  # fmt: skip


Decision = TypeVar("Decision", bound=TuningDecision)


def extended(decisions: Sequence[Decision]) -> list[Decision]:
    """Returns decisions of which the first and the last also hold beyond the tuned sizes."""
    listed: list[Decision] = []
    for _, group in groupby(decisions, lambda one: (one.collective, one.ranks)):
        mine = list(group)
        mine[0] = replace(mine[0], first=0)
        mine[-1] = replace(mine[-1], last=None)
        listed += mine
    return listed


def complete(decisions: Sequence[TuningDecision]) -> list[TuningDecision]:
    """Returns the decisions and, for each gap between them, one for the library's default."""
    listed: list[TuningDecision] = []
    for _, group in groupby(decisions, lambda one: (one.collective, one.ranks)):
        start: int | None = 0
        for one in group:
            own = replace(one, schedule=OWN, forced=None, fallback=None, stays="")
            if start is not None and start < one.first:
                listed.append(replace(own, first=start, last=one.first - 1))
            listed.append(one)
            start = None if one.last is None else one.last + 1
        if start is not None:
            listed.append(replace(own, first=start, last=None))
    return listed

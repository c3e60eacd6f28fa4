"""Searches the fastest all_reduce schedule on a platform.

**Recursive multiplying.** If all ranks are at equal distance, the time of a schedule follows from
its closed form, or from one rank of each class of equivalent ranks. The search then proves that no
schedule of the family is faster, or returns a bound. On a topology the order of stages matters,
too: the search selects candidates by the cost of their stages, and simulates them.

**Other algorithms.** Every argument of :mod:`tutti.collectives.arguments` is timed.

Examples:
    >>> from tutti.platforms import platform
    >>> found = search(platform("cray_xc30"), ranks=13, size="8 B")
    >>> found.schedule.name, found.proved
    ('recursive_multiplying:m4g3a3,n4g3a3', True)
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from tutti import _core
from tutti.base.errors import ConfigError, SimulationError
from tutti.collectives.arguments import message_weight, tune_arguments
from tutti.collectives.case import CaseBuilder, make_case, measured
from tutti.schedules import proving
from tutti.schedules.errors import AlgorithmError
from tutti.schedules.ir import Schedule, check_ranks, schedule

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import polars as pl

    from tutti.base.units import Size
    from tutti.platforms.machine import Platform
    from tutti.topologies import Routes

__all__ = [
    "FAMILY",
    "KINDS",
    "MOST_SCHEDULES",
    "MULTIPLYING_KINDS",
    "SearchResult",
    "search",
    "winners",
]

FAMILY = "recursive_multiplying"
"""The algorithm of :data:`MULTIPLYING_KINDS`."""

MULTIPLYING_KINDS = ("factored", "split", "merged")
"""Kinds of schedules of recursive multiplying: `a3,a2`, `c6m2,a2,a2,e6m2`, `m1g2a3,n1g3a2`."""

KINDS = (*MULTIPLYING_KINDS, "other")
"""Kinds of schedules; `other` are all other algorithms, each with its best argument."""

MOST_SCHEDULES = 200_000
"""Most schedules of an exhaustive search."""

_MESSAGES = 20_000_000
"""Messages that the search evaluates without a topology, in about half a second."""
_QUICK = 2_000_000
"""Messages that the search evaluates for `winners`."""
_MOST_SIMULATED = 50_000_000
"""Messages that are simulated on a topology, of all schedules or else of candidates, in seconds."""
_EXHAUSTIVE = 40
"""Factor of `_MOST_SIMULATED` for exhaustive searches, which take minutes."""
_MOST_RANKS = 2**24
"""Most ranks of a schedule."""
_LATEST_PS = 2**63 - 1
_Any = TypeVar("_Any")


class _Row(NamedTuple):
    notation: str
    kind: str
    time_ps: int
    method: str


@dataclass(frozen=True)
class SearchResult:
    """The result of a search.

    Attributes:
        platform: The platform.
        ranks: The number of ranks.
        size: The size.
        kinds: The searched kinds of schedules.
        frame: A row per schedule, best first, with the columns of
            :data:`tutti.collectives.frames.FOUND`. It always includes the best schedule of each
            kind.
        bound_ps: The lower bound of the searched schedules.
        scored: The number of schedules with a computed time.
        left_out: The algorithms that take too long to time, and why.
        exhaustive: Whether these are all schedules of these kinds.
        not_verified: The reason why the best schedule was not verified; None if it was verified.
    """

    platform: Platform
    ranks: int
    size: Size
    kinds: tuple[str, ...]
    frame: pl.DataFrame
    bound_ps: int
    scored: int
    left_out: dict[str, str]
    exhaustive: bool
    not_verified: str | None

    @functools.cached_property
    def schedule(self) -> Schedule:
        """The best schedule found."""
        return schedule(self.frame["schedule"][0], ranks=self.ranks)

    @property
    def time_ps(self) -> int:
        """The time of the best schedule."""
        return int(self.frame["time_ps"][0])

    @property
    def proved(self) -> bool:
        """Whether no searched schedule of these kinds is faster."""
        exact = self.frame["method"][0] != "estimate"
        return exact and (self.exhaustive or self.time_ps <= self.bound_ps)

    @property
    def gap(self) -> float:
        """The largest possible improvement within these kinds, as a fraction; 0 if optimal."""
        return 0.0 if self.proved else self.time_ps / self.bound_ps - 1

    def __repr__(self) -> str:
        sure = "verified optimal" if self.proved else f"at most {self.gap:.2%} above the bound"
        time = _core.format_time(self.time_ps)
        return f"<Found {self.schedule.name} for {self.ranks} ranks, {self.size}: {time}, {sure}>"


def search(
    platform: Platform,
    *,
    ranks: int,
    size: str | Size,
    datatype: str = "float32",
    kinds: Sequence[str] = KINDS,
    top: int = 10,
    exhaustive: bool = False,
    threads: int = 0,
    done: Callable[[int, int], object] | None = None,
    verify: bool = True,
) -> SearchResult:
    """Finds the fastest schedules for an all_reduce: recursive multiplying and other algorithms.

    Of each other algorithm, the ranking has the best argument of its grid.

    Args:
        platform: The platform; the search assumes no disturbances.
        ranks: The number of ranks; at least two.
        size: The size of one rank's buffer, such as ``"64 KiB"``.
        datatype: The datatype of the elements, whose size divides `size`.
        kinds: The kinds of :data:`KINDS` to search.
        top: The number of schedules to return. If all ranks are at equal distance, schedules that
            differ only in the order of stages count once.
        exhaustive: Score and return all schedules of recursive multiplying, up to
            :data:`MOST_SCHEDULES`.
        threads: The number of threads; 0 uses one per core. Results do not depend on it.
        done: Called with (finished, total) while schedules of recursive multiplying run.
        verify: Whether to verify the best schedule, by the rule of :func:`tutti.simulate`.

    Raises:
        UnitError: The size cannot be parsed.
        AlgorithmError: The rank count or a kind is invalid.
        LayoutError: The size does not match the datatype.
        VerificationError: The best schedule is not correct.
        ConfigError: There are too many schedules for an exhaustive search, or `top` is below 1.
        SimulationError: Every schedule exceeds the range of time.
    """
    from tutti.base.units import Size

    size = Size.of_any(size)
    check_ranks(ranks)
    _check_kinds(kinds)
    if top < 1:
        raise ConfigError(f"top = {top}: expected at least 1", kind="invalid")
    check_request(platform, size, datatype)
    multiplying = [kind for kind in kinds if kind != "other"]
    options = _Options(platform, ranks, size, datatype, multiplying, top, exhaustive, threads, done)
    rows, bound, scored = _multiplying(options) if multiplying else ([], _LATEST_PS, 0)
    left_out: dict[str, str] = {}
    if "other" in kinds:
        others, scored_too, left_out = _others(options)
        scored += scored_too
        bound = min([bound, *(row.time_ps for row in others)])
        rows = sorted([*rows, *others], key=lambda row: row.time_ps)
        rows = rows if exhaustive else _top(rows, top)
    _refuse_no_result(rows, ranks, kinds)
    rows = [row for row in rows if row.time_ps <= _LATEST_PS]
    not_verified = proving.verify(schedule(rows[0].notation, ranks=ranks), skip=not verify)
    frame = _frame(rows, bound, verified=not_verified is None)
    return SearchResult(
        platform=platform,
        ranks=ranks,
        size=size,
        kinds=tuple(kinds),
        frame=frame,
        bound_ps=bound,
        scored=scored,
        left_out=left_out,
        exhaustive=exhaustive,
        not_verified=not_verified,
    )


class _Options(NamedTuple):
    """The arguments of a search."""

    platform: Platform
    ranks: int
    size: Size
    datatype: str
    kinds: Sequence[str]
    top: int
    exhaustive: bool
    threads: int
    done: Callable[[int, int], object] | None


def _multiplying(options: _Options) -> tuple[list[_Row], int, int]:
    """Returns schedules of recursive multiplying, their lower bound, and the number scored."""
    platform, ranks, size, datatype, kinds, top, exhaustive, threads, done = options
    core = searcher(platform, size)
    if platform.routes is None and exhaustive:
        every = _unless_too_many(core.all(ranks, kinds, most=MOST_SCHEDULES), ranks)
        rows = [_row(*row) for row in every]
        return rows, rows[0].time_ps if rows else _LATEST_PS, len(rows)
    if platform.routes is None:
        return _flat(core, ranks, kinds, top)
    most = _MOST_SIMULATED // message_weight(platform, size)
    all_rows = _all(ranks, kinds, most=_EXHAUSTIVE * most if exhaustive else most)
    if exhaustive:
        _unless_too_many(all_rows, ranks)
    rows = all_rows or _candidates(core, platform.routes, ranks, kinds, top=top, most=most)
    builder = CaseBuilder(platform, datatype=datatype)
    simulated = [row.notation for row in rows if row.method != "estimate"]
    cases = [builder.case(schedule(notation, ranks=ranks), size=size) for notation in simulated]
    rows = _run(rows, cases, threads, done)
    best = core.best(ranks, kinds, keep=1, messages=_MESSAGES)[1] if not all_rows else None
    bound = rows[0].time_ps if best is None else best
    return rows if exhaustive else _top(rows, top), bound, len(cases)


def _others(options: _Options) -> tuple[list[_Row], int, dict[str, str]]:
    """Returns the best of each other algorithm, the number scored, and what is left out."""
    tuned = tune_arguments(
        options.platform,
        "all_reduce",
        options.ranks,
        [options.size],
        datatype=options.datatype,
        most=_MOST_SIMULATED,
        threads=options.threads,
    )
    rows = [_Row(one.notation, "other", one.time_ps, one.method) for one in tuned.variants]
    return rows, tuned.scored, tuned.left_out


def _row(notation: str, kind: str, time_ps: int, method: str) -> _Row:
    return _Row(f"{FAMILY}:{notation}", kind, time_ps, method)


def _flat(
    core: _core.ScheduleSearch, ranks: int, kinds: Sequence[str], top: int
) -> tuple[list[_Row], int, int]:
    """Returns the best schedules overall and per kind, their lower bound, and the number scored."""
    found, bound, scored = core.best(ranks, kinds, keep=top, messages=_MESSAGES)
    rows = [_row(*row) for row in found]
    if top > 1:
        # The proof is faster for one schedule than for several.
        first, bound, more = core.best(ranks, kinds, keep=1, messages=_MESSAGES)
        scored += more
        rows = _merge(rows, [_row(*row) for row in first])
    for kind in kinds:
        if not any(row.kind == kind for row in rows):
            of_kind, _, more = core.best(ranks, [kind], keep=1, messages=_QUICK)
            rows = _merge(rows, [_row(*row) for row in of_kind])
            scored += more
    return rows, bound, scored


def _merge(rows: list[_Row], more: list[_Row]) -> list[_Row]:
    """Returns all rows by time, without duplicates."""
    known = {row.notation for row in rows}
    return sorted(
        rows + [row for row in more if row.notation not in known], key=lambda row: row.time_ps
    )


def _top(rows: list[_Row], top: int) -> list[_Row]:
    """Returns the first rows, and the best of each kind."""
    firsts = {row.kind: row for row in reversed(rows)}
    return [row for place, row in enumerate(rows) if place < top or row in firsts.values()]


def _all(ranks: int, kinds: Sequence[str], *, most: int) -> list[_Row] | None:
    """Returns every schedule, to be run; None if the runs exceed `most` messages."""
    every = _core.schedules_of(ranks, kinds, most=MOST_SCHEDULES)
    if every is None or ranks * sum(_messages_of(notation) for notation, _ in every) > most:
        return None
    return [_row(notation, kind, 0, "simulation") for notation, kind in every]


def _candidates(
    core: _core.ScheduleSearch,
    routes: Routes,
    ranks: int,
    kinds: Sequence[str],
    *,
    top: int,
    most: int,
) -> list[_Row]:
    """Returns promising schedules on a topology, of which as many as affordable are to be run."""
    rows, left = [], most
    for notation, kind, estimate in core.orders(routes.core, ranks, kinds, keep=max(top, 16)):
        left -= ranks * _messages_of(notation)
        rows.append(_row(notation, kind, estimate, "simulation" if left >= 0 else "estimate"))
    affordable = [row for row in rows if row.method == "simulation"]
    return affordable or rows


def _messages_of(notation: str) -> int:
    """Returns the approximate number of messages of a rank."""
    stages = notation.split(",")
    return sum(int(stage.replace("m", "a").rsplit("a", 1)[-1]) for stage in stages)


def _run(
    rows: list[_Row],
    cases: list[_core.Case],
    threads: int,
    done: Callable[[int, int], object] | None,
) -> list[_Row]:
    """Returns the schedules with the times of their runs, best first."""
    if not cases:
        return rows
    times = (figures[0] for figures in measured(cases, threads, done))
    run = [row._replace(time_ps=time) for row, time in zip(rows, times, strict=True)]
    return sorted(run, key=lambda row: row.time_ps)


def _frame(rows: list[_Row], bound: int, *, verified: bool) -> pl.DataFrame:
    import polars as pl

    from tutti.collectives.frames import FOUND

    best = rows[0].time_ps
    columns = {
        "place": range(1, len(rows) + 1),
        "schedule": [row.notation for row in rows],
        "kind": [row.kind for row in rows],
        "time_ps": [row.time_ps for row in rows],
        "above_best": [row.time_ps / best - 1 for row in rows],
        "bound_ps": [bound] * len(rows),
        "method": [row.method for row in rows],
        "family": [row.notation.split(":", 1)[0] for row in rows],
        "verified": [verified and place == 0 for place in range(len(rows))],
    }
    return pl.DataFrame(columns, schema=FOUND)


def searcher(platform: Platform, size: Size) -> _core.ScheduleSearch:
    return _core.ScheduleSearch(platform.model.core, size=size.bytes)


def check_request(platform: Platform, size: Size, datatype: str) -> None:
    """Rejects invalid platforms, sizes and datatypes before the search.

    Raises:
        ConfigError: The platform is not a `Platform`.
        LayoutError: The size does not match the datatype.
    """
    make_case(schedule(f"{FAMILY}:a2", ranks=2), platform, size=size, datatype=datatype)


def _check_kinds(kinds: Sequence[str]) -> None:
    for kind in kinds:
        if kind not in KINDS:
            message = f"unknown kind of schedule `{kind}`: expected one of {', '.join(KINDS)}"
            raise AlgorithmError(message, kind="argument", fields={"name": kind})


def _unless_too_many(rows: list[_Any] | None, ranks: int) -> list[_Any]:
    if rows is None:
        message = f"{ranks} ranks have too many schedules for an exhaustive search"
        hint = "search without exhaustive"
        raise ConfigError(message, kind="invalid", hint=hint)
    return rows


def _refuse_no_result(rows: list[_Row], ranks: int, kinds: Sequence[str]) -> None:
    is_possible = ranks > 4 or not {"factored", "other"}.isdisjoint(kinds)
    if kinds and is_possible and (not rows or rows[0].time_ps > _LATEST_PS):
        message = "every schedule exceeds the range of time, 107 days"
        raise SimulationError(message, kind="time_overflow")
    if not rows:
        message = f"{ranks} ranks have no {' or '.join(kinds)} schedule"
        hint = f"expected one or more of {', '.join(KINDS)}; 5 and more ranks have all kinds"
        raise AlgorithmError(message, kind="argument", hint=hint)


def winners(
    platform: Platform,
    collective: str,
    ranks: int,
    sizes: Sequence[Size],
    *,
    done: Callable[[int], object] | None = None,
) -> list[str]:
    """Returns the best schedules of recursive multiplying for several sizes, without simulation.

    On a topology these have the best estimates. Collectives other than all_reduce have none. `done`
    is called with 1 after each size.
    """
    if collective != "all_reduce" or not 2 <= ranks <= _MOST_RANKS:
        return []
    found: dict[str, None] = {}
    for size in sizes:
        core = searcher(platform, size)
        if platform.routes is None:
            best = core.best(ranks, MULTIPLYING_KINDS, keep=1, messages=_QUICK)[0]
            found |= {row[0]: None for row in best}
        else:
            every_order = core.orders(platform.routes.core, ranks, MULTIPLYING_KINDS, keep=1)
            found |= {order[0]: None for order in every_order[:1]}
        if done is not None:
            done(1)
    return [f"{FAMILY}:{notation}" for notation in found]

"""Which schedule of recursive multiplying is fastest on a machine, out of all of that family.

Where all ranks are equally far apart, the time of a schedule is known without a run: by its closed
form, or from one rank of each class of ranks that behave alike. The search then ends with a proof
that none of the family is faster, or with a bound. On a topology the order of stages counts too:
the search chooses candidates from what each stage costs there, and runs them.

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

from tutti import _core, proving
from tutti.cases import CaseBuilder, make_case, measured
from tutti.errors import AlgorithmError, ConfigError, SimulationError
from tutti.schedule import Schedule, check_ranks, schedule

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import polars as pl

    from tutti.platform import Platform
    from tutti.topology import Routes
    from tutti.units import Size

__all__ = ["FAMILY", "KINDS", "MOST_SCHEDULES", "Found", "search", "winners"]

FAMILY = "recursive_multiplying"
"""The algorithm whose schedules are searched; schedules of others are not."""

KINDS = ("factored", "split", "merged")
"""What schedules there are: `a3,a2`, `c6m2,a2,a2,e6m2`, `m1g2a3,n1g3a2`."""

MOST_SCHEDULES = 200_000
"""An exhaustive search of more takes longer than people wait."""

_MESSAGES = 20_000_000
"""That the search looks at on a flat network: about half a second."""
_QUICK = 2_000_000
"""The same, where the search is only one candidate among others."""
_MOST_SIMULATED = 50_000_000
"""Messages that are run on a topology, of all schedules if that is enough for them, else of
candidates: a few seconds."""
_EXHAUSTIVE = 40
"""How many times as many of all schedules, if that is asked for: a few minutes."""
_MOST_RANKS = 2**24
"""Of a schedule."""
_LATEST_PS = 2**63 - 1
_Any = TypeVar("_Any")


class _Row(NamedTuple):
    notation: str
    kind: str
    time_ps: int
    method: str


@dataclass(frozen=True)
class Found:
    """What a search of one family of schedules found.

    Attributes:
        platform: the machine.
        ranks: for how many ranks.
        size: for which size.
        family: the algorithm whose schedules were searched: :data:`FAMILY`.
        kinds: which kinds of its schedules.
        frame: a row for each schedule, best first, with the columns of
            :data:`tutti.results.FOUND`. The best of each kind is always there.
        bound_ps: the lower bound of these kinds of the family; other algorithms may take less.
        scored: schedules whose time was found out.
        exhaustive: whether these were all of these kinds.
        not_verified: why the best schedule was not verified; None where it was.
    """

    platform: Platform
    ranks: int
    size: Size
    family: str
    kinds: tuple[str, ...]
    frame: pl.DataFrame
    bound_ps: int
    scored: int
    exhaustive: bool
    not_verified: str | None

    @functools.cached_property
    def schedule(self) -> Schedule:
        """The best schedule that was found."""
        return schedule(self.frame["schedule"][0], ranks=self.ranks)

    @property
    def time_ps(self) -> int:
        """How long it takes."""
        return int(self.frame["time_ps"][0])

    @property
    def proved(self) -> bool:
        """Whether no schedule of these kinds of the family is faster."""
        exact = self.frame["method"][0] != "estimate"
        return exact and (self.exhaustive or self.time_ps <= self.bound_ps)

    @property
    def gap(self) -> float:
        """By which share the best of the family can be faster at most: 0 where that is proved."""
        return 0.0 if self.proved else self.time_ps / self.bound_ps - 1

    def __repr__(self) -> str:
        sure = "proved" if self.proved else f"at most {self.gap:.2%} from the best"
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
) -> Found:
    """Finds the fastest schedules of recursive multiplying for an all_reduce on a machine.

    Schedules of other algorithms are not searched: :func:`tutti.compare` puts the best of this
    family next to them.

    Args:
        platform: the machine; its ranks are undisturbed.
        ranks: how many ranks take part; at least two.
        size: of one rank's buffer, such as ``"64 KiB"``.
        datatype: of the elements; the size is a multiple of theirs.
        kinds: which of :data:`KINDS` to consider.
        top: how many schedules to keep. Where all ranks are equally far apart, those that differ in
            the order of their stages only count as one.
        exhaustive: score every schedule there is, up to :data:`MOST_SCHEDULES` of them, and keep
            them all.
        threads: how many to run candidates in; 0 is one per core. No result depends on it.
        done: called with (finished, total) as candidates are run.
        verify: whether to verify the best schedule, by the rule of :func:`tutti.simulate`; those
            that are not the best are not verified.

    Raises:
        UnitError: the size cannot be read.
        AlgorithmError: no such number of ranks, or no such kind.
        LayoutError: the size does not suit the datatype.
        VerificationError: the best schedule does not do what it is meant to do.
        ConfigError: more schedules than an exhaustive search can score, or no number to keep.
        SimulationError: every schedule takes longer than there is time.
    """
    from tutti.units import Size

    size = Size.of_any(size)
    check_ranks(ranks)
    _check_kinds(kinds)
    if top < 1:
        raise ConfigError(f"top = {top} keeps nothing: expected at least 1", kind="invalid")
    # Refuses sizes and rank counts that do not fit, before anything takes long.
    make_case(laid_out("a2", 2), platform, size=size, datatype=datatype)
    core = searcher(platform, size)
    if platform.routes is None and exhaustive:
        every = _unless_too_many(core.all(ranks, kinds, most=MOST_SCHEDULES), ranks)
        rows = [_Row(*row) for row in every]
        bound, scored = rows[0].time_ps if rows else 0, len(rows)
    elif platform.routes is None:
        rows, bound, scored = _flat(core, ranks, kinds, top)
    else:
        most = _MOST_SIMULATED // _weight(platform, size)
        all_rows = _all(ranks, kinds, most=_EXHAUSTIVE * most if exhaustive else most)
        if exhaustive:
            _unless_too_many(all_rows, ranks)
        rows = all_rows or _candidates(core, platform.routes, ranks, kinds, top=top, most=most)
        builder = CaseBuilder(platform, datatype=datatype)
        simulated = [row.notation for row in rows if row.method != "estimate"]
        cases = [builder.case(laid_out(notation, ranks), size=size) for notation in simulated]
        rows = _run(rows, cases, threads, done)
        scored = len(cases)
        if all_rows:
            bound = rows[0].time_ps
        else:
            bound = core.best(ranks, kinds, keep=1, messages=_MESSAGES)[1]
        rows = rows if exhaustive else _top(rows, top)
    _refuse_no_result(rows, ranks, kinds)
    rows = [row for row in rows if row.time_ps <= _LATEST_PS]
    not_verified = proving.verify(laid_out(rows[0].notation, ranks), skip=not verify)
    frame = _frame(rows, bound, verified=not_verified is None)
    return Found(
        platform=platform,
        ranks=ranks,
        size=size,
        family=FAMILY,
        kinds=tuple(kinds),
        frame=frame,
        bound_ps=bound,
        scored=scored,
        exhaustive=exhaustive,
        not_verified=not_verified,
    )


def _flat(
    core: _core.ScheduleSearch, ranks: int, kinds: Sequence[str], top: int
) -> tuple[list[_Row], int, int]:
    """The best of all kinds and of each, their lower bound, and how many were scored."""
    found, bound, scored = core.best(ranks, kinds, keep=top, messages=_MESSAGES)
    rows = [_Row(*row) for row in found]
    if top > 1:
        # The proof is quicker for one schedule than for several.
        first, bound, more = core.best(ranks, kinds, keep=1, messages=_MESSAGES)
        scored += more
        rows = _merge(rows, [_Row(*row) for row in first])
    for kind in kinds:
        if not any(row.kind == kind for row in rows):
            of_kind, _, more = core.best(ranks, [kind], keep=1, messages=_QUICK)
            rows = _merge(rows, [_Row(*row) for row in of_kind])
            scored += more
    return rows, bound, scored


def _merge(rows: list[_Row], more: list[_Row]) -> list[_Row]:
    """All rows by time, none twice."""
    known = {row.notation for row in rows}
    return sorted(
        rows + [row for row in more if row.notation not in known], key=lambda row: row.time_ps
    )


def _top(rows: list[_Row], top: int) -> list[_Row]:
    """The first ones, and the best of each kind."""
    firsts = {row.kind: row for row in reversed(rows)}
    return [row for place, row in enumerate(rows) if place < top or row in firsts.values()]


def _all(ranks: int, kinds: Sequence[str], *, most: int) -> list[_Row] | None:
    """Every schedule, to be run; None if that takes more than so many messages."""
    every = _core.schedules_of(ranks, kinds, most=MOST_SCHEDULES)
    if every is None or ranks * sum(_messages_of(notation) for notation, _ in every) > most:
        return None
    return [_Row(notation, kind, 0, "simulation") for notation, kind in every]


def _weight(platform: Platform, size: Size) -> int:
    """How many messages without packets a message on this machine costs as much as to run."""
    if platform.flits is not None:
        return 10 * max(1, size.bytes // platform.flits.flit.bytes)
    if platform.packets is None:
        return 1
    return 10 * max(1, size.bytes // platform.packets.size.bytes)


def _candidates(
    core: _core.ScheduleSearch,
    routes: Routes,
    ranks: int,
    kinds: Sequence[str],
    *,
    top: int,
    most: int,
) -> list[_Row]:
    """What is likely to be good on a topology; as much of it as can be run is to be run."""
    rows, left = [], most
    for notation, kind, estimate in core.orders(routes.core, ranks, kinds, keep=max(top, 16)):
        left -= ranks * _messages_of(notation)
        rows.append(_Row(notation, kind, estimate, "simulation" if left >= 0 else "estimate"))
    affordable = [row for row in rows if row.method == "simulation"]
    return affordable or rows


def _messages_of(notation: str) -> int:
    """About how many messages a rank sends."""
    stages = notation.split(",")
    return sum(int(stage.replace("m", "a").rsplit("a", 1)[-1]) for stage in stages)


def _run(
    rows: list[_Row],
    cases: list[_core.Case],
    threads: int,
    done: Callable[[int, int], object] | None,
) -> list[_Row]:
    """The schedules with the times of their runs, best first; as they are if none is to be run."""
    if not cases:
        return rows
    times = (figures[0] for figures in measured(cases, threads, done))
    run = [row._replace(time_ps=time) for row, time in zip(rows, times, strict=True)]
    return sorted(run, key=lambda row: row.time_ps)


def _frame(rows: list[_Row], bound: int, *, verified: bool) -> pl.DataFrame:
    import polars as pl

    from tutti.results import FOUND

    best = rows[0].time_ps
    columns = {
        "place": range(1, len(rows) + 1),
        "schedule": [f"{FAMILY}:{row.notation}" for row in rows],
        "kind": [row.kind for row in rows],
        "time_ps": [row.time_ps for row in rows],
        "above_best": [row.time_ps / best - 1 for row in rows],
        "bound_ps": [bound] * len(rows),
        "method": [row.method for row in rows],
        "family": [FAMILY] * len(rows),
        "verified": [verified and place == 0 for place in range(len(rows))],
    }
    return pl.DataFrame(columns, schema=FOUND)


def searcher(platform: Platform, size: Size) -> _core.ScheduleSearch:
    return _core.ScheduleSearch(platform.model.core, size=size.bytes)


def laid_out(notation: str, ranks: int) -> Schedule:
    return schedule(f"{FAMILY}:{notation}", ranks=ranks)


def _check_kinds(kinds: Sequence[str]) -> None:
    for kind in kinds:
        if kind not in KINDS:
            message = f"there is no kind of schedule `{kind}`: expected one of {', '.join(KINDS)}"
            raise AlgorithmError(message, kind="argument", fields={"name": kind})


def _unless_too_many(rows: list[_Any] | None, ranks: int) -> list[_Any]:
    if rows is None:
        message = f"{ranks} ranks have more schedules than can be scored one by one"
        hint = "search without exhaustive: that looks where the best ones can be"
        raise ConfigError(message, kind="invalid", hint=hint)
    return rows


def _refuse_no_result(rows: list[_Row], ranks: int, kinds: Sequence[str]) -> None:
    if kinds and (ranks > 4 or "factored" in kinds) and (not rows or rows[0].time_ps > _LATEST_PS):
        message = "every schedule takes longer than the range of time, 107 days"
        raise SimulationError(message, kind="time_overflow")
    if not rows:
        message = f"{ranks} ranks have no {' or '.join(kinds)} schedule"
        hint = f"expected one or more of {', '.join(KINDS)}; 5 and more ranks have all of them"
        raise AlgorithmError(message, kind="argument", hint=hint)


def winners(
    platform: Platform,
    collective: str,
    ranks: int,
    sizes: Sequence[Size],
    *,
    done: Callable[[int], object] | None = None,
) -> list[str]:
    """The notations that a quick search finds best at some sizes, each once: nothing is run for it.

    On a topology these are the schedules with the best estimates. None but of an all_reduce. `done`
    is called with 1 after each size.
    """
    if collective != "all_reduce" or not 2 <= ranks <= _MOST_RANKS:
        return []
    found: dict[str, None] = {}
    for size in sizes:
        core = searcher(platform, size)
        if platform.routes is None:
            best = core.best(ranks, KINDS, keep=1, messages=_QUICK)[0]
            found |= {row[0]: None for row in best}
        else:
            every_order = core.orders(platform.routes.core, ranks, KINDS, keep=1)
            found |= {order[0]: None for order in every_order[:1]}
        if done is not None:
            done(1)
    return [f"{FAMILY}:{notation}" for notation in found]

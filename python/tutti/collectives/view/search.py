"""What a search of schedules shows: a ranking at one size, or the best schedule of each size."""

from __future__ import annotations

from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any

from tutti.base.units import Size
from tutti.collectives.schedule_search import FAMILY, MULTIPLYING_KINDS
from tutti.view.quantity import format_share, format_time, plural
from tutti.view.tables import Column, ReportTable, records_of
from tutti.view.view import Data, Fact, View

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from tutti.collectives.schedule_search import SearchResult

Row = dict[str, Any]


def _size(size_bytes: int) -> str:
    return str(Size(bytes=size_bytes))


def _longer(row: Row) -> str:
    share = row["above_best"]
    if row["place"] == 1:
        return ""
    return f"{share + 1:,.0f} x" if share > 9 else format_share(share)


def _schedule(row: Row) -> str:
    return str(row["schedule"].removeprefix(f"{FAMILY}:"))


FOUND: tuple[Column[Row], ...] = (
    Column("", itemgetter("place"), str),
    Column("schedule", _schedule, kind="wrap"),
    Column("kind", itemgetter("kind")),
    Column("time", itemgetter("time_ps"), format_time),
    Column("slower", _longer, kind="number"),
    Column("method", itemgetter("method")),
)
"""The quantities of a schedule of a ranking."""

THRESHOLDS: tuple[Column[Row], ...] = (
    Column("from size", itemgetter("from_bytes"), _size),
    Column("to size", itemgetter("to_bytes"), _size),
    Column("schedule", _schedule, kind="wrap"),
    Column("kind", itemgetter("kind")),
    Column("time", itemgetter("time_from_ps"), format_time),
    Column("to time", itemgetter("time_to_ps"), format_time),
)
"""The quantities of a range of sizes with one best schedule."""

PROOFS: tuple[Column[SearchResult], ...] = (
    Column("ranks", attrgetter("ranks"), key="ranks"),
    Column("size", attrgetter("size.bytes"), key="size_bytes"),
    Column("scored", attrgetter("scored"), key="scored"),
    Column("exhaustive", attrgetter("exhaustive"), key="exhaustive"),
    Column("optimal", attrgetter("proved"), key="proved_optimal"),
    Column("lower bound", attrgetter("bound_ps"), key="bound_ps"),
    Column("gap", attrgetter("gap"), key="gap"),
    Column("not verified", attrgetter("not_verified"), key="not_verified"),
)
"""How certain the first place of a ranking is."""


def ranking_view(result: SearchResult, model: str, top: int) -> View:
    """Returns what a search at one rank count and size shows.

    Args:
        result: The result.
        model: The name of the platform's model.
        top: The number of rows; the best schedule of each kind is added.
    """
    where = f"{result.ranks:,} ranks of {result.platform.name}, model {model}"
    return View(
        headline=Fact("", f"{where}, all_reduce of {result.size}: {family(result.kinds)}"),
        tables=[ReportTable(FOUND, result.frame.head(top + 2).to_dicts())],
        data=[Data("proofs", lambda: records_of(PROOFS, [result]))],
        below=[_verdict(result)],
    )


def thresholds_view(
    frame: pl.DataFrame, ranks: int, platform: str, model: str, kinds: Sequence[str]
) -> View:
    """Returns what a search of the best schedule of each size shows.

    Args:
        frame: The ranges of sizes, with the columns of `tutti.collectives.frames.THRESHOLDS`.
        ranks: The rank count.
        platform: The name of the platform.
        model: The name of its model.
        kinds: The searched kinds of schedules.
    """
    text = f"{ranks:,} ranks of {platform}, model {model}: fastest of the {family(kinds)} by size"
    return View(
        headline=Fact("", text),
        tables=[ReportTable(THRESHOLDS, frame.to_dicts())],
        below=[_proof(max(frame["gap"]), kinds)],
    )


def family(kinds: Sequence[str]) -> str:
    """Returns the name of the searched schedules."""
    of_family = [kind for kind in kinds if kind != "other"]
    chosen = f"{' and '.join(of_family)} " if len(of_family) < len(MULTIPLYING_KINDS) else ""
    names = [f"{chosen}schedules of {FAMILY.replace('_', ' ')}"] if of_family else []
    return " and ".join(names + ["other algorithms"] * ("other" in kinds))


def _searched(kinds: Sequence[str]) -> str:
    """Returns the name of the searched schedules in a sentence on proofs and bounds."""
    return "searched schedules" if "other" in kinds else family(kinds)


def _verdict(result: SearchResult) -> str:
    """Returns a sentence on how certain the first place is."""
    scored, searched = f"{plural(result.scored, 'schedule')} scored", _searched(result.kinds)
    if result.exhaustive:
        return f"{scored}: all {searched}"
    if result.proved:
        return f"{scored}; verified optimal: none of the {searched} is faster"
    if result.frame["method"][0] == "estimate":
        return "too large to simulate: ordered by estimates"
    bound, gap = format_time(result.bound_ps), format_share(result.gap)
    return f"{scored}; lower bound of the {searched}: {bound}; the first is {gap} slower"


def _proof(gap: float, kinds: Sequence[str]) -> str:
    """Returns a sentence on how certain the best schedules are."""
    searched = _searched(kinds)
    if gap == 0:
        return f"verified optimal at both ends of each range: none of the {searched} is faster"
    longer = f"at most {format_share(gap)} above the lower bound of the {searched}"
    return f"at both ends of each range {longer}"

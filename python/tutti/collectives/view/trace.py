"""What the simulation of a trace shows: its completion time, and the times of ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from tutti.view.quantity import count, format_time
from tutti.view.tables import Column, ReportTable, frame_of
from tutti.view.view import Data, Fact, View, json_facts

if TYPE_CHECKING:
    from tutti.collectives.trace_run import TraceRun
    from tutti.workloads.operations import Trace

_SHOWN_RANKS: Final = 16


class RankTimes(NamedTuple):
    """A rank, when its last operation completes, and how long operations occupy its streams."""

    rank: int
    finish_ps: int
    busy_ps: int


RANKS: tuple[Column[RankTimes], ...] = (
    Column("rank", lambda row: row.rank, count, key="rank"),
    Column("finish", lambda row: row.finish_ps, format_time, key="finish_ps"),
    Column("busy", lambda row: row.busy_ps, format_time, key="busy_ps"),
)
"""The quantities of a rank."""


def trace_view(trace: Trace, run: TraceRun, platform: str) -> View:
    """Returns what the simulation of a trace shows.

    Args:
        trace: The trace, without collectives.
        run: The simulation.
        platform: The name of the platform.
    """
    operations = trace.operations
    times = zip(run.finish_ps, run.busy_ps, strict=True)
    rows = [RankTimes(rank, *both) for rank, both in enumerate(times)]
    more = len(rows) - _SHOWN_RANKS
    captions = [f"and {more:,} more ranks"] if more > 0 else []
    if any(row.busy_ps > row.finish_ps for row in rows):
        captions.append("busy: the sum of the streams of a rank, which overlap")
    counts = (
        f"{len(rows):,} ranks, {operations:,} operations, {run.messages:,} messages, "
        f"{run.message_bytes:,} B"
    )
    return View(
        headline=Fact("", f"{trace.name} on {platform}: {format_time(run.completion_ps)}"),
        tables=[
            ReportTable(RANKS, rows[:_SHOWN_RANKS], gap=2, caption="; ".join(captions))
        ] if rows else [],
        facts=[
            Fact("trace", counts, "trace", trace.name),
            *json_facts(
                platform=platform, ranks=len(rows), operations=operations,
                time_ps=run.completion_ps, messages=run.messages,
                message_bytes=run.message_bytes,
            ),
        ],
        data=[Data("ranks", lambda: frame_of(RANKS, rows))],
    )  # fmt: skip

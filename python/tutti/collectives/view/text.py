"""The timeline of a run as text: a line per rank, a character per kind of op."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from tutti import _core

if TYPE_CHECKING:
    from collections.abc import Iterator

_SHOWN_RANKS = 16
"""Ranks in the timeline."""
_WAIT = "wait"
MARKS = {
    "launch": "|",
    "latency": "|",
    "send": ">",
    "recv": "<",
    "reduce": "+",
    "copy": "=",
    "compute": "#",
    "wait": ".",
    "sleep": "z",
    "noise": "~",
}
"""The character for each kind of op."""


def timeline_lines(timeline: pl.DataFrame, ranks: int, width: int) -> Iterator[str]:
    """Yields a line per rank and a legend.

    A column shows the kind of op with the longest time; waits only without other ops, which are
    often much shorter than a column. If ranks only wait, there are no lines of ranks. Of several
    channels, the first is shown.

    Args:
        timeline: The timeline frame of a run, times in picoseconds.
        ranks: The number of ranks; the first ones are shown.
        width: The width of a rank's timeline, in characters.
    """
    channels = timeline["channel"].n_unique()
    timeline = timeline.filter(channel=0)
    kinds = set(timeline["kind"].unique())
    end = int(timeline["end_ps"].cast(pl.Int64).max() or 0)  # type: ignore[arg-type]
    if kinds <= {_WAIT}:
        yield f"       0 to {_core.format_time(end)}: ranks wait; no other op takes time"
        return
    shown = min(ranks, _SHOWN_RANKS)
    for rank in range(shown):
        spans = timeline.filter(pl.col("rank") == rank)
        yield f"{rank:>5} |{_line(spans, end, width)}|"
    legend = ", ".join(f"{mark} {kind}" for kind, mark in MARKS.items() if kind in kinds)
    drawn = f"; channel 0 of {channels}" if channels > 1 else ""
    yield f"       0 to {_core.format_time(end)}: {legend}{drawn}"
    if shown < ranks:
        yield f"       ranks {shown} to {ranks - 1}: see timeline.parquet"


def _line(spans: pl.DataFrame, end: int, width: int) -> str:
    spent = [dict.fromkeys(MARKS, 0) for _ in range(width)]
    for kind, start, stop in spans.select("kind", "start_ps", "end_ps").iter_rows():
        first, last = start * width // end, min(stop * width // end, width - 1)
        for column in range(first, last + 1):
            left, right = column * end // width, (column + 1) * end // width
            spent[column][kind] += max(0, min(stop, right) - max(start, left))
    return "".join(_mark(column) for column in spent)


def _mark(spent: dict[str, int]) -> str:
    kind = max(spent, key=lambda name: (spent[name] > 0, name != _WAIT, spent[name]))
    return MARKS[kind] if spent[kind] else " "

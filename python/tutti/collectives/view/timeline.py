"""Reads the timeline and message frames of a run (`Run.timeline`, `Run.messages`).

Times are in picoseconds. Drawings show a limited number of ranks, ops and messages and state it;
traces have all.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from tutti.view.errors import ReportError

if TYPE_CHECKING:
    from collections.abc import Iterator


def label(kind: str, peer: int | None) -> str:
    """Returns, for example, `send to 3`, `recv from 2`, `multicast` or the kind of a local op."""
    if peer is None:
        return "multicast" if kind == "send" else kind
    return f"{kind} {'to' if kind == 'send' else 'from'} {peer}"


class Bar(NamedTuple):
    """One op of a rank."""

    rank: int
    channel: int
    step: int
    name: str
    kind: str
    start_ps: int
    end_ps: int
    peer: int | None
    bytes: int | None

    @property
    def duration_ps(self) -> int:
        """The duration in picoseconds."""
        return self.end_ps - self.start_ps

    @property
    def label(self) -> str:
        """The label of its kind and peer."""
        return label(self.kind, self.peer)


@dataclass(slots=True, eq=False)
class Arrow:
    """One message: its send time, its arrival time and its receive time; compared by identity."""

    source: int
    destination: int
    channel: int
    index: int
    bytes: int
    sent_ps: int
    arrival_ps: int
    received_ps: int


@dataclass(frozen=True)
class Picture:
    """The drawn part of a run: it ends at `end_ps`, the complete run at `complete_ps`."""

    bars: tuple[Bar, ...]
    arrows: tuple[Arrow, ...]
    ranks: tuple[int, ...]
    end_ps: int
    complete_ps: int
    notes: tuple[str, ...]


_BAR_COLUMNS = Bar._fields
ARROW_COLUMNS = tuple(one.name for one in fields(Arrow))


def bars(timeline: pl.DataFrame) -> list[Bar]:
    """Returns the ops of a timeline frame, by rank, channel and time.

    Raises:
        ReportError: Columns are missing.
    """
    return [Bar(*row) for row in ordered_bars(timeline).iter_rows()]


def ordered_bars(timeline: pl.DataFrame) -> pl.DataFrame:
    """Returns the columns of :class:`Bar`, by rank, channel and time.

    Raises:
        ReportError: Columns are missing.
    """
    timeline = _checked(timeline, _BAR_COLUMNS, "timeline")
    return timeline.select(_BAR_COLUMNS).sort("rank", "channel", "start_ps", maintain_order=True)


def arrows(messages: pl.DataFrame | None) -> list[Arrow]:
    """Returns the messages of a message frame, by send time.

    Raises:
        ReportError: Columns are missing.
    """
    ordered = ordered_arrows(messages)
    return [] if ordered is None else [Arrow(*row) for row in ordered.iter_rows()]


def ordered_arrows(messages: pl.DataFrame | None) -> pl.DataFrame | None:
    """Returns the columns of :class:`Arrow`, by send time; None without messages.

    Raises:
        ReportError: Columns are missing.
    """
    if messages is None:
        return None
    messages = _checked(messages, ARROW_COLUMNS, "message frame")
    return messages.select(ARROW_COLUMNS).sort("sent_ps", "source", "destination", "index")


def picture(
    timeline: pl.DataFrame,
    messages: pl.DataFrame | None,
    most_ranks: int = 64,
    most_bars: int = 4000,
    most_arrows: int = 1000,
) -> Picture:
    """Returns the part of a run that fits a drawing; its notes state the omissions.

    Raises:
        ReportError: Columns are missing, or the timeline is empty.
    """
    timeline = _checked(timeline, _BAR_COLUMNS, "timeline")
    if timeline.is_empty():
        raise ReportError("the timeline is empty: nothing to draw", kind="frame")
    every = sorted(timeline["rank"].unique().to_list())
    ranks = every[:most_ranks]
    notes = []
    if len(ranks) < len(every):
        notes.append(f"The first {len(ranks)} of {len(every)} ranks are drawn.")
    channels = timeline["channel"].n_unique()
    if channels > 1:
        notes.append(f"Channel 0 of {channels} is drawn.")
    inside_ranks = bars(timeline.filter(pl.col("rank").is_in(ranks), channel=0))
    shown = sorted(inside_ranks, key=lambda bar: (bar.start_ps, bar.rank))[:most_bars]
    if len(shown) < len(inside_ranks):
        notes.append(f"The first {len(shown)} of {len(inside_ranks)} ops are drawn.")
    sent = [arrow for arrow in arrows(messages) if arrow.channel == 0]
    inside = [a for a in sent if a.source in ranks and a.destination in ranks]
    drawn = inside[:most_arrows]
    if len(drawn) < len(inside):
        notes.append(f"The first {len(drawn)} of {len(inside)} messages are drawn.")
    ends = [bar.end_ps for bar in shown] + [arrow.received_ps for arrow in drawn]
    last = int(timeline.get_column("end_ps").max() or 0)  # type: ignore[arg-type]
    return Picture(
        tuple(shown), tuple(drawn), tuple(ranks), max(ends, default=0), last, tuple(notes)
    )


def steps(ops: list[Bar]) -> Iterator[tuple[Bar, list[Bar]]]:
    """Yields a bar per step of one rank and channel, with the ops of the step."""
    group: list[Bar] = []
    for bar in ops:
        if group and bar.step != group[0].step:
            yield _around(group), group
            group = []
        group.append(bar)
    if group:
        yield _around(group), group


def _around(group: list[Bar]) -> Bar:
    first = group[0]
    end = max(bar.end_ps for bar in group)
    return Bar(
        first.rank, first.channel, first.step, first.name, "step", first.start_ps, end, None, None
    )


def _checked(frame: pl.DataFrame, columns: tuple[str, ...], what: str) -> pl.DataFrame:
    """Returns a frame with all columns; without a channel, there is one."""
    missing = [name for name in columns if name not in (*frame.columns, "channel")]
    if missing:
        raise ReportError(f"the {what} lacks the columns {', '.join(missing)}", kind="frame")
    return frame if "channel" in frame.columns else frame.with_columns(channel=0)

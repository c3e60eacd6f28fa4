"""Tables for the terminal, at 80 columns: who is fastest, and how far behind the others are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tutti.errors import ReportError

from . import comparison as reading
from . import words
from .breakable import Breakable
from .palette import styles
from .quantity import format_limit, format_rate, format_size, format_time

if TYPE_CHECKING:
    import polars as pl
    from rich.table import Table

    from .comparison import Measured


def comparison_table(
    frame: pl.DataFrame, ranks: int, size_bytes: int, most: int | None = None
) -> Table:
    """The schedules at one rank count and size, the fastest first.

    Args:
        frame: the frame of `tutti.compare`, of one collective, datatype, model and platform.
        ranks: the rank count.
        size_bytes: the size, in bytes.
        most: how many schedules to list; by default all.

    Raises:
        ReportError: when the frame holds no such point, or several cases.
    """
    from rich.table import Table

    case = reading.only_case(frame)
    rows = [m for m in case.measured if m.ranks == ranks and m.size_bytes == size_bytes]
    if not rows:
        raise ReportError(
            f"nothing was compared at {ranks} ranks and {format_size(size_bytes)}", kind="frame"
        )
    rows.sort(key=lambda m: (m.time_ps, m.schedule))
    table = Table(
        title=f"{case.collective} on {ranks:,} ranks, {format_size(size_bytes)}",
        caption=f"{case.platform}, {case.model}",
        title_justify="left",
        caption_justify="left",
    )
    table.add_column("#", justify="right")
    table.add_column("schedule")
    repeated = any(one.repetitions > 1 for one in rows)
    spread = ("least", "quartiles") if repeated else ()
    first = ("median" if repeated else "time", *spread)
    for heading in (*first, "behind", "% of limit", "busbw", "messages"):
        table.add_column(heading, justify="right", no_wrap=True)
    for place, one in enumerate(rows[:most], start=1):
        cells = _cells(place, one, rows[0].time_ps, spread=repeated)
        table.add_row(*cells, style="bold" if place == 1 else None)
    if most is not None and len(rows) > most:
        table.caption = f"{table.caption}; {len(rows) - most} more schedules"
    return table


def _cells(place: int, one: Measured, best_ps: int, *, spread: bool) -> tuple[str | Breakable, ...]:
    behind = "" if one.time_ps == best_ps or not best_ps else f"{one.time_ps / best_ps:.2f} x"
    messages = f"{one.messages:,}" if one.messages is not None else "-"
    return (
        str(place),
        Breakable(one.schedule),
        format_time(one.time_ps),
        *(words.spread(one) if spread else ()),
        behind,
        format_limit(one.of_limit),
        format_rate(one.busbw),
        messages,
    )


def decision_table(frame: pl.DataFrame) -> Table:
    """Which algorithm wins at which rank counts and sizes, and by how much.

    Raises:
        ReportError: when the frame has nothing to compare, or several cases.
    """
    from rich.table import Table

    case = reading.only_case(frame)
    table = Table(
        title=f"Fastest {case.collective} on {case.platform}",
        caption=f"{case.model}; behind: how much longer the runner-up takes",
        title_justify="left",
        caption_justify="left",
    )
    table.add_column("ranks", justify="right", no_wrap=True)
    table.add_column("sizes", no_wrap=True)
    table.add_column("fastest")
    table.add_column("behind", justify="right")
    colours = styles(case.algorithms)
    last = ""
    for row in words.region_rows(case):
        lines, colour = row["schedules"].splitlines(), colours[row["winner"]].colour
        name = Breakable(*lines, styles=(colour,))
        if last and row["ranks"] != last:
            table.add_section()
        shown = "" if row["ranks"] == last else row["ranks"]
        table.add_row(shown, row["sizes"], name, row["margin"])
        last = row["ranks"]
    return table

"""Results of a sweep: what it shows, filtered by key, or drawn as time against a swept key."""

from __future__ import annotations

from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from tutti.base.errors import UnitError
from tutti.base.units import Size, Time
from tutti.collectives.columns import SWEPT
from tutti.view.errors import ReportError
from tutti.view.palette import styles
from tutti.view.plot import axes_at, line_look, plain_numbers
from tutti.view.quantity import count, format_share, format_size, format_time, plural, time_unit
from tutti.view.tables import Column, ReportTable
from tutti.view.view import Data, Fact, View

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from matplotlib.axes import Axes

    from tutti.sweeps.files import Sweep
    from tutti.sweeps.session import Session

Row = dict[str, Any]
_MOST_ROWS = 20
"""Rows of a sweep in the terminal."""
_MOST_TICKS = 10
_NUMBERS = ("_ps", "_bytes", "_ps_per_byte")


FASTEST: tuple[Column[Row], ...] = (
    Column("ranks", itemgetter("ranks"), count),
    Column("size", itemgetter("size_bytes"), lambda size: str(Size(bytes=size))),
    Column("fastest", itemgetter("schedule"), kind="wrap"),
    Column("time", itemgetter("time_ps"), format_time),
)
"""The fastest schedule at a point, rank count and size; the time is the median."""
STEPS: tuple[Column[Row], ...] = (
    Column("configuration", itemgetter("configuration"), kind="wrap"),
    Column("time", itemgetter("total_ps"), format_time),
    Column("exposed", itemgetter("exposed_ps"), format_time),
    Column("of bound", itemgetter("of_bound"), format_share),
)
"""The quantities of a training step at a point."""


def sweep_view(frame: pl.DataFrame, sweep: Sweep, *, has_table: bool = True) -> View:
    """Returns what a sweep shows: the fastest schedule or the steps at each point.

    Args:
        frame: The results: see `tutti.sweeps.sweep`.
        sweep: The sweep.
        has_table: Whether the terminal shows a table.
    """
    rows, columns, keys = frame, STEPS, list(sweep.keys)
    if sweep.template.kind != "training":
        rows, columns = _fastest(frame, keys), FASTEST
        keys = [key for key in keys if key not in {"ranks", "sizes", "algorithms"}]
    swept = [Column(short_key(key, keys), text_of(key), kind="wrap") for key in keys]
    table = ReportTable([*swept, *columns], rows.head(_MOST_ROWS).to_dicts(), gap=2)
    rest = rows.height - _MOST_ROWS
    return View(
        tables=[table] if has_table and frame.height else [],
        data=[Data("results", lambda: frame, ["results.parquet", "results.csv"])],
        below=[f"{rest:,} more rows in results.parquet"] if has_table and rest > 0 else [],
    )


def status_view(session: Session, stored: Path) -> View:
    """Returns how much of a sweep is finished.

    Args:
        session: The session.
        stored: The folder of finished measurements.
    """
    points, total, finished = len(session.plan.sweep.points), session.total, session.finished
    left = total - finished
    values = {"points": points, "measurements": total, "finished": finished, "missing": left}
    return View(
        headline=Fact("", f"{plural(points, 'point')}, {plural(total, 'measurement')}"),
        facts=[
            Fact("", key=key, value=value) for key, value in {**values, "cache": stored}.items()
        ],
        below=[f"{finished:,} finished, in {stored}; {left:,} missing"],
    )


def _fastest(frame: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """Returns the fastest schedule at each point, rank count and size, in sweep order.

    Repetitions are represented by their lower median, which is a simulated time.
    """
    at = [*(f"{SWEPT}{key}" for key in keys), "ranks", "size_bytes"]
    median = pl.col("time_ps").quantile(0.5, "lower").cast(pl.Int64)
    fastest = (
        frame.group_by(*at, "schedule", maintain_order=True)
        .agg(median)
        .sort("time_ps", maintain_order=True)
        .group_by(at, maintain_order=True)
        .first()
    )
    order = frame.select(at).unique(maintain_order=True)
    return order.join(fastest, on=at, nulls_equal=True, maintain_order="left")


def text_of(key: str) -> Callable[[Row], str]:
    """Returns a function that returns the value of a swept key as text; empty if it has none."""
    return lambda row: "" if (value := row[f"{SWEPT}{key}"]) is None else str(value)


def short_key(key: str, keys: Sequence[str]) -> str:
    """Returns the last part of a key path if no other key ends in it, else the path."""
    last = key.rsplit(".", 1)[-1]
    return last if sum(other.rsplit(".", 1)[-1] == last for other in keys) == 1 else key


def swept_keys(frame: pl.DataFrame) -> list[str]:
    """Returns the keys with several values in a frame, in the order of the sweep."""
    columns = [name for name in frame.columns if name.startswith(SWEPT)]
    numbers = {f"{name}{suffix}" for name in columns for suffix in _NUMBERS}
    return [
        name.removeprefix(SWEPT)
        for name in columns
        if name not in numbers and frame[name].n_unique() > 1
    ]


def where(frame: pl.DataFrame, conditions: Sequence[str]) -> pl.DataFrame:
    """Returns the rows that satisfy all conditions.

    Args:
        frame: Results of a sweep or a comparison.
        conditions: Conditions ``KEY=VALUE``. KEY is a swept key or a column. VALUE is written as
            in the file of the sweep, without quotes. For columns of ps or bytes, it may be a time
            or a size with its unit.

    Raises:
        ReportError: A key is unknown, or no row has the value.
    """
    for condition in conditions:
        key, equals, value = condition.partition("=")
        name = next((n for n in (f"{SWEPT}{key}", key) if n in frame.columns), None)
        if not equals or name is None:
            keys = ", ".join(swept_keys(frame)) or "none"
            problem = f"cannot filter by {condition!r}: expected KEY=VALUE; swept keys: {keys}"
            raise ReportError(problem, kind="choice")
        accepted = [value, _without_unit(name, value)]
        chosen = frame.filter(pl.col(name).cast(pl.String).is_in(accepted))
        if chosen.is_empty():
            known = frame[name].unique(maintain_order=True).cast(pl.String).to_list()
            values = ", ".join(str(one) for one in known[:12])
            raise ReportError(
                f"no row has {key} = '{value}': expected one of {values}", kind="choice"
            )
        frame = chosen
    return frame


def _without_unit(column: str, value: str) -> str:
    """Returns a quantity in the unit of the column, and any other value unmodified."""
    try:
        if column.endswith("_ps"):
            return str(Time.parse(value).ps)
        if column.endswith("_bytes"):
            return str(Size.parse(value).bytes)
    except UnitError:
        pass
    return value


def plot_swept(
    path: str | Path,
    frame: pl.DataFrame,
    key: str | None = None,
    ranks: int | None = None,
) -> Path:
    """Draws time against a swept key, a line per schedule.

    Args:
        path: The file to write; `.svg`, `.png` or `.pdf`.
        frame: Results of a sweep.
        key: The swept key; optional if the sweep has one key.
        ranks: The rank count; by default the largest.

    Returns:
        The path written.

    Raises:
        ReportError: The key is unknown, or several values of another key remain.
    """
    frame = frame.filter(frame["time_ps"].is_not_null())
    if frame.is_empty():
        raise ReportError("the sweep has no rows with a time: nothing to draw", kind="frame")
    keys = swept_keys(frame)
    chosen = key or (keys[0] if len(keys) == 1 else "")
    column = f"{SWEPT}{chosen}"
    if column not in frame.columns:
        cause = f"{key!r} is not swept" if key else "the sweep does not have exactly one key"
        problem = f"{cause}: expected one of {', '.join(keys) or 'the keys of a sweep'}"
        raise ReportError(problem, kind="choice")
    if isinstance(frame.schema[column], pl.List):  # values such as `sizes = [[8, 64], [1024]]`
        texts = pl.col(column).list.eval(pl.element().cast(pl.String)).list.join(", ")
        frame = frame.with_columns(texts)
    at = ranks if ranks is not None else max(frame["ranks"])
    rows = frame if chosen == "ranks" else frame.filter(ranks=at)
    if rows.is_empty():
        raise ReportError(f"the sweep has no rows at {at} ranks", kind="choice")
    _refuse_several(rows, chosen)
    first = rows.row(0, named=True)
    what = {"ranks": f"{at:,} ranks", "sizes": format_size(first["size_bytes"])} | {chosen: ""}
    title = ", ".join(
        [f"{first['collective']} on {first['platform']}", *filter(None, what.values())]
    )
    with axes_at(path, x=chosen, title=title, columns=2) as axes:
        _lines(axes, rows, column)
    return Path(path)


def _refuse_several(rows: pl.DataFrame, chosen: str) -> None:
    """Refuses rows with several values of another key.

    Raises:
        ReportError: Another key has several values.
    """
    fixed = [other for other in swept_keys(rows) if other not in {chosen, "seed", "algorithms"}]
    if rows["size_bytes"].n_unique() > 1 and chosen != "sizes" and "sizes" not in fixed:
        fixed.append("size_bytes")
    if fixed:
        problem = f"several values of {', '.join(fixed)} would share a line"
        hint = f"choose one: --where '{fixed[0]}=VALUE'"
        raise ReportError(problem, kind="frame", hint=hint)


def _lines(axes: Axes, rows: pl.DataFrame, column: str) -> None:
    """Draws medians of repetitions, at the numbers of the key or else in the order of the sweep."""
    places = _places(rows, column)
    median = pl.col("time_ps").quantile(0.5, "lower")
    times: dict[str, dict[str, float]] = {}
    for schedule, value, time in (
        rows.group_by("schedule", pl.col(column).cast(pl.String), maintain_order=True)
        .agg(median)
        .iter_rows()
    ):
        times.setdefault(schedule, {})[str(value)] = time
    every = sorted(time for line in times.values() for time in line.values())
    factor, unit = time_unit(every[len(every) // 2])
    chosen = styles(times)
    for schedule, line in times.items():
        values = sorted(line, key=places.__getitem__)
        xs, ys = [places[value] for value in values], [line[value] / factor for value in values]
        axes.plot(xs, ys, label=schedule, **line_look(chosen[schedule]))
    axes.set_ylabel(f"time ({unit})")
    _scales(axes, places, every)


def _scales(axes: Axes, places: Mapping[str, float], times: Sequence[float]) -> None:
    """Sets logarithmic scales for wide ranges, and ticks at some of the swept values."""
    at = sorted(places.values())
    if _is_wide(at):
        axes.set_xscale("log")
    if _is_wide(times):
        axes.set_yscale("log")
        plain_numbers(axes, x=False)
    else:
        axes.set_ylim(bottom=0)
    ticks = sorted(places, key=places.__getitem__)[:: max(1, -(-len(places) // _MOST_TICKS))]
    axes.set_xticks([places[value] for value in ticks], ticks)
    plain_numbers(axes, y=False)


def _places(rows: pl.DataFrame, column: str) -> dict[str, float]:
    """Returns the position of each value: its number, or its place in the sweep."""
    names = (*(f"{column}{suffix}" for suffix in _NUMBERS), column)
    for name in names:
        if name in rows.columns and rows[name].dtype.is_numeric() and not rows[name].has_nulls():
            number = pl.col(name).cast(pl.Float64).alias("number")
            pairs = rows.select(pl.col(column).cast(pl.String), number).unique()
            return dict(pairs.iter_rows())
    values = rows[column].cast(pl.String).unique(maintain_order=True).to_list()
    return {str(value): float(place) for place, value in enumerate(values)}


def _is_wide(values: Sequence[float]) -> bool:
    return values[0] > 0 and values[-1] > 10 * values[0]

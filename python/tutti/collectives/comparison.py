"""Reads a comparison frame: the fastest algorithm at each point, and its margin.

The input is the frame of `tutti.compare`, a row per measurement. The median represents
repetitions; the fastest schedule represents its algorithm.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, fields
from itertools import groupby
from typing import Any

import polars as pl

from tutti.collectives.columns import BASELINE, SWEPT
from tutti.collectives.frames import spread
from tutti.view.errors import ReportError

CASE_COLUMNS = ("collective", "datatype", "model", "platform")
_POINT_COLUMNS = ("ranks", "size_bytes", "algorithm", "schedule")
_NEEDED = (*CASE_COLUMNS, *_POINT_COLUMNS, "time_ps", "algbw_bytes_per_s", "busbw_bytes_per_s")


@dataclass(frozen=True)
class Measurement:
    """One schedule at one rank count and size.

    The time is the median of the repetitions.
    """

    ranks: int
    size_bytes: int
    algorithm: str
    schedule: str
    time_ps: int
    least_ps: int
    lower_quartile_ps: int
    upper_quartile_ps: int
    most_ps: int
    repetitions: int
    algbw: float
    busbw: float
    messages: int | None
    message_bytes: int | None
    closed_form_ps: int | None
    bound_ps: int | None = None

    @property
    def of_limit(self) -> float | None:
        """The lower bound over the time, 1 at the bound; None without a bound."""
        return self.bound_ps / self.time_ps if self.bound_ps is not None else None


@dataclass(frozen=True)
class Fastest:
    """The fastest schedules at one rank count and size.

    Attributes:
        winner: The fastest schedule. Ties go to the algorithm that is fastest most often.
        runner_up: The fastest of the slower algorithms, or None.

        level: The best schedule of each other algorithm that ties with the winner.
        baseline: What the library of the platform predicts for its choice, or None.
    """

    winner: Measurement
    runner_up: Measurement | None
    level: tuple[Measurement, ...] = ()
    baseline: Measurement | None = None

    @property
    def margin(self) -> float | None:
        """The additional time of the runner-up as a fraction; None without a runner-up."""
        if self.runner_up is None or self.winner.time_ps == 0:
            return None
        return self.runner_up.time_ps / self.winner.time_ps - 1


@dataclass(frozen=True)
class Region:
    """Neighbouring sizes at one rank count with one fastest schedule."""

    ranks: int
    decisions: tuple[Fastest, ...]

    @property
    def winner(self) -> str:
        """The algorithm that wins here."""
        return self.decisions[0].winner.algorithm

    @property
    def schedule(self) -> str:
        """The fastest schedule: the algorithm with its arguments."""
        return self.decisions[0].winner.schedule

    @property
    def sizes(self) -> tuple[int, int]:
        """Smallest and largest size, in bytes."""
        return self.decisions[0].winner.size_bytes, self.decisions[-1].winner.size_bytes

    @property
    def clearest(self) -> Fastest:
        """The point with the largest lead."""
        return max(self.decisions, key=lambda d: d.margin or 0.0)


@dataclass(frozen=True)
class Comparison:
    """The comparable part of a frame: one collective, datatype, model and platform.

    Attributes:
        measured: The measurements.
        baselines: What the library of the platform predicts for its choices.
    """

    collective: str
    datatype: str
    model: str
    platform: str
    measured: tuple[Measurement, ...]
    baselines: tuple[Measurement, ...] = ()

    @property
    def ranks(self) -> list[int]:
        """The rank counts, ascending."""
        return sorted({m.ranks for m in self.measured})

    @property
    def sizes(self) -> list[int]:
        """The sizes in bytes, ascending."""
        return sorted({m.size_bytes for m in self.measured})

    @property
    def algorithms(self) -> list[str]:
        """The names of the algorithms, sorted."""
        return sorted({m.algorithm for m in self.measured})

    def best(self) -> dict[tuple[int, int, str], Measurement]:
        """The fastest schedule of each algorithm, by (ranks, size_bytes, algorithm)."""
        best: dict[tuple[int, int, str], Measurement] = {}
        for one in self.measured:
            key = (one.ranks, one.size_bytes, one.algorithm)
            if key not in best or one.time_ps < best[key].time_ps:
                best[key] = one
        return best

    def decisions(self) -> dict[tuple[int, int], Fastest]:
        """The fastest schedules, by (ranks, size_bytes)."""
        grouped: dict[tuple[int, int], list[Measurement]] = {}
        for (ranks, size, _), one in sorted(self.best().items()):
            grouped.setdefault((ranks, size), []).append(one)
        least = {key: min(one.time_ps for one in group) for key, group in grouped.items()}
        fastest = {
            key: [one for one in group if one.time_ps == least[key]]
            for key, group in grouped.items()
        }
        often = Counter(one.algorithm for group in fastest.values() for one in group)
        baselines = {(one.ranks, one.size_bytes): one for one in self.baselines}
        decided = {}
        for key, group in grouped.items():
            first, *level = sorted(fastest[key], key=lambda m: (-often[m.algorithm], m.algorithm))
            slower = [one for one in group if one.time_ps > first.time_ps]
            runner_up = min(slower, key=lambda m: (m.time_ps, m.algorithm), default=None)
            decided[key] = Fastest(first, runner_up, tuple(level), baselines.get(key))
        return decided

    def regions(self) -> list[Region]:
        """The decisions by rank count; neighbouring sizes with the same schedule form a region."""
        decided = self.decisions()
        ordered = (decided[point] for point in sorted(decided))
        neighbours = groupby(ordered, lambda point: (point.winner.ranks, point.winner.schedule))
        return [Region(ranks, tuple(decisions)) for (ranks, _), decisions in neighbours]


def cases(frame: pl.DataFrame) -> list[Comparison]:
    """Splits a comparison frame into comparable cases, in order of their names.

    Raises:
        ReportError: Columns are missing, or no row has a time.
    """
    missing = [name for name in _NEEDED if name not in frame.columns]
    if missing:
        raise ReportError(f"the comparison lacks the columns {', '.join(missing)}", kind="frame")
    timed = frame.filter(pl.col("time_ps").is_not_null())
    if timed.is_empty():
        raise ReportError("the comparison has no rows with a time: nothing to report", kind="frame")
    _refuse_mixed_points(timed)
    summed = timed.group_by(*CASE_COLUMNS, *_POINT_COLUMNS).agg(*_aggregates(frame.columns))
    found: dict[tuple[str, str, str, str], list[Measurement]] = {}
    for row in summed.sort(*CASE_COLUMNS, *_POINT_COLUMNS).iter_rows(named=True):
        key = (row["collective"], row["datatype"], row["model"], row["platform"])
        found.setdefault(key, []).append(_measured(row))
    return [_comparison(key, rows) for key, rows in found.items()]


def _comparison(key: tuple[str, str, str, str], rows: list[Measurement]) -> Comparison:
    """Returns a case, whose baselines are not measurements."""
    return Comparison(
        *key,
        measured=tuple(row for row in rows if row.algorithm != BASELINE),
        baselines=tuple(row for row in rows if row.algorithm == BASELINE),
    )


def _refuse_mixed_points(frame: pl.DataFrame) -> None:
    """Refuses points of a sweep that would count as repetitions; seeds are repetitions.

    Raises:
        ReportError: A schedule has rows at several points of a sweep.
    """
    swept = [name for name in frame.columns if name.startswith(SWEPT) and name != f"{SWEPT}seed"]
    if not swept:
        return
    counts = frame.group_by(*CASE_COLUMNS, *_POINT_COLUMNS).agg(pl.col(swept).n_unique()).max()
    mixed = [name.removeprefix(SWEPT) for name in swept if counts[name][0] > 1]
    if mixed:
        raise ReportError(
            f"the rows mix several points of a sweep: {mixed[0]} has several values",
            kind="frame",
            hint=f"choose one with --where '{mixed[0]}=VALUE', or draw against it: --kind sweep",
        )


def only_case(frame: pl.DataFrame) -> Comparison:
    """Returns the only case of a frame.

    Raises:
        ReportError: The frame has several cases, or none.
    """
    found = cases(frame)
    if len(found) > 1:
        raise ReportError(
            f"the comparison mixes {len(found)} combinations of collective, datatype, model and "
            "platform: expected one",
            kind="frame",
        )
    return found[0]


def _aggregates(columns: list[str]) -> list[pl.Expr]:
    # The lower median of the times is a measured time; its rates are the upper medians.
    unchanged = [
        pl.col(name).first()
        for name in ("messages", "message_bytes", "closed_form_ps", "bound_ps")
        if name in columns
    ]
    return [
        pl.col("time_ps").quantile(0.5, "lower").cast(pl.Int64),
        *spread(pl.col("time_ps")),
        pl.len().alias("repetitions"),
        *(
            pl.col(f"{name}_bytes_per_s").quantile(0.5, "higher").fill_null(0.0).alias(name)
            for name in ("algbw", "busbw")
        ),
        *unchanged,
    ]


def _measured(row: dict[str, Any]) -> Measurement:
    known: dict[str, Any] = {one.name: row.get(one.name) for one in fields(Measurement)}
    return Measurement(**known)


def one_value(frame: pl.DataFrame, column: str) -> str:
    """Returns the distinct values of a column, comma-separated."""
    if column not in frame.columns:
        return "not recorded"
    values = frame[column].drop_nulls().unique().sort().to_list()
    return ", ".join(str(value) for value in values) or "not recorded"

"""Reads a comparison frame: who wins where, by how much and why.

Input everywhere is the frame of `tutti.compare` (a row per measurement). Repetitions are summed up
by their median; of several schedules of one algorithm the fastest stands for it. No times are made
here, only picked and set against each other.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from statistics import median
from typing import Any

import polars as pl

from tutti.errors import ReportError

from .quantity import format_share, format_size, format_time, plural

CASE_COLUMNS = ("collective", "datatype", "model", "platform")
_POINT_COLUMNS = ("ranks", "size_bytes", "algorithm", "schedule")
_NEEDED = (*CASE_COLUMNS, *_POINT_COLUMNS, "time_ps", "algbw_bytes_per_s", "busbw_bytes_per_s")


@dataclass(frozen=True)
class Measured:
    """One schedule at one rank count and size; times are median, least and most of repetitions."""

    ranks: int
    size_bytes: int
    algorithm: str
    schedule: str
    time_ps: int
    least_ps: int
    most_ps: int
    repetitions: int
    algbw: float
    busbw: float
    messages: int | None
    message_bytes: int | None
    closed_form_ps: int | None


@dataclass(frozen=True)
class Decision:
    """Who is fastest at one rank count and size.

    Attributes:
        winner: the fastest; of several equally fast, that of the algorithm that is so most often.
        runner_up: the best of the other algorithms that is slower; None where none is.
        level: the best of each other algorithm that is as fast as the winner.
    """

    winner: Measured
    runner_up: Measured | None
    level: tuple[Measured, ...] = ()

    @property
    def margin(self) -> float | None:
        """How much longer the runner-up takes, as a fraction; None without one."""
        if self.runner_up is None or self.winner.time_ps == 0:
            return None
        return self.runner_up.time_ps / self.winner.time_ps - 1


@dataclass(frozen=True)
class Region:
    """Neighbouring sizes at one rank count with one winner."""

    ranks: int
    decisions: tuple[Decision, ...]

    @property
    def winner(self) -> str:
        """The algorithm that wins here."""
        return self.decisions[0].winner.algorithm

    @property
    def sizes(self) -> tuple[int, int]:
        """Smallest and largest size, in bytes."""
        return self.decisions[0].winner.size_bytes, self.decisions[-1].winner.size_bytes

    @property
    def clearest(self) -> Decision:
        """The point at which it wins by most."""
        return max(self.decisions, key=lambda d: d.margin or 0.0)


@dataclass(frozen=True)
class Case:
    """The comparable part of a frame: one collective, datatype, model and platform."""

    collective: str
    datatype: str
    model: str
    platform: str
    measured: tuple[Measured, ...]

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
        """The algorithms' names, in order."""
        return sorted({m.algorithm for m in self.measured})

    def best(self) -> dict[tuple[int, int, str], Measured]:
        """The fastest schedule of each algorithm, by (ranks, size_bytes, algorithm)."""
        best: dict[tuple[int, int, str], Measured] = {}
        for one in self.measured:
            key = (one.ranks, one.size_bytes, one.algorithm)
            if key not in best or one.time_ps < best[key].time_ps:
                best[key] = one
        return best

    def decisions(self) -> dict[tuple[int, int], Decision]:
        """Who is fastest, by (ranks, size_bytes)."""
        grouped: dict[tuple[int, int], list[Measured]] = {}
        for (ranks, size, _), one in sorted(self.best().items()):
            grouped.setdefault((ranks, size), []).append(one)
        fastest = {
            key: [one for one in group if one.time_ps == min(m.time_ps for m in group)]
            for key, group in grouped.items()
        }
        often = Counter(one.algorithm for group in fastest.values() for one in group)
        decided = {}
        for key, group in grouped.items():
            first, *level = sorted(fastest[key], key=lambda m: (-often[m.algorithm], m.algorithm))
            slower = [one for one in group if one.time_ps > first.time_ps]
            runner_up = min(slower, key=lambda m: (m.time_ps, m.algorithm), default=None)
            decided[key] = Decision(first, runner_up, tuple(level))
        return decided

    def regions(self) -> list[Region]:
        """The decisions of each rank count, neighbouring sizes with one winner taken together."""
        regions: list[Region] = []
        for (ranks, _), decision in sorted(self.decisions().items(), key=lambda item: item[0]):
            last = regions[-1] if regions else None
            if last and last.ranks == ranks and last.winner == decision.winner.algorithm:
                regions[-1] = Region(ranks, (*last.decisions, decision))
            else:
                regions.append(Region(ranks, (decision,)))
        return regions


def cases(frame: pl.DataFrame) -> list[Case]:
    """Splits a comparison frame into comparable cases, in order of their names.

    Raises:
        ReportError: when columns are missing or no row has a time.
    """
    missing = [name for name in _NEEDED if name not in frame.columns]
    if missing:
        raise ReportError(f"the comparison lacks the columns {', '.join(missing)}", kind="frame")
    timed = frame.filter(pl.col("time_ps").is_not_null())
    if timed.is_empty():
        raise ReportError("the comparison has no rows with a time: nothing to report", kind="frame")
    summed = timed.group_by(*CASE_COLUMNS, *_POINT_COLUMNS).agg(*_aggregates(frame.columns))
    found: dict[tuple[str, str, str, str], list[Measured]] = {}
    for row in summed.sort(*CASE_COLUMNS, *_POINT_COLUMNS).iter_rows(named=True):
        key = (row["collective"], row["datatype"], row["model"], row["platform"])
        found.setdefault(key, []).append(_measured(row))
    return [Case(*key, measured=tuple(rows)) for key, rows in found.items()]


def only_case(frame: pl.DataFrame) -> Case:
    """The one case of a frame that is to be drawn or listed as a whole.

    Raises:
        ReportError: when there are several, or none.
    """
    found = cases(frame)
    if len(found) > 1:
        raise ReportError(
            f"the comparison mixes {len(found)} combinations of collective, datatype, model and "
            "platform: filter it down to one",
            kind="frame",
        )
    return found[0]


def _aggregates(columns: list[str]) -> list[pl.Expr]:
    # The lower median of the times is a time that was measured; its rates are the upper medians.
    kept = [
        pl.col(name).first()
        for name in ("messages", "message_bytes", "closed_form_ps")
        if name in columns
    ]
    return [
        pl.col("time_ps").quantile(0.5, "lower").cast(pl.Int64),
        pl.col("time_ps").min().alias("least_ps"),
        pl.col("time_ps").max().alias("most_ps"),
        pl.len().alias("repetitions"),
        pl.col("algbw_bytes_per_s").quantile(0.5, "higher"),
        pl.col("busbw_bytes_per_s").quantile(0.5, "higher"),
        *kept,
    ]


def _measured(row: dict[str, Any]) -> Measured:
    return Measured(
        ranks=row["ranks"],
        size_bytes=row["size_bytes"],
        algorithm=row["algorithm"],
        schedule=row["schedule"],
        time_ps=row["time_ps"],
        least_ps=row["least_ps"],
        most_ps=row["most_ps"],
        repetitions=row["repetitions"],
        algbw=row["algbw_bytes_per_s"] or 0.0,
        busbw=row["busbw_bytes_per_s"] or 0.0,
        messages=row.get("messages"),
        message_bytes=row.get("message_bytes"),
        closed_form_ps=row.get("closed_form_ps"),
    )


def one_value(frame: pl.DataFrame, column: str) -> str:
    """The values of a column that is the same on all rows, or all of them, comma-separated."""
    if column not in frame.columns:
        return "not recorded"
    values = frame[column].drop_nulls().unique().sort().to_list()
    return ", ".join(str(value) for value in values) or "not recorded"


def span_text(values: list[int], text: str = "{}", size: bool = False) -> str:
    """`8 B`, or `8 B to 4 KiB`."""
    write = format_size if size else text.format
    low, high = write(min(values)), write(max(values))
    return low if low == high else f"{low} to {high}"


@dataclass(frozen=True)
class Finding:
    """One winner in plain words: where and by how much it wins, and an example with the reason."""

    winner: str
    where: str
    why: str

    def __str__(self) -> str:
        return f"{self.winner} {self.where} {self.why}".strip()


def answer(case: Case) -> list[Finding]:
    """The answer in plain words: a finding per winner, the most frequent first."""
    decided = list(case.decisions().values())
    counts = Counter(d.winner.algorithm for d in decided)
    order = sorted(counts, key=lambda name: (-counts[name], name))
    return [
        _finding(name, [d for d in decided if d.winner.algorithm == name], len(decided))
        for name in order
    ]


def _finding(name: str, won: list[Decision], points: int) -> Finding:
    share = "everywhere" if len(won) == points else f"at {len(won)} of {points} points"
    where = (
        f"is fastest {share} ({span_text([d.winner.ranks for d in won])} ranks, "
        f"{span_text([d.winner.size_bytes for d in won], size=True)})"
    )
    if level := Counter(one.algorithm for d in won for one in d.level):
        others = [f"{other} (at {count})" for other, count in sorted(level.items())]
        where += f", level with {shorten(others, 3, ', ')}"
    margins = [d.margin for d in won if d.margin is not None]
    if not margins:
        return Finding(name, f"{where}; no other algorithm is slower.", "")
    clearest = max(won, key=lambda d: d.margin or 0.0)
    why = f"{example(clearest)} {reason(clearest)}".strip()
    return Finding(name, f"{where}: the runner-up takes {_spread(margins)}.", why)


def _spread(margins: list[float]) -> str:
    low, high = format_share(min(margins)), format_share(max(margins))
    if low == high:
        return f"{low} longer"
    return f"{low} to {high} longer (median {format_share(median(margins))})"


def example(decision: Decision) -> str:
    """One point as a sentence."""
    first, second = decision.winner, decision.runner_up
    if second is None:
        return ""
    return (
        f"At {first.ranks:,} ranks and {format_size(first.size_bytes)}, {first.schedule} takes "
        f"{format_time(first.time_ps)} and {second.schedule} {format_time(second.time_ps)}."
    )


def reason(decision: Decision) -> str:
    """Why the winner wins, as far as its messages and bytes tell it against the runner-up's."""
    first, second = decision.winner, decision.runner_up
    if second is None:
        return ""
    counts = (first.messages, second.messages, first.message_bytes, second.message_bytes)
    if None in counts:
        return ""
    few, many, less, more = (int(count or 0) for count in counts)
    messages = (
        f"{_per_rank(few, first.ranks)} messages per rank against {_per_rank(many, second.ranks)}"
    )
    data = f"{format_size(less / first.ranks)} per rank against {format_size(more / second.ranks)}"
    if few < many and less < more:
        text = f"It sends less: {messages}, {data}."
    elif few < many and less == more:
        text = f"It sends the same bytes in fewer messages: {messages}."
    elif few < many:
        text = (
            f"It sends fewer messages ({messages}), and at this size the time per message decides."
        )
    elif less < more:
        text = f"It sends fewer bytes ({data}), and at this size the time per byte decides."
    elif few == many and less == more:
        text = f"Both send as much ({messages}); it waits less between them."
    else:
        text = (
            f"It sends more on average ({messages}) but waits less: its sends overlap, or its "
            "ranks share them more evenly."
        )
    return text


def _per_rank(count: int, ranks: int) -> str:
    value = count / ranks
    return f"{value:.0f}" if value == int(value) else f"{value:.1f}"


def region_rows(case: Case) -> list[dict[str, str]]:
    """The regions as rows of text: where, who wins, who is level or next, by how much and why."""
    rows = []
    for region in case.regions():
        margins = [d.margin for d in region.decisions if d.margin is not None]
        low, high = (min(margins), max(margins)) if margins else (0.0, 0.0)
        spread = (
            format_share(low) if low == high else f"{format_share(low)} to {format_share(high)}"
        )
        schedules = sorted({d.winner.schedule for d in region.decisions})
        level = sorted({one.algorithm for d in region.decisions for one in d.level})
        seconds = Counter(d.runner_up.algorithm for d in region.decisions if d.runner_up)
        rows.append(
            {
                "ranks": f"{region.ranks:,}",
                "sizes": span_text(list(region.sizes), size=True),
                "winner": region.winner,
                "schedules": shorten(schedules),
                "level": shorten(level),
                "runner_up": shorten([name for name, _ in sorted(seconds.items())]),
                "margin": spread if margins else "no other is slower",
                "reason": reason(region.clearest),
            }
        )
    return rows


def shorten(names: list[str], most: int = 2, between: str = "; ") -> str:
    """At most `most` names, and how many more there are."""
    shown = between.join(names[:most])
    rest = len(names) - most
    return f"{shown} and {plural(rest, 'other')}" if rest > 0 else shown

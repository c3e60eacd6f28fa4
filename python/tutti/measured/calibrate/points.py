"""Measurements as points that models predict: one point per time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from tutti.base.files.mistakes import mistake
from tutti.base.files.reader import check_frame, read_frame
from tutti.formats.measurements.bench import checked_blocks
from tutti.schedules.errors import AlgorithmError
from tutti.schedules.proving import messages_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tutti.schedules.ir import Schedule

Kind = Literal["one_way", "burst", "round_trip", "issue", "multicast", "collective", "fold"]

_ROUND_TRIP = "round_trip"
_OSU_WINDOW = 64
"""Default number of messages in flight of osu_bw, and of IMB's Uniband."""
MOST_FITTED = 100_000
"""Maximum messages of a measured collective: a fit simulates each collective many times."""
_BENCH_BYTES = 8
"""Bytes of a multicast of `tutti mpi bench`."""


@dataclass(frozen=True)
class Observation:
    """A measured time, and its configuration.

    Attributes:
        kind: `one_way` is half a ping-pong. A `burst` is several messages to one peer, which
            acknowledges the last one with an empty message. A `round_trip` is the same with a reply
            of the same size, and a pause after each message but the last. The time of `issue` is
            how long issuing a message occupies its sender. A `multicast` is one message to each of
            several peers, until the last receives it. A `collective` is a schedule, and a `fold`
            the folding of one operand into another.
        time_us: the time.
        size: bytes of a message; of a collective, its size by the convention of nccl-tests.
        messages: number of messages, or of peers.
        pause_us: after each message but the last.
        schedule: of a collective.
        in_a_row: number of back-to-back calls; `time_us` is per call.
        origin: its file, for messages.
    """

    kind: Kind
    time_us: float
    size: int
    messages: int = 1
    pause_us: float = 0.0
    schedule: Schedule | None = None
    in_a_row: int = 1
    origin: str = ""

    @property
    def described(self) -> str:
        """A short description."""
        if self.schedule is not None:
            return f"{self.schedule.name} on {self.schedule.ranks} ranks"
        return self.kind if self.messages == 1 else f"{self.kind} of {self.messages}"


@dataclass
class Observations:
    """Points read from files, and what was omitted.

    Attributes:
        points: points that models predict.
        unused: number of rows that no model predicts, by operation and reason.
    """

    points: list[Observation] = field(default_factory=list)
    unused: dict[str, int] = field(default_factory=dict)


def of_benchmarks(
    frame: pl.DataFrame,
    *,
    window: int = _OSU_WINDOW,
    algorithm: str | None = None,
) -> Observations:
    """Returns the points of benchmarks.

    Args:
        frame: rows of :func:`tutti.formats.measurements.read_measurements`.
        window: messages in flight where bandwidth was measured.
        algorithm: algorithm of the collectives, if it is known or was forced; without it
            collectives are not used.

    Raises:
        AlgorithmError: The algorithm does not support these ranks, or any of the collectives.
    """
    taken = Observations()
    wrong: AlgorithmError | None = None
    for row in frame.iter_rows(named=True):
        origin = f"{row['file']}, line {row['line']}"
        reason = ""
        try:
            point = _of_row(row, origin, window, algorithm)
        except AlgorithmError as error:
            if error.kind != "wrong_collective":
                raise
            wrong, point = wrong or error, None
            reason = f"{row['collective']}, which {algorithm} does not perform"
        if point is not None:
            taken.points.append(point)
        else:
            reason = reason or _why_unused(row, algorithm)
            taken.unused[reason] = taken.unused.get(reason, 0) + 1
    if wrong is not None and not taken.points:
        raise wrong
    return taken


def _of_row(
    row: dict[str, Any], origin: str, window: int, algorithm: str | None
) -> Observation | None:
    operation, size = row["collective"], row["size_bytes"]
    if operation == "ping_pong" and row["time_us"]:
        return Observation("one_way", row["time_us"], size, origin=origin)
    if operation == "window" and row["bytes_per_s"] and size:
        time = window * size / row["bytes_per_s"] * 1e6
        return Observation("burst", time, size, messages=window, origin=origin)
    if algorithm is not None and _is_used(row):
        schedule = _schedule(algorithm, operation, row["ranks"], origin)
        return Observation("collective", row["time_us"], size, schedule=schedule, origin=origin)
    return None


def _is_used(row: dict[str, Any]) -> bool:
    """Returns whether a row is a collective whose time depends on the network."""
    return _is_collective(row) and row["size_bytes"] > 0 and (row["ranks"] or 2) > 1


def _why_unused(row: dict[str, Any], algorithm: str | None) -> str:
    """Returns the operation of a row that gives no point, and why or what would."""
    name = row["collective"]
    if not _is_collective(row):
        return f"{name}, which no model predicts: run osu_latency and osu_bw"
    if row["size_bytes"] == 0:
        return f"{name} of 0 B"  # libraries return at once
    if not _is_used(row):
        return f"{name} on 1 rank"
    return name if algorithm else f"{name}: name their schedule with --algorithm"


def _is_collective(row: dict[str, Any]) -> bool:
    from tutti import _core

    return row["collective"] in set(_core.collectives()) - {"barrier"} and bool(row["time_us"])


def _schedule(algorithm: str, collective: str, ranks: int | None, origin: str) -> Schedule:
    from tutti.schedules.ir import schedule

    if ranks is None:
        raise mistake(
            "the file does not state the number of ranks",
            source=origin,
            expected="the number of ranks",
            hint="use --ranks N",
        )
    laid_out = schedule(algorithm, collective=collective, ranks=ranks)
    messages = messages_of(laid_out) or 0
    if messages > MOST_FITTED:
        raise mistake(
            f"{collective} by {algorithm} on {ranks:,} ranks sends {messages:,} messages",
            source=origin,
            expected=f"at most {MOST_FITTED:,}: a fit simulates them many times",
            hint="measure on fewer ranks, or name an algorithm that sends fewer messages",
        )
    return laid_out


def emulated(results: pl.DataFrame) -> list[str]:
    """Returns the models that emulated distance in results of `tutti mpi bench`."""
    if not {"emulated", "model"} <= set(results.columns):
        return []
    return results.filter(pl.col("emulated"))["model"].drop_nulls().unique().sort().to_list()


_EXPECTED = "results.parquet or multicasts.parquet of `tutti mpi bench`"
_MULTICASTS = {"peers": "positive", "received_ps": "positive", "blocking": "flag"}
_IF_THERE = {"emulated": "flag?", "model": "text?"}


def read_results(path: Path) -> pl.DataFrame:
    """Reads results of `tutti mpi bench`.

    Raises:
        ConfigError: The file cannot be read, or has other columns.
    """
    return _checked(read_frame(path, _EXPECTED), str(path))


def _checked(results: pl.DataFrame, source: str) -> pl.DataFrame:
    if not set(_MULTICASTS) <= set(results.columns):
        return checked_blocks(results, source)
    there = {name: kind for name, kind in _IF_THERE.items() if name in results.columns}
    return check_frame(results, _MULTICASTS | there, source=source, expected=_EXPECTED)


def of_results(results: pl.DataFrame, statistic: str, *, source: str) -> list[Observation]:
    """Returns points of `tutti mpi bench`: multicasts, and collectives by schedules.

    Blocks with wrong results are discarded. The origin of points states emulated distance.

    Args:
        results: its results.parquet or multicasts.parquet.
        statistic: `median` or `minimum` of the blocks or samples of a configuration.
        source: name of the file in messages.

    Raises:
        ConfigError: The frame has other columns.
    """
    results = _checked(results, source)
    if set(_MULTICASTS) <= set(results.columns):
        return _of_multicasts(results, statistic, source)
    from tutti.schedules.ir import schedule

    case = ["collective", "schedule", "ranks", "size_bytes", "each"]
    mine = results.filter(
        (pl.col("implementation") == "schedule") & (pl.col("collective") != "barrier")
    )
    mine = mine.filter(pl.col("wrong").fill_null(0) == 0)
    mine = check_frame(mine, {"schedule": "text"}, source=source, expected=_EXPECTED)
    origin = _origin(results, source)
    return [
        Observation(
            "collective",
            row["taken_ps"] / 1e6,
            row["size_bytes"],
            schedule=schedule(row["schedule"], collective=row["collective"], ranks=row["ranks"]),
            in_a_row=row["each"] or 1,
            origin=origin,
        )
        for row in _taken(mine, case, "time_ps", statistic)
    ]


def _origin(results: pl.DataFrame, source: str) -> str:
    return "; emulated ".join([source, *emulated(results)])


def _of_multicasts(results: pl.DataFrame, statistic: str, source: str) -> list[Observation]:
    overlapping = results.filter(~pl.col("blocking"))
    origin = _origin(results, source)
    return [
        Observation("multicast", row["taken_ps"] / 1e6, _BENCH_BYTES, row["peers"], origin=origin)
        for row in _taken(overlapping, ["peers"], "received_ps", statistic)
    ]


def _taken(frame: pl.DataFrame, case: list[str], time: str, statistic: str) -> list[dict[str, Any]]:
    """Returns a row for each configuration, with the statistic as taken_ps or taken_ns."""
    unit = time.rpartition("_")[2]
    column = pl.col(time).median() if statistic == "median" else pl.col(time).min()
    return frame.group_by(case, maintain_order=True).agg(column.alias(f"taken_{unit}")).to_dicts()


def of_probes(samples: pl.DataFrame, statistic: str) -> Iterator[Observation]:
    """Yields a point for each configuration of the probe.

    Args:
        samples: rows with what, bytes, messages, delay_ns and time_ns.
        statistic: `median` or `minimum` of the samples of a configuration.
    """
    case = ["what", "bytes", "messages", "delay_ns"]
    for row in _taken(samples, case, "time_ns", statistic):
        kind: Kind = row["what"]
        time_us, size, messages = row["taken_ns"] / 1e3, row["bytes"], row["messages"]
        origin = f"{statistic} of the probe"
        if time_us <= 0 or kind not in {"burst", "round_trip", "issue", "fold"}:
            continue
        if kind == _ROUND_TRIP and messages == 1:
            yield Observation("one_way", time_us / 2, size, origin=origin)
        else:
            yield Observation(kind, time_us, size, messages, row["delay_ns"] / 1e3, origin=origin)

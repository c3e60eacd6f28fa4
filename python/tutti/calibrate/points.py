"""What was measured, as the models see it: one point per time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from tutti.files.mistakes import mistake
from tutti.files.reader import check_frame, read_frame
from tutti.proving import messages_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tutti.schedule import Schedule

__all__ = [
    "Kind",
    "Observation",
    "Observations",
    "emulated",
    "of_benchmarks",
    "of_probes",
    "of_results",
    "read_results",
]

Kind = Literal["one_way", "burst", "round_trip", "issue", "multicast", "collective", "fold"]

_ROUND_TRIP = "round_trip"
_OSU_WINDOW = 64
"""Messages in flight of osu_bw, and of IMB's Uniband, unless they are told otherwise."""
MOST_FITTED = 100_000
"""Messages of a measured collective: a fit simulates each collective many times."""
_BENCH_BYTES = 8
"""Of a multicast of `tutti mpi bench`."""


@dataclass(frozen=True)
class Observation:
    """A time, and of what.

    Attributes:
        kind: `one_way` is half a ping-pong; `burst` some messages at once to one peer, which
            answers the last with an empty one; `round_trip` the same with an answer as long as a
            message, and a pause after each but the last; `issue` how long issuing a message keeps
            its sender; `multicast` one message to each of some peers, until the last has it;
            `collective` a whole schedule; `fold` the folding of one operand into another.
        time_us: how long it took.
        size: bytes of a message; of a collective, its size by the convention of nccl-tests.
        messages: how many, or to how many peers.
        pause_us: after each message but the last.
        schedule: of a collective.
        in_a_row: how many of these are timed together; `time_us` is that of one.
        origin: where it was read, for messages.
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
        """What it is, in words."""
        if self.schedule is not None:
            return f"{self.schedule.name} on {self.schedule.ranks} ranks"
        return self.kind if self.messages == 1 else f"{self.kind} of {self.messages}"


@dataclass
class Observations:
    """Points out of files, and what was left.

    Attributes:
        points: what models speak of.
        unused: how many rows of which operation no model predicts.
        wrong: rows whose results were wrong, by file and line; no time of them says anything.
    """

    points: list[Observation] = field(default_factory=list)
    unused: dict[str, int] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)


def of_benchmarks(
    frame: pl.DataFrame,
    *,
    window: int = _OSU_WINDOW,
    algorithm: str | None = None,
) -> Observations:
    """Points of what benchmarks measured.

    Args:
        frame: rows of :func:`tutti.interop.benchmarks.read`.
        window: messages in flight where bandwidth was measured.
        algorithm: which algorithm the library used for its collectives, as people know it or have
            forced it; without it no model predicts a collective.

    Raises:
        ConfigError: a collective without its number of ranks.
        AlgorithmError: the algorithm is not for these ranks or collectives.
    """
    taken = Observations()
    for row in frame.iter_rows(named=True):
        origin = f"{row['file']}, line {row['line']}"
        if row["wrong"]:
            of = row["operation"] or row["benchmark"]
            taken.wrong.append(f"{origin}: wrong results of {of} of {row['size_bytes']} B")
            continue
        point = _of_row(row, origin, window, algorithm)
        if point is not None:
            taken.points.append(point)
        else:
            name = row["operation"] or row["benchmark"]
            taken.unused[name] = taken.unused.get(name, 0) + 1
    return taken


def _of_row(
    row: dict[str, Any], origin: str, window: int, algorithm: str | None
) -> Observation | None:
    operation, size = row["operation"], row["size_bytes"]
    if operation == "ping_pong" and row["time_us"]:
        return Observation("one_way", row["time_us"], size, origin=origin)
    if operation == "window" and row["bytes_per_s"] and size:
        time = window * size / row["bytes_per_s"] * 1e6
        return Observation("burst", time, size, messages=window, origin=origin)
    if algorithm is not None and _is_collective(row):
        schedule = _schedule(algorithm, operation, row["ranks"], origin)
        return Observation("collective", row["time_us"], size, schedule=schedule, origin=origin)
    return None


def _is_collective(row: dict[str, object]) -> bool:
    from tutti import _core

    known = set(_core.collectives()) - {"barrier"}
    return row["operation"] in known and bool(row["time_us"]) and bool(row["blocking"])


def _schedule(algorithm: str, collective: str, ranks: int | None, origin: str) -> Schedule:
    from tutti.schedule import schedule

    if ranks is None:
        raise mistake(
            "the file does not say how many ranks took part",
            source=origin,
            expected="the number of ranks",
            hint="give it: --ranks N",
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
    """The models that kept ranks apart in what `tutti mpi bench` measured; none for a network."""
    if not {"emulated", "model"} <= set(results.columns):
        return []
    return results.filter(pl.col("emulated"))["model"].drop_nulls().unique().sort().to_list()


_EXPECTED = "results.parquet or multicasts.parquet of `tutti mpi bench`"
_MULTICASTS = {"peers": "positive", "received_ps": "positive", "blocking": "flag"}
_COLLECTIVES = {
    **dict.fromkeys(("collective", "schedule", "way"), "text"),
    **dict.fromkeys(("ranks", "each", "time_ps"), "positive"),
    "size_bytes": "count",
}
_IF_THERE = {"wrong": "count?", "emulated": "flag?", "model": "text?"}


def read_results(path: Path) -> pl.DataFrame:
    """Reads what `tutti mpi bench` measured.

    Raises:
        ConfigError: The file cannot be read, or is a frame of something else.
    """
    return _checked(read_frame(path, _EXPECTED), str(path))


def _checked(results: pl.DataFrame, source: str) -> pl.DataFrame:
    columns = _MULTICASTS if set(_MULTICASTS) <= set(results.columns) else _COLLECTIVES
    there = {name: kind for name, kind in _IF_THERE.items() if name in results.columns}
    return check_frame(results, columns | there, source=source, expected=_EXPECTED)


def of_results(results: pl.DataFrame, statistic: str, *, source: str) -> list[Observation]:
    """Points of what `tutti mpi bench` measured: multicasts, and collectives by schedules.

    Blocks with wrong results do not count. Where distance was emulated, points say so.

    Args:
        results: its results.parquet or multicasts.parquet.
        statistic: `median` or `minimum` of the blocks or samples of a configuration.
        source: what messages call the file.

    Raises:
        ConfigError: a frame of something else.
    """
    results = _checked(results, source)
    if set(_MULTICASTS) <= set(results.columns):
        return _of_multicasts(results, statistic, source)
    from tutti.schedule import schedule

    asked = ["collective", "schedule", "ranks", "size_bytes", "each"]
    mine = results.filter((pl.col("way") == "schedule") & (pl.col("collective") != "barrier"))
    if "wrong" in results.columns:
        mine = mine.filter(pl.col("wrong") == 0)
    origin = _origin(results, source)
    return [
        Observation(
            "collective",
            row["taken_ps"] / 1e6,
            row["size_bytes"],
            schedule=schedule(row["schedule"], collective=row["collective"], ranks=row["ranks"]),
            in_a_row=row["each"],
            origin=origin,
        )
        for row in _taken(mine, asked, "time_ps", statistic)
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


def _taken(
    frame: pl.DataFrame, asked: list[str], time: str, statistic: str
) -> list[dict[str, Any]]:
    """A row for each configuration, with the statistic of its times as taken_ps or taken_ns."""
    unit = time.rpartition("_")[2]
    column = pl.col(time).median() if statistic == "median" else pl.col(time).min()
    return frame.group_by(asked, maintain_order=True).agg(column.alias(f"taken_{unit}")).to_dicts()


def of_probes(samples: pl.DataFrame, statistic: str) -> Iterator[Observation]:
    """Points of what the probe measured: one for each configuration.

    Args:
        samples: rows with what, bytes, messages, delay_ns and time_ns.
        statistic: `median` or `minimum` of the samples of a configuration.
    """
    asked = ["what", "bytes", "messages", "delay_ns"]
    for row in _taken(samples, asked, "time_ns", statistic):
        kind: Kind = row["what"]
        time_us, size, messages = row["taken_ns"] / 1e3, row["bytes"], row["messages"]
        origin = f"{statistic} of the probe"
        if time_us <= 0 or kind not in {"burst", "round_trip", "issue", "fold"}:
            continue
        if kind == _ROUND_TRIP and messages == 1:
            yield Observation("one_way", time_us / 2, size, origin=origin)
        else:
            yield Observation(kind, time_us, size, messages, row["delay_ns"] / 1e3, origin=origin)

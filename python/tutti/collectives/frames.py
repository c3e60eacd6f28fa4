"""Results as tidy frames: columns, provenance and files.

One row is one measurement. Times are integer picoseconds, sizes are bytes. Every row names the
model, platform, version, commit and configuration that produced it.
"""

from __future__ import annotations

import functools
import hashlib
import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from tutti import _core
from tutti.base.errors import ConfigError
from tutti.view.errors import ReportError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tutti.platforms.machine import Platform
    from tutti.schedules.ir import Schedule

MEASUREMENTS: dict[str, type[pl.DataType]] = {
    "collective": pl.String,
    "algorithm": pl.String,
    "schedule": pl.String,
    "ranks": pl.Int64,
    "size_bytes": pl.Int64,
    "datatype": pl.String,
    "model": pl.String,
    "platform": pl.String,
    "repetition": pl.Int64,
    "seed": pl.Int64,
    "time_ps": pl.Int64,
    "algbw_bytes_per_s": pl.Float64,
    "busbw_bytes_per_s": pl.Float64,
    "messages": pl.Int64,
    "message_bytes": pl.Int64,
    "closed_form_ps": pl.Int64,
    "bound_ps": pl.Int64,
    "of_limit": pl.Float64,
    "verified": pl.Boolean,
    "commit": pl.String,
    "config_hash": pl.String,
    "version": pl.String,
}
"""The columns of a comparison.

``bound_ps`` is the lower bound of all schedules (docs/models/lower-bounds.md). ``of_limit`` is the
lower bound divided by the time: 1 is optimal. ``verified`` states whether the schedule was verified
before it was timed.
"""

FOUND: dict[str, type[pl.DataType]] = {
    "place": pl.Int64,
    "schedule": pl.String,
    "kind": pl.String,
    "time_ps": pl.Int64,
    "above_best": pl.Float64,
    "bound_ps": pl.Int64,
    "method": pl.String,
    "family": pl.String,
    "verified": pl.Boolean,
}
"""The columns of a search.

`above_best` is a fraction: 0.05 is 5 % longer than the best. `bound_ps` is the lower bound of the
searched schedules, not of all schedules. `method` states how the time was computed; all
methods but `estimate` are exact. Only the best schedule is `verified`.
"""

THRESHOLDS: dict[str, type[pl.DataType]] = {
    "from_bytes": pl.Int64,
    "to_bytes": pl.Int64,
    "schedule": pl.String,
    "kind": pl.String,
    "time_from_ps": pl.Int64,
    "time_to_ps": pl.Int64,
    "gap": pl.Float64,
    "family": pl.String,
    "verified": pl.Boolean,
}
"""The columns of thresholds.

A schedule is the best of the searched ones from the first to the last size of its row, with the
times at both. `gap` is the excess over their lower bound: 0 if proved optimal.
"""

_NO_PEER = 2**32 - 1
"""The core's peer of a span without a peer."""


def measurement_frame(rows: Iterable[Mapping[str, Any]]) -> pl.DataFrame:
    """Returns a frame of measurements with the columns of :data:`MEASUREMENTS`, one row each.

    Adds commit and version to rows that lack them.
    """
    origin = {"commit": commit(), "version": _core.__version__}
    return pl.DataFrame([origin | dict(row) for row in rows], schema=MEASUREMENTS, orient="row")


def summary(measurements: pl.DataFrame) -> pl.DataFrame:
    """Summarises the repetitions of each measurement: least, quartiles, median and most.

    Args:
        measurements: A frame of `tutti.compare`, or one with a column ``time_ps``. Rows that are
            equal in all columns except times, rates and seeds are repetitions.

    Returns:
        A row per measurement, in order of first rows: its columns, repetitions, least_ps,
        lower_quartile_ps, median_ps, upper_quartile_ps and most_ps. Each time was measured: of two
        middle times, the median is the shorter.

    Raises:
        ReportError: The column ``time_ps`` is missing.
    """
    if "time_ps" not in measurements.columns:
        raise ReportError("the measurements have no column time_ps", kind="frame")
    rates = {"algbw_bytes_per_s", "busbw_bytes_per_s", "of_limit"}
    apart = {"time_ps", "repetition", "seed", *rates}
    together = [name for name in measurements.columns if name not in apart]
    least, lower, upper, most = spread(pl.col("time_ps"))
    median = pl.col("time_ps").quantile(0.5, "lower").cast(pl.Int64).alias("median_ps")
    found = (pl.len().alias("repetitions"), least, lower, median, upper, most)
    return measurements.group_by(together, maintain_order=True).agg(*found)


def spread(times: pl.Expr) -> tuple[pl.Expr, ...]:
    """Returns least, quartiles and most of repetitions; each is a measured time."""
    return (
        times.min().alias("least_ps"),
        times.quantile(0.25, "lower").cast(pl.Int64).alias("lower_quartile_ps"),
        times.quantile(0.75, "higher").cast(pl.Int64).alias("upper_quartile_ps"),
        times.max().alias("most_ps"),
    )


def rank_frame(run: _core.Run) -> pl.DataFrame:
    """Returns when each rank entered and left: columns rank, start_ps, finish_ps."""
    start, finish = _wide(run.start_ps), _wide(run.finish_ps)
    ranks = pl.int_range(len(start), eager=True)
    return pl.DataFrame({"rank": ranks, "start_ps": start, "finish_ps": finish})


def timeline_frame(run: _core.Run, schedule: Schedule, launch: str = "launch") -> pl.DataFrame:
    """Returns the activities of every rank, by rank and time; empty for a run without a record.

    Columns: rank, channel (0 unless channels progress concurrently), step, name (of the step), kind
    (send, wait, recv, reduce, copy, compute, sleep, noise or `launch`), start_ps, end_ps, peer,
    bytes. The peer is null for local work and for a multicast that the network forks.
    """
    columns = run.spans() or dict.fromkeys(
        ("rank", "channel", "step", "activity", "peer", "start_ps", "end_ps", "bytes"), b""
    )
    names = [launch if name == "launch" else name for name in _core.activities()]
    kinds = pl.Series(names, dtype=pl.String)
    narrow = {key: _narrow(columns[key]) for key in ("rank", "channel", "step", "peer")}
    frame = pl.DataFrame(
        narrow
        | {"kind": kinds.gather(_narrow(columns["activity"]))}
        | {key: _wide(columns[key]) for key in ("start_ps", "end_ps", "bytes")}
    ).with_columns(peer=pl.when(pl.col("peer") != _NO_PEER).then("peer"))
    steps = frame.select("rank", "step").unique(maintain_order=True)
    names = [schedule.step_name(rank, step) for rank, step in steps.iter_rows()]
    named = steps.with_columns(name=pl.Series(names, dtype=pl.String))
    order = ["rank", "channel", "step", "name", "kind", "start_ps", "end_ps", "peer", "bytes"]
    return frame.join(named, on=["rank", "step"], how="left", maintain_order="left").select(order)


def messages_frame(run: _core.Run) -> pl.DataFrame:
    """Returns every message, by source, destination and index; empty for a run without a record.

    Columns: source, destination, channel, index (among the messages from this source to this
    destination), bytes, sent_ps, arrival_ps, received_ps. A message that the network forks has a
    row per receiver; one that it combines has a row per sender.
    """
    narrow = ("source", "destination", "channel", "index")
    wide = ("bytes", "sent_ps", "arrival_ps", "received_ps")
    columns = run.sent() or dict.fromkeys(narrow + wide, b"")
    return pl.DataFrame(
        {key: _narrow(columns[key]) for key in narrow} | {key: _wide(columns[key]) for key in wide}
    )


def link_frame(run: _core.Run, platform: Platform) -> pl.DataFrame:
    """Returns the traffic of each link of the topology; empty for platforms without contention.

    Columns: link (its index), source, target (names of vertices), messages (or packets, or
    flits), bytes (including headers), busy_ps, utilisation (fraction of the completion time).
    """
    columns = run.link_use()
    links = platform.routes.topology.links if columns and platform.routes else ()
    used = columns or dict.fromkeys(("packets", "bytes", "busy_ps"), b"")
    frame = pl.DataFrame(
        {
            "link": pl.Series([link.index for link in links], dtype=pl.Int64),
            "source": pl.Series([link.source for link in links], dtype=pl.String),
            "target": pl.Series([link.target for link in links], dtype=pl.String),
        }
        | {key: _wide(column) for key, column in used.items()}
    )
    return frame.with_columns(utilisation=pl.col("busy_ps") / run.completion_ps)


def write(frame: pl.DataFrame, path: str | Path) -> Path:
    """Writes a frame as Parquet or CSV, by the suffix of ``path``.

    Raises:
        ConfigError: The suffix is unknown, or the file cannot be written.
    """
    path = Path(path)
    if path.suffix not in {".parquet", ".csv"}:
        message = f"{path} has suffix `{path.suffix}`: expected .parquet or .csv"
        raise ConfigError(message, kind="invalid", fields={"path": str(path)})
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".parquet":
            frame.write_parquet(path)
        else:
            frame.write_csv(path)
    except OSError as error:
        message = f"{path} cannot be written: {error.strerror or error}"
        raise ConfigError(message, kind="invalid", fields={"path": str(path)}) from None
    return path


def config_hash(inputs: Mapping[str, Any]) -> str:
    """Returns a hash of inputs, as 16 hexadecimal digits.

    Args:
        inputs: JSON values; others are converted to text.
    """
    text = json.dumps(inputs, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@functools.cache
def commit() -> str | None:
    """Returns the commit of the working tree of tutti, with ``-dirty`` for modified files.

    Returns None for an installed package, or without git.
    """
    root = Path(__file__).parents[3]
    if not (root / ".git").exists():
        return None
    command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def _narrow(column: bytes) -> pl.Series:
    """Returns a column of 32-bit integers."""
    return pl.Series(memoryview(column).cast("I"), dtype=pl.UInt32).cast(pl.Int64)


def _wide(column: bytes) -> pl.Series:
    """Returns a column of 64-bit integers."""
    return pl.Series(memoryview(column).cast("Q"), dtype=pl.UInt64).cast(pl.Int64)

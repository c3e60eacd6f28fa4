"""Native Perfetto traces (TrackEvent protobuf) of a run, for ui.perfetto.dev and trace_processor.

A track per rank, and per channel if channels progress concurrently, holds steps with their ops.
Below it are the messages in flight from it, on as many tracks as overlap. An arrow (flow) leads
from each send through its message to the receive. The clock of the trace counts nanoseconds:
timestamps are rounded down, which preserves order and nesting. The arguments of each slice have the
exact picoseconds.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from tutti import _core

from .timeline import ARROW_COLUMNS, ordered_arrows, ordered_bars


def write_trace(
    path: str | Path, timeline: pl.DataFrame, messages: pl.DataFrame | None = None
) -> Path:
    """Writes the trace of a run to `path` (conventionally `.pftrace`).

    Args:
        path: The file to write; its folder must exist.
        timeline: The timeline frame of a run, times in picoseconds.
        messages: The message frame of the same run, for arrows.

    Returns:
        The path written.

    Raises:
        ReportError: A frame lacks columns.
    """
    ops, sent = ordered_bars(timeline), ordered_arrows(messages)
    texts = pl.concat([ops["name"].unique(), ops["kind"].unique()]).unique().sort()
    coded = ops.with_columns(pl.col("name", "kind").cast(pl.Enum(texts)).to_physical())
    columns = [column.to_list() for column in coded.iter_columns()]
    arrows = [sent[name].to_list() for name in ARROW_COLUMNS] if sent is not None else [[]] * 8
    target = Path(path)
    target.write_bytes(_core.run_trace(columns, texts.to_list(), arrows))
    return target

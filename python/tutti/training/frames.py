"""Frames of the results of a training step: by layer, over time, and by server.

All values belong to one NPU, which represents all; times are integer picoseconds.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import polars as pl

from tutti.training.links import link_name

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tutti.training.step import TrainingResult

__all__ = [
    "NO_LAYER",
    "frame",
    "layer_frame",
    "server_frame",
    "stall_frame",
    "window_frame",
    "write_frame",
]

NO_LAYER = "(none)"
"""The name of the row without a layer."""

_PASSES = ("forward", "input_gradient", "weight_gradient")
_COLUMNS = (*(f"{name}_ps" for name in _PASSES), "other_ps", "waited_ps", "carried_ps", "bytes")


def layer_frame(run: TrainingResult) -> pl.DataFrame:
    """Returns a row for each layer of an NPU, in order, with sums over all iterations.

    Columns: ``configuration``, ``layer``; the compute times ``forward_ps``, ``input_gradient_ps``,
    ``weight_gradient_ps`` and ``other_ps`` (updates, embeddings). ``waited_ps`` is the idle time of
    the processor before a task of this layer, ``carried_ps`` the time from the start to the end of
    its collectives, and ``bytes`` their payload. The bytes of a gradient bucket belong to the layer
    that completes it.

    The last row, `NO_LAYER`, holds embedding tables, and the wait for communication after the last
    computation. Computing and waiting add up to the complete run.
    """
    return run.once(_layer_frame)


def _layer_frame(run: TrainingResult, npu: int) -> pl.DataFrame:
    rows: dict[str, dict[str, int]] = defaultdict(lambda: dict.fromkeys(_COLUMNS, 0))
    order = run.step.names(run.configuration)
    done = 0
    tasks = run.program_of(npu).tasks
    spans = [(span.start_ps, span.end_ps, span.task) for span in run.record.spans(npu)]
    for start, end, task in sorted(spans):
        kind, name, during, _, amount = tasks[task]
        row = rows[name if name in order else NO_LAYER]
        if kind == "background":
            continue
        if kind == "compute":
            row[f"{during}_ps" if during in _PASSES else "other_ps"] += end - start
            row["waited_ps"] += start - done
            done = end
        else:
            row["carried_ps"] += end - start
            row["bytes"] += amount
    rows[NO_LAYER]["waited_ps"] += run.record.end_ps - done
    name = run.configuration.name
    return pl.DataFrame(
        [{"configuration": name, "layer": layer} | rows[layer] for layer in [*order, NO_LAYER]]
    )


def window_frame(run: TrainingResult) -> pl.DataFrame:
    """Returns a row for each window of the step, if windows are recorded.

    Columns: ``configuration``; ``start_ps``; ``links``, the mean utilisation of the links of an
    NPU; ``compute``, the utilisation of its processor.
    """
    schema = {
        "configuration": pl.String,
        "start_ps": pl.Int64,
        "links": pl.Float64,
        "compute": pl.Float64,
    }
    if run.step.window is None:
        return pl.DataFrame(schema=schema)
    width, end, npus = run.step.window.ps, run.record.end_ps, run.record.npus
    windows = run.record.over_time()
    links, computing = windows.links_ps, windows.computing_ps
    count = npus * len(run.record.links())
    rows = []
    for index, start in enumerate(range(0, end, width)):
        lasts = min(width, end - start)
        busy, computed = (of[index] if index < len(of) else 0 for of in (links, computing))
        shares = (busy / (lasts * count), computed / (lasts * npus))
        rows.append((run.configuration.name, start, *shares))
    return pl.DataFrame(rows, schema=schema, orient="row")


def server_frame(run: TrainingResult) -> pl.DataFrame:
    """Returns a row for each server of the endpoint, and for each link.

    Columns: ``configuration``; ``server``; ``is_link``; ``busy_ps``; ``waited_ps``, the total
    waiting time of packets; ``bytes``; ``pieces``; ``utilisation``, as a fraction of the time with
    communication.
    """
    active = run.record.active_ps()
    uses = [(used, False) for used in run.record.servers()]
    uses += [(used, True) for used in run.record.links()]
    rows = []
    for used, is_link in uses:
        rows.append(
            {
                "configuration": run.configuration.name,
                "server": link_name(run, used.name) if is_link else used.name,
                "is_link": is_link,
                "busy_ps": used.busy_ps,
                "waited_ps": used.waited_ps,
                "bytes": used.bytes,
                "pieces": used.pieces,
                "utilisation": used.busy_ps / active if active else 0.0,
            }
        )
    return pl.DataFrame(rows)


def stall_frame(run: TrainingResult) -> pl.DataFrame:
    """Returns a row for each cause of stalls in the endpoint of an NPU.

    Columns: ``configuration``; ``cause``, a resource of the endpoint or the name of a server;
    ``waited_ps``, the total waiting time of chunks and packets; ``count``, the number of waits.
    For a server, the count includes packets that do not wait. ``waiting`` is the mean number of
    chunks and packets that wait during communication.
    """
    active = run.record.active_ps()
    causes = [(stall.cause, stall.waited_ps, stall.count) for stall in run.record.stalls()]
    causes += [(used.name, used.waited_ps, used.pieces) for used in run.record.servers()]
    schema = {
        "configuration": pl.String,
        "cause": pl.String,
        "waited_ps": pl.Int64,
        "count": pl.Int64,
        "waiting": pl.Float64,
    }
    name = run.configuration.name
    rows = [(name, *one, one[1] / active if active else 0.0) for one in causes]
    return pl.DataFrame(rows, schema=schema, orient="row")


def frame(runs: Sequence[TrainingResult]) -> pl.DataFrame:
    """Returns a row per run: the inputs, the breakdown of time (ps), and bytes of an NPU."""
    rows = []
    for run in runs:
        parts = run.record.breakdown()
        rows.append(
            {
                "model": run.step.model.name,
                "batch": run.step.batch,
                "npus": run.step.npus,
                "iterations": run.iterations,
                "configuration": run.configuration.name,
                "total_ps": run.total.ps,
                "period_ps": run.period.ps,
                "compute_ps": parts.compute_ps,
                "overlap_ps": parts.overlap_ps,
                "exposed_ps": parts.exposed_ps,
                "idle_ps": parts.idle_ps,
                "sent_bytes": run.sent,
                "read_bytes": run.read,
                "bound_ps": run.bound.time.ps,
                "of_bound": run.of_bound,
                "bounded_by": run.bound.by,
            }
        )
    return pl.DataFrame(rows)


def write_frame(path: Path, rows: pl.DataFrame) -> Path:
    """Writes a frame as Parquet.

    Returns:
        The path written.
    """
    rows.write_parquet(path)
    return path

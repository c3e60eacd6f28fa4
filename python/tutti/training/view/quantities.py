"""The quantities of training steps: each is declared once, for all renderings."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from tutti.training.exposed import exposed_parts
from tutti.training.links import link_times
from tutti.training.parts import layers, servers, stalls, windows
from tutti.view.palette import BLUE, FAINT, RED, SKY
from tutti.view.quantity import (
    count,
    flag,
    format_rate,
    format_share,
    format_size,
    format_time,
    three,
)  # fmt: skip
from tutti.view.tables import Column, frame_of

from .text import cause, collective, server

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import polars as pl

    from tutti.training.exposed import CollectiveTime
    from tutti.training.links import LinkTime
    from tutti.training.parts import LayerTimes, Server, Stall, Window
    from tutti.training.results import TrainingResult


QUANTITIES: tuple[Column[TrainingResult], ...] = (
    Column("model", lambda run: run.step.model.name, key="model", scope="file"),
    Column("batch", lambda run: run.step.batch, count, key="batch", scope="file"),
    Column("NPUs", lambda run: run.step.npus, count, key="npus", scope="file"),
    Column("iterations", lambda run: run.iterations, count, key="iterations", scope="file"),
    Column("configuration", lambda run: run.configuration.name, key="configuration", kind="wrap"),
    Column("total", lambda run: run.total.ps, format_time, key="total_ps", short="time"),
    Column("last iteration", lambda run: run.period.ps, format_time, key="period_ps", scope="file"),
    Column("compute", lambda run: run.compute, format_time),
    Column("compute only", lambda run: run.compute - run.overlap, format_time, key="compute_ps",
           terminal=False),
    Column("exposed communication", lambda run: run.exposed, format_time, key="exposed_ps",
           short="exposed"),
    Column("overlap", lambda run: run.overlap, format_time, key="overlap_ps", short="hidden"),
    Column("idle", lambda run: run.idle, format_time, key="idle_ps"),
    Column("computation lost to the reservation", lambda run: run.reservation_cost, format_time,
           key="reservation_cost_ps", terminal=False),
    Column("send rate", lambda run: run.network_rate, format_rate, short="sent",
           terminal=lambda rate: f"{rate / 1e9:.0f} GB/s"),
    Column("bytes sent", lambda run: run.sent, format_size, key="sent_bytes", scope="file"),
    Column("memory reads", lambda run: run.read, format_size, key="read_bytes", short="read"),
    Column("lower bound", lambda run: run.bound.time.ps, format_time, key="bound_ps",
           terminal=False),
    Column("bound / total", lambda run: run.of_bound, format_share, key="of_bound",
           terminal=False),
    Column("bounded by", lambda run: run.bound.by, key="bounded_by", terminal=False),
)  # fmt: skip
"""The quantities of a run; times of all iterations, values of an NPU.

A quantity added here appears in the terminal, in `--json`, in reports, in notebooks and in files.
"""


_COLOURS = {"compute only": BLUE, "overlap": SKY, "exposed communication": RED, "idle": FAINT}
PARTS = [(column, colour) for name, colour in _COLOURS.items()
         for column in QUANTITIES if column.name == name]  # fmt: skip
"""The parts of the time of a run, which add up to it, and their colours."""
_CONFIGURATION = Column[Any](
    "configuration", lambda row: row.run.configuration.name, key="configuration", kind="wrap"
)

EXPOSED: tuple[Column[CollectiveTime], ...] = (
    _CONFIGURATION,
    Column("NPU", lambda row: row.npu, count, key="npu", scope="file"),
    Column("collective", lambda row: row.collective, key="collective", scope="file"),
    Column("collective", lambda row: collective(row.collective), scope="runs"),
    Column("process group", lambda row: row.group, key="group", kind="wrap"),
    Column("exposed", lambda row: row.exposed_ps, format_time, key="exposed_ps"),
    Column("share of the time", lambda row: row.exposed_ps / row.run.total.ps, format_share,
           short="share"),
    Column("in flight", lambda row: row.in_flight_ps, format_time, key="in_flight_ps"),
    Column("count", lambda row: row.number, count, key="count", terminal=False),
    Column("payload", lambda row: row.bytes, format_size, key="bytes", terminal=False),
)  # fmt: skip
"""The quantities of the collectives of a kind on a process group of an NPU."""


def _of_layer(key: str, row: LayerTimes) -> int:
    return row.values[key]


LAYERS: tuple[Column[LayerTimes], ...] = (
    _CONFIGURATION,
    Column("layer", lambda row: row.layer, key="layer", scope="file"),
    # Sorted in the order of the model.
    Column("layer", lambda row: (row.place, row.layer), lambda value: value[1], kind="text",
           scope="runs"),
    *(Column(name, partial(_of_layer, key), format_time, key=key) for name, key in (
        ("forward", "forward_ps"),
        ("input gradient", "input_gradient_ps"),
        ("weight gradient", "weight_gradient_ps"),
        ("other", "other_ps"),
        ("wait before the layer", "waited_ps"),
        ("collective time", "carried_ps"),
    )),
    Column("bytes communicated", partial(_of_layer, "bytes"), format_size, key="bytes"),
)  # fmt: skip
"""The quantities of a layer, as sums over all iterations."""


def link_label(row: LinkTime) -> str:
    """Returns the name of a link; links of a representative NPU are those of all NPUs."""
    several = row.npu is not None and row.run.record.npus > 1
    return f"NPU {row.npu}, {row.link}" if several else row.link


LINKS: tuple[Column[LinkTime], ...] = (
    _CONFIGURATION,
    Column("NPU", lambda row: row.npu, count, key="npu", scope="file"),
    Column("source", lambda row: row.source, key="source", scope="file"),
    Column("target", lambda row: row.target, key="target", scope="file"),
    Column("link", lambda row: row.link, key="link", scope="file"),
    Column("link", link_label, kind="nowrap", scope="runs"),
    Column("utilisation", lambda row: row.utilisation, format_share, key="utilisation"),
    Column("busy", lambda row: row.busy_ps, format_time, key="busy_ps"),
    Column("bytes", lambda row: row.bytes, format_size, key="bytes"),
)
"""The quantities of a link."""


def _server(row: Server) -> str:
    return f"link {row.name}" if row.is_link else server(row.name)


SERVERS: tuple[Column[Server], ...] = (
    _CONFIGURATION,
    Column("server", lambda row: row.name, key="server", scope="file"),
    Column("link", lambda row: row.is_link, flag, key="is_link", scope="file"),
    Column("server or link", _server, kind="nowrap", scope="runs"),
    Column("utilisation", lambda row: row.utilisation, format_share, key="utilisation"),
    Column("busy", lambda row: row.use.busy_ps, format_time, key="busy_ps"),
    Column("total wait of packets", lambda row: row.use.waited_ps, format_time, key="waited_ps"),
    Column("bytes", lambda row: row.use.bytes, format_size, key="bytes"),
    Column("packets", lambda row: row.use.pieces, count, key="pieces"),
)
"""The quantities of a server of the endpoint, or of a link."""

STALLS: tuple[Column[Stall], ...] = (
    _CONFIGURATION,
    Column("cause", lambda row: row.cause, key="cause", scope="file"),
    Column("cause", lambda row: cause(row.cause), scope="runs"),
    Column("mean number waiting", lambda row: row.waiting, three, key="waiting"),
    Column("total wait", lambda row: row.waited_ps, format_time, key="waited_ps"),
    Column("waits or packets", lambda row: row.number, count, key="count"),
)
"""The quantities of a cause of stalls."""

WINDOWS: tuple[Column[Window], ...] = (
    _CONFIGURATION,
    Column("start", lambda row: row.start_ps, format_time, key="start_ps"),
    Column("links", lambda row: row.links, format_share, key="links"),
    Column("compute", lambda row: row.compute, format_share, key="compute"),
)
"""The quantities of a window of a step."""

Part = Literal["results", "exposed", "layers", "links", "servers", "stalls", "windows"]
TABLES: dict[Part, tuple[Sequence[Column[Any]], Callable[[TrainingResult], Sequence[Any]]]] = {
    "results": (QUANTITIES, lambda run: [run]),
    "exposed": (EXPOSED, exposed_parts),
    "layers": (LAYERS, layers),
    "links": (LINKS, link_times),
    "servers": (SERVERS, servers),
    "stalls": (STALLS, stalls),
    "windows": (WINDOWS, windows),
}
"""The tables of runs: the quantities of a row, and the rows of a run."""


def frame(runs: Sequence[TrainingResult], part: Part = "results") -> pl.DataFrame:
    """Returns a table of runs; times in picoseconds, utilisations as fractions.

    Args:
        runs: The runs.
        part: `results`: a row per run, with inputs, breakdown of time, and bytes of an NPU. Or rows
            of :class:`~tutti.training.exposed.CollectiveTime` (`exposed`),
            :class:`~tutti.training.links.LinkTime` (`links`), or of the rows in
            :mod:`tutti.training.parts`.
    """
    columns, rows_of = TABLES[part]
    return frame_of(columns, [row for run in runs for row in rows_of(run)])

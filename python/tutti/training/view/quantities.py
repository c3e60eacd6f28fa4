"""The quantities of training steps: each is declared once, for all renderings."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeVar

from tutti.training.exposed import CollectiveTime, exposed_parts
from tutti.training.links import LinkTime, link_times
from tutti.training.parts import (
    LayerTimes,
    Server,
    Stall,
    Window,
    layers,
    servers,
    stalls,
    windows,
)
from tutti.view.palette import BLUE, FAINT, RED, SKY
from tutti.view.quantity import (
    count,
    flag,
    format_rate,
    format_share,
    format_size,
    format_time,
    three,
)
from tutti.view.tables import Column, frame_of

from .text import cause, collective, server

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from tutti.training.results import TrainingResult


class _OfRun(Protocol):
    @property
    def run(self) -> TrainingResult:
        """The run."""


Part = TypeVar("Part", bound=_OfRun)


def frame(runs: Sequence[TrainingResult]) -> pl.DataFrame:
    """Returns a row per run: the inputs, the breakdown of time (ps), and bytes of an NPU."""
    return frame_of(QUANTITIES, runs)


def exposed_frame(run: TrainingResult, npus: Sequence[int] | None = None) -> pl.DataFrame:
    """Returns a row per simulated NPU, collective and process group, the most exposed first.

    The sum of ``exposed_ps`` is the exposed time of an NPU. ``in_flight_ps`` is the time in which
    at least one of the collectives was in flight. The collective `shift` is a send between pipeline
    stages.

    Args:
        run: The run.
        npus: The NPUs; by default all simulated ones.

    Raises:
        WorkloadError: An NPU was not simulated.
    """
    return frame_of(EXPOSED, exposed_parts(run, npus))


def layer_frame(run: TrainingResult) -> pl.DataFrame:
    """Returns a row per layer of an NPU in order, as :func:`tutti.training.parts.layers`."""
    return frame_of(LAYERS, layers(run))


def link_frame(run: TrainingResult) -> pl.DataFrame:
    """Returns a row per link: every link of a platform, or those of each simulated NPU of a torus.

    Columns: as the attributes of :class:`tutti.training.links.LinkTime`.
    """
    return frame_of(LINKS, link_times(run))


def server_frame(run: TrainingResult) -> pl.DataFrame:
    """Returns a row per server of the endpoint, and per link.

    ``waited_ps`` is the total waiting time of packets, ``utilisation`` a fraction of the time with
    communication.
    """
    return frame_of(SERVERS, servers(run))


def stall_frame(run: TrainingResult) -> pl.DataFrame:
    """Returns a row per cause of stalls in the endpoint of an NPU.

    Columns: as the attributes of :class:`tutti.training.parts.Stall`.
    """
    return frame_of(STALLS, stalls(run))


def window_frame(run: TrainingResult) -> pl.DataFrame:
    """Returns a row per window of the step: its start, and the utilisation of links and compute."""
    return frame_of(WINDOWS, windows(run))


def _gigabytes(rate: float) -> str:
    return f"{rate / 1e9:.0f} GB/s"


_COMPUTE: Column[TrainingResult] = Column(
    "compute only", lambda run: run.compute - run.overlap, format_time, key="compute_ps",
    terminal=False,
)  # fmt: skip
_OVERLAP: Column[TrainingResult] = Column(
    "overlap", lambda run: run.overlap, format_time, key="overlap_ps", short="hidden"
)
_EXPOSED: Column[TrainingResult] = Column(
    "exposed communication", lambda run: run.exposed, format_time, key="exposed_ps",
    short="exposed",
)  # fmt: skip
_IDLE: Column[TrainingResult] = Column("idle", lambda run: run.idle, format_time, key="idle_ps")
PARTS = ((_COMPUTE, BLUE), (_OVERLAP, SKY), (_EXPOSED, RED), (_IDLE, FAINT))
"""The parts of the time of a run, which add up to it, and their colours."""
QUANTITIES: tuple[Column[TrainingResult], ...] = (
    Column("model", lambda run: run.step.model.name, key="model", scope="file"),
    Column("batch", lambda run: run.step.batch, count, key="batch", scope="file"),
    Column("NPUs", lambda run: run.step.npus, count, key="npus", scope="file"),
    Column("iterations", lambda run: run.iterations, count, key="iterations", scope="file"),
    Column("configuration", lambda run: run.configuration.name, key="configuration", kind="wrap"),
    Column("total", lambda run: run.total.ps, format_time, key="total_ps", short="time"),
    Column("last iteration", lambda run: run.period.ps, format_time, key="period_ps", scope="file"),
    Column("compute", lambda run: run.compute, format_time),
    _COMPUTE,
    _EXPOSED,
    _OVERLAP,
    _IDLE,
    Column("send rate", lambda run: run.network_rate, format_rate, terminal=_gigabytes,
           short="sent"),
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


def _configuration(_: type[Part], kind: str = "") -> Column[Part]:
    return Column("configuration", lambda row: row.run.configuration.name, key="configuration",
                  kind=kind)  # fmt: skip


EXPOSED: tuple[Column[CollectiveTime], ...] = (
    _configuration(CollectiveTime, "wrap"),
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
    _configuration(LayerTimes),
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
    _configuration(LinkTime),
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
    _configuration(Server),
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
    _configuration(Stall),
    Column("cause", lambda row: row.cause, key="cause", scope="file"),
    Column("cause", lambda row: cause(row.cause), scope="runs"),
    Column("mean number waiting", lambda row: row.waiting, three, key="waiting"),
    Column("total wait", lambda row: row.waited_ps, format_time, key="waited_ps"),
    Column("waits or packets", lambda row: row.number, count, key="count"),
)
"""The quantities of a cause of stalls."""

WINDOWS: tuple[Column[Window], ...] = (
    _configuration(Window),
    Column("start", lambda row: row.start_ps, format_time, key="start_ps"),
    Column("links", lambda row: row.links, format_share, key="links"),
    Column("compute", lambda row: row.compute, format_share, key="compute"),
)
"""The quantities of a window of a step."""

"""The sections of a training report on the endpoint: its cost, servers and stalls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tutti.training.frames import server_frame, stall_frame
from tutti.view.charts import Axis, bars, chart
from tutti.view.page import Chart, Section
from tutti.view.palette import styles
from tutti.view.quantity import count, format_rate, format_share, format_size, format_time, number
from tutti.view.tables import Column, ReportTable

from . import text as words

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from tutti.training.step import TrainingResult
    from tutti.view.charts import Figure


def endpoint_sections(runs: Sequence[TrainingResult]) -> list[Section]:
    """Returns the sections on the endpoint: its cost, utilisation and stalls, if simulated."""
    import polars as pl

    if any(run.step.detail != "packets" for run in runs):
        return []
    every = pl.concat(server_frame(run) for run in runs)
    servers = pl.concat(_by_ring(server_frame(run)) for run in runs)
    stalls = pl.concat(stall_frame(run) for run in runs)
    lead = (
        "SMs and memory bandwidth reserved for communication are not available to computation. "
        "Memory reads are those of communication, over all iterations. The send rate is the "
        "average over the time with communication in flight."
    )
    busy = (
        "Utilisation of the servers of the endpoint and of the links of each ring, while "
        "communication is in flight. A server at 100 % is the bottleneck."
    )
    waiting = (
        "Chunks and packets that wait for a resource of the endpoint, as the mean number during "
        "communication. A server counts the packets that wait for it. Waits for links are "
        "listed in the table above."
    )
    sections = [
        Section("Endpoint cost", lead, table=_cost(runs)),
        Section(
            "Endpoint utilisation",
            busy + words.of_first(runs),
            {
                "servers": Chart(
                    _busy_servers(servers),
                    "Horizontal: server or ring. Vertical: utilisation in per cent.",
                    "the highest bar of a configuration, which is its bottleneck.",
                )
            },
            _used(every),
        ),
    ]
    if stalls["waited_ps"].sum():
        drawn = Chart(
            _stalled(stalls),
            "Horizontal: cause. Vertical: mean number of waiting chunks and packets.",
            "the highest bar: the resource that delays communication most.",
        )
        charts = {"stalls": drawn}
        lead = waiting + words.of_first(runs)
        sections.append(Section("Endpoint stalls", lead, charts, _stalls(stalls)))
    return sections


def _cost(runs: Sequence[TrainingResult]) -> ReportTable[TrainingResult]:
    def taken(run: TrainingResult) -> tuple[str, str]:
        return words.taken(run.configuration, run.step.npu)

    def left(run: TrainingResult) -> tuple[tuple[float, str], tuple[float, str]]:
        return words.left(run.configuration, run.step.npu)

    def text(value: tuple[float, str]) -> str:
        return value[1]

    columns: list[Column[TrainingResult]] = [
        Column("configuration", lambda run: run.configuration.name),
        Column("endpoint", lambda run: run.configuration.kind),
        Column("reserved SMs", lambda run: taken(run)[0]),
        Column("reserved memory bandwidth", lambda run: taken(run)[1]),
        Column("remaining arithmetic", lambda run: left(run)[0], text, exported="operations/s"),
        Column("remaining memory bandwidth", lambda run: left(run)[1], text, exported="B/s"),
        Column("memory reads", lambda run: run.read, format_size),
        Column(
            "bytes read per byte sent",
            lambda run: run.read / run.sent if run.sent else 0.0,
            "{:.2f}".format,
        ),
        Column("send rate", lambda run: run.network_rate, format_rate),
    ]
    return ReportTable(columns, runs)


def _by_ring(servers: pl.DataFrame) -> pl.DataFrame:
    """Averages the two directions of each ring."""
    import polars as pl

    ring = pl.when("is_link").then("links " + pl.col("server").str.head(-2))
    named = servers.with_columns(server=ring.otherwise("server"))
    return named.group_by("configuration", "server", maintain_order=True).agg(
        pl.col("utilisation").mean()
    )


def _busy_servers(servers: pl.DataFrame) -> Figure:
    """Returns the utilisation of each server and ring during communication."""
    names = servers["server"].unique(maintain_order=True).to_list()
    chosen = styles(servers["configuration"])
    traces = []
    for part in servers.partition_by("configuration", maintain_order=True):
        found = dict(zip(part["server"], part["utilisation"], strict=True))
        name = part["configuration"][0]
        shown = [server for server in names if server in found]
        texts = [format_share(found[server]) for server in shown]
        hover = f"<b>{name}</b>, %{{x}}: %{{customdata}} utilisation<extra></extra>"
        traces.append(bars([words.server(server) for server in shown],
                           [found[server] for server in shown], chosen[name].colour, hover,
                           name=name, customdata=texts))  # fmt: skip
    y = Axis("utilisation", share=True, more={"range": [0, 1.02]})
    return chart(traces, Axis(category=True), y, 380, barmode="group")


def _used(servers: pl.DataFrame) -> ReportTable[dict[str, Any]]:
    columns: list[Column[dict[str, Any]]] = [
        Column("configuration", lambda row: row["configuration"]),
        Column("server or link", _server, kind="nowrap"),
        Column("utilisation", lambda row: row["utilisation"], format_share),
        Column("busy", lambda row: row["busy_ps"], format_time),
        Column("total wait of packets", lambda row: row["waited_ps"], format_time),
        Column("bytes", lambda row: row["bytes"], format_size),
        Column("packets", lambda row: row["pieces"], count),
    ]
    return ReportTable(columns, servers.to_dicts())


def _server(row: dict[str, Any]) -> str:
    return f"link {row['server']}" if row["is_link"] else words.server(row["server"])


def _stalled(stalls: pl.DataFrame) -> Figure:
    """Returns the mean number of waiting chunks and packets by cause."""
    chosen = styles(stalls["configuration"])
    seen = stalls.filter(stalls["waited_ps"] > 0)["cause"].unique().to_list()
    traces = []
    for part in stalls.filter(stalls["cause"].is_in(seen)).partition_by(
        "configuration", maintain_order=True
    ):
        name = part["configuration"][0]
        texts = [
            f"<b>{name}</b>, {words.cause(row['cause'])}: {number(row['waiting'], 3)} waiting on "
            f"average<br>{format_time(row['waited_ps'])} in total"
            for row in part.iter_rows(named=True)
        ]
        causes = [words.cause(cause) for cause in part["cause"]]
        traces.append(bars(causes, part["waiting"].to_list(), chosen[name].colour, name=name,
                           customdata=texts))  # fmt: skip
    y = Axis("mean number waiting", zero=True)
    return chart(traces, Axis(category=True), y, 380, barmode="group", showlegend=True)


def _stalls(stalls: pl.DataFrame) -> ReportTable[dict[str, Any]]:
    columns: list[Column[dict[str, Any]]] = [
        Column("configuration", lambda row: row["configuration"]),
        Column("cause", lambda row: words.cause(row["cause"])),
        Column("mean number waiting", lambda row: row["waiting"], lambda value: number(value, 3)),
        Column("total wait", lambda row: row["waited_ps"], format_time),
        Column("waits or packets", lambda row: row["count"], count),
    ]
    return ReportTable(columns, [row for row in stalls.to_dicts() if row["waited_ps"]])

"""The sections of a training report on the endpoint: its cost, servers and stalls."""

from __future__ import annotations

from itertools import groupby
from math import fsum
from typing import TYPE_CHECKING

from tutti.training.parts import servers, stalls
from tutti.view.charts import Axis, bars, chart
from tutti.view.page import Chart, Section
from tutti.view.palette import styles
from tutti.view.quantity import format_rate, format_share, format_time, three
from tutti.view.tables import Column, ReportTable, of_scope

from . import text as words
from .quantities import SERVERS, STALLS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import TypeVar

    from tutti.training.parts import Server, Stall
    from tutti.training.results import TrainingResult
    from tutti.view.charts import Figure

    Part = TypeVar("Part", Server, Stall)


def endpoint_sections(runs: Sequence[TrainingResult]) -> list[Section]:
    """Returns the sections on the endpoint: its cost, utilisation and stalls, if simulated."""
    if any(run.step.detail != "packets" for run in runs):
        return []
    used = [row for run in runs for row in servers(run)]
    stalled = [row for run in runs for row in stalls(run)]
    lead = "SMs and memory bandwidth reserved for communication are not available to computation."
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
        Section("Endpoint cost", lead, table=ReportTable(_COST, runs)),
        Section(
            "Endpoint utilisation",
            busy + words.of_first(runs),
            {
                "servers": Chart(
                    _busy_servers(used),
                    "Horizontal: server or ring. Vertical: utilisation in per cent.",
                    "the highest bar of a configuration, which is its bottleneck.",
                )
            },
            ReportTable(of_scope(SERVERS, "runs"), used),
        ),
    ]
    waits = [row for row in stalled if row.waited_ps]
    if waits:
        drawn = Chart(
            _stalled(stalled),
            "Horizontal: cause. Vertical: mean number of waiting chunks and packets.",
            "the highest bar: the resource that delays communication most.",
        )
        table = ReportTable(of_scope(STALLS, "runs"), waits)
        lead = waiting + words.of_first(runs)
        sections.append(Section("Endpoint stalls", lead, {"stalls": drawn}, table))
    return sections


def _taken(run: TrainingResult) -> tuple[str, str]:
    return words.taken(run.configuration, run.step.npu)


def _memory_left(run: TrainingResult) -> float:
    return run.configuration.compute(run.step.npu)[1].core.bytes_per_second


_COST: tuple[Column[TrainingResult], ...] = (
    Column("configuration", lambda run: run.configuration.name),
    Column("endpoint", lambda run: run.configuration.kind),
    Column("reserved SMs", lambda run: _taken(run)[0]),
    Column("reserved memory bandwidth", lambda run: _taken(run)[1]),
    Column("remaining arithmetic", lambda run: run.configuration.compute(run.step.npu)[0],
           words.tflops, exported="operations/s"),
    Column("remaining memory bandwidth", _memory_left, format_rate),
    Column("bytes read per byte sent", lambda run: run.read / run.sent if run.sent else 0.0,
           "{:.2f}".format),
)  # fmt: skip


def _by_configuration(rows: Sequence[Part]) -> Iterator[tuple[str, list[Part]]]:
    for name, parts in groupby(rows, lambda row: row.run.configuration.name):
        yield name, list(parts)


def _busy_servers(rows: Sequence[Server]) -> Figure:
    """Returns the utilisation of each server, and the mean of each ring, during communication."""
    chosen = styles([row.run.configuration.name for row in rows])
    traces = []
    for name, parts in _by_configuration(rows):
        shares: dict[str, list[float]] = {}
        for row in parts:
            ring = f"links {row.name[:-2]}" if row.is_link else row.name
            shares.setdefault(words.server(ring), []).append(row.utilisation)
        means = [fsum(values) / len(values) for values in shares.values()]
        hover = f"<b>{name}</b>, %{{x}}: %{{customdata}} utilisation<extra></extra>"
        traces.append(bars(list(shares), means, chosen[name].colour, hover, name=name,
                           customdata=[format_share(mean) for mean in means]))  # fmt: skip
    y = Axis("utilisation", share=True, more={"range": [0, 1.02]})
    return chart(traces, Axis(category=True), y, 380, barmode="group")


def _stalled(rows: Sequence[Stall]) -> Figure:
    """Returns the mean number of waiting chunks and packets by cause."""
    chosen = styles([row.run.configuration.name for row in rows])
    causes = {row.cause for row in rows if row.waited_ps}
    traces = []
    for name, parts in _by_configuration([row for row in rows if row.cause in causes]):
        texts = [
            f"<b>{name}</b>, {words.cause(row.cause)}: {three(row.waiting)} waiting on average<br>"
            f"{format_time(row.waited_ps)} in total"
            for row in parts
        ]
        shown = [words.cause(row.cause) for row in parts]
        traces.append(bars(shown, [row.waiting for row in parts], chosen[name].colour, name=name,
                           customdata=texts))  # fmt: skip
    y = Axis("mean number waiting", zero=True)
    return chart(traces, Axis(category=True), y, 380, barmode="group", showlegend=True)

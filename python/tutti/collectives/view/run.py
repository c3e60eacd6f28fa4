"""What a simulated collective shows: times, lower bound, ops, links, events and energy."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import polars as pl

from tutti import _core
from tutti.collectives.case import has_energy
from tutti.networks.flit.view.run import energy_data, energy_facts
from tutti.networks.flit.view.text import counts
from tutti.view.notebook import MOST_MESSAGES
from tutti.view.quantity import count, format_limit, format_rate, format_share, format_size
from tutti.view.tables import Column, ReportTable, records_of
from tutti.view.view import Data, Fact, View, figures_of

from .notebook import timeline_svg, write_timeline
from .perfetto import write_trace
from .text import MARKS, timeline_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult

    from tutti.collectives.result import Run
    from tutti.platforms.library import Prediction

_DRAWN_RANKS = 64
"""Ranks above which no timeline is drawn: it would be unreadable."""
MOST_TRACED = 1_000_000
"""Ops and messages above which there is no trace: viewers do not show a file of that size."""
_SHOWN_LINKS = 4
"""Links in the terminal's table."""
_MESH_EVENTS = {
    "injected": "flits injected",
    "link_hops": "link hops",
    "bypasses": "router bypasses",
    "merged": "flits combined in routers",
    "ejected": "flits ejected",
}
_PARTS = ("latency", "bandwidth", "links", "folding")
"""The parts of a lower bound."""


def _verified(run: Run) -> tuple[str, str]:
    reason = run.not_verified
    return "schedule", "verified" if reason is None else f"not verified: {reason}"


def _closed_form(run: Run) -> tuple[str, str]:
    time = run.closed_form_ps
    return "closed form", "none for this schedule" if time is None else _core.format_time(time)


def _part(name: str, run: Run) -> int:
    return int(getattr(run.bound, f"{name}_ps"))


def _limit(run: Run) -> tuple[str, str]:
    """Returns the lower bound, its dominant part, and its share of the completion time."""
    largest = max(_PARTS, key=lambda name: _part(name, run))
    least = _core.format_time(run.bound.at_least_ps)
    text = f"{least} ({largest}), {format_limit(run.of_limit)} % of this time"
    if other := run.bound_without_multicast_ps:
        share = format_limit(other / run.completion_ps)
        text += f"; without multicasts in switches {_core.format_time(other)}, {share} %"
    return "lower bound", text


def _bandwidth(run: Run) -> tuple[str, str]:
    return "algbw, busbw", f"{format_rate(run.algbw)}, {format_rate(run.busbw)}"


def _messages(run: Run) -> tuple[str, str]:
    """Returns the message count; for meshes that fork and combine, injected and delivered."""
    sent = f"{run.messages:,} with {run.message_bytes:,} B"
    if run.platform.effective_contention.kind != "mesh":
        return "messages", f"{sent} in total"
    delivered = f"{run.delivered:,} with {run.delivered_bytes:,} B delivered"
    return "messages", f"{sent} injected, {delivered}"


RUN: tuple[Column[Run], ...] = (
    Column("schedule", lambda run: run.name, key="schedule"),
    Column("laid out as", lambda run: run.schedule.name, key="laid_out"),
    Column("collective", lambda run: run.schedule.collective, key="collective"),
    Column("size", lambda run: run.size.bytes, format_size, key="size_bytes", fact=False),
    Column("ranks", lambda run: run.schedule.ranks, count, key="ranks", fact=False),
    Column("platform", lambda run: run.platform.name, key="platform"),
    Column("datatype", lambda run: run.datatype, key="datatype",
           fact=lambda run: ("datatype", run.datatype)),
    Column("network", lambda run: run.platform.network, key="network",
           fact=lambda run: ("network", run.platform.network)),
    Column("verified", lambda run: run.not_verified is None, key="verified", fact=_verified),
    Column("not verified", lambda run: run.not_verified, key="not_verified"),
    Column("completion time", lambda run: run.completion_ps, _core.format_time, key="time_ps"),
    Column("closed form", lambda run: run, fact=_closed_form),
    Column("closed-form time", lambda run: run.closed_form_ps, key="closed_form_ps"),
    Column("lower bound", lambda run: run.bound.at_least_ps, key="bound_ps", fact=_limit),
    Column("bound without multicast", lambda run: run.bound_without_multicast_ps,
           key="bound_without_multicast_ps"),
    *(Column(f"{name} bound", partial(_part, name), key=f"bound_{name}_ps") for name in _PARTS),
    Column("% of the lower bound", lambda run: run.of_limit, key="of_limit"),
    Column("algbw", lambda run: run.algbw, format_rate, key="algbw_bytes_per_s",
           fact=_bandwidth),
    Column("busbw", lambda run: run.busbw, key="busbw_bytes_per_s"),
    Column("messages", lambda run: run.messages, count, key="messages", fact=_messages),
    Column("message bytes", lambda run: run.message_bytes, key="message_bytes"),
    Column("delivered messages", lambda run: run.delivered, key="delivered_messages"),
    Column("delivered bytes", lambda run: run.delivered_bytes, key="delivered_bytes"),
    Column("finish skew", lambda run: run.finish_skew_ps, _core.format_time, key="finish_skew_ps"),
)  # fmt: skip
"""The quantities of a run; those without a text are in `--json` only."""

_CHANNELS = "The time of a rank is the mean of its {} channels, which work at the same time."
_LATENCY = (
    "Latency: that of the library's model, which has no separate launch for this algorithm, less "
    "that of the links."
)
OPS: tuple[Column[dict[str, Any]], ...] = (
    Column("op", itemgetter("op"), key="op"),
    Column("minimum", itemgetter("minimum_ps"), _core.format_time, key="minimum_ps"),
    Column("mean", itemgetter("mean_ps"), _core.format_time, key="mean_ps"),
    Column("maximum", itemgetter("maximum_ps"), _core.format_time, key="maximum_ps"),
)
"""The time of a kind of op: minimum, mean and maximum over the ranks."""


def run_view(
    run: Run,
    *,
    model: str = "",
    repetitions: Mapping[str, Any] | None = None,
    drawn: bool = True,
    library: tuple[str, Prediction] | None = None,
) -> View:
    """Returns what a run shows.

    Args:
        run: The run.
        model: The name of the platform's model, for `--json`; by default the kind of network.
        repetitions: The summary of the run's repetitions: see `tutti.collectives.frames.summary`.
        drawn: Whether to draw files.
        library: The name of the platform's library, and what its own model predicts.
    """
    ranks, size = run.schedule.ranks, run.size
    of = f"{run.schedule.collective} of {size} on {ranks:,} ranks of {run.platform.name}"
    energy = run.energy() if has_energy(run.platform) else None
    area = run.area() if energy and run.platform.effective_contention.kind != "mesh" else None
    return View(
        headline=Fact("", f"{run.title}: {of}"),
        facts=[
            *figures_of(RUN, run),
            Fact("", key="model", value=model or run.platform.network),
            *_events(run),
            *(energy_facts(energy, area, _window_ps(run)) if energy else []),
            *([_repetitions(repetitions)] if repetitions else []),
            *([_baseline(run, *library)] if library else []),
        ],
        data=[*_data(run), *(energy_data(energy, area) if energy else [])],
        below=[
            _Printed(lambda _: _tables(run)),
            *([energy.table()] if energy else []),
            _Printed(lambda width: _timeline(run, width)),
            *([_Printed(lambda _: _untraced(run))] if drawn else []),
        ],
        drawings=_drawings(run) if drawn else {},
        inline=lambda: _timeline_svg(run),
    )


def _data(run: Run) -> Iterator[Data]:
    yield Data("ops", lambda: records_of(OPS, _ops(run)))
    yield Data("ranks", lambda: run.frame, ["ranks.parquet"])
    yield Data("", lambda: run.timeline, ["timeline.parquet"])
    yield Data("", lambda: run.messages_frame, ["messages.parquet"])
    yield Data("links", lambda: run.links, [] if run.links.is_empty() else ["links.parquet"])
    if run.platform.effective_contention.kind == "flit":
        yield Data("", lambda: run.channels, ["channels.parquet"])


@dataclass(frozen=True)
class _Printed:
    """A part of the terminal that is computed when it is printed.

    Attributes:
        parts: Returns the parts for a width in characters.
    """

    parts: Callable[[int], Iterable[RenderableType]]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from self.parts(options.max_width)


def _window_ps(run: Run) -> int:
    """Returns the completion time, in complete cycles if routers have cycles."""
    contention = run.platform.effective_contention
    if contention.kind not in {"flit", "mesh"}:
        return run.completion_ps
    return -(-run.completion_ps // contention.cycle.ps) * contention.cycle.ps


def _events(run: Run) -> list[Fact]:
    """Returns the events in routers, if the platform has flits."""
    kind = run.platform.effective_contention.kind
    if kind == "flit":
        text = ", ".join(f"{value:,.0f} {name}" for name, value in counts(run.events))
        return [Fact("events", text, "events", run.events)]
    if kind == "mesh":
        values = run.mesh_counts
        text = ", ".join(f"{values[name]:,} {words}" for name, words in _MESH_EVENTS.items())
        return [Fact("events", text, "events", values)]
    return []


def _repetitions(summary: Mapping[str, Any]) -> Fact:
    names = ("least_ps", "median_ps", "lower_quartile_ps", "upper_quartile_ps")
    least, median, lower, upper = (_core.format_time(summary[name]) for name in names)
    text = (
        f"{summary['repetitions']:,}: minimum {least}, median {median}, quartiles {lower} and "
        f"{upper}; other figures are for the first"
    )
    return Fact("repetitions", text, "repetitions", summary)


def _baseline(run: Run, name: str, predicted: Prediction) -> Fact:
    """Returns what the library predicts for its choice, at the size and the ranks of a run."""
    time, size = predicted.time_ps, run.size.bytes
    schedule = run.schedule
    algbw = _core.algbw(size, time)
    busbw = _core.busbw(schedule.collective, schedule.ranks, size, time)
    values = {
        "name": name,
        "algorithm": predicted.algorithm,
        "protocol": predicted.protocol,
        "time_ps": time,
        "algbw_bytes_per_s": algbw,
        "busbw_bytes_per_s": busbw,
    }
    rates = f"{format_rate(algbw)}, {format_rate(busbw)}"
    text = f"{predicted.choice}, {_core.format_time(time)}; algbw, busbw: {rates}"
    return Fact(name, text, "library", values)


def _channels(run: Run) -> int:
    return max(1, run.timeline["channel"].n_unique())


def _ops(run: Run) -> list[dict[str, Any]]:
    """Returns the time per kind of op in ps: minimum, mean and maximum over the ranks.

    The time of a rank is the mean of its channels, which work at the same time.
    """
    spent = (pl.col("end_ps") - pl.col("start_ps")).sum() // _channels(run)
    per_rank = run.timeline.group_by("kind", "rank").agg(spent.alias("ps"))
    times = {kind: per_rank.filter(pl.col("kind") == kind)["ps"].to_list() for kind in MARKS}
    ranks = run.schedule.ranks
    return [
        {
            "op": kind,
            "minimum_ps": min(each) if len(each) == ranks else 0,
            "mean_ps": sum(each) // ranks,
            "maximum_ps": max(each),
        }
        for kind, each in times.items()
        if each
    ]


def _tables(run: Run) -> Iterable[RenderableType]:
    """Yields the time per kind of op, and the busiest links if the platform has links."""
    channels = _channels(run)
    notes = [_CHANNELS.format(channels)] if channels > 1 else []
    notes += [_LATENCY] if run.launch == "latency" else []
    yield ReportTable(OPS, _ops(run), caption=" ".join(notes))
    links = run.links
    if links.is_empty():
        return
    sent = next(name for name in ("messages", "packets", "flits") if name in links.columns)
    columns: list[Column[dict[str, Any]]] = [
        Column("busiest links", lambda row: f"{row['source']} > {row['target']}", kind="wrap"),
        Column("busy", lambda row: row["busy_ps"], _core.format_time),
        Column("utilisation", lambda row: row["utilisation"], format_share),
        Column(sent, lambda row: row[sent], count),
    ]
    busiest = links.sort("busy_ps", "link", descending=[True, False]).head(_SHOWN_LINKS).to_dicts()
    mean = format_share(float(links["utilisation"].sum()) / links.height)
    yield ReportTable(columns, busiest, caption=f"mean of {links.height:,} links: {mean}")


def _timeline(run: Run, width: int) -> Iterable[RenderableType]:
    from rich.text import Text

    for line in timeline_lines(run.timeline, run.schedule.ranks, min(width, 100) - 8):
        yield Text(line, no_wrap=True, overflow="crop")


def _traced(run: Run) -> int:
    """Returns the number of ops and messages of a trace."""
    return run.timeline.height + run.messages_frame.height


def _untraced(run: Run) -> Iterable[RenderableType]:
    if (count := _traced(run)) > MOST_TRACED:
        yield f"no trace.pftrace: {count:,} ops and messages are more than {MOST_TRACED:,}"


def _drawings(run: Run) -> dict[str, Callable[[Path], Path]]:
    """Returns the trace and, for few ranks, the timeline."""
    drawings: dict[str, Callable[[Path], Path]] = {}
    if _traced(run) <= MOST_TRACED:
        drawings["trace.pftrace"] = lambda path: write_trace(path, run.timeline, run.messages_frame)
    ranks = run.schedule.ranks
    if ranks <= _DRAWN_RANKS:
        title = f"{run.title}, {ranks} ranks"
        drawings["timeline.svg"] = lambda path: write_timeline(
            path, run.timeline, run.messages_frame, title
        )
    return drawings


def _timeline_svg(run: Run) -> str:
    if max(run.messages, run.delivered) > MOST_MESSAGES:
        return ""
    return timeline_svg(run.timeline, run.messages_frame)

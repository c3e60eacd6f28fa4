"""`tutti run`: simulates one schedule and shows what each rank does over time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import polars as pl
import typer
from rich.table import Table

from tutti import _core
from tutti.base.files.extras import installed, requires
from tutti.base.files.mistakes import mistake
from tutti.cli import options
from tutti.cli.energy import show_energy
from tutti.collectives.experiment import Rows, lay_out, measure, plan, run_once
from tutti.collectives.frames import summary
from tutti.collectives.view.gantt import draw_timeline
from tutti.collectives.view.perfetto import write_trace
from tutti.networks.flit.view.text import counts
from tutti.study.console import out, record, record_table, remark, wrote
from tutti.study.files import folder, write_frames
from tutti.study.progress import Progress
from tutti.view.quantity import format_limit

if TYPE_CHECKING:
    from tutti.collectives.files.resolve import Experiment
    from tutti.collectives.simulation import Run

_DRAWN_RANKS = 64
"""Ranks above which no timeline is drawn: it would be unreadable."""
_SHOWN_RANKS = 16
"""Ranks in the terminal's timeline."""
_SHOWN_LINKS = 4
"""Links in the terminal's table."""
_MARKS = {
    "launch": "|",
    "send": ">",
    "recv": "<",
    "reduce": "+",
    "copy": "=",
    "compute": "#",
    "wait": ".",
    "sleep": "z",
    "noise": "~",
}
"""The character for each kind of op in the terminal's timeline."""


def run(
    file: options.OptionalExperiment = None,
    size: Annotated[str | None, typer.Option("--size", "-s", metavar="SIZE", help="Size.")] = None,
    ranks: Annotated[int | None, typer.Option("--ranks", "-r", help="Rank count.")] = None,
    algorithm: Annotated[
        str | None,
        typer.Option("--algorithm", "-a", metavar="NAME[:ARG]", help="Algorithm."),
    ] = None,
    datatype: options.Datatype = None,
    platform: options.Platform = None,
    collective: options.Collective = None,
    model: options.Model = None,
    changes: options.Changes = None,
    verify: options.Verify = True,
    to: options.Out = None,
) -> None:
    """Simulate one schedule: time per kind of op, link utilisation and a timeline.

    Writes ranks.parquet, timeline.parquet, messages.parquet, a Perfetto trace and, up to 64
    ranks, timeline.svg to the output folder. Packet and flit models add links.parquet, flit models
    channels.parquet, and platforms with a technology energy.parquet. Options select the rank
    count, size and algorithm if the file has several.

    \b
    Examples:
      tutti run experiment.toml
      tutti run ring --ranks 16 --size 64MiB
      tutti run experiment.toml --ranks 8 --size 8 --algorithm swing
      tutti run experiment.toml --set ranks=16
    """
    overrides = options.Overrides(
        size=size,
        ranks=str(ranks) if ranks is not None else None,
        algorithms=[algorithm] if algorithm else None,
        datatype=datatype,
        platform=platform,
        collective=collective,
        model=model,
        changes=changes,
        out=to,
    )
    experiment = overrides.load(file)
    for text in experiment.machine().remarks:
        remark(text)
    notation = _only(experiment)
    with Progress("laying out"):
        laid_out = lay_out(experiment, notation, experiment.ranks[0])
    with Progress("verifying and simulating" if verify else "simulating"):
        result = run_once(experiment, laid_out, experiment.sizes[0], verify=verify, record=True)
    _show(experiment, result)
    if experiment.repetitions > 1:
        _show_repetitions(experiment)
    with Progress("writing results", writes=True):
        files = _write(folder(experiment.output), result)
    if not installed("reports"):
        remark(f"no trace and no drawing is written: it {requires('reports')}")
    wrote(*files, wrap=True)


def _only(experiment: Experiment) -> str:
    """Returns the algorithm of an experiment that has a single run.

    Raises:
        ConfigError: The experiment has several runs.
    """
    algorithms = experiment.algorithms or ()
    for key, count, option, example in (
        ("ranks", len(experiment.ranks), "--ranks", experiment.ranks[0]),
        ("sizes", len(experiment.sizes), "--size", f"'{experiment.sizes[0]}'"),
        ("algorithms", len(algorithms), "--algorithm", "ring"),
    ):
        if count != 1:
            problem = f"has {count} values; a run takes one" if count else "names no algorithm"
            raise mistake(
                problem,
                source=experiment.source,
                key=key,
                expected="one value",
                hint=f"select one: {option} {example}",
            )
    return algorithms[0]


def _show(experiment: Experiment, result: Run) -> None:
    _record(experiment, result)
    console = out()
    ranks = result.schedule.ranks
    console.print(
        f"[bold]{result.schedule.name}[/]: {experiment.collective} of {experiment.sizes[0]} "
        f"on {ranks:,} ranks of {experiment.machine().name}"
    )
    facts = {
        "schedule": "verified"
        if result.not_verified is None
        else f"not verified: {result.not_verified}",
        "completion time": _core.format_time(result.completion_ps),
        "closed form": "none for this schedule",
        "lower bound": _limit(result),
        "algbw, busbw": f"{_rate(result.algbw)}, {_rate(result.busbw)}",
        "messages": _messages(result),
        "finish skew": _core.format_time(result.finish_skew_ps),
    }
    if result.closed_form_ps is not None:
        facts["closed form"] = _core.format_time(result.closed_form_ps)
    for name, value in facts.items():
        console.print(f"  {name + ':':<17}{value}", markup=False)
    console.print(_shares(result.timeline, ranks))
    if not result.links.is_empty():
        console.print(_busiest(result.links))
    kind = result.platform.effective_contention.kind
    if kind == "flit":
        _show_routers(result)
    if kind == "mesh":
        _show_mesh(result)
    if _has_package(result):
        from tutti.cli.energy import show_energy

        show_energy(result.energy(), result.area(), result.completion_ps)
    for line in gantt(result.timeline, ranks, width=min(console.width, 100) - 8):
        console.print(line, markup=False, overflow="crop", no_wrap=True)


def _record(experiment: Experiment, result: Run) -> None:
    """Records the figures of a run for `--json`."""
    bound = result.bound
    record(
        schedule=result.schedule.name,
        collective=experiment.collective,
        size_bytes=experiment.sizes[0].bytes,
        ranks=result.schedule.ranks,
        platform=experiment.machine().name,
        model=experiment.model,
        verified=result.not_verified is None,
        not_verified=result.not_verified,
        time_ps=result.completion_ps,
        closed_form_ps=result.closed_form_ps,
        bound_ps=bound.at_least_ps,
        bound_latency_ps=bound.latency_ps,
        bound_bandwidth_ps=bound.bandwidth_ps,
        bound_links_ps=bound.links_ps,
        bound_folding_ps=bound.folding_ps,
        of_limit=result.of_limit,
        algbw_bytes_per_s=result.algbw,
        busbw_bytes_per_s=result.busbw,
        messages=result.messages,
        message_bytes=result.message_bytes,
        finish_skew_ps=result.finish_skew_ps,
    )
    record_table("ops", lambda: _ops(result.timeline, result.schedule.ranks))
    record_table("ranks", lambda: result.frame)
    record_table("links", lambda: result.links)
    kind = result.platform.effective_contention.kind
    if kind == "flit":
        record(events=result.events)
    if kind == "mesh":
        record(
            delivered_messages=result.delivered,
            delivered_bytes=result.delivered_bytes,
            events=result.mesh_counts,
        )


def _messages(result: Run) -> str:
    """Returns the message count; for meshes that fork and combine, injected and delivered."""
    sent = f"{result.messages:,} with {result.message_bytes:,} B"
    if result.platform.effective_contention.kind != "mesh":
        return f"{sent} in total"
    return f"{sent} injected, {result.delivered:,} with {result.delivered_bytes:,} B delivered"


def _has_package(result: Run) -> bool:
    """Returns whether the platform models the energy of its routers."""
    contention = result.platform.effective_contention
    return contention.kind == "packet" and contention.package is not None


def _show_mesh(result: Run) -> None:
    """Prints the events of a mesh whose routers fork and combine."""
    counts = result.mesh_counts
    names = {
        "injected": "flits injected",
        "link_hops": "link hops",
        "bypasses": "router bypasses",
        "merged": "flits combined in routers",
        "ejected": "flits ejected",
    }
    events = ", ".join(f"{counts[name]:,} {words}" for name, words in names.items())
    out().print(f"  events: {events}", markup=False)


def _show_routers(result: Run) -> None:
    """Prints the events of the routers, and their energy if the platform has a technology."""
    events = ", ".join(f"{value:,.0f} {name}" for name, value in counts(result.events))
    out().print(f"  events: {events}", markup=False)
    flits = result.platform.effective_contention
    if flits.kind == "flit" and flits.technology is not None:
        cycles = -(-result.completion_ps // flits.cycle.ps)
        show_energy(result.energy(), result.area(), cycles * flits.cycle.ps)


def _limit(result: Run) -> str:
    """Returns the lower bound, its dominant part, and the percentage of the bound reached."""
    bound = result.bound
    parts = {
        "latency": bound.latency_ps,
        "bandwidth": bound.bandwidth_ps,
        "links": bound.links_ps,
        "folding": bound.folding_ps,
    }
    largest = max(parts, key=lambda name: parts[name])
    least = _core.format_time(bound.at_least_ps)
    return f"{least} ({largest}): {format_limit(result.of_limit)} % of the bound"


def _show_repetitions(experiment: Experiment) -> None:
    """Prints minimum, median and quartiles over the repetitions; the timeline is the first's."""
    rows = Rows(plan(experiment))
    with Progress("repetitions", work=rows.plan.work, total=experiment.repetitions) as progress:
        measure(rows.plan, rows, done=lambda work: progress.advance(work, rows.count))
    found = summary(rows.frame()).row(0, named=True)
    record(repetitions=found)
    names = {
        "least": "least_ps",
        "quartiles": "lower_quartile_ps",
        "median": "median_ps",
        "": "upper_quartile_ps",
    }
    times = {name: _core.format_time(found[column]) for name, column in names.items()}
    out().print(
        f"  {found['repetitions']:,} repetitions: minimum {times['least']}, median "
        f"{times['median']}, quartiles {times['quartiles']} and {times['']}; figures above and "
        "below are for the first",
        markup=False,
    )


def _rate(bytes_per_s: float) -> str:
    for scale, unit in ((1e9, "GB/s"), (1e6, "MB/s"), (1e3, "KB/s")):
        if bytes_per_s >= scale:
            return f"{bytes_per_s / scale:.3g} {unit}"
    return f"{bytes_per_s:.3g} B/s"


def _shares(timeline: pl.DataFrame, ranks: int) -> Table:
    """Returns the time per kind of op: minimum, mean and maximum over the ranks."""
    table = Table("op", "minimum", "mean", "maximum", box=None, pad_edge=False)
    for row in _ops(timeline, ranks):
        values = (row[name] for name in ("minimum_ps", "mean_ps", "maximum_ps"))
        table.add_row(row["op"], *map(_core.format_time, values))
    return table


def _ops(timeline: pl.DataFrame, ranks: int) -> list[dict[str, Any]]:
    spent = (pl.col("end_ps") - pl.col("start_ps")).sum().alias("ps")
    per_rank = timeline.group_by("kind", "rank").agg(spent)
    times = {kind: per_rank.filter(pl.col("kind") == kind)["ps"].to_list() for kind in _MARKS}
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


def _busiest(links: pl.DataFrame) -> Table:
    """Returns the busiest links, and the mean utilisation of all links."""
    counted = next(name for name in ("messages", "packets", "flits") if name in links.columns)
    table = Table("busiest links", "busy", "utilisation", counted, box=None, pad_edge=False)
    order = links.sort("busy_ps", "link", descending=[True, False])
    for row in order.head(_SHOWN_LINKS).iter_rows(named=True):
        share = f"{100 * row['utilisation']:.0f} %"
        busy = _core.format_time(row["busy_ps"])
        table.add_row(f"{row['source']} > {row['target']}", busy, share, f"{row[counted]:,}")
    mean = 100 * links["utilisation"].sum() / links.height
    table.add_row(f"mean of {links.height:,} links", "", f"{mean:.0f} %", "")
    return table


def gantt(timeline: pl.DataFrame, ranks: int, width: int) -> list[str]:
    """Returns the timeline as text: a line per rank; a column shows its longest kind of op."""
    shown = min(ranks, _SHOWN_RANKS)
    end = int(timeline["end_ps"].cast(pl.Int64).max() or 0)  # type: ignore[arg-type]
    lines = []
    for rank in range(shown):
        spans = timeline.filter(pl.col("rank") == rank)
        lines.append(f"{rank:>5} |{_line(spans, end, width)}|")
    kinds = set(timeline["kind"].unique())
    legend = ", ".join(f"{mark} {kind}" for kind, mark in _MARKS.items() if kind in kinds)
    lines.append(f"       0 to {_core.format_time(end)}: {legend}")
    if shown < ranks:
        lines.append(f"       ranks {shown} to {ranks - 1}: see timeline.parquet")
    return lines


def _line(spans: pl.DataFrame, end: int, width: int) -> str:
    spent = [dict.fromkeys(_MARKS, 0) for _ in range(width)]
    for kind, start, stop in spans.select("kind", "start_ps", "end_ps").iter_rows():
        first, last = start * width // end, min(stop * width // end, width - 1)
        for column in range(first, last + 1):
            left, right = column * end // width, (column + 1) * end // width
            spent[column][kind] += max(0, min(stop, right) - max(start, left))
    return "".join(_mark(column) for column in spent)


def _mark(spent: dict[str, int]) -> str:
    kind = max(spent, key=lambda name: spent[name])
    return _MARKS[kind] if spent[kind] else " "


def _write(folder: Path, result: Run) -> list[Path]:
    frames = {
        "ranks.parquet": result.frame,
        "timeline.parquet": result.timeline,
        "messages.parquet": result.messages_frame,
    }
    if not result.links.is_empty():
        frames["links.parquet"] = result.links
    contention = result.platform.effective_contention
    if contention.kind == "flit":
        frames["channels.parquet"] = result.channels
        if contention.technology is not None:
            frames["energy.parquet"] = result.energy().frame
    if _has_package(result):
        frames["energy.parquet"] = result.energy().frame
    files = write_frames(folder, frames)
    return [*files, *(_draw(folder, result) if installed("reports") else ())]


def _draw(folder: Path, result: Run) -> list[Path]:
    files = [write_trace(folder / "trace.pftrace", result.timeline, result.messages_frame)]
    if result.schedule.ranks <= _DRAWN_RANKS:
        svg = folder / "timeline.svg"
        title = f"{result.schedule.name}, {result.schedule.ranks} ranks"
        files.append(draw_timeline(svg, result.timeline, result.messages_frame, title=title))
    return files

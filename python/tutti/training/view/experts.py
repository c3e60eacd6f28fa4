"""What the times of dispatch and combine of a layer of experts show."""

from __future__ import annotations

from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from tutti.view.quantity import count, format_share, format_size, format_time
from tutti.view.tables import Column, ReportTable, records_of
from tutti.view.view import Data, Fact, View, json_facts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tutti.training.experts import ExpertTimes, StageTimes
    from tutti.workloads.experts import ExpertLayer

_CAPTION = (
    "network, node: bytes per rank to other nodes and within the node, dispatch and combine\n"
    "imbalance: busiest rank over mean; bound/even: bound over that of an even load"
)


def _stage(stage: StageTimes) -> dict[str, Any]:
    return {
        "bound_ps": stage.bound_ps,
        "time_ps": stage.time_ps,
        "relative_bound": stage.relative_bound,
        "bottleneck": stage.bottleneck,
        "network_bytes_per_rank": stage.network_bytes,
        "node_bytes_per_rank": stage.node_bytes,
    }


def _times(stage: StageTimes) -> str:
    """Returns the median and the interval of a stage."""
    low, high = format_time(stage.best_ps.low), format_time(stage.best_ps.high)
    unit = high.split()[1]
    return f"{format_time(stage.best_ps.median)}\n{low.removesuffix(f' {unit}')}-{high}"


def _bytes(row: ExpertTimes) -> str:
    stages = row.dispatch, row.combine
    network = sum(stage.network_bytes for stage in stages)
    return f"{format_size(network)}\n{format_size(sum(stage.node_bytes for stage in stages))}"


def _over_even(row: ExpertTimes) -> float:
    return max(stage.relative_bound.median for stage in (row.dispatch, row.combine))


QUANTITIES: tuple[Column[ExpertTimes], ...] = (
    Column("ranks", lambda row: row.ranks, count, key="ranks", short="ranks\n"),
    Column("kernel", lambda row: row.kernel, key="kernel", terminal=False),
    Column("kernel\nbottleneck", lambda row: f"{row.kernel}\n{row.dispatch.bottleneck}",
           kind="reason"),
    Column("dispatch\ninterval", lambda row: row.dispatch, _times),
    Column("combine\ninterval", lambda row: row.combine, _times),
    Column("dispatch", lambda row: _stage(row.dispatch), key="dispatch", terminal=False),
    Column("combine", lambda row: _stage(row.combine), key="combine", terminal=False),
    Column("network\nnode", _bytes, kind="number"),
    Column("imba-\nlance", lambda row: row.imbalance, key="imbalance", kind="number",
           terminal=lambda imbalance: f"{imbalance.median:.2f}"),
    Column("bound/\neven", _over_even, "{:.2f}".format),
    Column("from", lambda row: "flow" if row.is_simulated else "bound", kind="number",
           short="from\n"),
)  # fmt: skip
"""The quantities of a kernel on a number of ranks."""


def experts_view(
    results: Sequence[ExpertTimes], layer: ExpertLayer, platform: str, settings: Mapping[str, Any]
) -> View:
    """Returns what the times of kernels on numbers of ranks show.

    Args:
        results: The times.
        layer: The layer of experts.
        platform: The name of the platform.
        settings: The settings to record, with `routing`.
    """
    decisions = _decisions(results)
    tokens = f"top-{layer.top_k}, {layer.tokens:,} tokens of {layer.hidden:,} per rank"
    formats = f"{layer.dispatch} dispatch, {layer.combine} combine"
    routing = f"{settings['routing']} routing on {platform}"
    return View(
        headline=Fact("", f"{layer.experts} experts, {tokens}, {formats}, {routing}"),
        facts=json_facts(layer=layer, platform=platform, **settings, decisions=decisions),
        tables=[ReportTable(QUANTITIES, results, caption=_CAPTION)],
        data=[Data("results", lambda: records_of(QUANTITIES, results))],
        below=decisions,
    )


def _decisions(results: Sequence[ExpertTimes]) -> list[str]:
    """Returns the choice of the kernel per number of ranks, and the cost of more ranks."""
    lines: list[str] = []
    several = groupby(sorted(results, key=attrgetter("ranks", "total_ps")), attrgetter("ranks"))
    best = []
    for _, kernels in several:
        first, *others = kernels
        best.append(first)
        lines += [_choice(first, other) for other in others]
    return [*lines, *_bounds(best), *_more_ranks(best)]


def _bounds(best: Sequence[ExpertTimes]) -> Iterator[str]:
    """Yields a sentence on the numbers of ranks whose times are lower bounds."""
    bounds = [times.ranks for times in best if not times.is_simulated and times.ranks > 1]
    if bounds:
        ranks = ", ".join(f"{one:,}" for one in bounds)
        yield (
            f"{ranks} ranks: the times are lower bounds by link capacities, without latency and "
            "contention: --simulate-up-to simulates more ranks"
        )


def _more_ranks(best: Sequence[ExpertTimes]) -> Iterator[str]:
    """Yields the cost of more ranks: of simulations if all are, otherwise of lower bounds."""
    simulated = all(times.is_simulated for times in best)
    how, time_of = ("", "total_ps") if simulated else (", by lower bounds", "bound_ps")
    ps: Callable[[ExpertTimes], float] = attrgetter(time_of)
    least = min(best, key=ps)
    for times in best:
        if times is not least and ps(least):
            yield (
                f"{times.ranks:,} ranks take {ps(times) / ps(least):.2f} times as long as "
                f"{least.ranks:,} ({format_time(ps(times))} and {format_time(ps(least))}){how}"
            )


def _choice(first: ExpertTimes, second: ExpertTimes) -> str:
    """Returns the kernel to use, and the margin that work outside the network must not exceed."""
    high = first.dispatch.best_ps.high + first.combine.best_ps.high
    low = second.dispatch.best_ps.low + second.combine.best_ps.low
    margin = format_time(second.total_ps - first.total_ps)
    if first.total_ps == second.total_ps:
        return f"{first.ranks:,} ranks: either kernel: the times are equal"
    if high > low:
        return (
            f"{first.ranks:,} ranks: either kernel: {second.kernel} is {margin} slower, within "
            "the intervals"
        )
    how = "" if first.is_simulated else ", by lower bounds"
    extra = "its launches and exchange of counts" if first.kernel == "normal" else "its launches"
    return (
        f"{first.ranks:,} ranks: use {first.kernel}, which saves {margin} "
        f"({format_share(1 - first.total_ps / second.total_ps)}){how}, unless {extra} take that "
        "much more"
    )

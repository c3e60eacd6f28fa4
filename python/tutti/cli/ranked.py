"""The ranked table of a comparison: who wins where, against whom, by how much, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from tutti.base.units import Size
from tutti.collectives.explanation import Parts, parts, why
from tutti.collectives.view.comparison import cases
from tutti.collectives.view.summary import spread
from tutti.view.breakable import Breakable
from tutti.view.quantity import format_limit, format_share, format_time

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl

    from tutti.collectives.experiment import ExperimentPlan
    from tutti.collectives.view.comparison import Fastest, Measurement, Region


def winners(frame: pl.DataFrame) -> list[Region]:
    """Neighbouring sizes with one winner, taken together, at each rank count."""
    return [region for case in cases(frame) for region in case.regions()]


def ranked_table(found: list[Region], plan: ExperimentPlan, top: int) -> Table:
    """Returns the regions as a table, largest lead first; if `top` is 0, all by rank count.

    Below the winner of a region are the runner-up and the reason for the lead. Times and lead are
    those at the size of the region with the largest lead, which is printed below the sizes.
    """
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), expand=True)
    table.add_column("ranks\n", justify="right", no_wrap=True)
    table.add_column("sizes\n[dim]size[/]", no_wrap=True)
    table.add_column("fastest schedule\n[dim]runner-up, reason[/]", ratio=1)
    table.add_column("time\n", justify="right", no_wrap=True)
    table.add_column("% of\nbound", justify="right", no_wrap=True)
    table.add_column("lead\n", justify="right", no_wrap=True)
    shown = sorted(found, key=_lead, reverse=True)[:top] if top else found
    for region in shown:
        for row in _rows(region, plan):
            table.add_row(*row)
    return table


def spread_table(found: list[Region], top: int) -> Table | None:
    """How far the repetitions lie apart, of winner and runner-up; None without repetitions."""
    shown = sorted(found, key=_lead, reverse=True)[:top] if top else found
    decisions = [region.clearest for region in shown]
    pairs = [one for d in decisions for one in (d.winner, d.runner_up) if one is not None]
    if all(one.repetitions == 1 for one in pairs):
        return None
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), title_justify="left")
    table.title = f"over {max(one.repetitions for one in pairs):,} repetitions"
    table.add_column("ranks", justify="right")
    table.add_column("size")
    table.add_column("schedule")
    for heading in ("minimum", "median", "quartiles"):
        table.add_column(heading, justify="right", no_wrap=True)
    for one in pairs:
        least, quartiles = spread(one)
        cells = (f"{one.ranks:,}", str(Size(bytes=one.size_bytes)), Breakable(one.schedule))
        table.add_row(*cells, least, format_time(one.time_ps), quartiles)
    return table


def region_rows(found: list[Region], plan: ExperimentPlan) -> Iterator[dict[str, Any]]:
    """Yields the regions as rows of numbers, by rank count."""
    for region in found:
        decision = region.clearest
        first, second = decision.winner, decision.runner_up
        yield {
            "ranks": region.ranks,
            "from_bytes": region.sizes[0],
            "to_bytes": region.sizes[1],
            "size_bytes": first.size_bytes,
            "schedule": first.schedule,
            "time_ps": first.time_ps,
            "of_limit": first.of_limit,
            "lead": decision.margin,
            "runner_up": None if second is None else second.schedule,
            "runner_up_time_ps": None if second is None else second.time_ps,
            "runner_up_of_limit": None if second is None else second.of_limit,
            "reason": reason(decision, plan),
        }


def _lead(region: Region) -> float:
    return region.clearest.margin or 0.0


def _rows(region: Region, plan: ExperimentPlan) -> Iterator[tuple[str | Breakable | Text, ...]]:
    """The winner, the runner-up with the size that the figures are for, and the reason."""
    decision = region.clearest
    first, second = decision.winner, decision.runner_up
    smallest, largest = (str(Size(bytes=size)) for size in region.sizes)
    yield (
        f"{region.ranks:,}",
        smallest if smallest == largest else f"{smallest} to {largest}",
        Breakable(first.schedule),
        format_time(first.time_ps),
        format_limit(first.of_limit),
        format_share(decision.margin) if decision.margin is not None else "",
    )
    at = "" if smallest == largest else f"[dim]at {Size(bytes=first.size_bytes)}[/]"
    if second is not None:
        figures = format_time(second.time_ps), format_limit(second.of_limit)
        below = Breakable(second.schedule, styles=("dim",))
        yield "", at, below, *(f"[dim]{figure}[/]" for figure in figures), ""
    if why := reason(decision, plan):
        yield "", "", Text(why, style="dim"), "", "", ""


def reason(decision: Fastest, plan: ExperimentPlan) -> str:
    """Why the winner wins at one point, from the closed forms of the two."""
    first, second = decision.winner, decision.runner_up
    if second is None:
        return "no other schedule"
    if first.time_ps == second.time_ps:
        return "tie"
    return why(
        _parts(first, plan),
        _parts(second, plan),
        gap_ps=second.time_ps - first.time_ps,
        ps_per_byte=plan.experiment.ps_per_byte,
    )


def _parts(one: Measurement, plan: ExperimentPlan) -> Parts | None:
    measured = None
    if one.messages is not None and one.message_bytes is not None:
        measured = (one.messages, one.message_bytes)
    laid_out = plan.schedule(one.schedule, one.ranks)
    return parts(laid_out, one.size_bytes, measured=measured)

"""The ranked table of a comparison: who wins where, against whom, by how much, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table

from tutti.explain import Parts, parts, why
from tutti.report.breakable import Breakable, broken
from tutti.report.comparison import cases
from tutti.report.quantity import format_limit, format_share, format_time
from tutti.report.words import spread
from tutti.units import Size

if TYPE_CHECKING:
    import polars as pl

    from tutti.experiment import ExperimentPlan
    from tutti.report.comparison import Fastest, Measurement, Region

_NAME_WIDTH = 30
"""Of a schedule's name in the table."""


def winners(frame: pl.DataFrame) -> list[Region]:
    """Neighbouring sizes with one winner, taken together, at each rank count."""
    return [region for case in cases(frame) for region in case.regions()]


def ranked_table(found: list[Region], plan: ExperimentPlan, top: int) -> Table:
    """The regions as a table, clearest win first; all of them, by rank count, when `top` is 0.

    Times and lead are those at the size of the region where the lead is largest, which is named
    below the sizes.
    """
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), expand=True)
    table.add_column("ranks\n", justify="right", no_wrap=True)
    table.add_column("sizes\n[dim]at[/]", no_wrap=True)
    table.add_column("fastest\n[dim]runner-up[/]", width=_NAME_WIDTH)
    table.add_column("takes\n", justify="right", no_wrap=True)
    table.add_column("% of\nlimit", justify="right", no_wrap=True)
    table.add_column("longer\nby", justify="right", no_wrap=True)
    table.add_column("why\n", overflow="fold", ratio=1)
    shown = sorted(found, key=_lead, reverse=True)[:top] if top else found
    for region in shown:
        table.add_row(*_cells(region, plan))
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
    for heading in ("least", "median", "quartiles"):
        table.add_column(heading, justify="right", no_wrap=True)
    for one in pairs:
        least, quartiles = spread(one)
        cells = (f"{one.ranks:,}", str(Size(bytes=one.size_bytes)), Breakable(one.schedule))
        table.add_row(*cells, least, format_time(one.time_ps), quartiles)
    return table


def _lead(region: Region) -> float:
    return region.clearest.margin or 0.0


def _sizes(region: Region) -> str:
    """The sizes of a region, and which of them its times are of."""
    smallest, largest, at = (
        str(Size(bytes=size)) for size in (*region.sizes, region.clearest.winner.size_bytes)
    )
    return smallest if smallest == largest else f"{smallest}\nto {largest}\n[dim]at {at}[/]"


def _cells(region: Region, plan: ExperimentPlan) -> tuple[str | Breakable, ...]:
    decision = region.clearest
    first, second = decision.winner, decision.runner_up
    names = [*broken(first.schedule, _NAME_WIDTH)]
    below = "\n" * len(names)  # so that the runner-up's figures stand beside its name
    styles = ("",) * len(names) + ("dim",)
    times, reached = format_time(first.time_ps), format_limit(first.of_limit)
    if second is not None:
        names.append(second.schedule)
        times += f"{below}[dim]{format_time(second.time_ps)}[/]"
        reached += f"{below}[dim]{format_limit(second.of_limit)}[/]"
    return (
        f"{region.ranks:,}",
        _sizes(region),
        Breakable(*names, styles=styles),
        times,
        reached,
        format_share(decision.margin) if decision.margin is not None else "",
        reason(decision, plan),
    )


def reason(decision: Fastest, plan: ExperimentPlan) -> str:
    """Why the winner wins at one point, from the closed forms of the two."""
    first, second = decision.winner, decision.runner_up
    if second is None:
        return "nothing to compare with"
    if first.time_ps == second.time_ps:
        return "a tie"
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

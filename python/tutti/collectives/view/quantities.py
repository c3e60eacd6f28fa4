"""The quantities of comparisons: each is declared once, for all renderings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from tutti.base.units import Size
from tutti.view.breakable import Breakable
from tutti.view.quantity import (
    count,
    format_energy,
    format_limit,
    format_power,
    format_rate,
    format_share,
    format_size,
    format_time,
    plural,
    span,
    three,
)
from tutti.view.tables import Column, ReportTable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.table import Table

    from tutti.collectives.comparison import Measurement, Region
    from tutti.collectives.energy import ScheduleEnergy
    from tutti.collectives.pruning import Pruned


def shorten(names: list[str], most: int = 2, between: str = "; ") -> str:
    """Returns at most `most` names and the number of the remaining ones."""
    shown = between.join(names[:most])
    rest = len(names) - most
    return f"{shown} and {plural(rest, 'other')}" if rest > 0 else shown


class Point(NamedTuple):
    """A measurement of a comparison.

    Attributes:
        measured: The measurement.
        fastest_ps: The shortest time at its rank count and size.
        colour: The colour of its algorithm.
    """

    measured: Measurement
    fastest_ps: int
    colour: str = ""

    @property
    def slowdown(self) -> float:
        """The time over the shortest one."""
        return self.measured.time_ps / self.fastest_ps if self.fastest_ps else 1.0


MEASURED: tuple[Column[Point], ...] = (
    Column("ranks", lambda point: point.measured.ranks, count),
    Column("size", lambda point: point.measured.size_bytes, format_size),
    Column("schedule", lambda point: point.measured.schedule, colour=lambda point: point.colour),
    Column("completion time", lambda point: point.measured.time_ps, format_time, short="median"),
    Column("minimum", lambda point: point.measured.least_ps, format_time, scope="runs"),
    Column("lower quartile", lambda point: point.measured.lower_quartile_ps, format_time,
           scope="runs", short="quartile"),
    Column("upper quartile", lambda point: point.measured.upper_quartile_ps, format_time,
           scope="runs", short="quartile"),
    Column("slowdown", lambda point: point.slowdown, "{:.2f}".format, terminal=False),
    Column("% of the lower bound", lambda point: point.measured.of_limit, format_limit,
           exported="as a fraction", terminal=False),
    Column("algbw", lambda point: point.measured.algbw, format_rate, terminal=False),
    Column("busbw", lambda point: point.measured.busbw, format_rate, terminal=False),
    Column("messages", lambda point: point.measured.messages, count, terminal=False),
    Column("bytes in messages", lambda point: point.measured.message_bytes, format_size,
           kind="hidden", terminal=False),
    Column("closed-form time", lambda point: point.measured.closed_form_ps, format_time,
           terminal=False),
)  # fmt: skip
"""The quantities of a measurement, whose time is the median; "runs" are those of repetitions."""

PRUNED: tuple[Column[Pruned], ...] = (
    Column("ranks", lambda one: one.ranks, count, key="ranks"),
    Column("size", lambda one: one.size_bytes, format_size, key="size_bytes"),
    Column("not simulated", lambda one: one.schedule, key="schedule"),
    Column("at least", lambda one: one.bound_ps, format_time, key="bound_ps"),
    Column("second-fastest algorithm", lambda one: one.second_ps, format_time, key="second_ps",
           short="second-fastest"),
)  # fmt: skip
"""The quantities of a large schedule that cannot be among the two fastest algorithms."""


ENERGIES: tuple[Column[ScheduleEnergy], ...] = (
    Column("ranks", lambda one: one.ranks, count, key="ranks"),
    Column("size", lambda one: one.size_bytes, format_size, key="size_bytes"),
    Column("schedule", lambda one: one.schedule, key="schedule", kind="wrap"),
    Column("completion time", lambda one: round(one.time_ps), format_time, key="time_ps",
           short="time"),
    Column("energy", lambda one: one.total.nominal, format_energy, key="total_j", exported="J"),
    Column("lower bound of the energy", lambda one: one.total.low, format_energy, key="low_j",
           exported="J", terminal=False),
    Column("upper bound of the energy", lambda one: one.total.high, format_energy, key="high_j",
           exported="J", terminal=False),
    Column("dynamic", lambda one: one.dynamic_j, format_energy, key="dynamic_j", exported="J"),
    Column("leakage", lambda one: one.leakage_j, format_energy, key="leakage_j", exported="J",
           terminal=False),
    Column("mean power", lambda one: one.power_w, format_power, key="mean_power_w", exported="W",
           short="power"),
    Column("energy per byte", lambda one: one.pj_per_byte, three, key="pj_per_byte",
           exported="pJ", short="pJ/B"),
)  # fmt: skip
"""The energy of routers and links for a schedule, at a rank count and size."""


class Lead(NamedTuple):
    """A region of a comparison, and why its winner is faster.

    Attributes:
        region: The region.
        reason: What the winner saves by its closed form at the largest lead; empty if unknown.
        difference: The reason, or else the difference in messages.
        colour: The colour of the winner.
    """

    region: Region
    reason: str = ""
    difference: str = ""
    colour: str = ""

    @property
    def first(self) -> Measurement:
        """The winner at the largest lead."""
        return self.region.clearest.winner

    @property
    def margins(self) -> tuple[float | None, float | None]:
        """The smallest and the largest lead, as fractions; None without a slower algorithm."""
        margins = [point.margin for point in self.region.decisions if point.margin is not None]
        return (min(margins), max(margins)) if margins else (None, None)

    @property
    def baseline(self) -> Measurement | None:
        """What the library predicts for its choice at the largest lead; None without a library."""
        return self.region.clearest.baseline

    def of_baseline(self, get: Callable[[Measurement], Any]) -> Any:  # noqa: ANN401 - of any type
        """Returns a value of the library's prediction at the largest lead; None without one."""
        return None if self.baseline is None else get(self.baseline)

    def of_second(self, get: Callable[[Measurement], Any]) -> Any:  # noqa: ANN401 - of any type
        """Returns a value of the runner-up at the largest lead; None without one."""
        second = self.region.clearest.runner_up
        return None if second is None else get(second)


def _exact(sizes: tuple[int, int]) -> str:
    return span(sizes, lambda size: str(Size(bytes=size)))


def _tied(lead: Lead) -> str:
    names = sorted({one.algorithm for point in lead.region.decisions for one in point.level})
    return f"tied with {shorten(names)}" if names else ""


def _as_fast(lead: Lead) -> str | None:
    return ", ".join(other.schedule for other in lead.region.clearest.level) or None


def _runners_up(lead: Lead) -> str:
    seconds = (point.runner_up for point in lead.region.decisions)
    return shorten(sorted({second.algorithm for second in seconds if second}))


def _margins(lead: Lead) -> str:
    low, high = (None if one is None else format_share(one) for one in lead.margins)
    if low is None:
        return "no slower algorithm"
    return low if low == high else f"{low} to {high}"


def _of_library(lead: Lead) -> str:
    """Returns the time of the library's choice, and how many times that of the winner it is."""
    if lead.baseline is None:
        return ""
    times = lead.baseline.time_ps / lead.first.time_ps
    return f"{format_time(lead.baseline.time_ps)}, {times:.2f}x, at {_size(lead)}"


def _size(lead: Lead) -> str:
    return format_size(lead.first.size_bytes)


def _gb_per_s(bytes_per_s: float) -> str:
    return f"{bytes_per_s / 1e9:.4g}"


REGIONS: tuple[Column[Lead], ...] = (
    Column("ranks", lambda lead: lead.region.ranks, count, key="ranks", short="ranks\n"),
    Column("sizes", lambda lead: lead.region.sizes, lambda sizes: span(sizes, format_size),
           kind="nowrap", short="sizes\n[dim]size[/]", terminal=_exact),
    Column("fastest", lambda lead: lead.region.schedule, kind="wrap",
           colour=lambda lead: lead.colour, soft=_tied, terminal=False),
    Column("lead over runner-up", _margins, kind="wrap", soft=_runners_up,
           terminal=False),
    Column("fastest vs. runner-up (largest lead)", lambda lead: lead.difference, kind="reason",
           terminal=False),
    Column("default of the library", lambda lead: lead.of_baseline(lambda one: one.schedule),
           kind="wrap", soft=_of_library, scope="runs", terminal=False),
    Column("smallest size", lambda lead: lead.region.sizes[0], format_size, key="from_bytes",
           kind="hidden", terminal=False),
    Column("largest size", lambda lead: lead.region.sizes[1], format_size, key="to_bytes",
           kind="hidden", terminal=False),
    Column("size of the largest lead", lambda lead: lead.first.size_bytes, format_size,
           key="size_bytes", kind="hidden", terminal=False),
    Column("fastest schedule", lambda lead: lead.region.schedule, key="schedule", scope="file",
           short="fastest schedule\n[dim]runner-up, reason[/]"),
    Column("completion time", lambda lead: lead.first.time_ps, format_time, key="time_ps",
           kind="hidden", short="time\n"),
    Column("algbw", lambda lead: lead.first.algbw, format_rate, key="algbw_bytes_per_s",
           kind="hidden", short="algbw\nGB/s", terminal=_gb_per_s),
    Column("busbw", lambda lead: lead.first.busbw, format_rate, key="busbw_bytes_per_s",
           kind="hidden", short="busbw\nGB/s", terminal=_gb_per_s),
    Column("% of the lower bound", lambda lead: lead.first.of_limit, format_limit, key="of_limit",
           kind="hidden", short="% of\nbound"),
    Column("smallest lead", lambda lead: lead.margins[0], format_share, kind="hidden",
           terminal=False),
    Column("largest lead", lambda lead: lead.margins[1], format_share, key="lead", kind="hidden",
           short="lead\n"),
    Column("as fast", _as_fast, key="as_fast", scope="file", terminal=False),
    Column("runner-up", lambda lead: lead.of_second(lambda second: second.schedule),
           key="runner_up", scope="file"),
    Column("time of the runner-up", lambda lead: lead.of_second(lambda second: second.time_ps),
           format_time, key="runner_up_time_ps", kind="hidden"),
    Column("% of the lower bound of the runner-up",
           lambda lead: lead.of_second(lambda second: second.of_limit), format_limit,
           key="runner_up_of_limit", kind="hidden"),
    Column("algbw of the runner-up", lambda lead: lead.of_second(lambda second: second.algbw),
           format_rate, key="runner_up_algbw_bytes_per_s", kind="hidden", terminal=_gb_per_s),
    Column("busbw of the runner-up", lambda lead: lead.of_second(lambda second: second.busbw),
           format_rate, key="runner_up_busbw_bytes_per_s", kind="hidden", terminal=_gb_per_s),
    Column("library", lambda lead: lead.of_baseline(lambda one: one.schedule), key="library",
           scope="file"),
    Column("time of the library", lambda lead: lead.of_baseline(lambda one: one.time_ps),
           format_time, key="library_time_ps", kind="hidden"),
    Column("% of the lower bound of the library",
           lambda lead: lead.of_baseline(lambda one: one.of_limit), format_limit,
           key="library_of_limit", kind="hidden"),
    Column("algbw of the library", lambda lead: lead.of_baseline(lambda one: one.algbw),
           format_rate, key="library_algbw_bytes_per_s", kind="hidden", terminal=_gb_per_s),
    Column("busbw of the library", lambda lead: lead.of_baseline(lambda one: one.busbw),
           format_rate, key="library_busbw_bytes_per_s", kind="hidden", terminal=_gb_per_s),
    Column("reason", lambda lead: lead.reason if _runners_up(lead) else "no other schedule",
           key="reason", scope="file", terminal=False),
)  # fmt: skip
"""The quantities of a region; those of one point are at the size with the largest lead."""

_RATES = ("algbw_bytes_per_s", "busbw_bytes_per_s")
"""Columns that the terminal shows on platforms with a library, whose users compare rates."""
_FIGURES = ("time_ps", "of_limit", *_RATES)
_BELOW = {"schedule": "runner_up", **{key: f"runner_up_{key}" for key in _FIGURES}}
"""The columns of the runner-up, which the terminal shows below those of the winner, by key."""
_OF_LIBRARY = {"schedule": "library", **{key: f"library_{key}" for key in _FIGURES}}
"""Those of the library, which follow."""


@dataclass(frozen=True)
class Ranking(ReportTable[Lead]):
    """Regions: below each winner, the terminal shows its runner-up and the reason of the lead.

    Attributes:
        title: The text above the table of the terminal.
    """

    title: str = ""

    @property
    def narrow(self) -> list[Column[Lead]]:
        """The columns that the terminal and notebooks show."""
        has_library = any(lead.baseline for lead in self.rows)
        return [
            column
            for column in self.columns
            if column.terminal and (has_library or not column.key.endswith(_RATES))
        ]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yields title and table for the terminal."""
        from rich.text import Text

        yield Text(self.title, "dim")
        yield self.terminal()

    def terminal(self) -> Table:
        """Returns the columns for the terminal as a table of rich."""
        from rich.table import Table

        table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), expand=True)
        below = {*_BELOW.values(), *_OF_LIBRARY.values()}
        columns = [column for column in self.narrow if column.key not in below]
        for column in columns:
            is_name = column.key == "schedule"
            table.add_column(
                column.short or column.heading,
                justify="right" if column.show and column.kind != "nowrap" else "left",
                no_wrap=not is_name,
                ratio=1 if is_name else None,
            )
        for lead in self.rows:
            for number, line in enumerate(self._lines(columns, lead)):
                style = "dim" if number else ""
                table.add_row(*(Breakable(text, styles=(style,)) for text in line))
        return table

    def _lines(self, columns: list[Column[Lead]], lead: Lead) -> Iterable[list[str]]:
        """Yields the winner, ties, the runner-up with the size of its time, and the reason."""

        def named(text: str) -> list[str]:
            return [text if column.key == "schedule" else "" for column in columns]

        texts = {column.key: column.text(lead) for column in self.columns if column.key}
        yield [column.text(lead) for column in columns]
        if lead.region.clearest.level:
            yield named(f"as fast: {texts['as_fast']}")
        if lead.of_second(bool):
            below = {key: texts[other] for key, other in _BELOW.items()}
            smallest, largest = lead.region.sizes
            at = "" if smallest == largest else f"at {Size(bytes=lead.first.size_bytes)}"
            yield [
                at if column.name == "sizes" else below.get(column.key, "") for column in columns
            ]
        if texts["reason"]:
            yield named(texts["reason"])
        if lead.baseline is not None:
            figures = {key: texts[other] for key, other in _OF_LIBRARY.items()}
            figures["lead"] = f"{lead.baseline.time_ps / lead.first.time_ps:.2f}x"
            yield [figures.get(column.key, "") for column in columns]

"""What runs show: times of one algorithm on several links, or of endpoints on several networks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tutti.base.units import Time
from tutti.view.quantity import format_rate, format_size, format_time
from tutti.view.tables import Column, ReportTable, records_of
from tutti.view.view import Data, View

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import polars as pl

    from tutti.base.units import Size
    from tutti.collectives.phases import PhasedRun

_RUNS = (
    "algbw: payload / time; speedup: relative to the mesh in dimension order; packets are 1/32 "
    "chunk, or a flit"
)
_ENDPOINTS = (
    "exposed: communication that computation does not hide; gain: time on the mesh / this time; "
    "docs/guides/endpoints-on-packages.md"
)


class LinkRun(NamedTuple):
    """A run of a schedule.

    Attributes:
        size: The size of the collective.
        links: The links, in words.
        run: The run.
        plain: The run on the mesh without bypass links.
    """

    size: Size
    links: str
    run: PhasedRun
    plain: PhasedRun


RUNS: tuple[Column[LinkRun], ...] = (
    Column("payload", lambda row: row.size.bytes, key="size_bytes", terminal=False),
    Column("payload", lambda row: str(row.size)),
    Column("links", lambda row: row.links, key="links"),
    Column("time", lambda row: row.run.completion_ps, lambda ps: str(Time(ps=ps)), key="time_ps"),
    Column("algbw", lambda row: row.run.algbw, format_rate, key="algbw_bytes_per_s"),
    Column("speedup", lambda row: row.plain.completion_ps / row.run.completion_ps, "{:.2f}".format,
           key="speedup"),
)  # fmt: skip
"""The quantities of a run."""


def runs_view(name: str, runs: Sequence[LinkRun]) -> View:
    """Returns the time of a schedule with each size on the plain mesh and with bypass links."""
    unverified = sorted(filter(None, {row.run.not_verified for row in runs}))
    return View(
        tables=[ReportTable(RUNS, runs, gap=2, caption=_RUNS)],
        log=[f"{name} is not verified: {reason}" for reason in unverified],
        data=[Data("results", lambda: records_of(RUNS, runs))],
    )


def _column(
    name: str, key: str, show: Callable[[Any], str] | None = None, kind: str = ""
) -> Column[dict[str, Any]]:
    return Column(name, lambda row: row[key], show, key=key, kind=kind)


ENDPOINTS = (
    _column("network", "network"),
    _column("endpoint", "endpoint"),
    _column("memory", "memory"),
    _column("size", "bytes", format_size),
    _column("algorithm", "algorithm", kind="wrap"),
    _column("time", "time_ps", format_time),
    _column("compute", "compute_ps", format_time),
    _column("exposed", "exposed_ps", format_time),
    _column("energy", "energy_j", lambda joules: f"{1e6 * joules:.3g} uJ"),
    _column("gain", "gain", "{:.2f}".format),
)
"""The quantities of an endpoint on a network; `--json` also has bounds and bytes."""


def endpoints_view(frame: pl.DataFrame) -> View:
    """Returns the rows of `tutti.bypass.endpoints` as a table."""
    columns = [column for column in ENDPOINTS if column.key in frame.columns]
    return View(
        tables=[ReportTable(columns, frame.to_dicts(), gap=2, caption=_ENDPOINTS)],
        data=[Data("results", lambda: frame)],
    )

"""The output and the files of `tutti calibrate`."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

from rich.table import Table

from tutti.base.units import Size
from tutti.collectives.frames import write
from tutti.measured.calibrate.against import against, choices
from tutti.measured.calibrate.files import median_error, platform_text, residual_frame, written
from tutti.measured.calibrate.view import draw_against, draw_fits
from tutti.platforms import platform
from tutti.study.console import out, record_table, remark, wrote
from tutti.view.quantity import format_share

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import polars as pl

    from tutti.measured.calibrate import Fit
    from tutti.measured.calibrate.files import Provenance
    from tutti.platforms.machine import Platform

__all__ = ["show_fits", "validate", "write_files"]


def show_fits(fits: list[Fit]) -> None:
    """Prints the parameters, the residuals, and the parameters that the data do not determine."""
    record_table("parameters", lambda: chain.from_iterable(map(_rows, fits)))
    out().print(_table(fits))
    for one in fits:
        line = f"{one.model.name} ({one.statistic}): {median_error(one)}"
        out().print(line, markup=False)
    for one in fits:
        if one.bent:
            remark(_bent(one))
        for names, reason in one.undetermined_groups:
            named = " and ".join(names)
            remark(f"{one.model.name} ({one.statistic}): {named} not determined: {reason}")
        for parameter, reason in one.absent.items():
            remark(f"{one.model.name} ({one.statistic}): {parameter} assumed 0: {reason}")
        if one.vague:
            remark(
                f"{one.model.name} ({one.statistic}): {' and '.join(one.vague)}: wide confidence"
                " interval; use a quieter machine, more samples or fewer sizes (-b, -e)"
            )


def _rows(fit: Fit) -> Iterator[dict[str, Any]]:
    """Yields the parameters of a fit for `--json`: times in us, times per byte in us/B."""
    for one in fit.parameters.values():
        determined = one.name not in fit.undetermined
        count, per_byte = one.name in fit.model.counts, one.name in fit.model.per_byte
        yield {
            "model": fit.model.name,
            "statistic": fit.statistic,
            "parameter": one.name,
            "unit": "" if count else "us/B" if per_byte else "us",
            "value": one.value if determined else None,
            "low": one.low if determined else None,
            "high": one.high if determined else None,
            "points": len(fit.points),
            "median_error": fit.median_residual,
        }


_WORST = 3
"""Number of sizes listed where a model deviates from the data."""


def _bent(fit: Fit) -> str:
    """Reports that a model does not have the shape of the data, and advises what to do."""
    sizes = fit.worst_sizes
    where = ", ".join(
        f"{format_share(share)} at {Size(bytes=size)}" for size, share in sizes[:_WORST]
    )
    text = (
        f"{fit.model.name} ({fit.statistic}): the model deviates from the data: "
        f"{median_error(fit)}; largest median errors: {where}"
    )
    return text + ("; fit a narrower range of sizes with -b and -e" if len(sizes) > 1 else "")


def _table(fits: list[Fit]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in ("model", "statistic", "parameter"):
        table.add_column(heading, no_wrap=True)
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("95 % CI", no_wrap=True)
    for one in fits:
        for parameter in one.parameters.values():
            low, high = (written(one, parameter, end) for end in (parameter.low, parameter.high))
            value, interval = written(one, parameter, parameter.value), f"{low} to {high}"
            if parameter.name in one.undetermined:
                value, interval = "?", "not determined"
            table.add_row(one.model.name, one.statistic, parameter.name, value, interval)
    return table


def write_files(fits: list[Fit], folds: Fit | None, provenance: Provenance, to: Path) -> Platform:
    """Writes the platform, every point with the models' predictions, and a figure.

    Returns:
        The platform, read back.
    """
    from tutti.study.files import written

    frame = residual_frame(fits)
    paths = [write(frame, to / f"calibration.{suffix}") for suffix in ("parquet", "csv")]
    paths.append(written(draw_fits, to / "fit.svg", fits))
    wrote(*paths, wrap=True)
    text = platform_text(fits, provenance, folds=folds)
    path = to / f"{provenance.name}.toml"
    path.write_text(text, "utf-8")
    # Reading the file back detects errors.
    found = platform(path)
    wrote(path, note=f": --platform {path}, model {found.model.kind}", wrap=True)
    return found


def validate(results: pl.DataFrame, source: str, fits: list[Fit], to: Path) -> None:
    """Compares the platform's model with collectives that were not fitted."""
    from tutti.study.files import written

    usable = [one for one in fits if one.determined]
    chosen = next((one for one in usable if one.model.name == "pipelining_postal"), usable[0])
    best = chosen.model
    mine = {one.statistic: one for one in usable if one.model == best}
    if "median" not in mine:  # fitted to means only: one model for both
        mine = {"minimum": chosen, "median": chosen}
    frame = against(results, mine, source=source)
    record_table("against", frame)
    record_table("choices", lambda: choices(frame))
    for (statistic,), some in frame.group_by("statistic", maintain_order=True):
        within = _share(some["residual"].abs().median())
        count = f"{len(some)} {statistic}s of collectives"
        out().print(f"{best.name} against {count}: median absolute error {within}", markup=False)
    for (statistic,), some in choices(frame).group_by("statistic", maintain_order=True):
        largest, median = _share(some["loss"].max()), _share(some["loss"].median())
        out().print(
            f"slowdown of the schedules that it selects, by {statistic}s: maximum {largest}, "
            f"median {median}",
            markup=False,
        )
    wrote(write(frame, to / "against.parquet"), wrap=True)
    wrote(written(draw_against, to / "against.svg", frame), wrap=True)


def _share(value: object) -> str:
    return f"{float(str(value)):.1%}"

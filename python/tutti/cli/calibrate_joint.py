"""`tutti calibrate --joint`: one model of all measured collectives of a machine."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl
from rich.table import Table

from tutti.collectives.frames import write
from tutti.formats.measurements import read_measurements
from tutti.measured.calibrate.files import Provenance
from tutti.measured.calibrate.joint import fit_jointly, joint_platform_text
from tutti.measured.predict import calibrate, execution, is_default
from tutti.measured.predict.folds import compared, cross_validate, folds, interval_scale
from tutti.measured.predict.model import usable
from tutti.platforms import platform
from tutti.study.console import out, record, record_table, remark, wrote
from tutti.study.progress import Progress

if TYPE_CHECKING:
    from pathlib import Path

    from tutti.measured.predict import CalibratedModel

__all__ = ["calibrate_jointly"]

_PER_BYTE = "per byte"
_RELATIVE = ("relative", "growth")
_UNITS = ((1.0, "us"), (1e3, "ms"), (1e6, "s"))


def calibrate_jointly(
    paths: list[Path], to: Path, name: str, *, ranks: int | None, collective: str | None
) -> None:
    """Fits one model to all collectives, cross-validates it, prints it and writes it.

    Args:
        paths: files of measurements.
        to: folder for results.
        name: of the platform.
        ranks: the number of ranks of rows that do not state it.
        collective: the collective of files that do not state it.

    Raises:
        ConfigError: A file cannot be read.
        CalibrationError: No row can be used.
    """
    rows = _read(paths, ranks, collective)
    with Progress("fitting"):
        model = calibrate(rows)
    record(rows=rows.height, rows_used=model.used)
    out().print(f"{model.used:,} of {rows.height:,} measured collectives used")
    if folds(rows, kinds=["nodes"]):
        with Progress("cross-validating", handles_interrupts=True):
            predictions = cross_validate(rows, kinds=["nodes"], workers=os.cpu_count() or 1)
        model = replace(model, interval_scale=interval_scale(predictions))
        figures = compared(rows, predictions)
        record_table("folds", figures)
        out().print(_comparison(figures))
        write(figures, to / "folds.csv")
    else:
        remark("one node count: no cross-validation, and intervals are those of the model alone")
    record_table("parameters", lambda: _parameter_frame(model))
    out().print(_parameters(model))
    _write(model, rows, to)
    _write_platform(model, rows, paths, to / f"{name}.toml")


def _read(paths: list[Path], ranks: int | None, collective: str | None) -> pl.DataFrame:
    """Returns the usable rows, and reports those that are left out."""
    found = read_measurements(paths, ranks=ranks, collective=collective)
    for line in found.remarks():
        remark(line)
    if found.merged:
        remark(f"{found.merged:,} rows of equal configuration were merged into their median")
    rows = usable(found.rows).filter(pl.col("collective") != "ping_pong")
    names = rows.group_by("collective", "library_algorithm", maintain_order=True).len()
    for kind, name, count in names.iter_rows():
        if not is_default(name) and execution(kind, name) is None:
            remark(f"unknown algorithm {name} of {kind}: left out {count:,} rows")
    return rows


def _comparison(figures: pl.DataFrame) -> Table:
    """Errors of each candidate model, where larger jobs are predicted from smaller ones."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in ("predicted from fewer nodes", "model"):
        table.add_column(heading, no_wrap=True)
    for heading in ("factor", "90 %", "winner", "inside"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in figures.iter_rows(named=True):
        name = row["model"] + (" *" if row["warranted"] else "")
        cells = [_number(row["factor"], "{:.2f}"), _number(row["factor_p90"], "{:.2f}")]
        cells += [_number(row["winner"], "{:.0%}"), _number(row["inside"], "{:.0%}")]
        table.add_row(row["fold"], name, *cells)
    table.caption = "* the simplest model that no more complex one improves on"
    table.caption_justify = "left"
    return table


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else form.format(value)


def _parameters(model: CalibratedModel) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("parameter", no_wrap=True)
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("90 % interval", no_wrap=True)
    for environment, fitted in model.curves.items():
        table.add_row(f"[bold]{environment}[/bold]")
        for row in fitted.table():
            name, value = row["parameter"], _quantity(row["parameter"], row["value"])
            ends = [_quantity(name, row[end]) for end in ("low", "high")]
            interval = " to ".join(ends) if row["determined"] else "not determined: the prior"
            table.add_row(f"  {name}", value, interval)
    return table


def _quantity(name: str, value: float) -> str:
    if any(word in name for word in _RELATIVE):
        return f"{value:.2f}"
    if _PER_BYTE in name:
        return f"{1e3 * value:.3g} ns/B"
    scale, unit = max((one for one in _UNITS if value >= one[0]), default=_UNITS[0])
    return f"{value / scale:.3g} {unit}"


def _write(model: CalibratedModel, rows: pl.DataFrame, to: Path) -> None:
    """Writes the parameters, and each measurement with its prediction."""
    write(_parameter_frame(model), to / "parameters.csv")
    predicted = model.predict(rows)
    write(
        rows.with_row_index("index").join(predicted, on="index").drop("index"),
        to / "collectives.csv",
    )
    wrote(to / "parameters.csv", to / "collectives.csv", wrap=True)


def _parameter_frame(model: CalibratedModel) -> pl.DataFrame:
    return pl.concat(
        pl.DataFrame(fitted.table()).select(pl.lit(name).alias("environment"), pl.all())
        for name, fitted in model.curves.items()
    )


def _write_platform(
    model: CalibratedModel, rows: pl.DataFrame, paths: list[Path], path: Path
) -> None:
    """Writes the platform of the system with the most measurements."""
    fits = fit_jointly(rows, model)
    if not fits:
        remark("no platform file: no environment has enough measurements for its parameters")
        return
    system = fits[0].environment.rsplit("/", 4)[0]
    systems = rows["system"].drop_nulls().n_unique()
    if systems > 1:
        remark(f"{path}: of {systems} systems, that with the most measurements: {system}")
    models = rows.filter("emulated")["notes"].drop_nulls().unique().sort().to_list()
    emulated = tuple(one.removeprefix("emulated by ") for one in models)
    measured = ", ".join(str(one) for one in paths)
    provenance = Provenance.now(path.stem, measured, system, emulated=emulated)
    path.write_text(joint_platform_text(fits, provenance), "utf-8")
    found = platform(path)  # reading the file back detects errors
    wrote(path, note=f": --platform {path}, model {found.model.kind}", wrap=True)
    out().print(fits[0].summary, markup=False)

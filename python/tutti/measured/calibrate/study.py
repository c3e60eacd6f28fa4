"""The study of a calibration: fits models, shows and writes them, and validates the platform."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from tutti.formats.measurements import read_reported
from tutti.measured.calibrate.against import against
from tutti.measured.calibrate.files import Provenance, platform_text, raise_error
from tutti.measured.calibrate.fit import Fit, fit
from tutti.measured.calibrate.joint import fit_jointly, joint_platform_text
from tutti.measured.calibrate.library import compare_library
from tutti.measured.calibrate.models import FOLDS
from tutti.measured.calibrate.nodes import nodes_fit, nodes_platform_text
from tutti.measured.calibrate.sources import RESULTS, reported_results
from tutti.measured.errors import CalibrationError
from tutti.measured.predict import calibrate, execution, is_default
from tutti.measured.predict.folds import compared, cross_validate, folds, interval_scale
from tutti.measured.predict.model import CalibratedModel, usable
from tutti.platforms import platform
from tutti.study.console import out, remark, wrote
from tutti.study.study import Study

from .view import against_view, fits_view, joint_view, library_view

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tutti.measured.calibrate.models import FittedModel
    from tutti.measured.calibrate.sources import Sources
    from tutti.platforms.machine import Platform


def calibrate_models(
    models: Sequence[FittedModel],
    sources: Sources,
    provenance: Provenance,
    to: Path,
    *,
    sizes: range,
    strict: bool,
) -> tuple[list[Fit], Platform]:
    """Fits models, shows and writes them, and returns the fits and the platform, read back.

    Args:
        models: The models.
        sources: The measurements.
        provenance: Their origin, and the name of the platform.
        to: The output folder.
        sizes: The sizes to fit, in bytes.
        strict: Whether the data must determine each model.

    Raises:
        CalibrationError: The data do not determine a model, or no model at all.
    """
    study = Study[list[Fit]](to)
    fits = study.single(lambda: _fits(models, sources, sizes, strict=strict), "fitting")
    study.present(fits_view(fits))
    text = platform_text(fits, provenance, folds=_reductions(sources))
    return fits, _platform(to, text, provenance)


def calibrate_nodes(
    models: Sequence[FittedModel],
    places: tuple[Sources, Sources],
    provenance: Provenance,
    to: Path,
    *,
    sizes: range,
    strict: bool,
    per_node: int,
    nodes: int,
) -> tuple[list[Fit], Platform]:
    """Fits models within a node and between nodes, shows them, and writes one platform.

    Args:
        models: The models.
        places: The measurements within a node, and those between nodes.
        provenance: Their origin, and the name of the platform.
        to: The output folder.
        sizes: The sizes to fit, in bytes.
        strict: Whether the data must determine each model.
        per_node: The number of ranks of a node.
        nodes: The number of nodes of the platform.

    Returns:
        The fits between nodes, and the platform, read back.

    Raises:
        CalibrationError: No model is determined by both, or messages between nodes are faster.
    """
    study = Study[tuple[list[Fit], list[Fit]]](to)
    within, between = study.single(
        lambda: tuple(_fits(models, place, sizes, strict=strict) for place in places),  # type: ignore[arg-type,return-value] # two places
        "fitting",
    )
    study.present(fits_view(within, between))
    found = nodes_fit(within, between, per_node=per_node, nodes=nodes)
    for line in found.remarks():
        remark(line)
    text = nodes_platform_text(found, provenance, folds=_reductions(places[0]))
    return between, _platform(to, text, provenance)


def _reductions(sources: Sources) -> Fit | None:
    """Returns the fitted cost of a fold, if folds were measured."""
    points = [point for point in sources.sets.get("median", []) if point.kind == "fold"]
    return fit(FOLDS, points, statistic="median") if points else None


def _platform(to: Path, text: str, provenance: Provenance) -> Platform:
    """Writes a platform file, and reads it back, which detects errors."""
    path = to / f"{provenance.name}.toml"
    path.write_text(text, "utf-8")
    written = platform(path)
    wrote(path, note=f": --platform {path}, model {written.model.kind}", wrap=True)
    return written


def _fits(
    models: Sequence[FittedModel], sources: Sources, sizes: range, *, strict: bool
) -> list[Fit]:
    """Fits each model to each statistic.

    Raises:
        CalibrationError: The data do not determine a model that was named, or no model at all.
    """
    fits = []
    for model in models:
        for statistic, every in sources.sets.items():
            points = [point for point in every if point.size in sizes]
            try:
                fits.append(fit(model, points, statistic=statistic))
            except CalibrationError as error:
                if strict:
                    raise
                remark(f"{model.name}: {error.problem}")
    if not fits:
        message = "no model predicts any of the measured operations"
        raise CalibrationError(message, kind="no_points")
    _require_determined(fits, strict=strict)
    return fits


def _require_determined(fits: list[Fit], *, strict: bool) -> None:
    """Rejects a model that was requested by name but that the data do not determine.

    Raises:
        CalibrationError: There is such a model.
    """
    for fitted in fits:
        if strict and not fitted.determined:
            lines = [f"{' and '.join(names)}: {why}" for names, why in fitted.undetermined_groups]
            message = "\n".join([f"the data do not determine {fitted.model.name}", *lines])
            raise CalibrationError(message, kind="undetermined")


def validate(
    file: Path,
    fits: Sequence[Fit],
    machine: Platform,
    to: Path,
    *,
    ranks: int | None,
    collective: str | None,
) -> None:
    """Compares the platform with collectives that were not fitted, or with those of a library.

    Args:
        file: Results of `tutti mpi bench`, or output of a benchmark of a library.
        fits: The fitted models.
        machine: The platform.
        to: The output folder.
        ranks: The number of ranks, if the file does not state it.
        collective: The collective, if the file does not state it.

    Raises:
        ConfigError: The file cannot be read, or has no collective.
    """
    study = Study[pl.DataFrame](to)
    if file.suffix != RESULTS:
        rows = compare_library(file, machine, ranks=ranks, collective=collective)
        study.present(library_view(rows))
        return
    determined = [fitted for fitted in fits if fitted.determined]
    chosen = next(
        (fitted for fitted in determined if fitted.model.name == "pipelining_postal"), determined[0]
    )
    of_statistic = {
        fitted.statistic: fitted for fitted in determined if fitted.model == chosen.model
    }
    if "median" not in of_statistic:  # fitted to means only: one model for both
        of_statistic = {"minimum": chosen, "median": chosen}
    rows = against(reported_results(file), of_statistic, source=str(file))
    study.present(against_view(rows))
    residuals = rows.filter(statistic="median")["residual"]
    if len(residuals):
        path = to / f"{machine.name}.toml"
        error = raise_error(path, float(residuals.abs().median()))  # type: ignore[arg-type]
        if error:
            remark(f"{path}: error {error}, that of the collectives")


def calibrate_jointly(
    paths: Sequence[Path],
    to: Path,
    name: str,
    *,
    ranks: int | None,
    collective: str | None,
) -> None:
    """Fits one model to all collectives, cross-validates it, shows it and writes it.

    Args:
        paths: Files of measurements.
        to: The output folder.
        name: The name of the platform.
        ranks: The number of ranks of rows that do not state it.
        collective: The collective of files that do not state it.

    Raises:
        ConfigError: A file cannot be read.
        CalibrationError: No row can be used.
    """
    rows = _read(paths, ranks, collective)
    study = Study[CalibratedModel](to)
    model = study.single(lambda: calibrate(rows), "fitting")
    figures = None
    if folds(rows, kinds=["nodes"]):
        predictions = study.measured(
            "cross-validating",
            lambda _: cross_validate(rows, kinds=["nodes"], workers=os.cpu_count() or 1),
        )
        model = replace(model, interval_scale=interval_scale(predictions))
        figures = compared(rows, predictions)
    study.present(joint_view(model, rows, figures))
    _write_platform(model, rows, paths, to / f"{name}.toml")


def _read(paths: Sequence[Path], ranks: int | None, collective: str | None) -> pl.DataFrame:
    """Returns the usable rows, and reports those that are left out."""
    measured = read_reported(paths, remark, ranks=ranks, collective=collective)
    rows = usable(measured.rows).filter(pl.col("collective") != "ping_pong")
    names = rows.group_by("collective", "library_algorithm", maintain_order=True).len()
    for kind, name, count in names.iter_rows():
        if not is_default(name) and execution(kind, name) is None:
            remark(f"unknown algorithm {name} of {kind}: left out {count:,} rows")
    return rows


def _write_platform(
    model: CalibratedModel, rows: pl.DataFrame, paths: Sequence[Path], path: Path
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
    emulated = tuple(text.removeprefix("emulated by ") for text in models)
    provenance = Provenance.now(path.stem, ", ".join(map(str, paths)), system, emulated=emulated)
    _platform(path.parent, joint_platform_text(fits, provenance), provenance)
    out().print(fits[0].summary, markup=False)

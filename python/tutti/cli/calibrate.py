"""`tutti calibrate`: parameters of network models from measurements, as a platform file."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import polars as pl
import typer

from tutti.calibrate import (
    FOLDS,
    MODELS,
    emulated,
    fit,
    model_named,
    of_benchmarks,
    of_probes,
    of_results,
)
from tutti.calibrate.files import Provenance
from tutti.calibrate.live import probe
from tutti.calibrate.points import read_results
from tutti.cli import options
from tutti.cli.calibrate_shown import hold_against, tell, write_files
from tutti.cli.console import remark
from tutti.cli.files import folder
from tutti.cli.grouped import grouped
from tutti.cli.mpi_options import Launcher, LauncherOptions, Mpicc
from tutti.errors import CalibrationError
from tutti.files.limits import RANKS
from tutti.files.mistakes import mistake
from tutti.interop.benchmarks import read_all
from tutti.mpi.machine import this_machine
from tutti.mpi.underneath import find_mpi
from tutti.units import Size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.calibrate import Fit, FittedModel, Observation


@dataclass
class CalibrationInput:
    """What was measured, or is to be measured now."""

    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[FILE]...",
            help="Output of OSU, IMB or nccl-tests, or results of `tutti mpi bench`.",
            show_default=False,
        ),
    ] = None
    live: Annotated[
        bool, typer.Option("--live", help="Measure now, between two ranks of an MPI.")
    ] = False
    ranks: Annotated[
        int | None,
        typer.Option(
            "--ranks", min=2, max=RANKS, help="How many took part, where a file does not say."
        ),
    ] = None
    collective: Annotated[
        str | None, typer.Option("--collective", help="Which it was, where a file does not say.")
    ] = None
    algorithm: Annotated[
        str | None,
        typer.Option(
            "--algorithm", "-a", metavar="NAME[:ARG]", help="What performed the files' collectives."
        ),
    ] = None
    window: Annotated[
        int, typer.Option("--window", min=1, help="Messages in flight of osu_bw (its -W).")
    ] = 64
    begin: options.Begin = None
    end: options.End = None
    samples: Annotated[
        int, typer.Option("--samples", min=3, help="Live: how often each is measured.")
    ] = 100
    mpicc: Mpicc = None
    launcher: Launcher = None
    launcher_option: LauncherOptions = None
    machine: Annotated[
        str | None, typer.Option("--machine", help="What the files were measured on, in words.")
    ] = None


@dataclass
class Fitting:
    """What is fitted, held against other measurements, and written."""

    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model", metavar="MODEL", help="A model to fit; may be repeated; all unless given."
        ),
    ] = None
    against: Annotated[
        Path | None,
        typer.Option(
            "--against",
            metavar="FILE",
            help="Results of `tutti mpi bench` to hold the fitted model against.",
        ),
    ] = None
    name: Annotated[str, typer.Option("--name", help="The platform's name.")] = "calibrated"
    to: Annotated[Path, typer.Option("--out", "-o", help="Folder for results.")] = Path(
        "out/calibrate"
    )


@grouped
def calibrate(measured: CalibrationInput, fitting: Fitting) -> None:
    """Fit the parameters of network models to measurements, and write a platform file.

    Postal, pipelining postal, LogGP and LogfP are fitted to files of benchmarks or to a live run,
    each parameter with an interval of 95 %. A model is left out of the platform where the data do
    not tell one of its parameters: what to measure for it is said. Lines with wrong results are
    left out and told. Writes NAME.toml, which --platform takes, calibration.parquet and .csv with
    every point beside what models say of it, and fit.svg. Where distance was emulated, the platform
    says so.

    \b
    Examples:
      tutti calibrate --live --samples 3
      tutti calibrate examples/19_calibrate_and_tune/osu_latency.txt \\
        examples/19_calibrate_and_tune/osu_bw.txt --name cluster
      tutti calibrate examples/19_calibrate_and_tune/osu_allreduce.txt --ranks 64 \\
        -a recursive_doubling --model postal
    """
    chosen = [model_named(one) for one in fitting.model or MODELS]
    _check(measured)
    folder(fitting.to)
    found = _from_files(measured)
    if measured.live:
        _measure(found, measured, fitting.to)
    sets = {which: _within(points, measured) for which, points in found.sets.items()}
    fits = _fits(chosen, sets, strict=bool(fitting.model))
    tell(fits)
    _refuse_untold(fits, strict=bool(fitting.model))
    write_files(fits, _folds(found.sets), _provenance(found, measured, fitting.name), fitting.to)
    if fitting.against is not None:
        hold_against(_results(fitting.against), str(fitting.against), fits, fitting.to)


@dataclass
class _Found:
    """Points by statistic, and where they come from."""

    sets: dict[str, list[Observation]] = field(default_factory=dict)
    origins: list[str] = field(default_factory=list)
    emulated: list[str] = field(default_factory=list)

    def add(self, statistic: str, points: Sequence[Observation]) -> None:
        self.sets.setdefault(statistic, []).extend(points)


def _check(measured: CalibrationInput) -> None:
    if not measured.files and not measured.live:
        raise mistake(
            "nothing to fit to",
            source="tutti calibrate",
            expected="files of benchmarks, or --live",
            hint="`tutti calibrate --live` measures between two ranks of this machine",
        )


def _provenance(found: _Found, measured: CalibrationInput, name: str) -> Provenance:
    """Where the numbers come from.

    Raises:
        ConfigError: they are of a network and of none.
    """
    models = tuple(dict.fromkeys(one for one in found.emulated if one))
    if models and (len(models) > 1 or not all(found.emulated) or measured.live):
        raise mistake(
            "measurements of a network and of emulated distance in one fit",
            source="tutti calibrate",
            value=", ".join(found.origins),
            expected="files of one network, or of one model",
        )
    here = this_machine() if measured.live else "not told"
    where = measured.machine or here
    return Provenance.now(name, ", ".join(found.origins), where, emulated=models)


_RESULTS = ".parquet"


def _from_files(measured: CalibrationInput) -> _Found:
    """Points by statistic: benchmarks tell means, our own results have every block."""
    found = _Found()
    texts: list[Path] = []
    for path in measured.files or []:
        found.origins.append(str(path))
        if path.suffix != _RESULTS:
            texts.append(path)
            continue
        frame = _results(path)
        found.emulated.append(" and ".join(emulated(frame)))
        for statistic in ("median", "minimum"):
            found.add(statistic, of_results(frame, statistic, source=str(path)))
    if texts:
        found.emulated.append("")
        found.add("mean", _of_texts(texts, measured))
    return found


def _of_texts(paths: list[Path], measured: CalibrationInput) -> list[Observation]:
    """What benchmarks wrote, but for what was wrong, and what no model speaks of."""
    frame = read_all(paths, ranks=measured.ranks, operation=measured.collective)
    taken = of_benchmarks(frame, window=measured.window, algorithm=measured.algorithm)
    for one in taken.wrong:
        remark(f"left out: {one}")
    for operation, count in taken.unused.items():
        hint = "" if measured.algorithm else ": --algorithm says which schedule it was"
        remark(f"not used: {count} times of {operation}{hint}")
    return taken.points


def _results(path: Path) -> pl.DataFrame:
    """A frame of `tutti mpi bench`.

    Raises:
        ConfigError: the file cannot be read.
    """
    frame = read_results(path)
    if "emulated" in frame.columns and frame["emulated"].any():
        remark(f"{path}: distance was emulated there: no network was measured")
    if "wrong" in frame.columns and frame["wrong"].sum():
        blocks = frame.filter(pl.col("wrong") > 0)
        cases = blocks["schedule"].unique().sort().to_list()
        remark(f"{path}: left out: {len(blocks)} blocks with wrong results: {', '.join(cases)}")
    return frame


def _measure(found: _Found, measured: CalibrationInput, to: Path) -> None:
    """Adds what two ranks tell now."""
    mpi = find_mpi(measured.mpicc, measured.launcher)
    remark(f"measuring between two ranks of {mpi}")
    samples = probe(
        mpi,
        samples=measured.samples,
        options=measured.launcher_option or [],
        starting=lambda: remark(f"compiling the measuring program for {mpi}"),
    )
    samples.write_parquet(to / "probe.parquet")
    for which in ("median", "minimum"):
        found.add(which, list(of_probes(samples, which)))
    found.origins.append(f"a live run of two ranks of {mpi}, {measured.samples} samples of each")


def _within(points: list[Observation], measured: CalibrationInput) -> list[Observation]:
    """Those of sizes that are asked for."""
    begin, end = measured.begin, measured.end
    low = Size.parse(options.size(begin, "-b")).bytes if begin else 0
    high = Size.parse(options.size(end, "-e")).bytes if end else 1 << 62
    return [point for point in points if low <= point.size <= high]


def _fits(
    chosen: list[FittedModel], sets: dict[str, list[Observation]], *, strict: bool
) -> list[Fit]:
    fits = []
    for model in chosen:
        for statistic, points in sets.items():
            try:
                fits.append(fit(model, points, statistic=statistic))
            except CalibrationError as error:
                if strict:
                    raise
                remark(f"{model.name}: {error.problem}")
    if not fits:
        message = "nothing that was measured is what a model speaks of"
        raise CalibrationError(message, kind="no_points")
    return fits


def _folds(sets: dict[str, list[Observation]]) -> Fit | None:
    folds = [point for point in sets.get("median", []) if point.kind == "fold"]
    return fit(FOLDS, folds, statistic="median") if folds else None


def _refuse_untold(fits: list[Fit], *, strict: bool) -> None:
    """A model that was asked for by name and cannot be told is a mistake.

    Raises:
        CalibrationError: there is one.
    """
    for one in fits:
        if strict and not one.told:
            lines = [f"{' and '.join(names)}: {reason}" for names, reason in one.untold_together]
            message = "\n".join([f"what was measured does not tell {one.model.name}", *lines])
            raise CalibrationError(message, kind="untold")

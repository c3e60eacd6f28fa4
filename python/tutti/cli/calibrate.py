"""`tutti calibrate`: parameters of network models from measurements, as a platform file."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import polars as pl
import typer

from tutti.base.files.extras import check_extra
from tutti.base.files.limits import RANKS
from tutti.base.files.mistakes import mistake
from tutti.base.units import Size
from tutti.cli import options
from tutti.cli.calibrate_joint import calibrate_jointly
from tutti.cli.calibrate_library import compare_library
from tutti.cli.calibrate_shown import show_fits, validate, write_files
from tutti.cli.grouped import grouped
from tutti.cli.mpi_options import Launcher, LauncherOptions, Mpicc
from tutti.formats.benchmarks import read_all
from tutti.measured.calibrate import (
    FOLDS,
    MODELS,
    emulated,
    fit,
    model_named,
    of_benchmarks,
    of_probes,
    of_results,
)
from tutti.measured.calibrate.files import Provenance
from tutti.measured.calibrate.live import probe
from tutti.measured.calibrate.points import read_results
from tutti.measured.errors import CalibrationError
from tutti.mpi.machine import this_machine
from tutti.mpi.underneath import find_mpi
from tutti.study.console import remark
from tutti.study.files import folder
from tutti.study.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.measured.calibrate import Fit, FittedModel, Observation


_NAME = "calibrated"


@dataclass
class CalibrationInput:
    """Measured data, or a live measurement."""

    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[FILE]...",
            help="Output of OSU, IMB or nccl-tests, or results of `tutti mpi bench`.",
            show_default=False,
        ),
    ] = None
    live: Annotated[
        bool, typer.Option("--live", help="Measure now, between two MPI processes.")
    ] = False
    ranks: Annotated[
        int | None,
        typer.Option(
            "--ranks", "-r", min=2, max=RANKS, help="Rank count, if a file does not state it."
        ),
    ] = None
    collective: Annotated[
        str | None,
        typer.Option("--collective", "-c", help="Collective, if a file does not state it."),
    ] = None
    algorithm: Annotated[
        str | None,
        typer.Option(
            "--algorithm", "-a", metavar="NAME[:ARG]", help="Algorithm of the files' collectives."
        ),
    ] = None
    window: Annotated[
        int, typer.Option("--window", min=1, help="Messages in flight of osu_bw (its -W).")
    ] = 64
    begin: options.Begin = None
    end: options.End = None
    samples: Annotated[
        int, typer.Option("--samples", min=3, help="Samples per configuration, with --live.")
    ] = 100
    mpicc: Mpicc = None
    launcher: Launcher = None
    launcher_option: LauncherOptions = None
    machine: Annotated[
        str | None, typer.Option("--machine", help="Description of the files' machine.")
    ] = None


@dataclass
class Fitting:
    """What to fit, what to validate against, and where to write."""

    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model", metavar="MODEL", help="Model to fit; may be repeated; default: all."
        ),
    ] = None
    against: Annotated[
        Path | None,
        typer.Option(
            "--against",
            metavar="FILE",
            help="Results of `tutti mpi bench` to validate the fitted model against; or output of "
            "OSU, IMB or nccl-tests: the collectives of a library, to compare with the fastest "
            "schedules.",
        ),
    ] = None
    joint: Annotated[
        bool,
        typer.Option(
            "--joint", help="Fit one model to all collectives and algorithms of the files."
        ),
    ] = False
    name: Annotated[str, typer.Option("--name", help="The platform's name.")] = _NAME
    to: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            metavar="FOLDER",
            help="Output folder, or a platform file NAME.toml in it.",
        ),
    ] = Path("out/calibrate")


@grouped
def calibrate(measured: CalibrationInput, fitting: Fitting) -> None:
    """Fit the parameters of network models to measurements, and write a platform file.

    Postal, pipelining postal, LogGP and LogfP are fitted to benchmark files or to a live run, with
    95 % confidence intervals. A model is omitted from the platform if the data do not determine one
    of its parameters; the output states what to measure for it. Lines with wrong results are
    discarded and reported.

    With --joint, one model is fitted to all algorithms, sizes and node counts of the files, as
    `tutti advise` does. It is cross-validated over node counts, and its parameters are printed. The
    platform file has the protocols model that is nearest to the measurements.

    Writes NAME.toml for --platform, calibration.parquet and .csv with every point and the
    predictions, and fit.svg. The platform states whether distance was emulated.

    With --against and the output of a benchmark of a library's collectives, the fastest schedule
    of the fitted model is printed for each size, and library.csv has both times.

    \b
    Examples:
      tutti calibrate --live --samples 3
      tutti calibrate examples/19_calibrate_and_tune/osu_latency.txt \\
        examples/19_calibrate_and_tune/osu_bw.txt --ranks 64 \\
        --against examples/19_calibrate_and_tune/osu_allreduce.txt
      tutti calibrate examples/19_calibrate_and_tune/osu_latency.txt \\
        examples/19_calibrate_and_tune/osu_bw.txt --name cluster
      tutti calibrate examples/19_calibrate_and_tune/osu_allreduce.txt \\
        --ranks 64 -a recursive_doubling --model postal
      tutti calibrate examples/22_advise/cluster.csv --joint
    """
    chosen = [model_named(one) for one in fitting.model or MODELS]
    _check(measured)
    to, name = _destination(fitting)
    check_extra("calibrate")
    folder(to, extra="reports")
    if fitting.joint:
        _refuse_with_joint(measured, fitting)
        files, ranks = measured.files or [], measured.ranks
        calibrate_jointly(files, to, name, ranks=ranks, collective=measured.collective)
        return
    found = _from_files(measured)
    if measured.live:
        _measure(found, measured, to)
    sets = {which: _within(points, measured) for which, points in found.sets.items()}
    with Progress("fitting"):
        fits = _fits(chosen, sets, strict=bool(fitting.model))
    show_fits(fits)
    _require_determined(fits, strict=bool(fitting.model))
    machine = write_files(fits, _folds(found.sets), _provenance(found, measured, name), to)
    if fitting.against is None:
        return
    if fitting.against.suffix == _RESULTS:
        validate(_results(fitting.against), str(fitting.against), fits, to)
        return
    compare_library(
        fitting.against, machine, to, ranks=measured.ranks, collective=measured.collective
    )


def _destination(fitting: Fitting) -> tuple[Path, str]:
    """Returns the folder, and the platform's name: --out may also name the platform file.

    Raises:
        ConfigError: --out and --name state different names.
    """
    if fitting.to.suffix != ".toml":
        return fitting.to, fitting.name
    if fitting.name not in (_NAME, fitting.to.stem):
        raise mistake("differs from --name", source="--out", value=str(fitting.to),
                      expected=f"a folder, or {fitting.name}.toml in a folder")  # fmt: skip
    return fitting.to.parent, fitting.to.stem


@dataclass
class _Found:
    """Points by statistic, and their origin."""

    sets: dict[str, list[Observation]] = field(default_factory=dict)
    origins: list[str] = field(default_factory=list)
    emulated: list[str] = field(default_factory=list)

    def add(self, statistic: str, points: Sequence[Observation]) -> None:
        self.sets.setdefault(statistic, []).extend(points)


def _check(measured: CalibrationInput) -> None:
    if not measured.files and not measured.live:
        raise mistake(
            "no data to fit",
            source="tutti calibrate",
            expected="files of benchmarks, or --live",
            hint="`tutti calibrate --live` measures between two ranks of this machine",
        )


def _refuse_with_joint(measured: CalibrationInput, fitting: Fitting) -> None:
    """Refuses options that a joint fit does not honour.

    Raises:
        ConfigError: There is one.
    """
    given = {
        "--live": measured.live,
        "--algorithm": measured.algorithm,
        "--model": fitting.model,
        "--against": fitting.against,
        "-b": measured.begin,
        "-e": measured.end,
        "--machine": measured.machine,
        "--mpicc": measured.mpicc,
        "--launcher": measured.launcher,
        "--launcher-option": measured.launcher_option,
    }
    for name, value in given.items():
        if value:
            raise mistake(
                f"{name} does not apply to --joint",
                source="tutti calibrate",
                expected="files whose rows name the algorithm of the library",
            )


def _provenance(found: _Found, measured: CalibrationInput, name: str) -> Provenance:
    """Returns the origin of the numbers.

    Raises:
        ConfigError: Some are of a network and some of emulated distance.
    """
    models = tuple(dict.fromkeys(one for one in found.emulated if one))
    if models and (len(models) > 1 or not all(found.emulated) or measured.live):
        raise mistake(
            "measurements of a network and of emulated distance in one fit",
            source="tutti calibrate",
            value=", ".join(found.origins),
            expected="files of one network, or of one model",
        )
    here = this_machine() if measured.live else "not stated"
    where = measured.machine or here
    return Provenance.now(name, ", ".join(found.origins), where, emulated=models)


_RESULTS = ".parquet"


def _from_files(measured: CalibrationInput) -> _Found:
    """Returns points by statistic: benchmarks state means, results of tutti have every block."""
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
    """Returns the points of benchmark files, except wrong results and unsupported operations."""
    frame = read_all(paths, ranks=measured.ranks, operation=measured.collective)
    taken = of_benchmarks(frame, window=measured.window, algorithm=measured.algorithm)
    for one in taken.wrong:
        remark(f"discarded: {one}")
    for operation, count in taken.unused.items():
        hint = "" if measured.algorithm else ": name their schedule with --algorithm"
        remark(f"not used: {count} times of {operation}{hint}")
    return taken.points


def _results(path: Path) -> pl.DataFrame:
    """Reads results of `tutti mpi bench`.

    Raises:
        ConfigError: The file cannot be read.
    """
    frame = read_results(path)
    if "emulated" in frame.columns and frame["emulated"].any():
        remark(f"{path}: distance was emulated: no network was measured")
    if "wrong" in frame.columns and frame["wrong"].sum():
        blocks = frame.filter(pl.col("wrong") > 0)
        cases = blocks["schedule"].unique().sort().to_list()
        remark(f"{path}: discarded {len(blocks)} blocks with wrong results: {', '.join(cases)}")
    return frame


def _measure(found: _Found, measured: CalibrationInput, to: Path) -> None:
    """Adds the points of a live run on two ranks."""
    mpi = find_mpi(measured.mpicc, measured.launcher)
    remark(f"measuring between two ranks of {mpi}")
    with Progress("measuring", handles_interrupts=True):
        samples = probe(
            mpi,
            samples=measured.samples,
            options=measured.launcher_option or [],
            starting=lambda: remark(f"compiling the benchmark program for {mpi}"),
        )
    samples.write_parquet(to / "probe.parquet")
    for which in ("median", "minimum"):
        found.add(which, list(of_probes(samples, which)))
    found.origins.append(f"a live run of two ranks of {mpi}, {measured.samples} samples of each")


def _within(points: list[Observation], measured: CalibrationInput) -> list[Observation]:
    """Selects the points within the requested sizes."""
    low = Size.parse(options.size(measured.begin, "-b")).bytes if measured.begin else 0
    high = Size.parse(options.size(measured.end, "-e")).bytes if measured.end else 1 << 62
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
        message = "no model predicts any of the measured operations"
        raise CalibrationError(message, kind="no_points")
    return fits


def _folds(sets: dict[str, list[Observation]]) -> Fit | None:
    folds = [point for point in sets.get("median", []) if point.kind == "fold"]
    return fit(FOLDS, folds, statistic="median") if folds else None


def _require_determined(fits: list[Fit], *, strict: bool) -> None:
    """Rejects a model that was requested by name but that the data do not determine.

    Raises:
        CalibrationError: There is such a model.
    """
    for one in fits:
        if strict and not one.determined:
            lines = [f"{' and '.join(names)}: {why}" for names, why in one.undetermined_groups]
            message = "\n".join([f"the data do not determine {one.model.name}", *lines])
            raise CalibrationError(message, kind="undetermined")

"""`tutti calibrate`: parameters of network models from measurements, as a platform file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tutti.cli import options
from tutti.cli.console import out, remark

if TYPE_CHECKING:
    import polars as pl
    from rich.table import Table

    from tutti.calibrate import Fit, FittedModel, Point
    from tutti.calibrate.files import Provenance
    from tutti.mpi.host import Host


def calibrate(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[FILE]...",
            help="Output of OSU, IMB or nccl-tests, or results of `tutti mpi bench`.",
            show_default=False,
        ),
    ] = None,
    live: Annotated[
        bool, typer.Option("--live", help="Measure now, between two ranks of an MPI.")
    ] = False,
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model", metavar="MODEL", help="A model to fit; may be repeated; all unless given."
        ),
    ] = None,
    ranks: Annotated[
        int | None,
        typer.Option("--ranks", min=2, help="How many took part, where a file does not say."),
    ] = None,
    collective: Annotated[
        str | None, typer.Option("--collective", help="Which it was, where a file does not say.")
    ] = None,
    algorithm: Annotated[
        str | None,
        typer.Option(
            "--algorithm", "-a", metavar="NAME[:ARG]", help="What performed the files' collectives."
        ),
    ] = None,
    window: Annotated[
        int, typer.Option("--window", min=1, help="Messages in flight of osu_bw (its -W).")
    ] = 64,
    begin: options.Begin = None,
    end: options.End = None,
    samples: Annotated[
        int, typer.Option("--samples", min=3, help="Live: how often each is measured.")
    ] = 100,
    mpicc: Annotated[
        str | None, typer.Option("--mpicc", help="Live: the compiler wrapper of the MPI.")
    ] = None,
    launcher: Annotated[
        list[str] | None,
        typer.Option("--launcher-option", metavar="TEXT", help="Live: one more for mpiexec."),
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option(
            "--against",
            metavar="FILE",
            help="Results of `tutti mpi bench` to hold the fitted model against.",
        ),
    ] = None,
    machine: Annotated[
        str | None, typer.Option("--machine", help="What the files were measured on, in words.")
    ] = None,
    name: Annotated[str, typer.Option("--name", help="The platform's name.")] = "calibrated",
    to: Annotated[Path, typer.Option("--out", "-o", help="Folder for results.")] = Path(
        "out/calibrate"
    ),
) -> None:
    """Fit the parameters of network models to measurements, and write a platform file.

    Postal, pipelining postal, LogGP and LogfP are fitted to files of benchmarks or to a live run,
    each parameter with an interval of 95 %. A model is left out of the platform where the data do
    not tell one of its parameters: what to measure for it is said. Writes NAME.toml, which
    --platform takes, calibration.parquet and .csv with every point beside what models say of it,
    and fit.svg.

    \b
    Examples:
      tutti calibrate --live
      tutti calibrate osu_latency.txt osu_bw.txt --name cluster
      tutti calibrate osu_allreduce.txt --ranks 64 -a recursive_doubling
      tutti calibrate --live --mpicc ~/mpich/bin/mpicc --model loggp
    """
    from tutti.calibrate import MODELS, model_named
    from tutti.calibrate.files import Provenance, this_machine
    from tutti.cli.files import folder

    chosen = [model_named(one) for one in model or MODELS]
    paths = list(files or [])
    _check(paths, live=live)
    folder(to)
    sets = _from_files(paths, ranks, collective, algorithm, window)
    measured = [str(path) for path in paths]
    if live:
        host = _host(mpicc)
        for statistic, points in _from_probe(host, samples, launcher or [], to).items():
            sets.setdefault(statistic, []).extend(points)
        measured.append(f"a live run of two ranks of {host}, {samples} samples of each")
    within = {statistic: _within(points, begin, end) for statistic, points in sets.items()}
    fits = _fits(chosen, within, strict=bool(model))
    where = machine or (this_machine() if live else "not told")
    provenance = Provenance.now(name, ", ".join(measured), where)
    _tell(fits)
    _refuse_untold(fits, strict=bool(model))
    _write(fits, _folds(sets), provenance, to)
    if against is not None:
        _hold_against(against, fits, to)


def _check(paths: list[Path], *, live: bool) -> None:
    from tutti.config.mistakes import mistake

    if not paths and not live:
        raise mistake(
            "nothing to fit to",
            source="tutti calibrate",
            expected="files of benchmarks, or --live",
            hint="`tutti calibrate --live` measures between two ranks of this machine",
        )


def _host(mpicc: str | None) -> Host:
    from tutti.mpi.host import find_host

    return find_host(mpicc)


_RESULTS = ".parquet"


def _from_files(
    paths: list[Path],
    ranks: int | None,
    collective: str | None,
    algorithm: str | None,
    window: int,
) -> dict[str, list[Point]]:
    """Points by statistic: benchmarks tell means, our own results have every block."""
    from tutti.calibrate import of_benchmarks, of_results
    from tutti.interop.benchmarks import read_all

    sets: dict[str, list[Point]] = {}
    for path in paths:
        if path.suffix == _RESULTS:
            frame = _results(path)
            for statistic in ("median", "minimum"):
                found = of_results(frame, statistic, source=str(path))
                sets.setdefault(statistic, []).extend(found)
    texts = [path for path in paths if path.suffix != _RESULTS]
    if texts:
        frame = read_all(texts, ranks=ranks, operation=collective)
        sets["mean"], left = of_benchmarks(frame, window=window, algorithm=algorithm)
        for operation, count in left.items():
            hint = "" if algorithm else ": --algorithm says which schedule it was"
            remark(f"not used: {count} times of {operation}{hint}")
    return sets


def _results(path: Path) -> pl.DataFrame:
    """A frame of `tutti mpi bench`.

    Raises:
        ConfigError: the file cannot be read.
    """
    import polars as pl

    from tutti.config.mistakes import mistake

    try:
        frame = pl.read_parquet(path)
    except (OSError, pl.exceptions.PolarsError) as error:
        problem = str(error).splitlines()[0]
        raise mistake(
            f"cannot be read: {problem}",
            source=str(path),
            expected="results.parquet or multicasts.parquet of `tutti mpi bench`",
        ) from None
    if "emulated" in frame.columns and frame["emulated"].any():
        remark(f"{path}: distance was emulated there: no network was measured")
    return frame


def _from_probe(host: Host, samples: int, launcher: list[str], to: Path) -> dict[str, list[Point]]:
    from tutti.calibrate import of_probes
    from tutti.calibrate.live import probe

    remark(f"measuring between two ranks of {host}")
    found = probe(
        host,
        samples=samples,
        options=launcher,
        starting=lambda: remark(f"compiling the measuring program for {host}"),
    )
    found.write_parquet(to / "probe.parquet")
    return {which: list(of_probes(found, which)) for which in ("median", "minimum")}


def _within(points: list[Point], begin: str | None, end: str | None) -> list[Point]:
    """Those of sizes that are asked for."""
    from tutti.units import Size

    low = Size.parse(options.size(begin, "-b")).bytes if begin else 0
    high = Size.parse(options.size(end, "-e")).bytes if end else 1 << 62
    return [point for point in points if low <= point.size <= high]


def _fits(chosen: list[FittedModel], sets: dict[str, list[Point]], *, strict: bool) -> list[Fit]:
    from tutti.calibrate import fit
    from tutti.errors import CalibrationError

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


def _folds(sets: dict[str, list[Point]]) -> Fit | None:
    from tutti.calibrate import FOLDS, fit

    folds = [point for point in sets.get("median", []) if point.kind == "fold"]
    return fit(FOLDS, folds, statistic="median") if folds else None


def _refuse_untold(fits: list[Fit], *, strict: bool) -> None:
    """A model that was asked for by name and cannot be told is a mistake.

    Raises:
        CalibrationError: there is one.
    """
    from tutti.errors import CalibrationError

    for one in fits:
        if strict and not one.told:
            lines = [f"{parameter}: {reason}" for parameter, reason in one.untold.items()]
            message = "\n".join([f"what was measured does not tell {one.model.name}", *lines])
            raise CalibrationError(message, kind="untold")


# --- what is shown and written --------------------------------------------------------------------


def _tell(fits: list[Fit]) -> None:
    out().print(_table(fits))
    for one in fits:
        count, share = len(one.points), one.median_residual
        told = f"{one.model.name} ({one.statistic}): half of {count} points within {share:.1%}"
        out().print(told, markup=False)
    for one in fits:
        for parameter, reason in one.untold.items():
            remark(f"{one.model.name} ({one.statistic}): {parameter} cannot be told: {reason}")
        for parameter, reason in one.absent.items():
            remark(f"{one.model.name} ({one.statistic}): {parameter} is taken for 0: {reason}")
        if one.vague:
            remark(
                f"{one.model.name} ({one.statistic}): {' and '.join(one.vague)}: only roughly told;"
                " a quieter machine, more samples or fewer sizes (-b, -e) may mend that"
            )


def _table(fits: list[Fit]) -> Table:
    from rich.table import Table

    from tutti.calibrate.files import written

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in ("model", "of", "parameter"):
        table.add_column(heading, no_wrap=True)
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("95 %", no_wrap=True)
    for one in fits:
        for parameter in one.parameters.values():
            low, high = (written(one, parameter, end) for end in (parameter.low, parameter.high))
            value, interval = written(one, parameter, parameter.value), f"{low} to {high}"
            if parameter.name in one.untold:
                value, interval = "?", "cannot be told"
            table.add_row(one.model.name, one.statistic, parameter.name, value, interval)
    return table


def _write(fits: list[Fit], folds: Fit | None, provenance: Provenance, to: Path) -> None:
    from tutti.calibrate.figures import draw_fits
    from tutti.calibrate.files import platform_text, residual_frame
    from tutti.cli.files import written
    from tutti.platforms import platform
    from tutti.results import write

    frame = residual_frame(fits)
    paths = [write(frame, to / f"calibration.{suffix}") for suffix in ("parquet", "csv")]
    paths.append(written(draw_fits, to / "fit.svg", fits))
    for path in paths:
        out().print(f"wrote {path}", markup=False)
    text = platform_text(fits, provenance, folds=folds)
    path = to / f"{provenance.name}.toml"
    path.write_text(text, "utf-8")
    # What was written can be read, or it is told now.
    found = platform(path)
    out().print(f"wrote {path}: --platform {path}, model {found.model.kind}", markup=False)


def _hold_against(path: Path, fits: list[Fit], to: Path) -> None:
    """The model of the platform against collectives that took no part in the fit."""
    from tutti.calibrate.against import against, choices, draw_against
    from tutti.cli.files import written
    from tutti.results import write

    told = [one for one in fits if one.told]
    chosen = next((one for one in told if one.model.name == "pipelining_postal"), told[0])
    best = chosen.model
    mine = {one.statistic: one for one in told if one.model == best}
    if "median" not in mine:  # fitted to means alone: there is one model for both
        mine = {"minimum": chosen, "median": chosen}
    frame = against(_results(path), mine, source=str(path))
    for (statistic,), some in frame.group_by("statistic", maintain_order=True):
        within = _share(some["residual"].abs().median())
        told_of = f"{len(some)} {statistic}s of collectives"
        out().print(f"{best.name} against {told_of}: half within {within}", markup=False)
    for (statistic,), some in choices(frame).group_by("statistic", maintain_order=True):
        most, usual = _share(some["loss"].max()), _share(some["loss"].median())
        out().print(
            f"the schedule it would choose, by {statistic}s: at most {most} above the fastest, "
            f"{usual} in the median",
            markup=False,
        )
    out().print(f"wrote {write(frame, to / 'against.parquet')}", markup=False)
    out().print(f"wrote {written(draw_against, to / 'against.svg', frame)}", markup=False)


def _share(value: object) -> str:
    return f"{float(str(value)):.1%}"

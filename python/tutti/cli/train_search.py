"""`tutti train search`: the algorithms that minimise the time of a training step."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import polars as pl
import typer
from rich.table import Table

from tutti.base.errors import ExitCode
from tutti.cli import options
from tutti.cli.train_results import write_results
from tutti.study.console import out, record_table, remark, wrote
from tutti.study.files import folder, written
from tutti.study.progress import Progress
from tutti.training.files.step_file import load_training
from tutti.training.frames import write_frame
from tutti.training.search import DEFAULT, AlgorithmSearch
from tutti.training.step import watched
from tutti.view.breakable import Breakable
from tutti.view.quantity import format_share, format_time, plural

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tutti.training.files.step_file import Training

_ALL = "all"


def search(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="The training step (TOML).", show_default=False),
    ],
    algorithm: options.Algorithms = None,
    limit: Annotated[
        int,
        typer.Option("--limit", min=0, help="Most simulations per configuration; 0 for no limit."),
    ] = 0,
    changes: options.Changes = None,
    to: options.Out = None,
) -> None:
    """Find the algorithms of a step's collectives that minimise the time of the step.

    Tries every algorithm for each collective, on each of its groups, with each endpoint
    configuration. The measure is the time of the complete step. The search changes one collective
    at a time until no change shortens the step. `of bound` is the share of the lower bound, which
    no algorithm can beat.

    Writes search.parquet, a row per simulation, to the output folder, and the report and tables of
    `tutti train run` with the chosen algorithms.

    \b
    Examples:
      tutti train search examples/20_choose_algorithms/training.toml --algorithm ring
      tutti train search examples/20_choose_algorithms/training.toml --limit 50 --set iterations=1
    """
    read = load_training(file, changes or (), output=to)
    folder(read.output, extra="reports")
    step = watched(read.step, read.configurations[0])
    given = None if algorithm is None or _ALL in algorithm else algorithm
    searches: list[AlgorithmSearch] = []
    interrupted = False
    for configuration in read.configurations:
        try:
            found = AlgorithmSearch(step, configuration, algorithms=given, limit=limit)
            searches.append(found)
            _run(found)
        except KeyboardInterrupt:
            interrupted = True
            break
    if searches:
        _show(searches, read)
        path = written(write_frame, read.output / "search.parquet", search_frame(searches))
        wrote(path)
    if interrupted:
        remark("interrupted: the results are those of the simulations so far")
        raise typer.Exit(int(ExitCode.INTERRUPTED))
    write_results([found.best for found in searches], read.output, read.title)


def _run(found: AlgorithmSearch) -> None:
    """Runs a search; the number of its simulations is known for the first round only."""
    most = min(found.work, found.limit or found.work)
    name = f"searching {found.configuration.name}"
    with Progress(name, work=most, handles_interrupts=True) as progress:
        found.run(_reach(progress, most))


def _reach(progress: Progress, most: int) -> Callable[[int], None]:
    def done(count: int) -> None:
        rounds = -(-count // most)
        progress.reach(count, rounds * most, count)

    return done


def search_frame(searches: Sequence[AlgorithmSearch]) -> pl.DataFrame:
    """Returns a row per simulation, in order, and one per configuration without changes.

    Columns: `configuration`, `round`, `collective`, `group`, `ranks`, `algorithm`; `time_ps`, or
    why the algorithm was `refused`; `is_chosen`; `default_ps` and `bound_ps` of the configuration.
    """
    rows = []
    for found in searches:
        shared = {
            "configuration": found.configuration.name,
            "default_ps": found.default.total.ps,
            "bound_ps": found.best.bound.time.ps,
        }
        for trial in found.trials:
            one = trial.collective
            chosen = found.chosen[one.key] == trial.algorithm
            rows.append(
                {
                    **shared,
                    "round": trial.round,
                    "collective": one.name,
                    "group": one.group,
                    "ranks": one.ranks,
                    "algorithm": trial.algorithm,
                    "time_ps": trial.time_ps,
                    "refused": trial.refused or None,
                    "is_chosen": chosen,
                }
            )
    return pl.DataFrame(rows, schema_overrides={"time_ps": pl.Int64, "refused": pl.String})


def search_table(searches: Sequence[AlgorithmSearch]) -> Table:
    """Returns a table with a row per configuration and collective; it fits 80 columns."""
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), expand=True)
    table.add_column("configuration", overflow="fold", max_width=14)
    table.add_column("collective", overflow="fold", max_width=14)
    table.add_column("group", overflow="fold", max_width=14)
    table.add_column("best algorithm", ratio=1)
    for name in ("step time", "default", "of bound"):
        table.add_column(name, justify="right", no_wrap=True)
    for found in searches:
        gain = found.best.total.ps / found.default.total.ps - 1
        times = (
            format_time(found.best.total.ps),
            f"-{format_share(-gain)}" if gain else "equal",
            format_share(found.best.of_bound),
        )
        for place, one in enumerate(found.collectives):
            name = found.configuration.name if place == 0 else ""
            algorithm = Breakable(found.chosen[one.key])
            group = f"{one.group} {one.ranks}"
            table.add_row(name, one.name, group, algorithm, *(times if place == 0 else ("",) * 3))
    return table


def _show(searches: Sequence[AlgorithmSearch], read: Training) -> None:
    """Prints the table, the choice for the fastest configuration, and what was refused."""
    record_table("trials", lambda: search_frame(searches))
    record_table("results", lambda: map(_row, searches))
    out().print(f"{read.step.model.name}: algorithms by the time of the step", style="bold")
    out().print(search_table(searches))
    remark(
        "default: change of the step time from the algorithms of the file, or rings; of bound: "
        "lower bound of any algorithms / step time"
    )
    for found in searches:
        if not found.is_complete:
            remark(
                f"{found.configuration.name}: stopped after {plural(len(found.trials), 'trial')}; "
                "further trials may find a faster step"
            )
    for line in refusals(searches):
        remark(line)
    best = min(searches, key=lambda found: found.best.total.ps)
    chosen = {key: one for key, one in best.chosen.items() if one != DEFAULT}
    if chosen:
        out().print(f"\nfor {best.configuration.name}, the fastest:", style="bold")
        out().print("[algorithms]", markup=False)
        for key, algorithm in chosen.items():
            out().print(f'"{key}" = "{algorithm}"', markup=False, highlight=False)


def _row(found: AlgorithmSearch) -> dict[str, Any]:
    """Returns the figures of a configuration for `--json`."""
    return {
        "configuration": found.configuration.name,
        "time_ps": found.best.total.ps,
        "default_ps": found.default.total.ps,
        "bound_ps": found.best.bound.time.ps,
        "of_bound": found.best.of_bound,
        "is_complete": found.is_complete,
        "algorithms": found.chosen,
    }


def refusals(searches: Sequence[AlgorithmSearch]) -> list[str]:
    """Returns a line per reason for which algorithms do not run on this network.

    Reasons that differ in NPUs only are shown as the first one.
    """
    reasons: dict[tuple[str, str], str] = {}
    names: dict[tuple[str, str], dict[str, None]] = {}
    for found in searches:
        for (collective, notation), reason in found.refused.items():
            kind = collective.key, re.sub(r"\d+", "#", reason)
            reasons.setdefault(kind, reason)
            names.setdefault(kind, {})[notation] = None
    return [
        f"refused for {kind[0]}: {', '.join(names[kind])}: {reason}"
        for kind, reason in reasons.items()
    ]

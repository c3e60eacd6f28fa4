"""Calibrates tutti on measured machines, cross-validates it, and predicts the larger runs.

`make machines DATA=path/to/measured` runs it. The folder has `train.csv`, series of collectives
with their times, `questions.csv`, series to predict, and optionally `allocations.csv`, the hosts of
the jobs. With `--sample`,
`validation/machines/sample.csv` takes the place of both.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import machines_page
import polars as pl
from questions import read_questions

from tutti.base.errors import TuttiError
from tutti.formats.measurements import read_measurements
from tutti.formats.measurements.allocations import read_allocations, with_groups
from tutti.measured.predict import folds
from tutti.measured.predict.catalogue import execution, is_default
from tutti.measured.predict.curve import DEVIATIONS_90
from tutti.measured.predict.features import sides_of
from tutti.measured.predict.files import hardware_of_systems
from tutti.measured.predict.model import CalibratedModel, calibrate
from tutti.measured.predict.score import GROUP

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tutti.measured.predict.hardware import Hardware

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "validation" / "machines"
SAMPLE = FOLDER / "sample.csv"
PAGE = ROOT / "docs" / "machines" / "README.md"
DIGITS = 6
"""Significant digits of predictions, so that the last bits of linear algebra do not matter."""

CHOICE = "the choice of the library, which is not predicted"
UNKNOWN = "an algorithm that tutti does not know"
NO_FORM = "an algorithm without a closed form of its stages there"


@dataclass(frozen=True)
class Scoreboard:
    """What the page and the files are written from.

    Attributes:
        rows: The measurements that were given, numbered by `index`.
        validated: Their cross-validation, of :func:`tutti.measured.predict.folds.cross_validate`.
        comparison: The candidate models, of :func:`tutti.measured.predict.folds.compared`.
        model: The model, calibrated on all rows.
        scales: Per machine of questions, `system`, its factors on standard deviations by novelty.
        questions: `question`, `system`, `collective`, `novelty`, whether it is `named` (not the
            choice of the library), `predicted_us`, `low_us`, `high_us`, `choice_us`, whether it is
            `chosen` of its :data:`tutti.measured.predict.score.GROUP` and, where there is no
            prediction, its `reason`.
    """

    rows: pl.DataFrame
    validated: pl.DataFrame
    comparison: pl.DataFrame
    model: CalibratedModel
    scales: pl.DataFrame
    questions: pl.DataFrame


def scoreboard(
    rows: pl.DataFrame,
    questions: pl.DataFrame,
    *,
    hardware: Mapping[str, Hardware] | None = None,
    workers: int = 1,
) -> Scoreboard:
    """Calibrates, cross-validates and predicts.

    Args:
        rows: Measurements, with the columns of :data:`tutti.formats.measurements.MEASUREMENTS`.
        questions: The same columns without times, and `question`.
        hardware: What is known of each system beforehand.
        workers: Processes. The result does not depend on it.
    """
    rows = rows.with_row_index("index")
    validated = folds.cross_validate(rows, hardware=hardware, workers=workers)
    scales = interval_scales(validated, questions["system"])
    model = calibrate(rows, hardware=hardware, interval_scale=folds.interval_scale(validated))
    return Scoreboard(
        rows=rows,
        validated=validated,
        comparison=folds.compared(rows, validated),
        model=model,
        scales=scales,
        questions=_predicted(model, rows, questions, scales),
    )


def interval_scales(validated: pl.DataFrame, systems: pl.Series) -> pl.DataFrame:
    """Returns the factors on standard deviations: columns `system`, `novelty`, `scale`."""
    rows = [
        {"system": system, "novelty": novelty, "scale": scale}
        for system in systems.unique().sort()
        for novelty, scale in folds.interval_scales(validated, system=system).items()
    ]
    return pl.DataFrame(
        rows, schema={"system": pl.String, "novelty": pl.String, "scale": pl.Float64}
    )


def _predicted(
    model: CalibratedModel, rows: pl.DataFrame, questions: pl.DataFrame, scales: pl.DataFrame
) -> pl.DataFrame:
    """Predicts questions; the machine and what is new decide the width of an interval."""
    questions = questions.with_row_index("index")
    found = model.predict(questions).select("index", "predicted_us", "spread", "choice_us")
    reasons = pl.Series("reason", [_reason(row) for row in questions.iter_rows(named=True)])
    new = folds.novelty(rows, questions)
    joined = questions.with_columns(new, reasons).join(found, on="index", how="left")
    joined = joined.join(scales, on=("system", "novelty"), how="left", nulls_equal=True)
    half = (DEVIATIONS_90 * pl.col("scale") * pl.col("spread")).exp()
    lacking = pl.when(pl.col("predicted_us").is_null()).then("reason")
    choice = pl.col("choice_us").round_sig_figs(DIGITS)
    chosen = choice.rank("ordinal").over(GROUP) == 1  # of equal ones, the first question
    return joined.sort("question").select(
        "question",
        "system",
        "collective",
        "novelty",
        (pl.col("reason") != CHOICE).alias("named"),
        pl.col("predicted_us").round_sig_figs(DIGITS),
        (pl.col("predicted_us") / half).round_sig_figs(DIGITS).alias("low_us"),
        (pl.col("predicted_us") * half).round_sig_figs(DIGITS).alias("high_us"),
        choice,
        chosen.fill_null(value=False).alias("chosen"),
        lacking.alias("reason"),
    )


def _reason(row: dict[str, object]) -> str:
    """Why a question may have no prediction."""
    name, nodes, ranks = row["library_algorithm"], row["nodes"], row["ranks"]
    if not isinstance(name, str) or is_default(name):
        return CHOICE
    known = execution(str(row["collective"]), name)
    if known is None:
        return UNKNOWN
    shape = row["shape"] if isinstance(row["shape"], str) else None
    assert isinstance(ranks, int)
    sides = sides_of(shape, nodes if isinstance(nodes, int) else ranks)
    assert isinstance(row["size_bytes"], int)
    stages = known.stages(ranks, sides, float(row["size_bytes"])) if row["size_bytes"] else None
    return NO_FORM if stages is None else "a single rank or an empty vector"


def write(board: Scoreboard, *, page: Path, folder: Path, command: str) -> None:
    """Writes the page, the predictions and the calibrated parameters.

    Args:
        board: What was computed.
        page: The Markdown page.
        folder: The folder of `predictions.csv` and `calibration/`.
        command: The command that writes the page, for its text.
    """
    folder.mkdir(parents=True, exist_ok=True)
    page.parent.mkdir(parents=True, exist_ok=True)
    columns = ("question", "predicted_us", "low_us", "high_us", "choice_us", "chosen")
    board.questions.drop_nulls("predicted_us").select(columns).write_csv(folder / "predictions.csv")
    for machine, table in parameters(board.model).items():
        path = folder / "calibration" / f"{machine}.csv"
        path.parent.mkdir(exist_ok=True)
        table.write_csv(path)
    page.write_text(machines_page.page(board, command=command), "utf-8")


def parameters(model: CalibratedModel) -> dict[str, pl.DataFrame]:
    """Returns the calibrated parameters of each machine.

    Returns:
        By machine, a row per environment and parameter: `library`, `interface`, `ranks_per_node`
        (one or several), `memory`, `parameter`, `value`, the ends `low` and `high` of its 90 %
        interval, and `determined`, whether the measurements determine it.
    """
    names = ("library", "interface", "ranks_per_node", "memory")
    tables: dict[str, list[pl.DataFrame]] = {}
    for environment in sorted(model.curves):
        machine, *labels = environment.rsplit("/", 4)
        table = pl.DataFrame(model.curves[environment].table()).with_columns(
            pl.col("value", "low", "high").round_sig_figs(4)
        )
        heads = [pl.lit(one).alias(name) for name, one in zip(names, labels, strict=True)]
        tables.setdefault(machine, []).append(table.select(*heads, pl.all()))
    return {machine: pl.concat(parts) for machine, parts in tables.items()}


def network_of(*frames: pl.DataFrame) -> dict[str, Hardware]:
    """Returns the nodes and networks of all systems, from their platform files.

    The gamma of these files is left out: it is a result of this script.
    """
    systems = pl.concat([one["system"] for one in frames]).unique().drop_nulls().sort()
    found = hardware_of_systems(systems.to_list())
    return {name: one.without_fits for name, one in found.items()}


def with_allocations(data: Path, *frames: pl.DataFrame) -> list[pl.DataFrame]:
    """Adds the groups of the network that the ranks of each job are in, if a file states them."""
    path = data / "allocations.csv"
    if not path.exists():
        return list(frames)
    allocations = read_allocations(path)
    return [with_groups(one, allocations) for one in frames]


def sampled() -> tuple[pl.DataFrame, pl.DataFrame]:
    """Returns the rows of the sample, and the same rows as questions without times."""
    rows = read_measurements(SAMPLE).rows
    questions = rows.with_columns(
        pl.lit(None, pl.Float64).alias("time_us"), pl.col("line").sub(2).alias("question")
    )
    return rows, questions


def main() -> None:
    """Reads the folder and writes the page and the files."""
    parser = argparse.ArgumentParser(description=__doc__)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("data", nargs="?", type=Path, help="folder with train.csv, questions.csv")
    source.add_argument("--sample", action="store_true", help="use the committed sample")
    parser.add_argument("--out", type=Path, help="write the page and the files to this folder")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    start = time.perf_counter()
    try:
        if options.sample:
            rows, questions = sampled()
        else:
            rows = read_measurements(options.data / "train.csv").rows
            questions = read_questions(options.data / "questions.csv").rows
            rows, questions = with_allocations(options.data, rows, questions)
        hardware = network_of(rows, questions)
        board = scoreboard(rows, questions, hardware=hardware, workers=options.workers)
    except TuttiError as error:
        sys.exit(str(error))
    folder = options.out or FOLDER
    page = options.out / "README.md" if options.out else PAGE
    command = "python validation/score_machines.py --sample --out FOLDER"
    if not options.sample:
        command = "make machines DATA=path/to/measured"
    write(board, page=page, folder=folder, command=command)
    print(machines_page.summary(board))
    print(f"wrote {page} and {folder / 'predictions.csv'} in {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()

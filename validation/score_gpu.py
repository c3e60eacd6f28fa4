"""Calibrates tutti on measured GPU clusters, cross-validates it, and predicts the larger runs.

`make gpu DATA=path/to/measured` runs it. The folder has, for each name in `PARTS`, `NAME_train.csv`
with measured times and `NAME_questions.csv` with the runs to predict.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import gpu_page
import polars as pl
from columns import read_columns
from predictors import experts, nccl, recipes, steps

from tutti.base.errors import TuttiError

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "validation" / "gpu"
PAGE = ROOT / "docs" / "machines" / "measured-gpus.md"
EFFICIENCIES = ROOT / "python" / "tutti" / "training" / "plan" / "efficiencies.toml"
DIGITS = 6
"""Significant digits of predictions, so that the last bits of linear algebra do not matter."""

MARE_NOSTRUM_5: Final = nccl.NcclFabric(gpus_per_node=4, node_bytes_per_us=100e3)
"""Four H100 and four NDR200 ports of 25 GB/s per node (docs/machines/facts.md)."""
_NCCL: Final[dict[str, type[pl.DataType]]] = {
    "nodes": pl.Int64,
    "bytes": pl.Int64,
    "algorithm": pl.String,
}
_A3_MEGA: Final = "nccl_a3mega_16xH100_all_reduce.csv"


@dataclass(frozen=True)
class Part:
    """One kind of measurement.

    Attributes:
        name: The prefix of its files.
        validated: Measured rows and what a model predicts that has not seen them: `run`, a text,
            `measured` and `predicted`, and `low` and `high` if intervals are claimed.
        predictions: The rows of the file of predictions.
        choices: Measured rows in which an algorithm is chosen: `cell`, `measured`, `predicted`.
        efficiencies: The fitted coefficients that `tutti train plan` uses.
    """

    name: str
    validated: pl.DataFrame
    predictions: pl.DataFrame | None = None
    choices: pl.DataFrame | None = None
    efficiencies: str = ""


def of_nccl(train: Path, questions: Path | None) -> Part:
    """NCCL's all_reduce as a ring and as a tree on MareNostrum 5."""
    rows = read_columns(train, {**_NCCL, "median_us": pl.Float64})
    validated = nccl.cross_validate(rows, MARE_NOSTRUM_5)
    cell = pl.format("{} nodes, {} B", "nodes", "bytes")
    choices = validated.select(
        cell.alias("cell"),
        pl.col("median_us").alias("measured"),
        pl.col("predicted_us").alias("predicted"),
    )
    found = None
    if questions is not None:
        requested = read_columns(questions, {"question": pl.Int64, **_NCCL})
        found = nccl.fit(rows, MARE_NOSTRUM_5).predict(requested)
    run = pl.format("{} on {} nodes, {} B", "algorithm", "nodes", "bytes")
    return Part("nccl", _shown(validated, run, "us", "median_us"), _written(found, "us"), choices)


def of_mlperf(train: Path, questions: Path | None) -> Part:
    """Training steps of MLPerf submissions."""
    run = pl.format("{}, {} on {} systems", "benchmark", "system", "systems")
    found = None if questions is None else steps.predict(train, questions)
    validated = _shown(steps.cross_validated(train), run, "s", "measured_s")
    return Part("mlperf", validated, _written(found, "s", predicted="predicted_step_s"))


def of_steps(train: Path, questions: Path | None) -> Part:
    """Throughputs of training recipes."""
    run = pl.format(
        "{}, {} {}, {} GPUs, {}", "model", "system", "precision", "gpus", "container"
    ).alias("run")
    validated = recipes.cross_validated(train).select(run, "measured", "predicted", "low", "high")
    found = None if questions is None else recipes.predict(train, questions)
    unit = "tokens_per_s_per_gpu"
    return Part("steps", validated, _written(found, unit), efficiencies=recipes.tables(train))


def of_deepep(train: Path, questions: Path | None) -> Part:
    """Dispatch and combine of DeepEP."""
    run = pl.format("{} among {} ranks", "mode", "experts_ranks")
    found = None if questions is None else experts.predict(train, questions)
    validated = _shown(experts.cross_validated(train), run, "us", "measured_us")
    return Part("deepep", validated, _written(found, "us"))


def of_a3_mega(path: Path) -> Part:
    """Every second size of all_reduce on two nodes, from the other sizes."""
    rows = read_columns(path, {"bytes": pl.Int64, "out_of_place_us": pl.Float64})
    found = nccl.interpolated(rows, "out_of_place_us")
    run = pl.format("{} B", "bytes")
    return Part("a3_mega", _shown(found, run, "us", "measured_us"))


def _shown(rows: pl.DataFrame, run: pl.Expr, unit: str, measured: str) -> pl.DataFrame:
    columns = {name: f"{name}_{unit}" for name in ("predicted", "low", "high")}
    return rows.select(
        run.alias("run"),
        pl.col(measured).alias("measured"),
        *(pl.col(old).alias(new) for new, old in columns.items() if old in rows.columns),
    )


def _written(
    rows: pl.DataFrame | None, unit: str, *, predicted: str | None = None
) -> pl.DataFrame | None:
    """The columns of a file of predictions, rounded."""
    if rows is None:
        return None
    names = [predicted or f"predicted_{unit}", f"low_{unit}", f"high_{unit}"]
    return rows.sort("question").select("question", pl.col(names).round_sig_figs(DIGITS))


PARTS: Final[dict[str, Callable[[Path, Path | None], Part]]] = {
    "nccl": of_nccl,
    "mlperf": of_mlperf,
    "deepep": of_deepep,
    "steps": of_steps,
}
"""The kinds of measurements with questions, by the prefix of their files."""


def parts_of(data: Path) -> list[Part]:
    """Returns the kinds of measurements that a folder has.

    Args:
        data: The folder.

    Raises:
        ConfigError: A file is damaged.
    """
    found = []
    for name, build in PARTS.items():
        questions = data / f"{name}_questions.csv"
        if (data / f"{name}_train.csv").exists():
            known = questions if questions.exists() else None
            found.append(build(data / f"{name}_train.csv", known))
    if (data / _A3_MEGA).exists():
        found.append(of_a3_mega(data / _A3_MEGA))
    return found


def write(parts: list[Part], *, page: Path, folder: Path) -> None:
    """Writes the page and the predictions.

    Args:
        parts: What was computed.
        page: The Markdown page.
        folder: The folder of the predictions.
    """
    folder.mkdir(parents=True, exist_ok=True)
    page.parent.mkdir(parents=True, exist_ok=True)
    for part in parts:
        if part.predictions is not None:
            part.predictions.write_csv(folder / f"{part.name}_predictions.csv")
        if part.efficiencies:
            target = EFFICIENCIES if folder == FOLDER else folder / EFFICIENCIES.name
            target.write_text(part.efficiencies, "utf-8")
    page.write_text(gpu_page.page(parts), "utf-8")


def main() -> None:
    """Reads the folder and writes the page and the files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="folder with NAME_train.csv, NAME_questions.csv")
    parser.add_argument("--out", type=Path, help="write the page and the files to this folder")
    options = parser.parse_args()
    start = time.perf_counter()
    try:
        parts = parts_of(options.data)
    except TuttiError as error:
        sys.exit(str(error))
    if not parts:
        sys.exit(f"{options.data} has none of {', '.join(f'{name}_train.csv' for name in PARTS)}")
    folder = options.out or FOLDER
    page = options.out / "README.md" if options.out else PAGE
    write(parts, page=page, folder=folder)
    print(gpu_page.summary(parts))
    print(f"wrote {page} and the predictions in {folder} in {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()

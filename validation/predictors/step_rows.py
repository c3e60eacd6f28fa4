"""Reads tables of measured training steps, and of steps to predict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import polars as pl
from columns import read_columns
from predictors.submissions import Configuration, configuration_of

from tutti.base.files.mistakes import mistake

if TYPE_CHECKING:
    from pathlib import Path

    from predictors.submissions import Configurations

__all__ = [
    "COLUMNS",
    "TOKENS_PER_SEQUENCE",
    "TrainingStep",
    "read_questions",
    "read_steps",
    "steps",
]

COLUMNS: Final[dict[str, type[pl.DataType]]] = {
    "submitter": pl.String,
    "system": pl.String,
    "benchmark": pl.String,
    "systems": pl.Int64,
    "global_batch": pl.Int64,
    "sequence": pl.Int64,
    "accumulation": pl.Int64,
    "run": pl.Int64,
}
"""The columns that describe a run.

`systems` are nodes, `global_batch` sequences per step, `sequence` tokens (8,192 if empty), and
`accumulation` micro-batches per rank and step. `run` numbers repetitions.
"""

TOKENS_PER_SEQUENCE: Final = 8192
"""The sequence length of the three benchmarks (MLPerf Training 5.1)."""


@dataclass(frozen=True)
class TrainingStep:
    """A training step, and its time if measured.

    Attributes:
        submitter: The submitter.
        system: The system.
        configuration: How the model is divided.
        systems: Nodes.
        global_batch: Sequences per step.
        sequence: Tokens per sequence.
        accumulation: Micro-batches per rank and step.
        measured_s: The measured time; None if unknown.
    """

    submitter: str
    system: str
    configuration: Configuration
    systems: int
    global_batch: int
    sequence: int
    accumulation: int
    measured_s: float | None = None

    @property
    def npus(self) -> int:
        """NPUs of the job."""
        return self.systems * self.configuration.npus_per_node

    @property
    def replicas(self) -> int:
        """Copies of the model: the degree of data parallelism."""
        return self.npus // self.configuration.npus_per_replica

    @property
    def micro_batch(self) -> int:
        """Sequences per micro-batch and replica."""
        return self.global_batch // (self.replicas * self.accumulation)

    @property
    def family(self) -> tuple[str, str, str]:
        """What runs that differ in size alone have in common: submitter, NPU and benchmark."""
        one = self.configuration
        return self.submitter, one.npu, one.benchmark


def read_steps(path: Path) -> pl.DataFrame:
    """Reads a table of measured steps.

    Args:
        path: A CSV file with the columns of :data:`COLUMNS` and `median_step_s`, in seconds.

    Returns:
        The rows with these columns, sorted, so that their order in the file does not matter.

    Raises:
        ConfigError: The file cannot be read, lacks a column, or a row is damaged.
    """
    columns: dict[str, type[pl.DataType]] = {**COLUMNS, "median_step_s": pl.Float64}
    return read_columns(path, columns, optional=("sequence",)).sort(list(columns), nulls_last=True)


def read_questions(path: Path) -> pl.DataFrame:
    """Reads a table of steps to predict: the columns of :data:`COLUMNS`, and `question`.

    Raises:
        ConfigError: The file cannot be read, lacks a column, a row is damaged, or two rows have the
            same number.
    """
    columns: dict[str, type[pl.DataType]] = {"question": pl.Int64, **COLUMNS}
    rows = read_columns(path, columns, optional=("sequence",))
    twice = rows.filter(pl.col("question").is_duplicated())["question"]
    if not twice.is_empty():
        problem = f"question {twice[0]} occurs more than once"
        raise mistake(problem, source=str(path), expected="distinct numbers")
    return rows


def steps(rows: pl.DataFrame, known: Configurations, *, source: str = "rows") -> list[TrainingStep]:
    """Returns the training step of each row.

    Args:
        rows: Rows with the columns of :data:`COLUMNS`, and `median_step_s` if measured.
        known: The parallelism of submissions.
        source: The file to name in errors.

    Raises:
        ConfigError: The parallelism of a submission is unknown, or contradicts the row.
    """
    return [_step(row, known, source) for row in rows.iter_rows(named=True)]


def _step(row: dict[str, Any], known: Configurations, source: str) -> TrainingStep:
    submitter, system, benchmark = (str(row[name]) for name in ("submitter", "system", "benchmark"))
    place = f"{source}: {submitter}/{system}, {benchmark}"
    found = TrainingStep(
        submitter=submitter,
        system=system,
        configuration=configuration_of(known, benchmark, submitter, system, source=place),
        systems=int(row["systems"]),
        global_batch=int(row["global_batch"]),
        sequence=int(row["sequence"] or TOKENS_PER_SEQUENCE),
        accumulation=int(row["accumulation"]),
        measured_s=row.get("median_step_s"),
    )
    _check(found, place)
    return found


def _check(step: TrainingStep, place: str) -> None:
    """Refuses a division of the model that does not fit the number of NPUs or the batch."""
    copies = step.configuration.npus_per_replica
    if step.npus % copies:
        raise mistake(
            f"{step.npus} NPUs cannot hold copies of {copies} NPUs each",
            source=place,
            expected="a multiple of tensor x pipeline x context",
        )
    per_round = step.replicas * step.accumulation
    if step.global_batch % per_round:
        raise mistake(
            f"a global batch of {step.global_batch} does not divide into micro-batches",
            source=place,
            expected=f"a multiple of {step.replicas} replicas x {step.accumulation} micro-batches",
        )

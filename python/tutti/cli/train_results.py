"""The files of the results of training steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from tutti.cli.console import wrote
from tutti.cli.files import written
from tutti.report import write_training_report
from tutti.training import frame, write_frame
from tutti.training_frames import layer_frame, server_frame, window_frame

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tutti.training import TrainingResult


def write_results(runs: Sequence[TrainingResult], folder: Path, title: str) -> None:
    """Writes the tables and the report of runs to a folder, and prints their paths."""
    frames = {
        "results.parquet": frame(runs),
        "layers.parquet": pl.concat(layer_frame(run) for run in runs),
        "servers.parquet": pl.concat(server_frame(run) for run in runs),
        "windows.parquet": pl.concat(window_frame(run) for run in runs),
    }
    files = [written(write_frame, folder / name, rows) for name, rows in frames.items()]
    files.append(written(write_training_report, folder / "report.html", runs, title))
    wrote(*files)

"""The files of the results of training steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from tutti.study.console import wrote
from tutti.study.files import written
from tutti.training.exposed import exposed_frame
from tutti.training.frames import (
    frame,
    layer_frame,
    server_frame,
    stall_frame,
    window_frame,
    write_frame,
)
from tutti.training.links import link_frame
from tutti.training.view.page import write_training_report
from tutti.training.view.trace import write_training_trace

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tutti.training.step import TrainingResult


def write_results(
    runs: Sequence[TrainingResult], folder: Path, title: str, npus: Sequence[int] = (0,)
) -> None:
    """Writes the tables, the report and the trace of runs to a folder, and prints their paths.

    Args:
        runs: The runs.
        folder: The folder.
        title: The title of the report.
        npus: The NPUs whose timelines are drawn and exported.
    """
    frames = {
        "results.parquet": frame(runs),
        "exposed.parquet": pl.concat(exposed_frame(run) for run in runs),
        "layers.parquet": pl.concat(layer_frame(run) for run in runs),
        "links.parquet": pl.concat(link_frame(run) for run in runs),
        "servers.parquet": pl.concat(server_frame(run) for run in runs),
        "stalls.parquet": pl.concat(stall_frame(run) for run in runs),
        "windows.parquet": pl.concat(window_frame(run) for run in runs),
    }
    files = [written(write_frame, folder / name, rows) for name, rows in frames.items()]
    files.append(written(write_training_report, folder / "report.html", runs, title, npus))
    files.append(written(write_training_trace, folder / "trace.pftrace", runs, npus))
    wrote(*files)

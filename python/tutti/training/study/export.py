"""The study that writes a captured step as Chakra traces."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tutti.base.files.mistakes import mistake
from tutti.study.console import remark
from tutti.study.study import Study
from tutti.training.capture.export import trace_of
from tutti.training.endpoint import configurations

if TYPE_CHECKING:
    from pathlib import Path

    from tutti.training.files.step_file import Training

__all__ = ["export_step"]


def export_step(training: Training, path: Path) -> None:
    """Writes the trace of each rank of a captured step, and the table of its process groups.

    Args:
        training: The step on its platform, whose GPU gives the times of tasks.
        path: The prefix of the files.

    Raises:
        ConfigError: The step is not a captured one, or a file cannot be written.
        CaptureError: There are too many tasks.
    """
    from tutti.formats.chakra.writer import write_trace, written_files
    from tutti.formats.formats import Options

    step = training.step
    if step.captured is None:
        raise mistake("not a captured step", source=training.title or "the step",
                      expected="a folder of `tutti train capture`")  # fmt: skip
    trace = trace_of(step.captured, configurations()["ideal"].compute(step.npu))
    study = Study[int]()

    def write(file: Path) -> list[Path]:
        file.parent.mkdir(parents=True, exist_ok=True)
        for line in write_trace(trace, file, Options()):
            remark(line)
        return written_files(trace, file)

    study.write(path, write)
    study.end(1, 1)

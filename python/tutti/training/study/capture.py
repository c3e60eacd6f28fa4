"""The study of a captured step of a PyTorch program."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tutti.base.files.mistakes import mistake, shown
from tutti.study.study import Study
from tutti.training.capture.capturing import capture_script
from tutti.training.capture.files import write_step
from tutti.training.capture.record import CapturedStep
from tutti.training.capture.view import capture_view

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["run_capture"]


def run_capture(
    words: Sequence[str],
    world_size: int,
    folder: Path,
    *,
    ranks: str | None,
    step: int | None,
    values: float | None,
    node: int,
) -> None:
    """Captures a step of a program, shows it and writes it to a folder.

    Args:
        words: The program and its arguments.
        world_size: The number of ranks.
        folder: The folder.
        ranks: The captured ranks, separated by commas; None for one of each stage.
        step: The captured step, from 1; None for the steady state.
        values: What values that the program reads are; None refuses the program.
        node: GPUs of a node.

    Raises:
        ConfigError: An option is invalid, or PyTorch is not installed.
        CaptureError: The program cannot be captured.
    """
    from pathlib import Path

    script, *arguments = words
    numbers = _ranks(ranks, world_size)
    study = Study[CapturedStep](folder, "step", extra="torch")
    found = study.single(
        lambda: capture_script(Path(script), arguments, world_size, ranks=numbers, step=step,
                               values=values, node=node),
        "capturing",
    )  # fmt: skip
    study.output = None
    study.present(capture_view(found))
    study.write(folder / "step.json", lambda _: write_step(folder, found))
    study.end(1, 1)


def _ranks(text: str | None, world_size: int) -> list[int]:
    """Returns the ranks of an option."""
    words = [word.strip() for word in text.split(",")] if text is not None else []
    for word in words:
        if not word.isdecimal() or int(word) >= world_size:
            raise mistake("not a rank of the job", source="--only-ranks", value=shown(word),
                          expected=f"0 to {world_size - 1:,}, separated by commas")  # fmt: skip
    return list(dict.fromkeys(map(int, words)))

"""Writing files where a person asked for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tutti.errors import TuttiError
from tutti.files.mistakes import mistake

if TYPE_CHECKING:
    import polars as pl


def folder(path: Path) -> Path:
    """Makes a folder for results.

    Raises:
        ConfigError: It cannot be made.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise mistake(
            f"cannot be made a folder for results: {error.strerror}",
            source=str(path),
            hint="name another with --out",
        ) from None
    return path


def write_frames(folder: Path, frames: Mapping[str, pl.DataFrame]) -> list[Path]:
    """Writes frames as Parquet, by the names of their files in a folder that is there."""
    for name, frame in frames.items():
        frame.write_parquet(folder / name)
    return [folder / name for name in frames]


def written(write: Callable[..., Path], path: Path, *arguments: Any, **options: Any) -> Path:  # noqa: ANN401
    """Writes a file with a function of `tutti.report`, after making its folder.

    Raises:
        ConfigError: The folder cannot be made, or the file cannot be written.
        ReportError: Suffix or data do not suit the function.
    """
    folder(path.parent)
    try:
        return write(path, *arguments, **options)
    except TuttiError:
        raise  # it says what is wrong in its own words
    except (ValueError, OSError) as error:
        raise mistake(str(error), source=str(path)) from None

"""Output files and folders."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tutti.base.files.extras import check_extra
from tutti.base.files.mistakes import mistake

if TYPE_CHECKING:
    from pathlib import Path


def folder(path: Path, *, extra: str | None = None) -> Path:
    """Creates a folder for results.

    Args:
        path: The folder.
        extra: The extra that the command's report or drawing requires.

    Raises:
        ConfigError: The folder cannot be created, or the extra is not installed.
    """
    if extra is not None:
        check_extra(extra)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise mistake(
            f"cannot create the output folder: {error.strerror}",
            source=str(path),
            hint="name another folder with --out",
        ) from None
    return path


def one_of(argument: Path | None, option: Path | None, name: str) -> Path | None:
    """Returns the output path of an argument or of `--out`, which exclude each other.

    Raises:
        ConfigError: Both are given.
    """
    if argument is not None and option is not None:
        raise mistake(
            f"conflicts with {name} {argument}",
            source="--out",
            value=str(option),
            expected="one of both",
        )
    return argument or option

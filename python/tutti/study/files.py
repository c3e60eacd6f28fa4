"""Output files and folders."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from tutti.base.files.extras import check_extra
from tutti.base.files.mistakes import mistake

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_MOST_HELD: Final = 1 << 26
"""Bytes of the earlier files that are held in memory; larger ones are not restored."""


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


class Earlier:
    """The files of an earlier run at some paths: which of them differ now, and what they were.

    Attributes:
        too_large: Those that cannot be restored.
    """

    def __init__(self, paths: Iterable[Path]) -> None:
        """Reads the regular files among these paths."""
        self._digests: dict[Path, bytes] = {}
        self._contents: dict[Path, bytes] = {}
        self.too_large: set[Path] = set()
        for path in paths:
            with suppress(OSError):  # such as a file without read permission
                if path.is_file() and not path.is_symlink():
                    self._digests[path] = _digest(path)
                    if path.stat().st_size <= _MOST_HELD:
                        self._contents[path] = path.read_bytes()
                    else:
                        self.too_large.add(path)

    def differing(self, paths: Iterable[Path]) -> list[Path]:
        """Returns those of these paths whose content has changed since."""
        return [
            path
            for path in paths
            if path in self._digests and path.is_file() and _digest(path) != self._digests[path]
        ]

    def restore(self, written: Iterable[Path] = ()) -> None:
        """Writes the earlier contents back, and removes written files that did not exist."""
        for path in written:
            if path not in self._digests and path.is_file():
                path.unlink()
        for path, content in self._contents.items():
            if not path.is_file() or path.read_bytes() != content:
                path.write_bytes(content)


def _digest(path: Path) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


def siblings(path: Path) -> list[Path]:
    """Returns a path, and the files of its folder that a format with several files may write."""
    stem = path.name.partition(".")[0]
    with suppress(OSError):
        return [path, *(each for each in path.parent.iterdir() if each.name.startswith(stem))]
    return [path]

"""The cache of a sweep: what has been measured, by a hash of everything that it depends on.

A folder of journals. Each sweep that runs appends whole lines to a journal of its own, so that any
number of them can share a folder, and a killed one has lost nothing but the line it was writing.
The first line says which simulator wrote the journal; journals of another one are never read
further. Each line starts with a hash of the rest of it: what is damaged is told apart from what is
right, and skipped.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tutti.errors import CacheError
from tutti.sweep.version import FORMAT, simulator

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from pathlib import Path

Row = dict[str, Any]

_SUFFIX = ".journal"
_KIND = "journal of a tutti sweep"
_SECONDS_BETWEEN_SYNCS = 1.0
"""A killed process loses nothing that was written; only a machine that stops can lose this much."""


@dataclass
class CacheContents:
    """What a cache holds of what a sweep asks for, and what of it cannot be used.

    Attributes:
        rows: By key.
        remarks: What a person must know about the journals that were skipped, or parts of them.
    """

    rows: dict[str, Row] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)


class Journal:
    """A file that one sweep appends its results to."""

    def __init__(self, folder: Path) -> None:
        """Names the file; it is made together with its first record."""
        self._path = folder / f"{uuid.uuid4().hex}{_SUFFIX}"
        self._file: int | None = None
        self._synced = 0.0

    def add(self, rows: Mapping[str, Row]) -> None:
        """Appends rows, by key; they are there when this returns, whatever happens to the process.

        Raises:
            CacheError: The folder cannot be written to.
        """
        lines = [_line({"key": key, "row": row}) for key, row in rows.items()]
        if not lines:
            return
        try:
            if self._file is None:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND
                self._file = os.open(self._path, flags, 0o644)
                lines.insert(0, _line(_header()))
            _write(self._file, b"".join(lines))
            if time.monotonic() - self._synced > _SECONDS_BETWEEN_SYNCS:
                os.fsync(self._file)
                self._synced = time.monotonic()
        except OSError as error:
            raise _unusable(self._path.parent, "written to", error) from None

    def close(self) -> None:
        """Makes sure that all of it is on the disk."""
        if self._file is not None:
            os.fsync(self._file)
            os.close(self._file)
            self._file = None


def found_in(folder: Path, wanted: Collection[str]) -> CacheContents:
    """What the journals of a folder hold of the keys that are wanted.

    Raises:
        CacheError: The folder cannot be read, or two journals contradict one another.
    """
    found = CacheContents()
    origin: dict[str, Path] = {}
    for path in _journals(folder):
        for key, row in _records(path, found):
            if key not in wanted:
                continue
            if found.rows.setdefault(key, row) != row:
                raise CacheError(
                    f"{origin[key]} and {path} give different results for one question",
                    kind="contradiction",
                    fields={"key": key},
                )
            origin.setdefault(key, path)
    return found


def _journals(folder: Path) -> list[Path]:
    try:
        if not folder.exists():
            return []
        return sorted(path for path in folder.iterdir() if path.suffix == _SUFFIX)
    except OSError as error:
        raise _unusable(folder, "read", error) from None


def _records(path: Path, found: CacheContents) -> Iterator[tuple[str, Row]]:
    """The keys and rows of a journal of this simulator; what cannot be used becomes a remark."""
    try:
        data = path.read_bytes()
    except OSError as error:
        found.remarks.append(f"{path} cannot be read ({error.strerror}): its results are not used")
        return
    lines = data.split(b"\n")
    cut_off = lines.pop() != b""
    header = _parsed(lines[0]) if lines else None
    if header is None or header.get("kind") != _KIND:
        found.remarks.append(f"{path} does not start as a journal does: it is not used")
        return
    if (header.get("format"), header.get("simulator")) != (FORMAT, simulator()):
        found.remarks.append(
            f"{path} was written by tutti {header.get('simulator')}, and this is {simulator()}: "
            f"its {len(lines) - 1:,} results are not used"
        )
        return
    yield from _of_lines(path, lines[1:], found)
    if cut_off:
        found.remarks.append(f"{path} ends in the middle of a result, which is not used")


def _of_lines(
    path: Path, lines: Iterable[bytes], found: CacheContents
) -> Iterator[tuple[str, Row]]:
    damaged = 0
    for line in lines:
        record = _parsed(line)
        key, row = (record.get("key"), record.get("row")) if record else (None, None)
        if isinstance(key, str) and isinstance(row, dict):
            yield key, row
        else:
            damaged += 1
    if damaged:
        found.remarks.append(f"{path} is damaged: {damaged:,} of its results are not used")


def _header() -> dict[str, Any]:
    return {"kind": _KIND, "format": FORMAT, "simulator": simulator()}


def _line(record: Mapping[str, Any]) -> bytes:
    text = json.dumps(record, separators=(",", ":")).encode()
    return _digest(text) + b" " + text + b"\n"


def _parsed(line: bytes) -> dict[str, Any] | None:
    """What a line says; None when it is not as it was written."""
    digest, _, text = line.partition(b" ")
    if digest != _digest(text):
        return None
    try:
        record = json.loads(text)
    except ValueError:
        return None
    return record if isinstance(record, dict) else None


def _digest(text: bytes) -> bytes:
    return hashlib.sha256(text).hexdigest()[:16].encode()


def _write(file: int, data: bytes) -> None:
    """All of it, also where the system takes less at once."""
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]


def _unusable(folder: Path, what: str, error: OSError) -> CacheError:
    problem = f"the cache {folder} cannot be {what}: {error.strerror or error}"
    return CacheError(problem, kind="folder", fields={"path": str(folder)})

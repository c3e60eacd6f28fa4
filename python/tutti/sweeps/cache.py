"""The cache of a sweep: results by a hash of all their inputs.

A cache is a folder of journals. Each running sweep appends lines to a separate journal, so that
sweeps can share a folder, and a killed sweep loses at most the line in progress. The first line
names the simulator; journals of other simulators are ignored. Each line starts with a hash of its
content, so that damaged lines are detected and skipped.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tutti.sweeps.errors import CacheError
from tutti.sweeps.version import FORMAT, simulator

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from pathlib import Path

Row = dict[str, Any]

_SUFFIX = ".journal"
_KIND = "journal of a tutti sweep"
_SECONDS_BETWEEN_SYNCS = 1.0
"""Written data survives the death of the process; a machine that stops can lose this much."""


@dataclass
class CacheContents:
    """The cached results of a sweep.

    Attributes:
        rows: Rows by key.
        remarks: Remarks on skipped journals and lines.
    """

    rows: dict[str, Row] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)


class Journal:
    """The file to which one sweep appends its results."""

    def __init__(self, folder: Path) -> None:
        """Chooses the name of the file; the first record creates it."""
        self._path = folder / f"{uuid.uuid4().hex}{_SUFFIX}"
        self._file: int | None = None
        self._synced = 0.0

    def add(self, rows: Mapping[str, Row]) -> None:
        """Appends rows by key; they survive the death of the process once this returns.

        Raises:
            CacheError: The folder is not writable.
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
        """Synchronises the file to disk and closes it."""
        if self._file is not None:
            os.fsync(self._file)
            os.close(self._file)
            self._file = None


def lookup(folder: Path, keys: Collection[str]) -> CacheContents:
    """Returns the rows of the given keys in all journals of a folder.

    Raises:
        CacheError: The folder cannot be read, or two journals contradict each other.
    """
    found = CacheContents()
    origin: dict[str, Path] = {}
    for path in _journals(folder):
        for key, row in _records(path, found):
            if key not in keys:
                continue
            if found.rows.setdefault(key, row) != row:
                raise CacheError(
                    f"{origin[key]} and {path} have different results for the same key",
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
    """Yields keys and rows of a journal of this simulator; adds remarks on unusable parts."""
    try:
        data = path.read_bytes()
    except OSError as error:
        found.remarks.append(f"ignored {path}: cannot be read ({error.strerror})")
        return
    lines = data.split(b"\n")
    cut_off = lines.pop() != b""
    header = _parsed(lines[0]) if lines else None
    if header is None or header.get("kind") != _KIND:
        found.remarks.append(f"ignored {path}: not a journal")
        return
    if (header.get("format"), header.get("simulator")) != (FORMAT, simulator()):
        found.remarks.append(
            f"ignored {len(lines) - 1:,} results of {path}: written by tutti "
            f"{header.get('simulator')}, not {simulator()}"
        )
        return
    yield from _of_lines(path, lines[1:], found)
    if cut_off:
        found.remarks.append(f"ignored the last result of {path}: truncated")


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
        found.remarks.append(f"ignored {damaged:,} results of {path}: damaged")


def _header() -> dict[str, Any]:
    return {"kind": _KIND, "format": FORMAT, "simulator": simulator()}


def _line(record: Mapping[str, Any]) -> bytes:
    text = json.dumps(record, separators=(",", ":")).encode()
    return _digest(text) + b" " + text + b"\n"


def _parsed(line: bytes) -> dict[str, Any] | None:
    """Returns the record of a line; None if the line is damaged."""
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
    """Writes all data, in several calls if necessary."""
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]


def _unusable(folder: Path, what: str, error: OSError) -> CacheError:
    problem = f"the cache {folder} cannot be {what}: {error.strerror or error}"
    return CacheError(problem, kind="folder", fields={"path": str(folder)})

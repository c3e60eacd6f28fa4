"""Archives of Chakra traces: the files of all ranks in one ``.zip``, ``.tar`` or packed ``.tar``.

The traces and the tables of groups are unpacked into a temporary folder, without the folders of the
archive, and read as files. Errors and remarks name the archive instead of the temporary folder.
"""

from __future__ import annotations

import contextlib
import lzma
import tarfile
import tempfile
import zipfile
import zlib
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING

from tutti.base.errors import TuttiError
from tutti.base.files.limits import Bytes
from tutti.base.files.reader import opened
from tutti.formats.chakra import reader, trace
from tutti.workloads.errors import TraceError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tutti.formats.chakra.reader import ChakraTrace
    from tutti.formats.formats import Options
    from tutti.workloads.operations import Trace

ENDINGS = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz")
_UNPACKED = (".et", ".et.gz", ".json")
_PIECE = 1 << 20


def is_archive(path: Path) -> bool:
    """Returns whether a path is a file with the ending of an archive."""
    return path.name.endswith(ENDINGS) and path.is_file()


def read_trace(path: Path, options: Options) -> tuple[Trace, tuple[str, ...]]:
    """Reads the traces of all ranks in an archive, as `tutti.formats.chakra.trace` reads files.

    Raises:
        ConfigError: The archive cannot be read, or the table of groups is invalid.
        TraceError: It is not an archive, is too large or damaged, or its traces are invalid.
    """
    with _unpacked(path) as folder:
        found, lines = trace.read_trace(folder, options)
        return found, tuple(line.replace(str(folder), str(path)) for line in lines)


def read_all(path: Path, groups: Path | None = None) -> list[ChakraTrace]:
    """Reads the traces of all ranks in an archive, as `tutti.formats.chakra.reader` reads files.

    Raises:
        ConfigError: As `read_trace`.
        TraceError: As `read_trace`.
    """
    with _unpacked(path) as folder:
        traces = reader.read_all(trace.prefix_in(folder), groups)
    temporary, archive = str(folder), str(path)
    known = traces[0].groups
    known.source = known.source.replace(temporary, archive)
    return [
        replace(
            each,
            source=each.source.replace(temporary, archive),
            nodes=tuple(
                replace(node, place=node.place.replace(temporary, archive)) for node in each.nodes
            ),
        )
        for each in traces
    ]


@contextlib.contextmanager
def _unpacked(path: Path) -> Iterator[Path]:
    """Yields a folder with the traces and the tables of an archive.

    Raises:
        TuttiError: The archive cannot be unpacked, or an error of the caller, which then names the
            archive.
    """
    with tempfile.TemporaryDirectory(prefix="tutti-") as name:
        folder = Path(name)
        try:
            _unpack(path, folder)
            yield folder
        except TuttiError as error:
            fields = {
                key: value.replace(name, str(path))
                for key, value in error.fields.items()
                if isinstance(value, str) and key != "problem"
            }
            raise error.reworded(error.problem.replace(name, str(path)), **fields) from None


def _unpack(path: Path, folder: Path) -> None:
    """Writes the traces and the tables of an archive into a folder.

    Raises:
        ConfigError: The file cannot be read.
        TraceError: It is not an archive, is damaged or too large, or two files have one name.
    """
    places: dict[str, str] = {}
    left = Bytes.ARCHIVE
    try:
        with opened(path, Bytes.ARCHIVE, "an archive of Chakra traces") as file:
            for place, member in _members(file):
                name = PurePosixPath(place).name
                if name in places:
                    problem = f"two files have the name {name}: {places[name]}, {place}"
                    raise TraceError(f"{path}: {problem}", kind="missing_rank")
                places[name] = place
                with member, (folder / name).open("wb") as target:
                    while piece := member.read(_PIECE):
                        left -= target.write(piece)
                        if left < 0:
                            size = f"{Bytes.ARCHIVE >> 30} GiB"
                            raise TraceError(f"{path}: larger than {size} when unpacked",
                                             kind="too_large")  # fmt: skip
    except TuttiError:
        raise
    # Of a zip file, an encrypted member raises RuntimeError, an unknown compression the last one.
    except (zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, OSError,
            ValueError, RuntimeError, NotImplementedError) as error:  # fmt: skip
        message = f"{path}: cannot be unpacked: {error}"
        raise TraceError(message, kind="unreadable", hint=_hint(error)) from None


def _hint(error: Exception) -> str:
    if isinstance(error, (NotImplementedError, RuntimeError)):
        return "pack the traces with `zip` or `tar czf`, without a password"
    return "was it copied completely?"


def _members(file: IO[bytes]) -> Iterator[tuple[str, IO[bytes]]]:
    """Yields the regular files of traces and tables in an archive, each with its place in it."""
    if file.read(2) == b"PK":
        with zipfile.ZipFile(file) as archive:
            for entry in archive.infolist():
                if _is_trace(entry.filename):
                    yield entry.filename, archive.open(entry)
        return
    file.seek(0)
    with tarfile.open(fileobj=file, mode="r:*") as packed:
        for item in packed:
            is_file = item.isfile() and _is_trace(item.name)
            if is_file and (content := packed.extractfile(item)):
                yield item.name, content


def _is_trace(place: str) -> bool:
    """Returns whether a file is a trace or a table; macOS adds files that start with `._`."""
    return place.endswith(_UNPACKED) and not PurePosixPath(place).name.startswith("._")

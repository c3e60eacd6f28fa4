"""The files of an advice: patterns and folders, and a manifest that states what files do not.

A manifest is TOML with tables `[[file]]`, or CSV with a column for each key.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import polars as pl
from pydantic import Field

from tutti.base.files.limits import RANKS, parse_count
from tutti.base.files.mistakes import mistake
from tutti.base.files.reader import read_rows, read_toml
from tutti.base.files.tables import Table
from tutti.base.files.validate import validated
from tutti.formats.measurements import Measurements, read_measurements
from tutti.formats.measurements.schema import concatenated
from tutti.schedules.mpi_names import collective_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_PATTERN: Final = frozenset("*?[")
_EXPECTED: Final = "a manifest: TOML with tables [[file]], or CSV with a column `path`"
_COUNTS: Final = ("ranks", "ranks_per_node")
_Text = Annotated[str, Field(min_length=1)]
_Count = Annotated[int, Field(ge=1, le=RANKS)]


class ManifestFile(Table):
    """A file of measurements, or several of one pattern, and what they do not state."""

    path: _Text = Field(description="File, folder or pattern, from the manifest on.")
    collective: _Text | None = Field(default=None, description="The collective.")
    ranks: _Count | None = Field(default=None, description="The number of ranks.")
    ranks_per_node: _Count | None = Field(
        default=None, description="The number of ranks on each node."
    )
    library: _Text | None = Field(
        default=None, description="MPI library with version, such as `Open MPI 5.0.7`."
    )
    algorithm: _Text | None = Field(default=None, description="The algorithm that was forced.")
    system: _Text | None = Field(default=None, description="The name of the system.")

    @property
    def stated(self) -> dict[str, str | int]:
        """What the manifest states, by column of measurements."""
        values = {
            "collective": collective_name(self.collective) if self.collective else None,
            "ranks": self.ranks,
            "ranks_per_node": self.ranks_per_node,
            "library": self.library,
            "library_algorithm": self.algorithm,
            "system": self.system,
        }
        return {name: value for name, value in values.items() if value is not None}


class Manifest(Table):
    """The files of an advice."""

    file: list[ManifestFile] = Field(min_length=1, description="The files.")


@dataclass(frozen=True)
class ListedFile:
    """A file of a manifest.

    Attributes:
        path: The file.
        entry: What the manifest states of it.
        source: The manifest, for messages.
    """

    path: Path
    entry: ManifestFile
    source: str

    def read(self) -> Measurements:
        """Reads the file, and completes its rows by what the manifest states.

        Raises:
            ConfigError: The file cannot be read, or states something else than the manifest.
        """
        stated = self.entry.stated
        measured = read_measurements(
            self.path,
            ranks=self.entry.ranks,
            ranks_per_node=self.entry.ranks_per_node,
            collective=str(stated["collective"]) if "collective" in stated else None,
        )
        rows = measured.rows
        for name, value in stated.items():
            rows = rows.with_columns(pl.col(name).fill_null(value))
            self._check(rows[name], name, value)
        if "ranks_per_node" in stated:
            rows = self._placed(rows)
        return replace(measured, rows=rows)

    def _placed(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Adds the number of nodes; fewer ranks than a node has are those of one node."""
        ranks, each, nodes = pl.col("ranks"), pl.col("ranks_per_node"), pl.col("nodes")
        odd = rows.filter(nodes.is_null() & (ranks > each) & (ranks % each != 0))
        if len(odd):
            raise mistake(
                f"{self.path}: {odd['ranks'][0]:,} ranks do not fill nodes",
                source=self.source,
                value=f"{odd['ranks_per_node'][0]:,} ranks per node",
                expected="a number that divides the ranks",
            )
        return rows.with_columns(
            nodes.fill_null(pl.max_horizontal(ranks // each, 1)),
            pl.when(nodes.is_null()).then(pl.min_horizontal(ranks, each)).otherwise(each)
            .alias("ranks_per_node"),
        )  # fmt: skip

    def _check(self, found: pl.Series, name: str, value: str | int) -> None:
        others = found.filter(found != value)
        if len(others):
            raise mistake(
                f"{self.path} states another {name.replace('_', ' ')}",
                source=self.source,
                value=str(value),
                expected=str(others[0]),
                hint="a manifest completes what a file does not state",
            )


def expanded(paths: Iterable[Path]) -> list[Path]:
    """Returns the files of paths, patterns and folders, in order; each once.

    A folder stands for the files in it that are not hidden, in alphabetical order.

    Raises:
        ConfigError: A pattern or a folder has no file.
    """
    found: dict[Path, None] = {}
    for path in paths:
        found |= dict.fromkeys(_files(path))
    return list(found)


def _files(path: Path) -> list[Path]:
    is_pattern = bool(_PATTERN & set(str(path))) and not path.exists()
    if not is_pattern and not path.is_dir():
        return [path]
    if is_pattern:
        start = Path(path.anchor or ".")
        matches = start.glob(str(path.relative_to(path.anchor) if path.anchor else path))
    else:
        matches = path.iterdir()
    files = sorted(one for one in matches if one.is_file() and not one.name.startswith("."))
    if not files:
        what = "matches no file" if is_pattern else "is a folder without files"
        raise mistake(what, source="FILE", value=str(path), expected="files of measurements")
    return files


def listed(path: Path) -> list[ListedFile]:
    """Returns the files of a manifest.

    Raises:
        ConfigError: The manifest cannot be read, or names a file twice or files that do not exist.
    """
    tables = {"file": list(_csv_entries(path))} if path.suffix == ".csv" else (
        read_toml(path, _EXPECTED))  # fmt: skip
    manifest = validated(Manifest, tables, source=str(path))
    found: dict[Path, ListedFile] = {}
    for entry in manifest.file:
        for file in expanded([path.parent / entry.path]):
            if file in found:
                raise mistake("names a file twice", source=str(path), value=str(file),
                              expected="one entry for each file")  # fmt: skip
            found[file] = ListedFile(file, entry, str(path))
    return list(found.values())


def _csv_entries(path: Path) -> Iterator[Mapping[str, str | int]]:
    rows = [(line, cells) for line, cells in read_rows(path, _EXPECTED) if any(cells)]
    if not rows:
        raise mistake("is empty", source=str(path), expected=_EXPECTED)
    (_, heading), *others = rows
    for line, cells in others:
        if len(cells) != len(heading):
            raise mistake("has another number of cells than the heading",
                          source=f"{path}, line {line}", value=str(len(cells)),
                          expected=str(len(heading)))  # fmt: skip
        yield {name: _cell(name, text) for name, text in zip(heading, cells, strict=True) if text}


def _cell(name: str, text: str) -> str | int:
    count = parse_count(text) if name in _COUNTS else None
    return text if count is None else count


def read_manifest(path: Path) -> tuple[Measurements, list[Path]]:
    """Reads the files of a manifest, completed by it.

    Returns:
        The measurements, and the files.

    Raises:
        ConfigError: The manifest or a file cannot be read, or both contradict each other.
    """
    files = listed(path)
    return concatenated([one.read() for one in files]), [one.path for one in files]

"""Sizes of the blocks of an all_to_all_v, from each rank to each rank."""

from __future__ import annotations

from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING

from tutti.schedules.errors import LayoutError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    Matrix = Sequence[Sequence[int]] | NDArray[np.int64]

_SCALE = 1 << 32
"""Zipf shares are rounded to this fraction of a row."""


def block_sizes(blocks: str | Matrix, ranks: int) -> list[int]:
    """Returns the relative sizes of blocks, the row of a source after another.

    Args:
        blocks: A matrix of shape (ranks, ranks), row by source, column by destination; or a text:
            `uniform`, `zipf:S` (every rank sends to the destination of popularity rank r a share
            proportional to r^-S, in a fixed random order of the ranks), or a CSV file of such a
            matrix in bytes, without a head.
        ranks: The number of ranks.

    Raises:
        LayoutError: The matrix is not square, of another number of ranks, or has a size that is not
            an integer from 0 to 2^64 - 1. Or the text is neither of these.

        ConfigError: The file cannot be read, or a cell is not a number of bytes; the message has
            the line.
    """
    if isinstance(blocks, str):
        if blocks.endswith(".csv"):
            return _flat(_read(Path(blocks)), ranks)
        return _shares(blocks, ranks)
    return _flat([list(row) for row in blocks], ranks)


def _flat(rows: list[list[int]], ranks: int) -> list[int]:
    wrong = next((len(row) for row in rows if len(row) != ranks), ranks)
    if len(rows) != ranks or wrong != ranks:
        columns = len(rows[0]) if len(rows) != ranks and rows else wrong
        message = f"blocks of {len(rows)} rows and {columns} columns: expected {ranks} x {ranks}"
        raise LayoutError(message, kind="not_square")
    for source, row in enumerate(rows):
        for destination, size in enumerate(row):
            if not isinstance(size, Integral) or not 0 <= size < 1 << 64:
                place = f"the block from rank {source} to rank {destination}"
                message = f"{place} has the size {size}: expected an integer from 0 to 2^64 - 1"
                raise LayoutError(message, kind="block_size")
    return [int(size) for row in rows for size in row]


def _read(path: Path) -> list[list[int]]:
    from tutti.base.files.mistakes import mistake, shown
    from tutti.base.files.reader import read_rows

    expected = "a CSV file of bytes, a row per source and a column per destination"
    rows = []
    for line, cells in read_rows(path, expected):
        for cell in cells if any(cells) else ():
            if not (cell.isascii() and cell.isdigit() and len(cell) < 20):
                raise mistake(
                    "is not a size of a block",
                    source=f"{path}, line {line}",
                    value=shown(cell),
                    expected="an integer of bytes, from 0",
                )
        if any(cells):
            rows.append([int(cell) for cell in cells])
    return rows


def _shares(text: str, ranks: int) -> list[int]:
    import numpy as np

    from tutti.schedules.popularity import popularity

    if text == "uniform":
        return [1] * (ranks * ranks)
    row: list[int] = np.rint(popularity(text, ranks) * _SCALE).astype(np.int64).tolist()
    return row * ranks

r"""Reads traffic matrices: a row of weights for each source, with a column for each destination.

A line is a row of numbers from 0, separated by spaces; `#` starts a comment. A packet of source i
goes to destination j with probability proportional to the j-th number of row i. A source with a row
of zeros sends nothing.

Examples:
    >>> rows = parse_matrix("0 1 3   # from node 0\n0 0 0\n0.5 0.5 0\n", source="m.txt")
    >>> matrix_pattern(rows)
    'matrix:0,1,3;0,0,0;1,1,0'
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from tutti.base.files.mistakes import mistake, shown
from tutti.view.quantity import plural

if TYPE_CHECKING:
    from collections.abc import Sequence

_NUMBER = re.compile(r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_LARGEST = (1 << 32) - 1
"""The largest weight of the core."""


def parse_matrix(text: str, *, source: str) -> list[list[float]]:
    """Reads a matrix from text.

    Args:
        text: The text.
        source: The name of the file in errors.

    Returns:
        The weights, by source, then destination.

    Raises:
        ConfigError: A number is invalid, the matrix is not square, or all numbers are 0. The
            message names the line.
    """
    rows: dict[int, list[float]] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        words = line.partition("#")[0].split()
        if words:
            rows[number] = [_weight(word, f"{source}:{number}") for word in words]
    for number, row in rows.items():
        if len(row) != len(rows):
            raise mistake(
                f"the row has {plural(len(row), 'number')}, and the matrix has "
                f"{plural(len(rows), 'row')}",
                source=f"{source}:{number}",
                expected="a row per source, and a number per destination in each",
            )
    if not any(any(row) for row in rows.values()):
        raise mistake("no number is above 0", source=source, expected="a matrix of weights")
    return list(rows.values())


def matrix_pattern(rows: Sequence[Sequence[float]]) -> str:
    """Returns the traffic pattern of a matrix.

    Integers below 2^32 are exact. Other rows are scaled to integers, with an error below 2^-31 of
    the largest number of the row.
    """
    return "matrix:" + ";".join(",".join(map(str, _integers(row))) for row in rows)


def _weight(word: str, place: str) -> float:
    value = float(word) if _NUMBER.fullmatch(word) else math.nan
    if not math.isfinite(value):
        raise mistake(
            "invalid weight",
            source=place,
            value=shown(word),
            expected="a number from 0, such as 3 or 0.25",
        )
    return value


def _integers(row: Sequence[float]) -> list[int]:
    most = max(row)
    if most <= _LARGEST and all(value.is_integer() for value in row):
        weights = [int(value) for value in row]
    else:
        weights = [max(round(value / most * _LARGEST), 1) if value else 0 for value in row]
    divisor = math.gcd(*weights) or 1
    return [weight // divisor for weight in weights]

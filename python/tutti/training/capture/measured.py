"""Measured times of kernels, as a file in the folder of a captured step: `times.csv`.

The first line is a comment with the GPU. A row has the name of an operator, the datatype and shapes
of its first tensors as in the captured step, and its time in microseconds.
"""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tutti.base.files.limits import Bytes
from tutti.base.files.reader import read_bytes
from tutti.training.errors import CaptureError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from tutti.training.capture.record import Operator

__all__ = [
    "MEASURED",
    "Key",
    "MeasuredTimes",
    "key_of",
    "operators_of",
    "read_times",
    "write_times",
]

MEASURED = "times.csv"
_FORMAT = "# tutti.kernel_times/1"
_COLUMNS = ["name", "dtype", "shapes", "us"]
_EXPECTED = "the table of `tutti train measure`"
_KINDS = ("product", "attention")
"""Operators that are measured: the others take their bytes at the memory bandwidth."""

Key = tuple[str, str, str]
"""The name, datatype and shapes of an operator."""


@dataclass(frozen=True)
class MeasuredTimes:
    """Measured times of operators on a GPU.

    Attributes:
        gpu: The name of the GPU in tutti, such as `h100`.
        us: The microseconds of operators.
    """

    gpu: str
    us: Mapping[Key, float] = field(default_factory=dict)

    def seconds(self, one: Operator) -> float | None:
        """Returns the time of an operator; None if it was not measured."""
        found = self.us.get(key_of(one))
        return None if found is None else found * 1e-6


def key_of(one: Operator) -> Key:
    """Returns what the measured time of an operator depends on."""
    return one.name, one.dtype, one.shapes


def operators_of(operators: Iterable[Operator]) -> list[Operator]:
    """Returns the distinct operators that are measured, in order."""
    found: dict[Key, Operator] = {}
    for one in operators:
        if one.kind in _KINDS:
            found.setdefault(key_of(one), one)
    return list(found.values())


def write_times(path: Path, times: MeasuredTimes) -> Path:
    """Writes a table of times."""
    text = io.StringIO()
    text.write(f"{_FORMAT} gpu={times.gpu}\n")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    writer.writerows([*key, f"{us:.6g}"] for key, us in times.us.items())
    path.write_text(text.getvalue(), encoding="utf-8")
    return path


def read_times(path: Path) -> MeasuredTimes:
    """Reads a table of times.

    Raises:
        ConfigError: The file cannot be read.
        CaptureError: The file is not such a table, or a time is not positive.
    """
    lines = read_bytes(path, Bytes.TABLE, _EXPECTED).decode("utf-8", "replace").splitlines()
    head = lines[0] if lines else ""
    if not head.startswith(f"{_FORMAT} gpu="):
        raise _invalid(path, 1, f"the first line is not `{_FORMAT} gpu=NAME`")
    rows = csv.reader(lines[1:])
    if next(rows, None) != _COLUMNS:
        raise _invalid(path, 2, f"the columns are not {','.join(_COLUMNS)}")
    us: dict[Key, float] = {}
    for number, row in enumerate(rows, start=3):
        if len(row) != len(_COLUMNS):
            raise _invalid(path, number, f"{len(row)} values")
        name, dtype, shapes, text = row
        time = _number(text)
        if time is None:
            raise _invalid(path, number, f"`us` is `{text[:20]}`")
        if (name, dtype, shapes) in us:
            raise _invalid(path, number, f"a second time of {name} {shapes}")
        us[name, dtype, shapes] = time
    return MeasuredTimes(head.rpartition("=")[2].strip(), us)


def _number(text: str) -> float | None:
    """Returns a positive time of less than an hour in us."""
    try:
        found = float(text)
    except ValueError:
        return None
    return found if math.isfinite(found) and 0 < found < 3.6e9 else None


def _invalid(path: Path, line: int, problem: str) -> CaptureError:
    message = f"{path}, line {line}: {problem}: expected {_EXPECTED}"
    hint = "`tutti train measure` writes it; remove it to use the model"
    return CaptureError(message, kind="file", fields={"path": str(path)}, hint=hint)

"""Topologies of SCALE-Sim: CSV tables of convolutions or matrix products, read as models.

A convolution is a line of name, height and width of the input, height and width of the filter,
channels, filters, stride (and the stride across, where it differs); a product one of name, M, N, K.
The first line names the columns, each line ends with a comma. Nothing is padded: an output has
``ceil((input - filter + stride) / stride)`` pixels along a side, as SCALE-Sim counts them. Lines
whose name contains ``DP`` are depth-wise: each channel is convolved by itself, one after the other.

Source: ``topology_utils.py`` of scalesim-project/scale-sim-v2.
"""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

from tutti.errors import WorkloadError
from tutti.workload.model import Gemm, Model, ModelLayer

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["read_topology"]

_MOST = 1 << 32


def read_topology(path: Path) -> Model:
    """The layers of a topology, as a model of one sample.

    Raises:
        WorkloadError: The file cannot be read or is no topology: with file and line.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no text"
        raise WorkloadError(f"{path} cannot be read: {reason}", kind="unreadable") from None
    layers: list[ModelLayer] = []
    for number, row in enumerate(csv.reader(lines), start=1):
        cells = [cell.strip() for cell in row]
        while cells and not cells[-1]:
            cells.pop()
        if number > 1 and cells:
            layers.append(_layer(cells, f"{path}, line {number}", first=not layers))
    if not layers:
        message = f"{path} has no layers: expected a line of column names and lines of layers"
        raise WorkloadError(message, kind="malformed_table")
    names = [layer.name for layer in layers]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise WorkloadError(f"{path} names layer `{twice}` twice", kind="malformed_table")
    return Model(name=path.stem, source=str(path), layers=tuple(layers), samples="samples")


def _layer(cells: Sequence[str], place: str, *, first: bool) -> ModelLayer:
    name, values = cells[0], cells[1:]
    if not name or len(values) not in (3, 7, 8):
        message = (
            f"{place}: a layer is a name and 7 or 8 numbers of a convolution, or 3 of a product; "
            f"this has {len(values)}"
        )
        raise WorkloadError(message, kind="malformed_table")
    numbers = [_number(value, place) for value in values]
    if len(numbers) == 3:
        m, n, k = numbers
        gemm, inputs, parameters = Gemm(m=m, n=n, k=k), m * k, n * k
    else:
        gemm, inputs, parameters = _convolution(name, numbers, place)
    return ModelLayer(
        name=name,
        gemms=(gemm,),
        parameters=parameters,
        inputs=inputs,
        outputs=gemm.m // gemm.steps * gemm.n * gemm.steps,
        first=first,
    )


def _convolution(name: str, numbers: Sequence[int], place: str) -> tuple[Gemm, int, int]:
    height, width, filter_height, filter_width, channels, filters, down = numbers[:7]
    across = numbers[7] if len(numbers) > 7 else down
    if filter_height > height or filter_width > width:
        message = (
            f"{place}: a filter of {filter_height} x {filter_width} is larger than its input, "
            f"{height} x {width}"
        )
        raise WorkloadError(message, kind="malformed_table")
    pixels = -(-(height - filter_height + down) // down) * (
        -(-(width - filter_width + across) // across)
    )
    window, inputs = filter_height * filter_width, height * width * channels
    if "DP" in name:
        # One channel after the other, each with all filters: steps of one product.
        gemm = Gemm(m=pixels * channels, n=filters, k=window, steps=channels)
        return gemm, inputs, window * filters * channels
    return Gemm(m=pixels, n=filters, k=window * channels), inputs, window * channels * filters


def _number(text: str, place: str) -> int:
    if not text.isascii() or not text.isdecimal() or not 0 < int(text) < _MOST:
        message = f"{place}: `{text}` is no whole number from 1 to 2^32 - 1"
        raise WorkloadError(message, kind="malformed_table")
    return int(text)

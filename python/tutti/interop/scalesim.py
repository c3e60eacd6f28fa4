"""Topologies of SCALE-Sim: CSV tables of convolutions or matrix products, read as models.

A convolution is a line of name, height and width of the input, height and width of the filter,
channels, filters, stride (and the stride across, where it differs); a product one of name, M, N, K.
The first line names the columns, each line ends with a comma. Nothing is padded: an output has
``ceil((input - filter + stride) / stride)`` pixels along a side, as SCALE-Sim counts them. Lines
whose name contains ``DP`` are depth-wise: each channel is convolved by itself, one after the other.

Source: ``topology_utils.py`` of scalesim-project/scale-sim-v2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tutti.files.mistakes import mistake, shown
from tutti.files.reader import parse_count, read_rows
from tutti.workload.model import Gemm, Model, ModelLayer

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["read_topology"]

_MOST = (1 << 32) - 1
_MOST_ELEMENTS = (1 << 53) - 1


def read_topology(path: Path) -> Model:
    """The layers of a topology, as a model of one sample.

    Raises:
        ConfigError: The file cannot be read or is no topology: with file and line.
    """
    layers: list[ModelLayer] = []
    names: set[str] = set()
    for number, cells in read_rows(path, "a topology of SCALE-Sim (CSV)"):
        while cells and not cells[-1]:
            cells.pop()
        if number > 1 and cells:
            layers.append(_layer(cells, f"{path}, line {number}", first=not layers))
            if cells[0] in names:
                raise mistake(f"names layer `{cells[0]}` twice", source=str(path))
            names.add(cells[0])
    if not layers:
        expected = "a line of column names and lines of layers"
        raise mistake("has no layers", source=str(path), expected=expected)
    return Model(name=path.stem, source=str(path), layers=tuple(layers), samples="samples")


def _layer(cells: Sequence[str], place: str, *, first: bool) -> ModelLayer:
    name, values = cells[0], cells[1:]
    if not name or len(values) not in (3, 7, 8):
        expected = "a name and 7 or 8 numbers of a convolution, or 3 of a product"
        raise mistake(f"this has {len(values)} numbers", source=place, expected=expected)
    numbers = [_number(value, place) for value in values]
    if len(numbers) == 3:
        m, n, k = numbers
        gemm, inputs, parameters = Gemm(m=m, n=n, k=k), m * k, n * k
    else:
        gemm, inputs, parameters = _convolution(name, numbers, place)
    outputs = gemm.m // gemm.steps * gemm.n * gemm.steps
    largest = max(gemm.m, gemm.k, parameters, inputs, outputs)
    if largest > _MOST_ELEMENTS:
        expected = f"at most {_MOST_ELEMENTS:,} elements of a tensor"
        raise mistake(f"a tensor of {largest:,} elements", source=place, expected=expected)
    return ModelLayer(
        name=name,
        gemms=(gemm,),
        parameters=parameters,
        inputs=inputs,
        outputs=outputs,
        first=first,
    )


def _convolution(name: str, numbers: Sequence[int], place: str) -> tuple[Gemm, int, int]:
    height, width, filter_height, filter_width, channels, filters, down = numbers[:7]
    across = numbers[7] if len(numbers) > 7 else down
    if filter_height > height or filter_width > width:
        problem = f"a filter of {filter_height} x {filter_width} is larger than its input"
        raise mistake(problem, source=place, value=f"{height} x {width}")
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
    number = parse_count(text, _MOST)
    if not number:
        problem, expected = "is no whole number", f"1 to {_MOST}"
        raise mistake(problem, source=place, value=shown(text), expected=expected)
    return number

"""Reads SCALE-Sim topologies (CSV tables of convolutions or matrix products) as models.

The line of a convolution has name, height and width of the input, height and width of the filter,
channels, filters, stride (and the horizontal stride, if different). The line of a product has name,
M, N, K. The first line names the columns; each line ends with a comma. Inputs are not padded: each
side of the output has ``ceil((input - filter + stride) / stride)`` pixels, as in SCALE-Sim. Layers
with ``DP`` in their names are depth-wise convolutions, which process the channels sequentially.

Source: ``topology_utils.py`` of scalesim-project/scale-sim-v2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tutti.base.files.limits import parse_count
from tutti.base.files.mistakes import mistake, shown
from tutti.base.files.reader import read_rows
from tutti.workloads.model import Gemm, Model, ModelLayer

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_MOST = (1 << 32) - 1
_MOST_ELEMENTS = (1 << 53) - 1


def read_topology(path: Path) -> Model:
    """Reads the layers of a topology as a model of one sample.

    Raises:
        ConfigError: The file cannot be read or parsed. The message has file and line.
    """
    layers: list[ModelLayer] = []
    names: set[str] = set()
    for number, cells in read_rows(path, "a topology of SCALE-Sim (CSV)"):
        while cells and not cells[-1]:
            cells.pop()
        if number > 1 and cells:
            layers.append(_layer(cells, f"{path}, line {number}", first=not layers))
            if cells[0] in names:
                raise mistake(f"has two layers named `{cells[0]}`", source=str(path))
            names.add(cells[0])
    if not layers:
        expected = "a line of column names, then lines of layers"
        raise mistake("has no layers", source=str(path), expected=expected)
    return Model(name=path.stem, source=str(path), layers=tuple(layers), samples="samples")


def _layer(cells: Sequence[str], place: str, *, first: bool) -> ModelLayer:
    name, values = cells[0], cells[1:]
    if not name or len(values) not in (3, 7, 8):
        expected = "a name, and 7 or 8 numbers of a convolution or 3 of a product"
        raise mistake(f"has {len(values)} numbers", source=place, expected=expected)
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
        raise mistake(f"has a tensor of {largest:,} elements", source=place, expected=expected)
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
        # Channels are sequential, each with all filters: steps of one product.
        gemm = Gemm(m=pixels * channels, n=filters, k=window, steps=channels)
        return gemm, inputs, window * filters * channels
    return Gemm(m=pixels, n=filters, k=window * channels), inputs, window * channels * filters


def _number(text: str, place: str) -> int:
    number = parse_count(text, _MOST)
    if not number:
        problem, expected = "is not an integer in range", f"1 to {_MOST}"
        raise mistake(problem, source=place, value=shown(text), expected=expected)
    return number

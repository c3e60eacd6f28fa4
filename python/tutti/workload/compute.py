"""How long the passes over a layer take: by operations and bytes, by a systolic array, as measured.

>>> from tutti.units import Frequency
>>> from tutti.workload.model import Gemm
>>> clock = Frequency.parse("1 GHz")
>>> array = Systolic(rows=32, columns=32, dataflow="weight_stationary", clock=clock)
>>> array.cycles(Gemm(m=3136, n=64, k=64))
12920
>>> from tutti.workload.models import resnet50
>>> layer = resnet50.build(None).layers[0]
>>> [Chiplet(share=share).time(layer, "forward", 16, 4, ()) for share in ("samples", "folds")]
[163856000, 163856000]
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Literal, Protocol

from pydantic import Field

from tutti import _core
from tutti.errors import UnitError, WorkloadError
from tutti.files.described import Positive  # noqa: TC001 - pydantic looks at it
from tutti.files.limits import MOST
from tutti.files.mistakes import mistake
from tutti.files.reader import read_rows
from tutti.units import Frequency, Time
from tutti.workload.model import PASSES, Gemm

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tutti.units import TimePerByte
    from tutti.workload.model import ModelLayer, Pass, Work

__all__ = [
    "Chiplet",
    "ComputeModel",
    "Dataflow",
    "MeasuredCompute",
    "Roofline",
    "Share",
    "Systolic",
    "read_measured",
    "roofline",
]

Share = Literal["folds", "samples"]

Dataflow = Literal["output_stationary", "weight_stationary", "input_stationary"]


class ComputeModel(Protocol):
    """Says how long an NPU takes."""

    def time(
        self,
        layer: ModelLayer,
        which: Pass,
        samples: int,
        element: int,
        left: tuple[int, TimePerByte],
    ) -> int:
        """Picoseconds of a pass over `samples` samples, in elements of `element` bytes.

        `left` is what an NPU has left to compute with: operations a second, and memory.
        """


def _refuse_uncountable(*counts: int) -> None:
    """Refuses work that no count of 64 bits holds.

    Raises:
        WorkloadError: It is as much.
    """
    if max(counts) > MOST:
        message = (
            f"work of {max(counts):,} operations, bytes or picoseconds: expected at most {MOST:,}"
        )
        raise WorkloadError(message, kind="layer_size", hint="smaller layers, or a smaller batch")


def roofline(work: Work, left: tuple[int, TimePerByte]) -> int:
    """Picoseconds of work: its operations or its bytes, whichever take longer."""
    per_second, memory = left
    _refuse_uncountable(work.flops, work.bytes)
    ps, _ = _core.roofline_time(work.flops, work.bytes, per_second, memory.core)
    _refuse_uncountable(ps)
    return ps


@dataclass(frozen=True)
class Roofline:
    """Operations or bytes of memory, whichever take longer (Williams et al. 2009)."""

    def time(
        self,
        layer: ModelLayer,
        which: Pass,
        samples: int,
        element: int,
        left: tuple[int, TimePerByte],
    ) -> int:
        """Picoseconds, with what is left."""
        return roofline(layer.work(which, samples, element), left)


@dataclass(frozen=True, kw_only=True)
class Systolic:
    """A systolic array, as SCALE-Sim counts its cycles: arithmetic alone, memory is never late.

    Attributes:
        clock: Its clock.
        arrays: How many such arrays deal the folds of each product out among them.
    """

    rows: Annotated[Positive, Field(description="Rows of processing elements.")]
    columns: Annotated[Positive, Field(description="Columns of processing elements.")]
    dataflow: Annotated[Dataflow, Field(description="The operand that remains in the array.")]
    clock: Frequency
    arrays: int = 1

    def cycles(self, gemm: Gemm) -> int:
        """Cycles of a product.

        Raises:
            WorkloadError: The array is empty, there is none, or no dataflow has that name.
        """
        shape = (gemm.m, gemm.n, gemm.k)
        _refuse_uncountable(gemm.m * gemm.n * gemm.k)
        array = (self.rows, self.columns)
        return _core.systolic_cycles(array, shape, self.dataflow, self.arrays)

    def time(
        self,
        layer: ModelLayer,
        which: Pass,
        samples: int,
        element: int,
        left: tuple[int, TimePerByte],
    ) -> int:
        """Picoseconds, whatever is left: an array is not divided."""
        del element, left
        if which == "input_gradient" and layer.first:
            return 0
        cycles = sum(self._pass(gemm, which, samples) for gemm in layer.gemms)
        return self.clock.cycles(cycles).ps

    def _pass(self, gemm: Gemm, which: Pass, samples: int) -> int:
        """Of the product, or of those whose results are the gradients of its operands."""
        steps = gemm.steps if which != "weight_gradient" else 1
        m, n, k = gemm.m * samples // steps, gemm.n, gemm.k
        if not gemm.weights:
            # One product for each sample: none shares an operand with another.
            m, steps = gemm.m, samples
        shapes = {"forward": (m, n, k), "input_gradient": (m, k, n), "weight_gradient": (k, n, m)}
        m, n, k = shapes[which]
        return steps * self.cycles(Gemm(m=m, n=n, k=k))


def _element() -> Systolic:
    """A processing element of table II of Yin et al. 2023."""
    clock = Frequency.parse("1 GHz")
    return Systolic(rows=32, columns=32, dataflow="output_stationary", clock=clock)


@dataclass(frozen=True, kw_only=True)
class Chiplet:
    """Processing elements that share the samples of a chiplet, each of them a systolic array.

    What they hand each other is not counted: operands that several need, and weight gradients of
    their own samples, which are folded before they leave the chiplet.

    Attributes:
        array: A processing element (that of Yin et al. 2023, table II: 32 x 32, output stationary,
            1 GHz).
        elements: How many there are (16).
    """

    array: Systolic = field(default_factory=_element)
    elements: int = 16
    share: Annotated[
        Share,
        Field(
            description="Division of work among arrays. `samples`: each array processes "
            "complete samples. `folds`: arrays share each product, and each "
            "processes complete folds; the folds have the size of the array.",
        ),
    ] = "samples"

    def time(
        self,
        layer: ModelLayer,
        which: Pass,
        samples: int,
        element: int,
        left: tuple[int, TimePerByte],
    ) -> int:
        """Picoseconds of all samples of the chiplet, whatever is left: arrays are not divided.

        Raises:
            WorkloadError: There are no elements, or they are empty.
        """
        if self.share == "folds" or self.elements < 1:
            array = replace(self.array, arrays=self.elements)
            return array.time(layer, which, samples, element, left)
        return self.array.time(layer, which, -(-samples // self.elements), element, left)


@dataclass(frozen=True)
class MeasuredCompute:
    """Times that were measured, of the batch and the part of the model that an NPU has.

    Attributes:
        times: Of each pass of each layer, by the layer's name.
        source: Where they are from, for messages.
    """

    times: Mapping[str, Mapping[Pass, Time]]
    source: str = "the times"

    def time(
        self,
        layer: ModelLayer,
        which: Pass,
        samples: int,
        element: int,
        left: tuple[int, TimePerByte],
    ) -> int:
        """Picoseconds as they were measured, whatever is left.

        Raises:
            WorkloadError: There is none for that layer.
        """
        del samples, element, left
        if layer.name not in self.times:
            known = ", ".join(list(self.times)[:4])
            message = f"{self.source} has no times of layer `{layer.name}`: it has {known}, ..."
            raise WorkloadError(message, kind="unknown_layer")
        return self.times[layer.name][which].ps


_COLUMNS = ("layer", *PASSES)


def read_measured(path: Path) -> MeasuredCompute:
    """Times from a CSV file with the columns layer, forward, input_gradient, weight_gradient.

    Times have their units with them, as ``1.25 ms``.

    Raises:
        ConfigError: The file cannot be read, lacks a column, names a layer twice, or a value is no
            time: with file and line.
    """
    columns = f"the columns {', '.join(_COLUMNS)}"
    head: list[str] = []
    found: dict[str, dict[Pass, Time]] = {}
    for line, cells in read_rows(path, f"a CSV file with {columns}"):
        if not head:
            head = cells
            missing = [column for column in _COLUMNS if column not in head]
            if missing:
                problem = f"has no column `{missing[0]}`"
                raise mistake(problem, source=str(path), expected=columns)
            continue
        if not any(cells):
            continue
        row = dict.fromkeys(_COLUMNS, "") | dict(zip(head, cells, strict=False))
        name = row["layer"]
        if not name or name in found:
            problem = f"names layer `{name}` twice" if name else "names no layer"
            raise mistake(problem, source=f"{path}, line {line}")
        found[name] = {which: _time(row[which], path, line, which) for which in PASSES}
    if not found:
        raise mistake("has no line of times", source=str(path), expected=columns)
    return MeasuredCompute(found, str(path))


def _time(text: str, path: Path, line: int, column: str) -> Time:
    try:
        return Time.parse(text)
    except UnitError as error:
        place = f"{path}, line {line}"
        raise mistake(
            error.problem, source=place, key=f"column `{column}`", hint=error.hint
        ) from None

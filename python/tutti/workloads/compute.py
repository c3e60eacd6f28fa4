"""Compute models for the passes over a layer: roofline, systolic arrays and measured times.

Examples:
    >>> from tutti.base.units import Frequency
    >>> from tutti.workloads.model import Gemm
    >>> clock = Frequency.parse("1 GHz")
    >>> array = Systolic(rows=32, columns=32, dataflow="weight_stationary", clock=clock)
    >>> array.cycles(Gemm(m=3136, n=64, k=64))
    12920
    >>> from tutti.workloads.zoo import resnet50
    >>> layer = resnet50.build(None).layers[0]
    >>> [Chiplet(share=share).time(layer, "forward", 16, 4, ()) for share in ("samples", "folds")]
    [163856000, 163856000]
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Literal, Protocol

from pydantic import Field

from tutti import _core
from tutti.base.errors import UnitError
from tutti.base.files.described import Positive, key
from tutti.base.files.limits import MOST
from tutti.base.files.mistakes import mistake
from tutti.base.files.reader import read_rows
from tutti.base.units import Frequency, Time
from tutti.workloads.errors import WorkloadError
from tutti.workloads.kernels import Kernels
from tutti.workloads.model import PASSES, Gemm
from tutti.workloads.transfers import recomputed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tutti.base.units import TimePerByte
    from tutti.workloads.model import ModelLayer, Pass, Work
    from tutti.workloads.transfers import Recompute

Share = Literal["folds", "samples"]

Dataflow = Literal["output_stationary", "weight_stationary", "input_stationary"]


class ComputeModel(Protocol):
    """A model of the compute time of an NPU."""

    def time(
        self,
        layer: ModelLayer,
        which: Pass,
        samples: int,
        element: int,
        left: tuple[int, TimePerByte],
    ) -> int:
        """Returns picoseconds of a pass over `samples` samples, in elements of `element` bytes.

        `left` is the remaining capacity of an NPU: operations per second, and memory bandwidth.
        """


def _refuse_uncountable(*counts: int) -> None:
    """Refuses work that exceeds counts of 64 bits.

    Raises:
        WorkloadError: A count is too large.
    """
    if max(counts) > MOST:
        message = (
            f"work of {max(counts):,} operations, bytes or picoseconds: expected at most {MOST:,}"
        )
        hint = "use smaller layers or a smaller batch"
        raise WorkloadError(message, kind="layer_size", hint=hint)


def roofline(work: Work, left: tuple[int, TimePerByte]) -> int:
    """Returns picoseconds of work: the longer of operations and memory traffic."""
    per_second, memory = left
    _refuse_uncountable(work.flops, work.bytes)
    ps, _ = _core.roofline_time(work.flops, work.bytes, per_second, memory.core)
    _refuse_uncountable(ps)
    return ps


@dataclass(frozen=True)
class Roofline:
    """The longer of operations and memory traffic (Williams et al. 2009)."""

    def time(
        self,
        layer: ModelLayer,
        which: Pass,
        samples: int,
        element: int,
        left: tuple[int, TimePerByte],
    ) -> int:
        """Returns picoseconds at the remaining capacity."""
        return roofline(layer.work(which, samples, element), left)


@dataclass(frozen=True, kw_only=True)
class Systolic:
    """A systolic array with the cycle count of SCALE-Sim, without memory stalls.

    Attributes:
        clock: The clock frequency.
        arrays: The number of arrays that divide the folds of each product.
    """

    rows: Annotated[Positive, Field(description="Rows of processing elements.")]
    columns: Annotated[Positive, Field(description="Columns of processing elements.")]
    dataflow: Annotated[Dataflow, Field(description="The operand that remains in the array.")]
    clock: Frequency
    arrays: int = 1

    def cycles(self, gemm: Gemm) -> int:
        """Returns the cycles of a product.

        Raises:
            WorkloadError: The array is empty, `arrays` is 0, or the dataflow is unknown.
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
        """Returns picoseconds, independent of `left`: an array is not shared."""
        del element, left
        if which == "input_gradient" and layer.first:
            return 0
        cycles = sum(self._pass(gemm, which, samples) for gemm in layer.gemms)
        return self.clock.cycles(cycles).ps

    def _pass(self, gemm: Gemm, which: Pass, samples: int) -> int:
        """Returns the cycles of the product, or of the gradients of its operands."""
        steps = gemm.steps if which != "weight_gradient" else 1
        m, n, k = gemm.m * samples // steps, gemm.n, gemm.k
        if not gemm.weights:
            # One product per sample, as samples share no operands.
            m, steps = gemm.m, samples
        shapes = {"forward": (m, n, k), "input_gradient": (m, k, n), "weight_gradient": (k, n, m)}
        m, n, k = shapes[which]
        return steps * self.cycles(Gemm(m=m, n=n, k=k))


def _element() -> Systolic:
    """Returns a processing element of table II of Yin et al. 2023."""
    clock = Frequency.parse("1 GHz")
    return Systolic(rows=32, columns=32, dataflow="output_stationary", clock=clock)


@dataclass(frozen=True, kw_only=True)
class Chiplet:
    """A chiplet of processing elements, each a systolic array, which divide the samples.

    Communication inside the chiplet is not modelled: shared operands, and the reduction of weight
    gradients.

    Attributes:
        array: The processing element (Yin et al. 2023, table II: 32 x 32, output stationary,
            1 GHz).
        elements: The number of processing elements (16).
    """

    array: Systolic = field(default_factory=_element)
    elements: int = 16
    share: Share = key(
        "samples",
        description="Division of work among arrays. `samples`: each array processes "
        "complete samples. `folds`: arrays share each product, and each "
        "processes complete folds; the folds have the size of the array.",
    )

    def time(
        self,
        layer: ModelLayer,
        which: Pass,
        samples: int,
        element: int,
        left: tuple[int, TimePerByte],
    ) -> int:
        """Returns picoseconds of all samples, independent of `left`: arrays are not shared.

        Raises:
            WorkloadError: The chiplet has no elements, or an array is empty.
        """
        if self.share == "folds" or self.elements < 1:
            array = replace(self.array, arrays=self.elements)
            return array.time(layer, which, samples, element, left)
        return self.array.time(layer, which, -(-samples // self.elements), element, left)


@dataclass(frozen=True)
class MeasuredCompute:
    """Measured times for the batch and the part of the model of an NPU.

    Attributes:
        times: Times by layer and pass.
        source: The source of the times, for errors.
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
        """Returns the measured picoseconds, independent of `left`.

        Raises:
            WorkloadError: The layer has no time.
        """
        del samples, element, left
        if layer.name not in self.times:
            known = ", ".join(list(self.times)[:4])
            message = f"{self.source} has no times of layer `{layer.name}`: expected {known}, ..."
            raise WorkloadError(message, kind="unknown_layer")
        return self.times[layer.name][which].ps


@dataclass(frozen=True)
class PassTimes:
    """Times of passes in ps.

    Attributes:
        compute: The compute model.
        samples: The samples of a pass.
        element: Bytes per element.
        left: The resources left to compute, as in :class:`ComputeModel`.
        slowdown: The factor on the time of every pass.
        known: The times without a slowdown so far, which copies with another one share.
        repeated: Those of forward passes that the backward pass repeats.
    """

    compute: ComputeModel
    samples: int
    element: int
    left: tuple[int, TimePerByte]
    slowdown: float = 1.0
    known: dict[tuple[ModelLayer, Pass], int] = field(
        default_factory=dict, compare=False, repr=False
    )
    repeated: dict[tuple[ModelLayer, Pass], int] = field(
        default_factory=dict, compare=False, repr=False
    )

    def of(self, layer: ModelLayer, which: Pass) -> int:
        """Returns the time of a pass over a layer."""
        time = self.known.get((layer, which))
        if time is None:
            time = self.compute.time(layer, which, self.samples, self.element, self.left)
            self.known[layer, which] = time
        return time if self.slowdown == 1 else round(time * self.slowdown)

    def again(self, layer: ModelLayer, recompute: Recompute) -> int:
        """Returns the time in which the backward pass repeats a part of a layer.

        Measured backward passes contain the selective part.
        """
        is_measured = isinstance(self.compute, MeasuredCompute)
        part = None if is_measured and recompute == "selective" else recomputed(layer, recompute)
        if part is None or not isinstance(self.compute, Kernels):
            return self.of(part, "forward") if part else 0
        again = replace(self, compute=self.compute.in_backward(), known=self.repeated)
        return again.of(part, "forward")

    def within(self, layers: Sequence[ModelLayer], recompute: Recompute) -> PassTimes:
        """Returns the times of passes within a step over these layers, from first to last."""
        if not isinstance(self.compute, Kernels):
            return self
        back = [(layer, which) for layer in layers for which in PASSES[1:]]
        again = (recomputed(layer, recompute) for layer in layers[1:-1])
        back += [(part, "forward") for part in again if part]
        forward = [(layer, PASSES[0]) for layer in layers]
        return replace(self, compute=self.compute.within(forward, back, self.samples, self.left))


@dataclass(frozen=True, kw_only=True)
class Covered:
    """Times of attention in ps, whose blocks a ring exchange covers.

    With n NPUs, attention has n blocks of keys and values. The first is local. All others arrive
    while the block before them is processed, so the exchange runs during n - 1 of n parts.

    Attributes:
        forward: The part of the forward pass that runs during the exchange.
        backward: The part of the backward pass.
    """

    forward: int
    backward: int


def covered(times: PassTimes, layer: ModelLayer, recompute: Recompute, ranks: int) -> Covered:
    """Returns the parts of the passes over a layer of attention that run during a ring exchange.

    The backward pass contains the repeated scores and sums (`selective`). Raises a
    :class:`WorkloadError` for measured times, which do not distinguish attention from projections.
    """
    if isinstance(times.compute, MeasuredCompute):
        message = (
            f"{times.compute.source} has one time for the projections and the scores of "
            f"`{layer.name}`: expected `cp_comm_type = all_gather`"
        )
        raise WorkloadError(message, kind="no_overlap")
    products = recomputed(layer, "selective")
    if products is None:
        return Covered(forward=0, backward=0)
    each = {which: min(times.of(products, which), times.of(layer, which)) for which in PASSES}
    back = each["input_gradient"] + each["weight_gradient"]
    back += each["forward"] if recompute != "none" else 0
    share = ranks - 1
    return Covered(forward=each["forward"] * share // ranks, backward=back * share // ranks)


def cover(layer: _core.TrainingLayer, part: Covered) -> None:
    """Takes the parts that run during a ring exchange out of the passes of a layer."""
    layer.covered_forward_ps, layer.covered_backward_ps = part.forward, part.backward
    layer.forward_ps -= part.forward
    of_input = min(part.backward, layer.input_gradient_ps)
    layer.input_gradient_ps -= of_input
    layer.weight_gradient_ps -= min(part.backward - of_input, layer.weight_gradient_ps)


_COLUMNS = ("layer", *PASSES)


def read_measured(path: Path) -> MeasuredCompute:
    """Reads a CSV file with the columns layer, forward, input_gradient, weight_gradient.

    Times have units, such as ``1.25 ms``.

    Raises:
        ConfigError: The file cannot be read, a column is missing, a layer is duplicate, or a value
            is not a time. The message has file and line.
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
            problem = f"duplicate layer `{name}`" if name else "no layer name"
            raise mistake(problem, source=f"{path}, line {line}")
        found[name] = {which: _time(row[which], path, line, which) for which in PASSES}
    if not found:
        raise mistake("has no times", source=str(path), expected=columns)
    return MeasuredCompute(found, str(path))


def _time(text: str, path: Path, line: int, column: str) -> Time:
    try:
        return Time.parse(text)
    except UnitError as error:
        place = f"{path}, line {line}"
        raise mistake(
            error.problem, source=place, key=f"column `{column}`", hint=error.hint
        ) from None

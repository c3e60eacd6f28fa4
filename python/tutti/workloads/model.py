"""Models as lists of layers, with parameters, operations and bytes derived from shapes.

A layer is one or more matrix products, each of m x k by k x n for **one sample**: m rows (output
pixels, tokens), n columns (filters, outputs), k terms of a sum. Weights are k x n. An operation is
a multiplication or an addition, so a multiply-accumulate counts two.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from tutti.workloads.errors import WorkloadError

if TYPE_CHECKING:
    from tutti.base.units import Time
    from tutti.workloads.decoder import Decoder

Pass = Literal["forward", "input_gradient", "weight_gradient"]

PASSES: tuple[Pass, ...] = ("forward", "input_gradient", "weight_gradient")


@dataclass(frozen=True)
class Gemm:
    """A matrix product for one sample: m x k by k x n.

    Attributes:
        m: Rows: output pixels or tokens.
        n: Columns: filters or outputs.
        k: Terms of each sum.
        weights: Whether the k x n operand is weights. Otherwise both operands are activations.

        steps: The number of sequential products, each of which reads the weights again: the time
            steps of a recurrent layer.
        split: The side that tensor parallelism divides: columns, or terms of the sums (the rows of
            the weights).
    """

    m: int
    n: int
    k: int
    weights: bool = True
    steps: int = 1
    split: Literal["n", "k"] = "n"

    @property
    def macs(self) -> int:
        """Multiply-accumulates for one sample."""
        return self.m * self.n * self.k


@dataclass(frozen=True)
class Work:
    """The operations and memory traffic of a kernel.

    Attributes:
        flops: Operations.
        bytes: Bytes read from and written to memory.
    """

    flops: int
    bytes: int

    def __add__(self, other: Work) -> Work:
        return Work(self.flops + other.flops, self.bytes + other.bytes)


@dataclass(frozen=True, kw_only=True)
class ModelLayer:
    """A layer.

    Attributes:
        name: The name.
        gemms: The matrix products of one sample.
        parameters: The number of weights, without biases and normalisation if the source omits
            them.

        inputs: Input elements of one sample.
        outputs: Output elements of one sample.
        first: Whether no earlier layer needs a gradient.
        experts: The number of experts: layers of this shape with separate weights. The products
            and elements are those of all experts that a token passes (top-k: k rows per token).
        context: Elements of the keys and values of a sample, which context parallelism exchanges.
    """

    name: str
    gemms: tuple[Gemm, ...]
    parameters: int
    inputs: int
    outputs: int
    first: bool = False
    experts: int = 1
    context: int = 0

    @property
    def by_rows(self) -> bool:
        """Whether tensor parallelism divides the weights by rows, as in embeddings."""
        return not self.gemms or self.gemms[-1].split == "k"

    def __post_init__(self) -> None:
        """Checks the sizes.

        Raises:
            WorkloadError: A size is negative, or a product has no rows, columns or terms.
        """
        counts = [("parameters", self.parameters), ("inputs", self.inputs)]
        for key, count in [*counts, ("outputs", self.outputs)]:
            if count < 0:
                raise self._mistake(key, count, "0 or more")
        for gemm in self.gemms:
            for key in ("m", "n", "k", "steps"):
                if (count := getattr(gemm, key)) < 1:
                    raise self._mistake(f"{key} of a product", count, "at least 1")

    def _mistake(self, key: str, count: int, expected: str) -> WorkloadError:
        message = f"layer `{self.name}`: {key} is {count}: expected {expected}"
        return WorkloadError(message, kind="layer_size", fields={"layer": self.name})

    @property
    def macs(self) -> int:
        """Multiply-accumulates of the forward pass for one sample."""
        return sum(gemm.macs for gemm in self.gemms)

    def work(self, which: Pass, samples: int, element: int) -> Work:
        """Returns the work of a pass over `samples` samples, in elements of `element` bytes.

        Operations are the same in each pass. Each operand is read once and each result written
        once. Recurrent layers read their weights in every step; their weight gradient is one
        product over all steps.
        """
        if which == "input_gradient" and self.first:
            return Work(0, 0)
        flops = 2 * self.macs * samples
        weights = self.experts * sum(
            g.n * g.k * (g.steps if which != "weight_gradient" else 1)
            for g in self.gemms
            if g.weights
        )
        return Work(flops, element * (weights + samples * (self.inputs + self.outputs)))


@dataclass(frozen=True, kw_only=True)
class Tables:
    """Embedding tables that are distributed over the NPUs.

    Attributes:
        tables: The number of tables.
        dimension: Elements per row.
        lookups: Rows per table and sample, which are summed.
        bottom: The number of layers that do not depend on the lookups.
        lookup_time: Measured time of the lookups, in place of their memory traffic.
        update_time: Measured time of the update, in place of its memory traffic.
    """

    tables: int
    dimension: int
    lookups: int
    bottom: int
    lookup_time: Time | None = None
    update_time: Time | None = None

    def exchanged(self, samples: int, element: int) -> int:
        """Returns the bytes of an NPU's all-to-all: the sums of all tables for its samples."""
        return samples * self.tables * self.dimension * element

    def lookup(self, samples: int, element: int) -> Work:
        """Returns the work of the lookups of an NPU, as many as a batch needs.

        Rows are read, sums written and additions counted.
        """
        rows = samples * self.tables * self.lookups * self.dimension
        return Work(rows, element * (rows + samples * self.tables * self.dimension))

    def update(self, samples: int, element: int) -> Work:
        """Returns the work of the update of the tables: a read and a write per looked-up row."""
        rows = samples * self.tables * self.lookups * self.dimension
        return Work(2 * rows, element * (2 * rows + samples * self.tables * self.dimension))


@dataclass(frozen=True, kw_only=True)
class Model:
    """A model.

    Attributes:
        name: The name, with its argument.
        source: The source of the layers.
        layers: The layers, first to last.
        samples: The unit of a sample: images, sentence pairs, sequences.
        tables: The distributed embedding tables, if any.
        decoder: The shape of a decoder, if the model is one.
        cuts: The numbers of layers after which a pipeline stage may end; empty for all.
        remarks: Sentences on what was assumed when the model was read.
    """

    name: str
    source: str
    layers: tuple[ModelLayer, ...]
    samples: str
    tables: Tables | None = None
    decoder: Decoder | None = None
    cuts: tuple[int, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def parameters(self) -> int:
        """Weights of all layers, without distributed embedding tables."""
        return sum(layer.parameters for layer in self.layers)

    @property
    def macs(self) -> int:
        """Multiply-accumulates of the forward pass for one sample."""
        return sum(layer.macs for layer in self.layers)


def convolution(
    name: str,
    *,
    channels: int,
    filters: int,
    kernel: int,
    size: int,
    stride: int = 1,
    first: bool = False,
) -> ModelLayer:
    """Returns a square convolution with padding: `size` x `size` pixels, divided by the stride."""
    pixels = (-(-size // stride)) ** 2
    gemm = Gemm(m=pixels, n=filters, k=channels * kernel * kernel)
    return ModelLayer(
        name=name,
        gemms=(gemm,),
        parameters=gemm.n * gemm.k,
        inputs=channels * size * size,
        outputs=pixels * filters,
        first=first,
    )


def linear(
    name: str,
    inputs: int,
    outputs: int,
    *,
    tokens: int = 1,
    first: bool = False,
    split: Literal["n", "k"] = "n",
    experts: int = 1,
) -> ModelLayer:
    """Returns a fully connected layer over `tokens` tokens of a sample."""
    return ModelLayer(
        name=name,
        gemms=(Gemm(m=tokens, n=outputs, k=inputs, split=split),),
        parameters=inputs * outputs * experts,
        inputs=tokens * inputs,
        outputs=tokens * outputs,
        first=first,
        experts=experts,
    )


def lstm(
    name: str,
    inputs: int,
    hidden: int,
    *,
    tokens: int,
    both: bool = False,
    first: bool = False,
    unrolled: bool = False,
) -> ModelLayer:
    """Returns LSTM cells over `tokens` time steps: 4 h (inputs + h) weights per direction.

    By default the inputs of all steps are one product and the states a product per step, as in
    cuDNN. `unrolled`: a step is one product of its inputs and its state, as a framework that calls
    a cell per step executes it; each step reads all weights.
    """
    outputs = 4 * hidden * (2 if both else 1)
    states = Gemm(m=tokens, n=outputs, k=hidden, steps=tokens)
    if unrolled:
        gemms: tuple[Gemm, ...] = (replace(states, k=inputs + hidden),)
    else:
        gemms = (Gemm(m=tokens, n=outputs, k=inputs), states)
    return ModelLayer(
        name=name,
        gemms=gemms,
        parameters=outputs * (inputs + hidden),
        inputs=tokens * inputs,
        outputs=tokens * outputs // 4,
        first=first,
    )

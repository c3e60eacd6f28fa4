"""Models as lists of layers: from shapes come parameters, operations and bytes.

A layer is one or more matrix products, each of m x k by k x n for **one sample**: m rows (output
pixels, tokens), n columns (filters, outputs), k terms of a sum. Weights are k x n. An operation is
a multiplication or an addition, so a multiply-accumulate counts two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tutti.errors import WorkloadError

Pass = Literal["forward", "input_gradient", "weight_gradient"]

PASSES: tuple[Pass, ...] = ("forward", "input_gradient", "weight_gradient")


@dataclass(frozen=True)
class Gemm:
    """A matrix product for one sample: m x k by k x n.

    Attributes:
        m: Rows: output pixels or tokens.
        n: Columns: filters or outputs.
        k: Terms of each sum.
        weights: Whether the k x n side are parameters; otherwise both sides are activations.
        steps: Into how many products one after the other it falls, each of which reads the weights
            again: the time steps of a recurrent layer.
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
    """What a kernel asks of an NPU.

    Attributes:
        flops: Operations.
        bytes: Bytes from and to memory.
    """

    flops: int
    bytes: int

    def __add__(self, other: Work) -> Work:
        return Work(self.flops + other.flops, self.bytes + other.bytes)


@dataclass(frozen=True, kw_only=True)
class ModelLayer:
    """A layer.

    Attributes:
        name: Its name.
        gemms: Its matrix products for one sample.
        parameters: Its weights; biases and normalisation are left out where the source leaves them
            out.
        inputs: Elements that enter for one sample.
        outputs: Elements that leave for one sample.
        first: Whether nothing before it needs a gradient.
        experts: How many layers like this one there are, each with weights of its own, one of which
            each token passes.
    """

    name: str
    gemms: tuple[Gemm, ...]
    parameters: int
    inputs: int
    outputs: int
    first: bool = False
    experts: int = 1

    @property
    def by_rows(self) -> bool:
        """Whether tensor parallelism divides its weights by rows; tables of words it does."""
        return not self.gemms or self.gemms[-1].split == "k"

    def __post_init__(self) -> None:
        """Checks the sizes.

        Raises:
            WorkloadError: one of them is negative, or a product has no rows, columns or terms.
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
        """What a pass over `samples` samples asks of an NPU, in elements of `element` bytes.

        Operations are the same in each pass. Memory: each operand is read once and each result
        written once; weights are read again in every step of a recurrent layer, whose weight
        gradient is one product over all steps.
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
    """Embedding tables that are divided among the NPUs.

    Attributes:
        tables: How many.
        dimension: Elements of a row.
        lookups: Rows that are looked up in each table for one sample, and summed.
        bottom: How many layers come before what is looked up is needed.
    """

    tables: int
    dimension: int
    lookups: int
    bottom: int

    def exchanged(self, samples: int, element: int) -> int:
        """Bytes of an NPU's all-to-all: its samples' sums from all tables."""
        return samples * self.tables * self.dimension * element

    def lookup(self, samples: int, element: int) -> Work:
        """What the lookups of an NPU ask of it: as many as its own samples need, for others.

        Rows are read and sums written; additions are counted.
        """
        rows = samples * self.tables * self.lookups * self.dimension
        return Work(rows, element * (rows + samples * self.tables * self.dimension))

    def update(self, samples: int, element: int) -> Work:
        """What the update of the tables asks: each row that was read is read and written again."""
        rows = samples * self.tables * self.lookups * self.dimension
        return Work(2 * rows, element * (2 * rows + samples * self.tables * self.dimension))


@dataclass(frozen=True, kw_only=True)
class Model:
    """A model.

    Attributes:
        name: Its name, with its argument.
        source: Where its layers are from.
        layers: Its layers, first to last.
        samples: What one sample is: an image, a sentence pair, a sequence.
        tables: Its embedding tables, where they are divided among the NPUs.
    """

    name: str
    source: str
    layers: tuple[ModelLayer, ...]
    samples: str
    tables: Tables | None = None

    @property
    def parameters(self) -> int:
        """Weights of all layers, without embedding tables that are divided."""
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
    """A square convolution whose padding keeps `size` x `size` pixels, but for the stride."""
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
    """A fully connected layer over `tokens` tokens of a sample."""
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
    name: str, inputs: int, hidden: int, *, tokens: int, both: bool = False, first: bool = False
) -> ModelLayer:
    """A layer of LSTM cells over `tokens` time steps: 4 h (inputs + h) weights each way.

    The inputs of all steps are one product; the states are a product in each step, which reads
    their weights again (as common libraries carry it out).
    """
    ways = 2 if both else 1
    gemms = (
        Gemm(m=tokens, n=4 * hidden * ways, k=inputs),
        Gemm(m=tokens, n=4 * hidden * ways, k=hidden, steps=tokens),
    )
    return ModelLayer(
        name=name,
        gemms=gemms,
        parameters=4 * hidden * (inputs + hidden) * ways,
        inputs=tokens * inputs,
        outputs=tokens * hidden * ways,
        first=first,
    )

"""Times of NCCL's all_reduce as a ring or as a tree, from runs on fewer nodes.

The closed forms of both algorithms have a few unknown functions of a size, which measurements
determine:

- A ring has 2 (P - 1) steps of a message of S / P bytes, at P ranks: T = c + 2 (P - 1) t(S / P). A
  run on twice the nodes has the message size of half the vector, so small runs cover most messages
  of large ones.
- A double binary tree has 2 log2(nodes) hops between nodes: T = c + 2 log2(nodes) h(S) + b(S). A
  chunk of the vector passes them before the pipeline is full. b(S) is the time of the pipeline and
  of the chain inside a node.

t, h and b are piecewise linear on logarithmic axes. Protocols (LL, LL128, Simple), channels and
chunks are in them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl
from scipy.optimize import least_squares

from tutti.measured.errors import CalibrationError
from tutti.measured.predict.curve import DEVIATIONS_90, knot_weights, pseudo_huber

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

__all__ = ["ALGORITHMS", "NcclFabric", "NcclModel", "cross_validate", "fit", "interpolated"]

ALGORITHMS: Final = ("ring", "tree")
"""The algorithms, as NCCL_ALGO names them in lower case."""

_MESSAGES: Final[Floats] = np.exp2(np.arange(2.0, 30.0, 2.0))
_VECTORS: Final[Floats] = np.exp2(np.arange(6.0, 36.0, 3.0))
_CALL_US: Final = 12.0
"""Prior of the time of a call: launch of the kernel and the first and last copies."""
_STEP_US: Final = 1.0
_HOP_US: Final = 2.0
_CHUNKS: Final = 4.0
_LARGEST_CHUNK: Final = 4e6
"""Prior of a tree's chunk: a quarter of the vector, up to 4 MB over all channels."""
_TREE_EFFICIENCY: Final = 0.5
_SPREAD: Final = 1.0
_CALL_SPREAD: Final = 0.5
_CHANGE: Final = 0.3
"""Standard deviation of the change of a curve relative to its prior, over a factor of 4 in size."""
_NOISE: Final = 0.05
"""Logarithmic errors beyond which a row loses weight."""
_PER_DOUBLING: Final = 0.055
"""Standard deviation of the logarithm of a time per doubling of the nodes beyond the largest
measured: what predictions of 8 nodes from 4 miss."""


@dataclass(frozen=True)
class NcclFabric:
    """What is known of the machine before any measurement.

    Attributes:
        gpus_per_node: GPUs of a node; all take part.
        node_bytes_per_us: bandwidth of a node's network interfaces together in one direction, in
            bytes per us. No prediction moves more.
    """

    gpus_per_node: int
    node_bytes_per_us: float


class _Forms:
    """The closed forms of rows, linear in the curves' values."""

    def __init__(self, rows: pl.DataFrame, fabric: NcclFabric) -> None:
        nodes = rows["nodes"].cast(pl.Float64).to_numpy()
        size = rows["bytes"].cast(pl.Float64).to_numpy()
        ranks = nodes * fabric.gpus_per_node
        self.is_ring = (rows["algorithm"] == "ring").to_numpy()
        self.steps = 2 * (ranks - 1)
        self.hops = 2 * np.log2(np.maximum(nodes, 1.0))
        self.message = knot_weights(size / ranks, _MESSAGES)
        self.vector = knot_weights(size, _VECTORS)
        self.least = np.where(nodes > 1, 2 * (1 - 1 / nodes) * size / fabric.node_bytes_per_us, 0)

    def __call__(self, theta: Floats) -> Floats:
        """Returns the time of each row, in us."""
        call, step, hop, base = _split(theta)
        ring = self.steps * np.exp(self.message @ step)
        tree = self.hops * np.exp(self.vector @ hop) + np.exp(self.vector @ base)
        return np.maximum(math.exp(call) + np.where(self.is_ring, ring, tree), self.least)


def _split(theta: Floats) -> tuple[float, Floats, Floats, Floats]:
    ends = np.cumsum([1, len(_MESSAGES), len(_VECTORS)])
    call, step, hop, base = np.split(theta, ends)
    return float(call[0]), step, hop, base


def _prior(fabric: NcclFabric) -> Floats:
    rate = fabric.node_bytes_per_us
    step = _STEP_US + _MESSAGES / rate
    hop = _HOP_US + np.minimum(_VECTORS / _CHUNKS, _LARGEST_CHUNK) / rate
    base = _HOP_US + _VECTORS / (_TREE_EFFICIENCY * rate)
    return np.concatenate([[math.log(_CALL_US)], np.log(step), np.log(hop), np.log(base)])


@dataclass(frozen=True)
class NcclModel:
    """A fitted model.

    Attributes:
        fabric: what was known of the machine.
        theta: logarithms of the parameters.
        covariance: their covariance after the fit.
        nodes: the largest measured number of nodes.
    """

    fabric: NcclFabric
    theta: Floats
    covariance: Floats
    nodes: int

    def predict(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Returns the rows with `predicted_us` and the 90 % interval `low_us` to `high_us`.

        Args:
            rows: `nodes`, `bytes` of the vector, and `algorithm`, one of :data:`ALGORITHMS`.

        Raises:
            CalibrationError: An algorithm is unknown.
        """
        _check(rows)
        forms = _Forms(rows, self.fabric)
        times = forms(self.theta)
        slopes = _slopes(forms, self.theta)
        fitted = np.einsum("ij,jk,ik->i", slopes, self.covariance, slopes)
        nodes = rows["nodes"].cast(pl.Float64).to_numpy()
        doublings = np.maximum(0.0, np.log2(nodes / self.nodes))
        deviation = np.sqrt(fitted + _NOISE**2 + (_PER_DOUBLING * doublings) ** 2)
        half = np.exp(DEVIATIONS_90 * deviation)
        low = np.maximum(times / half, forms.least)
        columns = {"predicted_us": times, "low_us": low, "high_us": times * half}
        return rows.with_columns(**{name: pl.Series(values) for name, values in columns.items()})


def _slopes(forms: _Forms, theta: Floats) -> Floats:
    """Derivatives of the logarithm of each time by each parameter, by central differences."""
    step = 1e-4
    shifts = step * np.eye(len(theta))
    changes = [np.log(forms(theta + one)) - np.log(forms(theta - one)) for one in shifts]
    return np.transpose(changes) / (2 * step)


def fit(rows: pl.DataFrame, fabric: NcclFabric) -> NcclModel:
    """Fits the curves to measured times.

    Errors are logarithmic and robust (pseudo-Huber). Each curve is drawn to its prior and changes
    smoothly relative to it. The order of the rows does not matter.

    Args:
        rows: `nodes`, `bytes` of the vector, `algorithm` and `median_us`.
        fabric: what is known of the machine.

    Raises:
        CalibrationError: There are no rows, or an algorithm is unknown.
    """
    _check(rows)
    rows = rows.sort("nodes", "algorithm", "bytes", "median_us")
    forms, log_times = _Forms(rows, fabric), np.log(rows["median_us"].to_numpy())
    start = _prior(fabric)
    spread = np.full(len(start), _SPREAD)
    spread[0] = _CALL_SPREAD
    octaves = [math.log2(knots[1] / knots[0]) / 2 for knots in (_MESSAGES, _VECTORS, _VECTORS)]

    def residuals(theta: Floats) -> Floats:
        errors = (np.log(forms(theta)) - log_times) / _NOISE
        robust = pseudo_huber(errors)
        moved = theta - start
        changes = [
            np.diff(part) / (_CHANGE * math.sqrt(octave))
            for part, octave in zip(_split(moved)[1:], octaves, strict=True)
        ]
        return np.concatenate([robust, moved / spread, *changes])

    found = least_squares(residuals, start)
    covariance = np.linalg.inv(found.jac.T @ found.jac)
    return NcclModel(fabric, found.x, covariance, int(rows["nodes"].to_numpy().max()))


def _check(rows: pl.DataFrame) -> None:
    """Refuses rows that the model cannot describe."""
    if rows.is_empty():
        raise CalibrationError("there are no measurements of NCCL", kind="empty")
    unknown = rows.filter(~pl.col("algorithm").is_in(ALGORITHMS))["algorithm"].unique().sort()
    if len(unknown):
        names = ", ".join(map(str, unknown))
        raise CalibrationError(
            f"unknown algorithm of NCCL: {names}; expected ring or tree",
            kind="unknown",
            hint="other algorithms have no closed form here",
        )


def cross_validate(rows: pl.DataFrame, fabric: NcclFabric) -> pl.DataFrame:
    """Predicts each node count but the smallest from the smaller ones.

    Args:
        rows: `nodes`, `bytes`, `algorithm` and `median_us`.
        fabric: what is known of the machine.

    Returns:
        The predicted rows, as of :meth:`NcclModel.predict`.

    Raises:
        CalibrationError: There is only one node count.
    """
    counts = rows["nodes"].unique().sort().to_list()
    if len(counts) < 2:
        raise CalibrationError(
            "the measurements have one node count",
            kind="undetermined",
            hint="cross-validation needs a second one",
        )
    parts = [
        fit(rows.filter(pl.col("nodes") < count), fabric).predict(rows.filter(nodes=count))
        for count in counts[1:]
    ]
    return pl.concat(parts)


def interpolated(rows: pl.DataFrame, column: str) -> pl.DataFrame:
    """Predicts every second size of a run from the other sizes.

    Times are interpolated linearly on logarithmic axes. The first and last size are never
    predicted.

    Args:
        rows: `bytes` and the measured times.
        column: the column of the times, in us.

    Returns:
        `bytes`, `measured_us` and `predicted_us` of the predicted sizes.
    """
    rows = rows.sort("bytes")
    sizes, times = np.log(rows["bytes"].to_numpy()), np.log(rows[column].to_numpy())
    requested = np.arange(1, len(sizes) - 1, 2)
    known = np.setdiff1d(np.arange(len(sizes)), requested)
    found = np.exp(np.interp(sizes[requested], sizes[known], times[known]))
    return rows[requested.tolist()].select(
        "bytes", pl.col(column).alias("measured_us"), pl.Series("predicted_us", found)
    )

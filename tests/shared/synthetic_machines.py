"""Measurements of machines with known parameters: the structural model generates them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from tutti.formats.measurements import MEASUREMENTS
from tutti.measured.predict.curve import Curve
from tutti.measured.predict.features import features

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

ALGORITHMS = {
    "all_reduce": ("recursive_doubling_ompi", "ring_ompi", "rabenseifner_ompi"),
    "all_gather": ("ring_ompi", "bruck_ompi", "neighbor_ompi"),
    "broadcast": ("binomial_ompi", "scatter_allgather_ompi", "basic_linear_ompi"),
}
SIZES = (8, 1024, 32768, 262144, 1 << 20, 8 << 20, 64 << 20)


def cases(
    system: str,
    *,
    nodes: Sequence[int] = (4, 8, 16),
    sizes: Sequence[int] = SIZES,
    collectives: Sequence[str] = ("all_reduce", "all_gather", "broadcast"),
) -> pl.DataFrame:
    """Returns a row per collective, algorithm, node count and size, without times."""
    rows = [
        {
            "system": system,
            "library": "OMPI 4.1.6",
            "job": f"{system}{count}/1",
            "collective": collective,
            "library_algorithm": algorithm,
            "nodes": count,
            "ranks_per_node": 1,
            "ranks": count,
            "size_bytes": size,
            "gpu": False,
        }
        for collective in collectives
        for algorithm in ALGORITHMS[collective]
        for count in nodes
        for size in sizes
    ]
    return pl.DataFrame(rows, schema=MEASUREMENTS)


def runs(
    algorithms: Mapping[str, Sequence[str]],
    *,
    nodes: Sequence[int] = (),
    shapes: Sequence[str] = (),
    ranks_per_node: int = 1,
    sizes: Sequence[int] = (4096, 65536, 1 << 20, 16 << 20),
) -> pl.DataFrame:
    """Returns rows without times of these algorithms, on numbers of nodes or tori."""
    counts = nodes or [math.prod(map(int, one.split("x"))) for one in shapes]
    parts = []
    for count, shape in zip(counts, shapes or (None,) * len(counts), strict=True):
        for collective, names in algorithms.items():
            frame = cases("made", nodes=(count,), sizes=sizes, collectives=(collective,))
            one = frame.filter(pl.col("library_algorithm") == frame["library_algorithm"][0])
            parts += [
                one.with_columns(
                    pl.lit(name).alias("library_algorithm"),
                    pl.lit(shape, pl.String).alias("shape"),
                    pl.lit(ranks_per_node, pl.Int64).alias("ranks_per_node"),
                    (pl.col("nodes") * ranks_per_node).alias("ranks"),
                )
                for name in names
            ]
    return pl.concat(parts)


def timed(frame: pl.DataFrame, theta: Floats, *, noise: float, seed: int) -> pl.DataFrame:
    """Returns the rows with the times of a machine with these parameters.

    Args:
        frame: Rows without times, all of which the model predicts.
        theta: The parameters, of :data:`tutti.measured.predict.curve.NAMES`.
        noise: Standard deviation of the logarithm of times.
        seed: Seed of the noise.
    """
    rows = features(frame)
    assert len(rows) == frame.height
    errors = np.random.default_rng(seed).normal(0.0, noise, frame.height)
    times = pl.Series("time_us", Curve(rows)(theta) * np.exp(errors))
    return frame.with_columns(times, (times * 1.05).alias("high_us"))

"""Selects an algorithm for each collective, rank count and size, with its confidence."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

from tutti.measured.advise.confidence import covariance, near_fastest
from tutti.measured.advise.scope import CANDIDATE, DEFAULT

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from tutti.measured.advise.confidence import Predictor
    from tutti.measured.advise.scope import Scope

PREDICTIONS: Final[dict[str, type[pl.DataType]]] = {
    "system": pl.String,
    "library": pl.String,
    "collective": pl.String,
    "ranks": pl.Int64,
    "nodes": pl.Int64,
    "shape": pl.String,
    "ranks_per_node": pl.Int64,
    "gpu": pl.Boolean,
    "size_bytes": pl.Int64,
    "algorithm": pl.String,
    "predicted_us": pl.Float64,
    "low_us": pl.Float64,
    "high_us": pl.Float64,
    "choice_us": pl.Float64,
    "near_fastest": pl.Float64,
    "place": pl.Int64,
    "default_us": pl.Float64,
}
"""The columns of predictions.

``low_us`` to ``high_us`` is the 90 % interval. ``choice_us`` is the time by which candidates are
compared, the upper quantile of :data:`tutti.measured.predict.model.CAUTION`. ``near_fastest`` is
the probability of being within 5 % of the fastest candidate. ``place`` is 1 for the smallest
``choice_us``. ``default_us`` is the predicted time of the library's default; null if it was not
measured at that size."""

_CELL: Final = ("collective", "ranks", "shape", "size_bytes")


@dataclass(frozen=True)
class DefaultRatio:
    """How long the library's default took, at the largest rank count where it was measured.

    Attributes:
        algorithm: the fastest algorithm measured there.
        ratio: time of the default, divided by that of this algorithm.
        ranks: the number of ranks.
    """

    algorithm: str
    ratio: float
    ranks: int


@dataclass(frozen=True)
class Decision:
    """The choice for a collective, rank count and size.

    Attributes:
        collective: the collective.
        ranks: number of ranks.
        shape: sides of the torus, or None.
        size_bytes: size, as in :data:`tutti.formats.measurements.MEASUREMENTS`.
        algorithm: the choice, as of :func:`joined_choices`.
        predicted_us: its predicted time, in us.
        low_us: lower end of the 90 % interval.
        high_us: upper end.
        confidence: probability that it is within 5 % of the fastest.
        runner_up: the fastest other algorithm; None if there is no other.
        runner_up_us: its predicted time.
        runner_up_spread: ratio of its predicted time to the lower end of its interval.
        default_us: predicted time of the library's default, or None.
        ruled_us: predicted time with the rules for the library: of the algorithm that they select,
            or of the default if it stays; None if unknown.
        observations: number of measurements of the choice.
        is_placed: whether one of them has the ranks per node of the job.
    """

    collective: str
    ranks: int
    shape: str | None
    size_bytes: int
    algorithm: str
    predicted_us: float
    low_us: float
    high_us: float
    confidence: float
    runner_up: str | None = None
    runner_up_us: float | None = None
    runner_up_spread: float = 1.0
    default_us: float | None = None
    ruled_us: float | None = None
    observations: int = 2
    is_placed: bool = True

    @property
    def gain(self) -> float | None:
        """How much longer the default takes than a job with the rules: 0.2 is 20 %.

        None if the default is unknown.
        """
        if self.default_us is None or self.ruled_us is None:
            return None
        return self.default_us / self.ruled_us - 1

    @property
    def stated_confidence(self) -> float | None:
        """The confidence; None without a basis.

        A basis is another candidate, and two observations of the choice, one of them with the ranks
        per node of the job.
        """
        has_basis = self.observations > 1 and self.is_placed and self.runner_up is not None
        return self.confidence if has_basis else None

    @property
    def spread(self) -> float:
        """Ratio of the predicted time to the lower end of its interval."""
        return self.predicted_us / self.low_us


@dataclass(frozen=True)
class SizeRange:
    """Neighbouring sizes with one choice.

    Attributes:
        decisions: the decisions, smallest size first.
    """

    decisions: tuple[Decision, ...]

    @property
    def first(self) -> Decision:
        """The decision of the smallest size."""
        return self.decisions[0]

    @property
    def last(self) -> Decision:
        """The decision of the largest size."""
        return self.decisions[-1]

    @property
    def least_certain(self) -> Decision:
        """The decision with the lowest confidence; one without any counts as the lowest."""
        return min(self.decisions, key=lambda one: (one.stated_confidence or 0.0, one.size_bytes))


def predictions(
    model: Predictor, questions: pl.DataFrame, ratios: dict[tuple[str, int], DefaultRatio]
) -> pl.DataFrame:
    """Predicts the time of each question, and compares those of a cell.

    Args:
        model: the calibrated model.
        questions: as :func:`tutti.measured.advise.questions.questions` returns them.
        ratios: the measured times of the default, by collective and size.

    Returns:
        The columns of :data:`PREDICTIONS`; without algorithms that the model cannot describe at a
        rank count.
    """
    parts = []
    by_job = questions.group_by("collective", "ranks", "shape", maintain_order=True)
    for (collective, *_), frame in by_job:
        found = model.predict(frame)
        if found.is_empty():
            continue
        joint = covariance(model, frame, found)
        rows = frame[found["index"].to_numpy()].select(*_CELL, "library_algorithm", "nodes",
                "system", "library", "ranks_per_node", "gpu")  # fmt: skip
        rows = rows.hstack(found.drop("index"))
        for size in rows["size_bytes"].unique().sort():
            chosen = np.flatnonzero(rows["size_bytes"].to_numpy() == size)
            cell = rows[chosen]
            near = near_fastest(cell["predicted_us"].to_numpy(), joint[np.ix_(chosen, chosen)])
            parts.append(_cell(cell, near, ratios.get((str(collective), int(size)))))
    if not parts:
        return pl.DataFrame(schema=PREDICTIONS)
    return pl.concat(parts)


def _cell(
    cell: pl.DataFrame, near: NDArray[np.float64], ratio: DefaultRatio | None
) -> pl.DataFrame:
    default = None
    if ratio is not None:
        same = cell.filter(pl.col("library_algorithm") == ratio.algorithm)["predicted_us"]
        default = ratio.ratio * float(same[0]) if len(same) else None
    cell = cell.rename({"library_algorithm": "algorithm"}).with_columns(
        pl.Series("near_fastest", near),
        pl.lit(default, pl.Float64).alias("default_us"),
    )
    cell = cell.sort("choice_us", "algorithm").with_columns(
        pl.int_range(1, pl.len() + 1).alias("place")
    )
    return cell.select(list(PREDICTIONS)).cast(pl.Schema(PREDICTIONS))


TIE: Final = 0.02
"""Share by which a choice may be slower than the best, so that ranges are longer."""


def joined_choices(times: Sequence[Mapping[str, float]]) -> list[str]:
    """Returns the choice of each size, with as few changes between neighbours as possible.

    A choice is at most :data:`TIE` slower than the smallest time of its size. Of the
    algorithms that hold this over a range of sizes, the one with the smallest geometric mean of the
    times is chosen.

    Args:
        times: time of each algorithm that decides, a mapping for each size; none is empty.

    Examples:
        >>> joined_choices([{"a": 1.0, "b": 1.01}, {"a": 1.2, "b": 1.0}])
        ['b', 'b']
    """
    chosen: list[str] = []
    start = 0
    while start < len(times):
        tied, end = _tied(times[start]), start + 1
        while end < len(times) and (both := tied & _tied(times[end])):
            tied, end = both, end + 1
        cost = {one: sum(math.log(each[one]) for each in times[start:end]) for one in tied}
        chosen += [min(tied, key=lambda one: (cost[one], one))] * (end - start)
        start = end
    return chosen


def _tied(times: Mapping[str, float]) -> set[str]:
    fastest = min(times.values())
    return {name for name, time in times.items() if time <= (1 + TIE) * fastest}


def decisions(predicted: pl.DataFrame) -> list[Decision]:
    """Returns the choice of each cell, by collective, rank count and size.

    Args:
        predicted: with the columns of :data:`PREDICTIONS`.
    """
    found: list[Decision] = []
    for _, job in predicted.group_by(*_CELL[:-1], maintain_order=True):
        cells = job.sort("size_bytes", "place").partition_by("size_bytes", maintain_order=True)
        times = [dict(cell.select("algorithm", "choice_us").iter_rows()) for cell in cells]
        for cell, name in zip(cells, joined_choices(times), strict=True):
            found.append(_decision(cell.to_dicts(), name))
    return found


def _decision(rows: Sequence[Mapping[str, Any]], name: str) -> Decision:
    first = next(row for row in rows if row["algorithm"] == name)
    second = next((row for row in rows if row["algorithm"] != name), None)
    return Decision(
        **{key: first[key] for key in _CELL},
        algorithm=name,
        predicted_us=first["predicted_us"],
        low_us=first["low_us"],
        high_us=first["high_us"],
        confidence=first["near_fastest"],
        runner_up=second["algorithm"] if second else None,
        runner_up_us=second["predicted_us"] if second else None,
        runner_up_spread=second["predicted_us"] / second["low_us"] if second else 1.0,
        default_us=first["default_us"],
    )


def ranges(found: Iterable[Decision]) -> list[SizeRange]:
    """Joins neighbouring sizes with the same choice."""

    def key(one: Decision) -> tuple[str, int, str, str]:
        return one.collective, one.ranks, one.shape or "", one.algorithm

    return [SizeRange(tuple(some)) for _, some in groupby(found, key)]


def default_ratios(scope: Scope) -> dict[tuple[str, int], DefaultRatio]:
    """Returns how the library's default compared with the fastest algorithm measured.

    Args:
        scope: the machine.

    Returns:
        By collective and size in bytes: the ratio at the largest rank count at which the default
        and an algorithm were measured. Repeated measurements count with their median.
    """
    rows = scope.rows.filter(
        pl.col("ranks_per_node") == scope.ranks_per_node,
        ~pl.col("library_algorithm").str.contains("non.blocking").fill_null(value=False),
    )
    keys = ["collective", "size_bytes", "ranks"]
    time = pl.col("time_us").median()
    defaults = rows.filter(pl.col("role") == DEFAULT).group_by(keys).agg(time.alias("default_us"))
    measured = (
        rows.filter(pl.col("role") == CANDIDATE)
        .group_by(*keys, "library_algorithm")
        .agg(time)
        .sort("time_us", "library_algorithm")
        .group_by(keys, maintain_order=True)
        .first()
    )
    both = defaults.join(measured, on=keys).sort(keys)
    return {
        (one["collective"], one["size_bytes"]): DefaultRatio(
            one["library_algorithm"], one["default_us"] / one["time_us"], one["ranks"]
        )
        for one in both.iter_rows(named=True)
    }

"""Predicts dispatch and combine of experts on more ranks, from measurements on a few.

The kernels send a copy per selected expert directly (`low_latency` in
:mod:`tutti.workloads.experts`). Copies for other nodes pass the NIC, the others NVLink, at the same
time. The busiest rank determines the time::

    time = base + max(remote copies / NIC rate, local copies / NVLink rate) x bytes of a copy

Three parameters (base time, share of the NIC rate, NVLink rate) have priors from the hardware and
are fitted to the logarithms of the measured times. docs/models/moe.md has sources and figures.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl
from columns import read_columns
from scipy.optimize import least_squares

from tutti.base.files.mistakes import mistake
from tutti.measured.predict.curve import DEVIATIONS_90
from tutti.workloads.experts import STAGES, ExpertLayer, expected_largest

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray
    from polars._typing import PolarsDataType

    from tutti.workloads.experts import Stage

__all__ = ["ExpertModel", "ExpertSetup", "Measured", "cross_validated", "fit", "predict"]

_NOISE = 0.05
"""Assumed standard deviation of the logarithm of a measured time around the model."""
_GROWTH = 0.05
"""Assumed standard deviation per doubling of the ranks beyond those measured: congestion between
switches and the cost of more peers, of which a few nodes show nothing."""


@dataclass(frozen=True, kw_only=True)
class ExpertSetup:
    """The machine and the layer of a measurement.

    The defaults are those of DeepEP's low-latency measurements: DeepSeek-V3's layer on H800 with
    one NIC of 400 Gb/s per GPU.

    Attributes:
        layer: The layer.
        per_node: Ranks per node.
        nic: The rate of a rank's NIC in bytes per us.
        nvlink: The expected rate of NVLink in bytes per us, the median of its prior: 160 GB/s of
            the 200 GB/s per direction of H800.
        nic_share: The expected share of the NIC's rate that carries payload.
        base_us: The expected time without bytes: two launches and a round trip.
    """

    layer: ExpertLayer = field(
        default_factory=lambda: ExpertLayer(hidden=7168, experts=256, top_k=8, tokens=128)
    )
    per_node: int = 8
    nic: float = 50e3
    nvlink: float = 160e3
    nic_share: float = 0.92
    base_us: float = 20.0

    @property
    def widths(self) -> NDArray[np.float64]:
        """Standard deviations of the logarithms of the parameters' priors."""
        return np.array([math.log(2), 0.05, 0.15])

    @property
    def medians(self) -> NDArray[np.float64]:
        """Logarithms of the medians of the priors: base time, NIC share, NVLink rate."""
        return np.log([self.base_us, self.nic_share, self.nvlink])

    def loads(self, mode: Stage, ranks: int) -> tuple[float, float]:
        """Returns the bytes of the busiest NIC and of the busiest rank's NVLink."""
        near = min(self.per_node, ranks)
        size = self.layer.token_bytes(mode)
        remote = expected_largest(self.layer, ranks=ranks, sources=ranks - near)
        local = expected_largest(self.layer, ranks=ranks, sources=near - 1)
        return size * remote if ranks > near else 0.0, size * local if near > 1 else 0.0

    def time_us(self, logs: NDArray[np.float64], mode: Stage, ranks: int) -> float:
        """Returns the time of a mode for the logarithms of base, NIC share and NVLink rate."""
        base, share, nvlink = np.exp(logs)
        remote, local = self.loads(mode, ranks)
        return float(base + max(remote / (share * self.nic), local / nvlink))


class Measured(NamedTuple):
    """A measured time."""

    mode: Stage
    ranks: int
    us: float


@dataclass(frozen=True, kw_only=True)
class ExpertModel:
    """A fitted model.

    Attributes:
        setup: Machine and layer.
        logs: The logarithms of base time in us, NIC share and NVLink rate in bytes per us.
        covariance: Their covariance.
        largest: The largest measured number of ranks.
    """

    setup: ExpertSetup
    logs: NDArray[np.float64]
    covariance: NDArray[np.float64]
    largest: int

    def predicted(self, mode: Stage, ranks: int) -> tuple[float, float, float]:
        """Returns the time in us with its 90 % interval."""
        time = self.setup.time_us(self.logs, mode, ranks)
        slope = _slope(self.setup, self.logs, mode, ranks)
        doublings = max(0.0, math.log2(ranks / self.largest))
        spread = slope @ self.covariance @ slope + _NOISE**2 + (_GROWTH * doublings) ** 2
        factor = math.exp(DEVIATIONS_90 * math.sqrt(spread))
        return time, time / factor, time * factor

    @property
    def parameters(self) -> dict[str, float]:
        """Base time in us, NIC rate and NVLink rate in GB/s."""
        base, share, nvlink = np.exp(self.logs)
        nic = float(share) * self.setup.nic / 1e3
        return {"base_us": float(base), "nic_GBps": nic, "nvlink_GBps": float(nvlink) / 1e3}


def fit(rows: Sequence[Measured], setup: ExpertSetup | None = None) -> ExpertModel:
    """Fits the model to measured times: the maximum of the posterior, with its curvature."""
    setup = setup or ExpertSetup()
    medians, widths = setup.medians, setup.widths

    def residuals(logs: NDArray[np.float64]) -> NDArray[np.float64]:
        errors = [math.log(setup.time_us(logs, one.mode, one.ranks) / one.us) for one in rows]
        return np.concatenate([np.array(errors) / _NOISE, (logs - medians) / widths])

    found = least_squares(residuals, medians, xtol=1e-12, ftol=1e-12, gtol=1e-12)
    covariance = np.linalg.inv(found.jac.T @ found.jac)
    largest = max(one.ranks for one in rows)
    return ExpertModel(setup=setup, logs=found.x, covariance=covariance, largest=largest)


def _slope(
    setup: ExpertSetup, logs: NDArray[np.float64], mode: Stage, ranks: int, step: float = 1e-5
) -> NDArray[np.float64]:
    """Returns the derivatives of the logarithm of a time by the parameters."""
    sides = [
        [math.log(setup.time_us(logs + sign * step * axis, mode, ranks)) for sign in (1, -1)]
        for axis in np.eye(len(logs))
    ]
    return np.array([(up - down) / (2 * step) for up, down in sides])


def predict(train: Path, questions: Path) -> pl.DataFrame:
    """Predicts the times of questions from measured times.

    Args:
        train: CSV file with the columns `mode` (dispatch or combine), `experts_ranks` and
            `latency_us`.
        questions: CSV file with the columns `question` (an integer), `mode` and `experts_ranks`.

    Returns:
        Columns `question`, `predicted_us`, `low_us` and `high_us`, a 90 % interval.

    Raises:
        ConfigError: A file cannot be read, lacks a column or has an invalid value; the message has
            file and line.
    """
    model = fit(_measured(train))
    requested = _read(questions, {"question": pl.Int64}).rows()
    rows = [(question, *model.predicted(mode, ranks)) for mode, ranks, question in requested]
    times = dict.fromkeys(("predicted_us", "low_us", "high_us"), pl.Float64)
    return pl.DataFrame(rows, schema={"question": pl.Int64, **times}, orient="row")


def cross_validated(train: Path) -> pl.DataFrame:
    """Predicts the times of each number of ranks from the others.

    Args:
        train: As for :func:`predict`, with two or more numbers of ranks.

    Returns:
        Columns `mode`, `experts_ranks`, `measured_us`, `predicted_us`, `low_us`, `high_us`.

    Raises:
        ConfigError: As for :func:`predict`.
    """
    rows = _measured(train)
    counts = sorted({one.ranks for one in rows})
    if len(counts) < 2:
        raise mistake("has one number of ranks", source=str(train), expected="two or more")
    models = {count: fit([one for one in rows if one.ranks != count]) for count in counts}
    names = ("mode", "experts_ranks", "measured_us", "predicted_us", "low_us", "high_us")
    found = [(*one, *models[one.ranks].predicted(one.mode, one.ranks)) for one in rows]
    return pl.DataFrame(found, schema=names, orient="row")


def _read(path: Path, more: dict[str, PolarsDataType]) -> pl.DataFrame:
    """Returns the columns `mode` and `experts_ranks` of a file, and more columns."""
    columns = {"mode": pl.Enum(STAGES), "experts_ranks": _rank_counts(ExpertSetup())}
    return read_columns(path, columns | more).with_columns(
        pl.col("experts_ranks").cast(pl.String).cast(pl.Int64)
    )


def _rank_counts(setup: ExpertSetup) -> pl.Enum:
    """Returns the numbers of ranks with equal numbers of experts, on full nodes."""
    experts, near = setup.layer.experts, setup.per_node
    counts = (count for count in range(1, experts + 1) if experts % count == 0)
    return pl.Enum([str(count) for count in counts if count % min(count, near) == 0])


def _measured(path: Path) -> list[Measured]:
    rows = _read(path, {"latency_us": pl.Float64})
    return [Measured(*row) for row in rows.rows()]

"""Measures multicasts over MPI, and fits the pipelining postal model to them.

Section 5.1 of Ruefenacht et al. 2017: a rank sends a message of 8 bytes to each of b peers, with
blocking and non-blocking sends. The model predicts alpha_p + b alpha_r until the last one has been
received, so a line through the times has alpha_p as its offset and alpha_r as its slope.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

from tutti.mpi.bench import ORIGIN, origin_now
from tutti.mpi.bench_job import Job, Settings
from tutti.mpi.errors import BenchError
from tutti.mpi.plan import CollectivePlan, Rule
from tutti.schedules.ir import schedule

if TYPE_CHECKING:
    from collections.abc import Callable

    from tutti.mpi.underneath import Mpi

MULTICASTS: Final[dict[str, type[pl.DataType]]] = {
    "peers": pl.Int64,
    "blocking": pl.Boolean,
    "sample": pl.Int64,
    "issued_ps": pl.Int64,
    "received_ps": pl.Int64,
    "late_ps": pl.Int64,
    **ORIGIN,
}
"""The columns of measured multicasts, one row each: times from the first send until the sender had
issued all (``issued_ps``) and until the last peer received its message (``received_ps``).
``crowded`` and ``clock_error_ps`` are as for measured blocks."""

FITTED_PEERS: Final = 8
"""The number of peers of Table 1."""
_MOST_PEERS: Final = 64
_PS_PER_NS: Final = 1000
_RESAMPLED: Final = 1000
_SEED: Final = 20170


def measure_multicasts(
    mpi: Mpi,
    peers: int,
    settings: Settings,
    *,
    done: Callable[[int, int], object] | None = None,
) -> pl.DataFrame:
    """Measures multicasts to 1, ..., `peers` peers, with blocking and non-blocking sends.

    With emulated distance, non-blocking sends are a schedule: a broadcast to all peers in one step.
    A blocking send holds its sender until the message has arrived.

    Args:
        mpi: The MPI library.
        peers: Maximum number of peers.
        settings: How to measure; its blocks are the samples of each.
        done: Called with (measured, expected) multicasts.

    Returns:
        A row for each multicast, with the columns of :data:`MULTICASTS`.

    Raises:
        BenchError: Invalid number of peers, or the run failed.
        LaunchError: The ranks could not be started.
    """
    if not 1 <= peers <= _MOST_PEERS:
        message = f"multicasts to {peers} peers: expected 1 to {_MOST_PEERS}"
        raise BenchError(message, kind="request")
    origin: dict[str, Any] = dict(origin_now())
    job = Job(peers + 1, settings, _plan(peers) if settings.distance else None, peers=peers)
    info, samples = job.run(mpi, done=done)
    origin |= info.columns() | {
        "model": str(settings.distance) if settings.distance else None,
        "emulated": settings.distance is not None,
    }
    rows = [_row(one) | origin for one in samples if one["kind"] == "multicast"]
    return pl.DataFrame(rows, schema=MULTICASTS, orient="row")


def _plan(peers: int) -> CollectivePlan:
    """Broadcasts to 1, 2, ... peers, each in one step."""
    laid_out = [
        schedule("direct", collective="broadcast", ranks=count + 1) for count in range(1, peers + 1)
    ]
    rules = [Rule("broadcast", one.ranks, one) for one in laid_out]
    return CollectivePlan(rules, {"made by": "tutti mpi bench multicast"})


def _row(sample: dict[str, Any]) -> dict[str, Any]:
    return {
        "peers": sample["peers"],
        "blocking": bool(sample["blocking"]),
        "sample": sample["sample"],
        "issued_ps": sample["issued_ns"] * _PS_PER_NS,
        "received_ps": sample["received_ns"] * _PS_PER_NS,
        "late_ps": sample["late_ns"] * _PS_PER_NS,
    }


def fit(multicasts: pl.DataFrame, *, peers: int = FITTED_PEERS) -> pl.DataFrame:
    """Fits alpha_p and alpha_r by linear regression on minimum and median times over the peers.

    Intervals have 95 % confidence, by resampling the measured times of each number of peers with a
    fixed seed. They state how well the samples determine the line. ``residual_ps``, the root mean
    square residual, states how well a line describes them.

    Args:
        multicasts: Measured, with the columns of :data:`MULTICASTS`.
        peers: Multicasts to more peers are ignored.

    Returns:
        A row for each kind of send and statistic. Columns: blocking, statistic, alpha_p_ps,
        alpha_p_low_ps, alpha_p_high_ps, alpha_r_ps, alpha_r_low_ps, alpha_r_high_ps, residual_ps.

    Raises:
        BenchError: Fewer than two numbers of peers were measured.
    """
    used = multicasts.filter(pl.col("peers") <= peers)
    rows = []
    for (is_blocking,), part in used.group_by(["blocking"], maintain_order=True):
        times = {
            int(count): of_count["received_ps"].to_numpy().astype(float)
            for (count,), of_count in part.sort("peers").group_by(["peers"], maintain_order=True)
        }
        if len(times) < 2:
            message = "multicasts to one number of peers: expected at least two, to fit a line"
            raise BenchError(message, kind="request")
        for statistic, reduced in (("minimum", np.min), ("median", np.median)):
            fitted = _fitted(times, reduced)
            rows.append({"blocking": is_blocking, "statistic": statistic, **fitted})
    return pl.DataFrame(rows).sort("blocking", maintain_order=True)


def _fitted(times: dict[int, Any], reduced: Callable[..., Any]) -> dict[str, float]:
    counts = np.array(list(times), dtype=float)
    values = np.array([reduced(one) for one in times.values()])
    slope, offset = np.polyfit(counts, values, 1)
    random = np.random.default_rng(_SEED)
    resampled = np.array(
        [reduced(random.choice(one, (_RESAMPLED, len(one))), axis=1) for one in times.values()]
    )
    slopes, offsets = np.polyfit(counts, resampled, 1)
    residual = values - (offset + slope * counts)
    low, high = np.percentile(offsets, [2.5, 97.5]), np.percentile(slopes, [2.5, 97.5])
    return {
        "alpha_p_ps": float(offset),
        "alpha_p_low_ps": float(low[0]),
        "alpha_p_high_ps": float(low[1]),
        "alpha_r_ps": float(slope),
        "alpha_r_low_ps": float(high[0]),
        "alpha_r_high_ps": float(high[1]),
        "residual_ps": float(np.sqrt(np.mean(residual**2))),
    }

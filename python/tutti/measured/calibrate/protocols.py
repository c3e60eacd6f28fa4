"""Fits the protocols of an MPI library: the eager limit, and a line through each range of sizes.

Half round trips determine the sum of alpha_p and alpha_r alone, so the caller chooses alpha_r.

Examples:
    >>> from tutti.measured.calibrate import Observation
    >>> def time_us(size):
    ...     return 1.5 + 0.001 * size if size <= 8192 else 6 + 0.0005 * size
    >>> sizes = [1 << power for power in range(20)]
    >>> found = fit_protocols([Observation("one_way", time_us(size), size) for size in sizes])
    >>> found.eager_limit, round(found.rendezvous.theta["alpha"], 3)
    (8192, 6.0)
    >>> found.model(alpha_r="0.3 us").alpha_p
    Time('1.2 us')
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tutti.base.units import Size, Time, TimePerByte
from tutti.measured.calibrate.fit import fit
from tutti.measured.calibrate.models import MODELS
from tutti.measured.errors import CalibrationError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.measured.calibrate.fit import Fit
    from tutti.measured.calibrate.points import Observation
    from tutti.platforms.machine import Protocols

_FEWEST_SIZES = 3
"""Sizes that show whether a line fits."""


@dataclass(frozen=True)
class ProtocolsFit:
    """The protocols model fitted to half round trips.

    Attributes:
        eager_limit: the largest measured size of an eager message, in bytes.
        next_size: the next measured size, in bytes; the limit of the library is below it.
        eager: the postal model fitted to messages of up to `eager_limit` bytes.
        rendezvous: the postal model fitted to larger messages.
    """

    eager_limit: int
    next_size: int
    eager: Fit
    rendezvous: Fit

    @property
    def error(self) -> float:
        """Sum of the absolute logarithms of predicted over measured times."""
        parts = (self.eager, self.rendezvous)
        return float(sum(np.abs(np.log1p(part.residuals)).sum() for part in parts))

    def model(
        self, *, alpha_r: str | Time, alpha_r_rendezvous: str | Time | None = None
    ) -> Protocols:
        """Returns the model with these overheads; the rest of each latency overlaps.

        Args:
            alpha_r: the part of an eager message's latency that does not overlap.
            alpha_r_rendezvous: that of a larger message; by default `alpha_r`.

        Raises:
            CalibrationError: An overhead exceeds the latency.
            ConfigError: The parameters are out of range.
        """
        from tutti.platforms.machine import Protocols

        later = alpha_r if alpha_r_rendezvous is None else alpha_r_rendezvous
        alpha_p, overhead, beta = _split(self.eager, alpha_r)
        later_p, later_r, later_beta = _split(self.rendezvous, later)
        return Protocols(
            eager_limit=Size(bytes=self.eager_limit),
            alpha_p=alpha_p,
            alpha_r=overhead,
            beta=beta,
            alpha_p_rendezvous=later_p,
            alpha_r_rendezvous=later_r,
            beta_rendezvous=later_beta,
        )


def fit_protocols(points: Sequence[Observation], *, statistic: str = "mean") -> ProtocolsFit:
    """Fits both protocols to the half round trips among the points, for each possible limit.

    The limits are the measured sizes with three sizes below or at it, and three above it. A limit
    at which the larger message takes less time is left out. The best has the smallest `error`.

    Raises:
        CalibrationError: There are no half round trips, or none of the limits is possible.
    """
    mine = [point for point in points if point.kind == "one_way"]
    if not mine:
        message = "protocols are fitted to half round trips: expected points of kind one_way"
        raise CalibrationError(message, kind="no_points", fields={"model": "protocols"})
    sizes = sorted({point.size for point in mine})
    limits = range(_FEWEST_SIZES - 1, len(sizes) - _FEWEST_SIZES)
    fits = [_at(mine, sizes[at], sizes[at + 1], statistic) for at in limits]
    found = [one for one in fits if one is not None]
    if not found:
        message = (
            f"{len(sizes)} sizes from {sizes[0]} to {sizes[-1]} B do not determine the eager limit"
        )
        raise CalibrationError(message, kind="undetermined", fields={"parameter": "eager_limit"})
    return min(found, key=lambda one: one.error)


def _at(
    points: Sequence[Observation], limit: int, next_size: int, statistic: str
) -> ProtocolsFit | None:
    """Fits both sides of a limit; None if sizes are too close, or the larger message is faster."""
    postal = MODELS["postal"]
    eager = fit(postal, [p for p in points if p.size <= limit], statistic=statistic)
    rendezvous = fit(postal, [p for p in points if p.size > limit], statistic=statistic)
    if eager.absent or rendezvous.absent:
        return None
    before = eager.theta["alpha"] + limit * eager.theta["beta"]
    after = rendezvous.theta["alpha"] + (limit + 1) * rendezvous.theta["beta"]
    return ProtocolsFit(limit, next_size, eager, rendezvous) if after >= before else None


def _split(fitted: Fit, alpha_r: str | Time) -> tuple[Time, Time, TimePerByte]:
    """Returns alpha_p, alpha_r and beta of a protocol."""
    alpha = Time(ps=round(fitted.theta["alpha"] * 1e6))
    overhead = Time.parse(alpha_r) if isinstance(alpha_r, str) else alpha_r
    if overhead.ps > alpha.ps:
        message = f"alpha_r is {overhead}, but the fitted latency is {alpha}: expected at most that"
        raise CalibrationError(message, kind="out_of_range")
    beta = TimePerByte.parse(f"{fitted.theta['beta'] * 1e3:.9f} ns/B")
    return Time(ps=alpha.ps - overhead.ps), overhead, beta

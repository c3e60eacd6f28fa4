"""The structural model: the time of an algorithm from the time of a message and of a reduction.

The time of a run is the sum over its stages. A stage with messages of n bytes takes t(n), and each
further message of the same rank in the stage adds rho(n) t(n). A stage of m messages takes at least
m times the gap that a rank needs between messages, however few were measured. If they start or end
at a root, one network interface of the root also carries their bytes sequentially. Messages
that share a link add their bytes at the rate of the link, each hop of a torus beyond the first its
latency. A reduced or copied byte takes gamma(S) in a vector of S bytes. The ranks of a node share
its memory.

The functions t, rho and gamma are piecewise linear on logarithmic axes, so that the protocols of a
library (eager, rendezvous, segments) and caches need no thresholds. Latency grows by the factor
e^growth per doubling of the nodes, up to 128 nodes, by another beyond 90 nodes, where libraries
change their transport, and by another for messages between groups of the network. The time of long
messages grows by e^congestion per doubling, and by another factor beyond 128 nodes. Links between
groups are shared like those of a torus.

Parameters are logarithms, except growths. Each has a prior: from the machine's platform, from a
measured machine with the same library, or from common hardware.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import least_squares

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tutti.measured.predict.features import Features

    Floats = NDArray[np.float64]

DEVIATIONS_90 = 1.645
"""Standard deviations from the median of a normal distribution to an end of its 90 % interval."""

_SIZES = np.array([4, 256, 2048, 16384, 65536, 1 << 19, 4 << 20, 32 << 20, 256 << 20], dtype=float)
_ISSUES = np.array([256, 16384, 1 << 20], dtype=float)
_VECTORS = np.array([1 << 16, 1 << 20, 16 << 20, 256 << 20], dtype=float)
_SMALL = 32768.0
"""Bytes above which a message is no longer dominated by its latency."""
_REFERENCE = 4.0
"""Binary logarithm of the nodes at which latency is the parameter."""
_SPANNED = 7.0
"""Binary logarithm of the nodes that span a network's diameter: latency no longer grows beyond."""
_SWITCHED, _ABRUPTNESS = 6.5, 6.0
"""Binary logarithm of the nodes beyond which a library changes its transport, and the slope there.
UCX replaces reliable connections by dynamic ones with many endpoints (UCX_RC_MAX_NUM_EPS). A step
of a ring on Leonardo takes 1.6 us on 4 to 64 nodes, and 3.9 us on 128 and 200."""

_TIME = slice(0, len(_SIZES))
_RHO = slice(_TIME.stop, _TIME.stop + len(_ISSUES))
_GAMMA = slice(_RHO.stop, _RHO.stop + len(_VECTORS))
_SHARED = _GAMMA.stop
_PORT, _CALL, _GROWTH, _SWITCH, _HOP = range(_SHARED + 1, _SHARED + 6)
_CONGESTION, _CROWDED, _GAP, _DISTANCE, _MEMORY, _PAIR, _ROOT = range(_HOP + 1, _HOP + 8)
_GROWTHS = slice(_GROWTH, _CROWDED + 1)
_PLAIN = frozenset(range(_GROWTHS.start, _GROWTHS.stop))
"""Parameters that are not logarithms."""
_SHARPNESS = 4.0
"""Exponent of the norm that joins the time of messages and the gaps between them: within 19 % of
the longer one."""

_RHO_PRIOR = (0.35, 0.6, 0.9)
_GAMMA_PRIOR = (0.08e-3, 0.1e-3, 0.2e-3, 0.35e-3)
"""Reduction in us per byte: a core reads two operands and writes one at 12 to 30 GB/s."""
_GROWTH_PRIOR = 0.08
_HOP_PRIOR = 0.25
"""Two further switches and a long cable add 0.4 to 0.6 us to about 2 us."""
_CONGESTION_PRIOR, _CROWDED_PRIOR = 0.04, 0.07
"""Per doubling of the nodes. All_reduce on 1,024 GPUs of Leonardo, 256 nodes, loses up to half of
its goodput to the traffic of other jobs (De Sensi, SC '24): a factor of 1.07 to 1.3 on 256 to 2,048
nodes is assumed."""
_SHARED_EFFICIENCY = 0.8
_COPY_BYTES, _MEMORY_EFFICIENCY = 3.0, 0.7
"""Bytes that memory moves per copied byte (read, read for ownership, write); share of the peak
bandwidth that a copy reaches."""
_EFFICIENCY = 0.5
"""Share of the bandwidth that a rank reaches in an exchange, as protocols and memory take time."""


def _bytes(size: float) -> str:
    for unit, scale in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= scale:
            return f"{size / scale:g} {unit}"
    return f"{size:g} B"


NAMES: tuple[str, ...] = (
    *(f"time of a message of {_bytes(size)}" for size in _SIZES),
    *(f"further message of {_bytes(size)}, relative" for size in _ISSUES),
    *(f"reduction per byte, {_bytes(size)}" for size in _VECTORS),
    "further message on a link, per byte",
    "further network interface",
    "call",
    "growth of latency per doubling",
    "growth of latency beyond 90 nodes",
    "growth of latency between groups",
    "growth of long messages per doubling",
    "growth of long messages beyond 128 nodes",
    "gap between messages of a rank",
    "hop",
    "memory shared by ranks, per byte",
    "links shared between groups, per byte",
    "port of a root, per byte",
)
"""The parameters in order. Times are in us, reductions in us per byte."""

SPREAD: Floats = np.array(
    [0.7] * len(_SIZES)
    + [0.7, 0.5, 0.3]
    + [0.7] * len(_VECTORS)
    + [0.3, 1.0, 1.0, 0.1, 0.3, 0.3, 0.04, 0.05, 0.3, 0.4, 0.4, 0.5, 0.2]
)
"""Standard deviation of each prior."""


def prior(
    latency_us: float,
    bytes_per_us: float,
    shared_bytes_per_us: float,
    *,
    gap_us: float = 0.3,
    hop_us: float = 0.1,
    memory_bytes_per_us: float = 2e5,
    taper: float = 1.0,
) -> Floats:
    """Returns the prior mean for a network of this latency and bandwidth.

    Args:
        latency_us: time of a small message between two nodes, in us.
        bytes_per_us: bandwidth of one interface in one direction, in bytes per us.
        shared_bytes_per_us: bandwidth of the link, or of the node's interfaces, that ranks share.
        gap_us: least time between small messages of a rank, in us.
        hop_us: latency of a further hop of a torus, in us.
        memory_bytes_per_us: peak bandwidth of a node's memory, in bytes per us.
        taper: how much the links between groups of the network limit their messages; 0.01 for a fat
            tree, whose links are not assigned to pairs of groups.
    """
    times = np.log(latency_us + _SIZES / (_EFFICIENCY * bytes_per_us))
    others = [np.log(_RHO_PRIOR), np.log(_GAMMA_PRIOR)]
    shared = -math.log(_SHARED_EFFICIENCY * shared_bytes_per_us)
    growths = [_GROWTH_PRIOR, 0.0, _HOP_PRIOR, _CONGESTION_PRIOR, _CROWDED_PRIOR]
    memory = math.log(_COPY_BYTES / (_MEMORY_EFFICIENCY * memory_bytes_per_us))
    pair, port = math.log(taper / bytes_per_us), -math.log(bytes_per_us)
    floors = [math.log(gap_us), math.log(hop_us), memory, pair, port]
    others.append(np.array([shared, math.log(2.0), 0.0, *growths, *floors]))
    return np.concatenate([times, *others])


def with_gamma(means: Floats, cached: float, beyond: float, cache_bytes: float) -> Floats:
    """Returns prior means with known times of a reduced byte.

    Args:
        means: the prior means, which stay unchanged.
        cached: time per byte of a vector of at most `cache_bytes`, in us.
        beyond: that of longer ones.
        cache_bytes: the largest vector in the cache.
    """
    found = means.copy()
    found[_GAMMA] = np.log(np.where(cache_bytes >= _VECTORS, cached, beyond))
    return found


def knot_weights(values: Floats, knots: Floats) -> Floats:
    """Returns weights of knots for linear interpolation on a logarithmic axis.

    The interpolation is flat below the first knot, and extended above the last.

    Args:
        values: positive values.
        knots: positive knots, ascending.

    Returns:
        A row per value and a column per knot.
    """
    at, values = np.log(knots), np.log(np.maximum(values, knots[0]))
    left = np.clip(np.searchsorted(at, values) - 1, 0, len(knots) - 2)
    right = (values - at[left]) / (at[left + 1] - at[left])
    weights = np.zeros((len(values), len(knots)))
    rows = np.arange(len(values))
    weights[rows, left] = 1 - right
    weights[rows, left + 1] = right
    return weights


def pseudo_huber(errors: Floats) -> Floats:
    """Returns residuals whose squares are the pseudo-Huber loss of scaled errors."""
    return np.asarray(np.sign(errors) * np.sqrt(2 * (np.sqrt(1 + errors**2) - 1)))


class Curve:
    """Predicts the times of rows from the parameters.

    Args:
        rows: what to predict.
    """

    def __init__(self, rows: Features) -> None:
        self._rows = rows
        self._time = knot_weights(rows.size, _SIZES)
        self._rho = knot_weights(np.minimum(rows.size, _ISSUES[-1]), _ISSUES)
        self._gamma = knot_weights(np.exp(rows.log_size), _VECTORS)
        small = 1 / (1 + rows.size / _SMALL)
        nodes = rows.log_nodes[rows.row]
        spanned = np.minimum(nodes, _SPANNED) - _REFERENCE
        beyond = np.maximum(nodes - _SPANNED, 0.0)
        switched = 1 / (1 + np.exp(-_ABRUPTNESS * (nodes - _SWITCHED)))
        short = (spanned, switched, rows.crossing)
        long = (np.maximum(0.0, spanned), beyond)
        # In the order of the parameters.
        exponents = [*(small * one for one in short), *((1 - small) * one for one in long)]
        self._slower = np.stack(exponents, axis=1)
        sent = rows.count * rows.messages * rows.size
        self._further, self._pair = sent * (rows.load - 1), sent * rows.pair

    def __call__(self, theta: Floats) -> Floats:
        """Returns the time of each row, in us."""
        return np.asarray(sum(self.terms(theta).values()))

    def terms(self, theta: Floats) -> dict[str, Floats]:
        """Returns the parts of the time of each row, in us.

        Returns:
            `messages`, `gaps` and `port` (what the gaps between messages and the port of a root
            add), `links` and `groups` (what sharing links and interfaces, or links between groups
            adds), `memory` (what sharing memory adds), `local` (reductions and copies) and `call`.
        """
        rows = self._rows
        ordinary, joined = self._stages(theta)[:2]
        added = rows.count * (joined - ordinary)
        gaps, port = self._floors(theta)
        memory = rows.memory * math.exp(theta[_MEMORY])
        return {
            "messages": self._by_row(rows.count * ordinary),
            "gaps": self._by_row(added * gaps / (gaps + port)),
            "port": self._by_row(added * port / (gaps + port)),
            "links": self._by_row(self._further * math.exp(theta[_SHARED])),
            "groups": self._by_row(self._pair * math.exp(theta[_PAIR])),
            "memory": memory,
            "local": rows.folded * np.exp(np.clip(self._gamma @ theta[_GAMMA], -30, 5)),
            "call": rows.ports * math.exp(theta[_PORT]) + math.exp(theta[_CALL]),
        }

    def latency_share(self, theta: Floats) -> Floats:
        """Returns the share of latency in the time of each row, from 0 to 1."""
        total = self(theta)
        least = np.minimum(np.exp(theta[0]), np.exp(self._time @ theta[_TIME]))
        latency = self._by_row(self._rows.count * least)
        return np.clip(latency / np.maximum(total, latency), 0.0, 1.0)

    def jacobian(self, theta: Floats) -> tuple[Floats, Floats]:
        """Returns the logarithm of the time of each row, and its derivatives by parameter."""
        rows, terms = self._rows, self.terms(theta)
        total = np.asarray(sum(terms.values()))
        ordinary, joined, first, further = self._stages(theta)
        weight = rows.count * (ordinary / joined) ** (_SHARPNESS - 1)
        floors = rows.count * joined - weight * ordinary
        derivative = np.zeros((len(rows), len(theta)))
        once, repeated = weight * first * (1 + further), weight * first * further
        by_stage = ((_TIME, self._time, once), (_RHO, self._rho, repeated))
        for part, knots, values in by_stage:
            derivative[:, part] = self._by_row_of(knots * values[:, None])
        derivative[:, _GROWTHS] = self._by_row_of(self._slower * once[:, None])
        gaps, port = self._floors(theta)
        derivative[:, _GAP] = self._by_row(floors * gaps / (gaps + port))
        derivative[:, _ROOT] = self._by_row(floors * port / (gaps + port))
        hops = weight * rows.hops * math.exp(theta[_DISTANCE])
        derivative[:, _DISTANCE] = self._by_row(hops)
        derivative[:, _GAMMA] = self._gamma * terms["local"][:, None]
        for index, name in ((_SHARED, "links"), (_PAIR, "groups"), (_MEMORY, "memory")):
            derivative[:, index] = terms[name]
        derivative[:, _PORT] = rows.ports * math.exp(theta[_PORT])
        derivative[:, _CALL] = math.exp(theta[_CALL])
        return np.log(total), derivative / total[:, None]

    def _stages(self, theta: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Time of a stage without and with floors, of its first message, and of further ones."""
        rows = self._rows
        slower = self._slower @ theta[_GROWTHS]
        first = np.exp(self._time @ theta[_TIME] + slower)
        further = (rows.messages - 1) * np.exp(self._rho @ theta[_RHO])
        ordinary = first * (1 + further) + rows.hops * math.exp(theta[_DISTANCE])
        least = np.sum(self._floors(theta), axis=0)
        longer = np.maximum(ordinary, least)
        norm = (ordinary / longer) ** _SHARPNESS + (least / longer) ** _SHARPNESS
        return ordinary, longer * norm ** (1 / _SHARPNESS), first, further

    def _floors(self, theta: Floats) -> tuple[Floats, Floats]:
        """Gaps between the messages of a rank in a stage, and their time on the port of a root."""
        rows = self._rows
        gaps = np.maximum(rows.messages, 1) * math.exp(theta[_GAP])
        return gaps, rows.port * math.exp(theta[_ROOT])

    def _by_row(self, values: Floats) -> Floats:
        return np.asarray(np.bincount(self._rows.row, values, minlength=len(self._rows)), float)

    def _by_row_of(self, values: Floats) -> Floats:
        return np.stack([self._by_row(column) for column in values.T], axis=1)


@dataclass(frozen=True)
class CurveFit:
    """Fitted parameters.

    Attributes:
        theta: the values.
        covariance: their joint covariance after the fit.
        prior: the prior means.
    """

    theta: Floats
    covariance: Floats
    prior: Floats

    @classmethod
    def unfitted(cls, start: Floats, share: float = 1.0) -> CurveFit:
        """Returns the prior of parameters without any measurement.

        Args:
            start: the prior means.
            share: factor on the standard deviations of the prior.
        """
        return cls(start, np.diag((share * SPREAD) ** 2), start)

    @property
    def deviation(self) -> Floats:
        """The standard deviation of each parameter."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def determined(self) -> NDArray[np.bool_]:
        """Whether the data, not the prior, determine each parameter."""
        return self.deviation < 0.5 * SPREAD

    def time_us(self, size: float) -> float:
        """Returns the time of a message of `size` bytes on 16 nodes, in us."""
        weights = knot_weights(np.array([size], dtype=float), _SIZES)
        return float(np.exp(weights @ self.theta[_TIME])[0])

    def further(self, size: float) -> float:
        """Returns the time of a further message of `size` bytes, relative to the first."""
        weights = knot_weights(np.array([min(size, _ISSUES[-1])]), _ISSUES)
        return float(np.exp(weights @ self.theta[_RHO])[0])

    def reduction_us_per_byte(self, vector: float) -> float:
        """Returns the time of a reduced byte of a vector of `vector` bytes, in us."""
        weights = knot_weights(np.array([vector], dtype=float), _VECTORS)
        return float(np.exp(weights @ self.theta[_GAMMA])[0])

    def table(self) -> list[dict[str, Any]]:
        """Returns a row per parameter: name, value, 90 % interval, and if data determine it."""
        rows = []
        for index, name in enumerate(NAMES):
            value, half = float(self.theta[index]), DEVIATIONS_90 * float(self.deviation[index])
            ends = (value - half, value, value + half)
            low, middle, high = ends if index in _PLAIN else tuple(map(math.exp, ends))
            determined = bool(self.determined[index])
            rows.append(
                {
                    "parameter": name,
                    "value": middle,
                    "low": low,
                    "high": high,
                    "determined": determined,
                }
            )
        return rows


_NOISE = 0.15
"""Scale of logarithmic errors of the structural model, beyond which a row loses weight."""
_STEP = 0.35
"""Standard deviation of the change from one size to the next, relative to the prior's."""
_EVALUATIONS = 60


def fit_curve(rows: Features, times_us: Floats, start: Floats) -> CurveFit:
    """Fits the parameters to measured times.

    Errors are logarithmic and robust (pseudo-Huber), and each parameter is drawn to its prior.

    Args:
        rows: the measurements.
        times_us: their times, in us.
        start: the prior means.
    """
    curve, log_times = Curve(rows), np.log(times_us)

    scale = 1 / SPREAD
    steps = np.diff(np.eye(len(start)), axis=0)[: _TIME.stop - 1] / _STEP
    drawn = np.concatenate([np.diag(scale), steps])

    def residuals(theta: Floats) -> Floats:
        errors = (np.log(curve(theta)) - log_times) / _NOISE
        return np.concatenate([pseudo_huber(errors), drawn @ (theta - start)])

    def jacobian(theta: Floats) -> Floats:
        logs, derivative = curve.jacobian(theta)
        errors = (logs - log_times) / _NOISE
        root = np.sqrt(1 + errors**2)
        # The derivative of sign(e) sqrt(2 (sqrt(1 + e^2) - 1)), which is 1 at 0.
        slope = np.sqrt((root + 1) / 2) / root
        return np.concatenate([derivative * (slope / _NOISE)[:, None], drawn])

    found = least_squares(residuals, start, jacobian, max_nfev=_EVALUATIONS)
    return CurveFit(found.x, np.linalg.inv(found.jac.T @ found.jac), start)

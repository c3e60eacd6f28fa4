"""What is known of machines before any measurement: priors of the structural model."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from tutti.measured.predict.curve import prior, with_gamma

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Strings = NDArray[np.str_]

ANY: Final = "any"
"""The library of an environment whose gamma is that of all libraries."""


@dataclass(frozen=True)
class Gamma:
    """Time per reduced byte, in us.

    Attributes:
        cached: of a vector in the cache.
        beyond: of a longer one.
        cache_bytes: the largest vector in the cache; None if both times are equal.
    """

    cached: float
    beyond: float
    cache_bytes: int | None = None


@dataclass(frozen=True)
class Hardware:
    """What is known of a machine's network before any measurement.

    Attributes:
        latency_us: time of a small message between two nodes through the MPI library, in us.
        bytes_per_us: bandwidth of one interface in one direction, in bytes per us.
        interfaces: interfaces of a node. No prediction moves more than they carry together.
        link_bytes_per_us: bandwidth of a link that messages of several nodes share; None if that of
            the node's interfaces is the limit.
        gap_us: least time between small messages of a rank, sent and received, in us.
        hop_us: latency of a further hop of a torus, in us.
        memory_bytes_per_us: peak bandwidth of a node's memory, in bytes per us.
        taper: how much links between groups limit their messages; 0.01 for a fat tree.
        gammas: by environment (library, interface, ranks per node, memory, joined by slashes), the
            time of reductions.
    """

    latency_us: float = 2.0
    bytes_per_us: float = 12.5e3
    interfaces: int = 1
    link_bytes_per_us: float | None = None
    gap_us: float = 0.3
    hop_us: float = 0.1
    memory_bytes_per_us: float = 2e5
    taper: float = 1.0
    gammas: Mapping[str, Gamma] = field(default_factory=dict)

    def prior(self, stack: str = "") -> Floats:
        """Returns the prior means of the structural model.

        Args:
            stack: the environment without the system, whose gamma is used if it is known.
        """
        shared = self.link_bytes_per_us or self.node_bytes_per_us
        means = prior(
            self.latency_us,
            self.bytes_per_us,
            shared,
            gap_us=self.gap_us,
            hop_us=self.hop_us,
            memory_bytes_per_us=self.memory_bytes_per_us,
            taper=self.taper,
        )
        gamma = self.gamma(stack) if stack else None
        if gamma is None:
            return means
        return with_gamma(means, gamma.cached, gamma.beyond, gamma.cache_bytes or math.inf)

    def gamma(self, stack: str) -> Gamma | None:
        """Returns the gamma of an environment, or of another with its library and memory."""
        library, *_, memory = stack.split("/")
        like = [one for one in self.gammas
                if one.split("/")[0] in {library, ANY} and one.endswith(memory)]  # fmt: skip
        if stack in like:
            return self.gammas[stack]
        return self.gammas[like[0]] if like else None

    @property
    def node_bytes_per_us(self) -> float:
        """Bandwidth of a node in one direction, in bytes per us."""
        return self.bytes_per_us * self.interfaces

    @property
    def without_fits(self) -> Hardware:
        """The same without gamma, which platform files take from measured collectives."""
        return replace(self, gammas={})


def least_us(collectives: Strings, nodes: Floats, sizes: Floats, rates: Floats) -> Floats:
    """Returns the time in which the interfaces of a node carry what a node must at least receive.

    Args:
        collectives: by row, the collective.
        nodes: by row, the number of nodes.
        sizes: by row, the vector in bytes.
        rates: by row, the bandwidth of a node in one direction, in bytes per us.
    """
    rounds = np.where(collectives == "all_reduce", 2.0, 1.0)
    return np.asarray(rounds * (1 - 1 / nodes) * sizes / rates)

"""An algorithm with a protocol, and what NCCL predicts for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Corrections(NamedTuple):
    """The empirical factors and constants of a prediction that no link has; empty without any.

    Attributes:
        latency: Those of the latency.
        transfer: Those of the rate.
    """

    latency: str = ""
    transfer: str = ""


UNCORRECTED = Corrections()


@dataclass(frozen=True)
class Candidate:
    """An algorithm with a protocol.

    Attributes:
        algorithm: NCCL's name of the algorithm, such as ``NVLSTree``.
        protocol: ``LL``, ``LL128`` or ``Simple``.
        refusal: Why NCCL does not consider it; empty if it does.
        latency: The latency term of the prediction in us; 0 if not considered.
        bandwidth: The bandwidth of the prediction in GB/s, size / time; 0 if not considered.
        time: The predicted time in us; infinite if not considered.
        channels: The number of channels that NCCL uses for the size; 0 if not considered, and for
            sends and receives, whose channels are not modelled.
        threads: The number of threads per block; 0 as for `channels`.
        corrections: The factors and constants of the prediction that no link has.
        fallback: NCCL takes it only because the settings leave no algorithm.
    """

    algorithm: str
    protocol: str
    refusal: str = ""
    latency: float = 0.0
    bandwidth: float = 0.0
    time: float = float("inf")
    channels: int = 0
    threads: int = 0
    corrections: Corrections = UNCORRECTED
    fallback: bool = False

    @property
    def considered(self) -> bool:
        """NCCL considers it."""
        return not self.refusal

    @property
    def transfer(self) -> float:
        """The bandwidth term of the prediction, in us."""
        return self.time - self.latency

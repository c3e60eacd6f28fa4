"""The time of a step, and where it goes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

KINDS = ("tensor", "context", "expert", "pipeline", "data")
"""The kinds of parallelism that communicate; gradients and weights belong to `data`."""


@dataclass(frozen=True, kw_only=True)
class StepTiming:
    """The time of a step, in seconds.

    Attributes:
        compute: Time in which the GPU of the busiest stage computes.
        idle: The pipeline bubble.
        update: Time of casts of weights, the optimizer, and what a step takes without kernels.
        exposed: Communication that compute does not hide, by kind of parallelism.
        isolated: Whether each collective was simulated alone, in all of its groups at once.
    """

    compute: float
    idle: float = 0.0
    update: float = 0.0
    exposed: Mapping[str, float] = field(default_factory=dict)
    isolated: bool = False

    @property
    def step(self) -> float:
        """The time of the step."""
        return self.compute + self.idle + self.update + sum(self.exposed.values())

    def times(self, factor: float) -> StepTiming:
        """Returns the timing with all parts longer by a factor."""
        return StepTiming(
            compute=self.compute * factor,
            idle=self.idle * factor,
            update=self.update * factor,
            exposed={kind: seconds * factor for kind, seconds in self.exposed.items()},
            isolated=self.isolated,
        )

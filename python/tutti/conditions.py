"""What a run meets besides its schedule and its network: noise, arrival skew, slow ranks.

Everything random is drawn from a seed, by rank and step: the same seed gives the same bits,
whatever the order or the thread.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, Strict

from tutti import _core
from tutti.errors import NoiseError
from tutti.parameters import Parameters
from tutti.units import Time

__all__ = ["Conditions", "Distribution", "Exponential", "Fixed", "Noise", "Recorded", "Uniform"]


Rank = Annotated[int, Strict()]


class Fixed(Parameters):
    """The same time, always."""

    kind: Literal["fixed"] = "fixed"
    time: Time

    def __str__(self) -> str:
        return f"fixed({self.time})"


class Uniform(Parameters):
    """Any time between two, all equally likely."""

    kind: Literal["uniform"] = "uniform"
    low: Time = Time(ps=0)
    high: Time

    def __str__(self) -> str:
        return f"uniform({self.low}, {self.high})"


class Exponential(Parameters):
    """Mostly short times and a few long ones."""

    kind: Literal["exponential"] = "exponential"
    mean: Time

    def __str__(self) -> str:
        return f"exponential({self.mean})"


class Recorded(Parameters):
    """Times that were measured, one drawn at random each time."""

    kind: Literal["recorded"] = "recorded"
    times: Annotated[list[Time], Field(min_length=1)]

    def __str__(self) -> str:
        return f"recorded({', '.join(str(time) for time in self.times)})"


Distribution = Annotated[Fixed | Uniform | Exponential | Recorded, Field(discriminator="kind")]


class Noise(Parameters):
    """Time that is lost at random, for example to the operating system.

    Attributes:
        step: lost by a rank at the start of each step.
        message: added to each message's way.
    """

    step: Distribution | None = None
    message: Distribution | None = None


class Conditions(Parameters):
    """What gets in the way of a run; nothing, unless it is given.

    Attributes:
        noise: time that is lost at random.
        arrival: how late each rank enters the collective.
        speed: ranks that work faster (above 1) or slower (below 1) than the others.
    """

    noise: Noise = Field(default_factory=Noise)
    arrival: Distribution | None = None
    speed: dict[Rank, Annotated[float, Strict(), Field(gt=0, allow_inf_nan=False)]] = Field(
        default_factory=dict
    )

    def core(self, *, ranks: int, seed: int) -> _core.Conditions:
        """The core's conditions for a run on that many ranks.

        Raises:
            NoiseError: a distribution that cannot be, or the speed of a rank that there is not.
        """
        beyond = [rank for rank in self.speed if not 0 <= rank < ranks]
        if beyond:
            message = f"rank {beyond[0]} has a speed, but the ranks are 0 to {ranks - 1}"
            raise NoiseError(message, kind="speed", fields={"rank": beyond[0]})
        last = max(self.speed, default=-1)
        return _core.Conditions(
            seed=seed,
            start_skew=_text(self.arrival),
            step=_text(self.noise.step),
            message=_text(self.noise.message),
            speeds=[self.speed.get(rank, 1.0) for rank in range(last + 1)],
        )


def _text(distribution: Distribution | None) -> str:
    """A distribution as the core reads it."""
    return "none" if distribution is None else str(distribution)

"""What a run meets besides its schedule and its network: noise, arrival skew, slow ranks.

Everything random is drawn from a seed, by rank and step: the same seed gives the same bits,
whatever the order or the thread.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from tutti.parameters import Parameters
from tutti.units import Time

__all__ = ["Conditions", "Distribution", "Exponential", "Fixed", "Noise", "Recorded", "Uniform"]


class Fixed(Parameters):
    """The same time, always."""

    kind: Literal["fixed"] = "fixed"
    time: Time


class Uniform(Parameters):
    """Any time between two, all equally likely."""

    kind: Literal["uniform"] = "uniform"
    low: Time = Time(ps=0)
    high: Time


class Exponential(Parameters):
    """Mostly short times and a few long ones."""

    kind: Literal["exponential"] = "exponential"
    mean: Time


class Recorded(Parameters):
    """Times that were measured, one drawn at random each time."""

    kind: Literal["recorded"] = "recorded"
    times: Annotated[list[Time], Field(min_length=1)]


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
    speed: dict[int, Annotated[float, Field(gt=0, allow_inf_nan=False)]] = Field(
        default_factory=dict
    )

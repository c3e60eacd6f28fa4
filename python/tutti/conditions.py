"""What a run meets besides its schedule and its network: noise, arrival skew, slow ranks, traffic.

Everything random is drawn from a seed, by rank and step: the same seed gives the same bits,
whatever the order or the thread. Measured values come from files through the `read` of a class.

>>> rare = Mixture(parts=[Part(chance=0.01, distribution=Exponential(mean="10 us"))])
>>> str(Noise(step=rare).step)
'mixture(0.01 exponential(10 us))'
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import Field, PrivateAttr, Strict, field_validator, model_validator

from tutti import _core
from tutti.errors import ConfigError, NoiseError
from tutti.parameters import Parameters
from tutti.units import Size, Time

if TYPE_CHECKING:
    from pathlib import Path

    from tutti.topology import Routes

__all__ = [
    "Background",
    "Conditions",
    "Distribution",
    "Exponential",
    "Fixed",
    "Flow",
    "Lognormal",
    "Mixture",
    "Noise",
    "Normal",
    "Pareto",
    "Part",
    "PerRank",
    "Periodic",
    "Poisson",
    "Recorded",
    "Trace",
    "Uniform",
]


Rank = Annotated[int, Strict(), Field(ge=0)]
Share = Annotated[float, Strict(), Field(ge=0, le=1, allow_inf_nan=False)]

_MOST_SEEDS = 1 << 63
"""Seeds stand in results as whole numbers of 64 bits with a sign."""


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


class Normal(Parameters):
    """Times around a mean; of the normal distribution only what is not negative is drawn."""

    kind: Literal["normal"] = "normal"
    mean: Time
    deviation: Time

    def __str__(self) -> str:
        return f"normal({self.mean}, {self.deviation})"


class Lognormal(Parameters):
    """Times whose logarithm is normal: skewed, with a long tail.

    Attributes:
        median: half of the times are longer.
        sigma: the standard deviation of the natural logarithm.
    """

    kind: Literal["lognormal"] = "lognormal"
    median: Time
    sigma: Annotated[float, Field(ge=0, allow_inf_nan=False)]

    def __str__(self) -> str:
        return f"lognormal({self.median}, {self.sigma!r})"


class Pareto(Parameters):
    """A heavy tail: a time is longer than t with chance (least / t) ** shape.

    Attributes:
        least: the shortest time.
        shape: how fast the tail falls off.
        most: longer times are not drawn; without it the tail has no end.
    """

    kind: Literal["pareto"] = "pareto"
    least: Time
    shape: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    most: Time | None = None

    def __str__(self) -> str:
        most = f", {self.most}" if self.most else ""
        return f"pareto({self.least}, {self.shape!r}{most})"


class Recorded(Parameters):
    """Times that were measured, one drawn at random each time."""

    kind: Literal["recorded"] = "recorded"
    times: Annotated[list[Time], Field(min_length=1)]

    @classmethod
    def read(cls, path: str | Path, *, column: str | None = None, unit: str | None = None) -> Self:
        """Reads durations from a file: see `tutti.recordings.durations`.

        Raises:
            ConfigError: the file cannot be used; the message gives the line.
        """
        from tutti.recordings import durations

        return cls(times=durations(path, column=column, unit=unit))

    def __str__(self) -> str:
        return f"recorded({', '.join(str(time) for time in self.times)})"


class Part(Parameters):
    """A part of a mixture: how likely it is, and what it draws."""

    chance: Share
    distribution: Distribution


class Mixture(Parameters):
    """One of several distributions, each with its chance; nothing with the chance that is left.

    A single part of a small chance is a rare event.
    """

    kind: Literal["mixture"] = "mixture"
    parts: Annotated[list[Part], Field(min_length=1)]

    def __str__(self) -> str:
        parts = (f"{part.chance!r} {part.distribution}" for part in self.parts)
        return f"mixture({', '.join(parts)})"


Distribution = Annotated[
    Fixed | Uniform | Exponential | Normal | Lognormal | Pareto | Recorded | Mixture,
    Field(discriminator="kind"),
]

Part.model_rebuild()


class PerRank(Parameters):
    """How late each rank comes, as it was measured: a list of times by rank, or several such lists.

    Of several lists, the run with seed s takes the list s modulo their number: repetitions take one
    after the other.
    """

    kind: Literal["per_rank"] = "per_rank"
    times: Annotated[list[Annotated[list[Time], Field(min_length=1)]], Field(min_length=1)]

    @field_validator("times", mode="before")
    @classmethod
    def _one_list(cls, times: Any) -> Any:  # noqa: ANN401 - pydantic checks what it is
        if isinstance(times, list | tuple) and not any(isinstance(x, list | tuple) for x in times):
            return [times]
        return times

    @classmethod
    def read(cls, path: str | Path, *, unit: str | None = None) -> Self:
        """Reads arrivals from a file: see `tutti.recordings.arrivals`.

        Raises:
            ConfigError: the file cannot be used; the message gives the line.
        """
        from tutti.recordings import arrivals

        return cls(times=arrivals(path, unit=unit))

    def of(self, *, ranks: int, seed: int) -> list[int]:
        """The times of a run, in picoseconds.

        Raises:
            NoiseError: there are fewer times than ranks.
        """
        chosen = self.times[seed % len(self.times)]
        if len(chosen) < ranks:
            message = f"arrivals are given for {len(chosen)} ranks, and {ranks} take part"
            raise NoiseError(message, kind="too_few_arrivals", fields={"ranks": ranks})
        return [time.ps for time in chosen[:ranks]]


class Periodic(Parameters):
    """A detour in every period, as the ticks of an operating system are.

    Attributes:
        period: from the start of one detour to the start of the next.
        duration: how long each takes the processor away.
        aligned: whether all ranks have theirs at the same time; else each at a random place.
    """

    kind: Literal["periodic"] = "periodic"
    period: Time
    duration: Time
    aligned: Annotated[bool, Strict()] = False

    @property
    def core(self) -> _core.Detours:
        """The core's detours.

        Raises:
            NoiseError: they leave no time to work.
        """
        return _core.Detours.trace(self.period.ps, [(0, self.duration.ps)], self.aligned)


class Poisson(Parameters):
    """Detours at random times: interrupts, or bursts of traffic that block a node's link.

    Attributes:
        interval: from the start of one to the start of the next, in the mean.
        duration: how long each lasts.
        aligned: whether all ranks have theirs at the same time.
    """

    kind: Literal["poisson"] = "poisson"
    interval: Time
    duration: Distribution
    aligned: Annotated[bool, Strict()] = False

    @property
    def core(self) -> _core.Detours:
        """The core's detours.

        Raises:
            NoiseError: they leave no time to work, or the durations are no distribution.
        """
        return _core.Detours.random(self.interval.ps, str(self.duration), self.aligned)


class Trace(Parameters):
    """Detours as they were recorded, played over and over from a random place for each rank.

    Attributes:
        detours: each as [start, duration].
        cycle: when the trace starts again; without it, where its last detour ends.
        aligned: whether all ranks are at the same place of the trace.
    """

    kind: Literal["trace"] = "trace"
    detours: Annotated[list[tuple[Time, Time]], Field(min_length=1)]
    cycle: Time | None = None
    aligned: Annotated[bool, Strict()] = False

    @classmethod
    def read(cls, path: str | Path, *, unit: str = "ns", aligned: bool = False) -> Self:
        """Reads a trace in the form of Netgauge and LogGOPSim: see `tutti.recordings.detours`.

        Raises:
            ConfigError: the file cannot be used; the message gives the line.
        """
        from tutti.recordings import detours

        return cls(detours=detours(path, unit=unit), aligned=aligned)

    @property
    def length(self) -> Time:
        """How long the cycle is."""
        end = max(start.ps + duration.ps for start, duration in self.detours)
        return self.cycle or Time(ps=end)

    @property
    def core(self) -> _core.Detours:
        """The core's detours.

        Raises:
            NoiseError: they leave no time to work, or one starts after the cycle's end.
        """
        detours = [(start.ps, duration.ps) for start, duration in self.detours]
        return _core.Detours.trace(self.length.ps, detours, self.aligned)


class Noise(Parameters):
    """Time that is lost at random, for example to the operating system.

    Attributes:
        step: lost by a rank at the start of each step.
        message: added to each message's way.
        detours: times in which a rank's processor does something else.
    """

    step: Distribution | None = None
    message: Distribution | None = None
    detours: Annotated[Periodic | Poisson | Trace, Field(discriminator="kind")] | None = None


class Flow(Parameters):
    """Messages of others between the NPUs of two ranks.

    Attributes:
        source: the rank on whose NPU they start.
        destination: the rank on whose NPU they end.
        size: of each.
        start: when the first is sent.
        period: from one to the next.
        count: how many there are.
    """

    source: Rank
    destination: Rank
    size: Size
    start: Time = Time(ps=0)
    period: Time = Time(ps=0)
    count: Annotated[int, Strict(), Field(ge=1, lt=1 << 63)] = 1

    @model_validator(mode="after")
    def _moves(self) -> Self:
        if self.source == self.destination:
            message = f"a flow from rank {self.source} to itself"
            raise ConfigError(message, kind="invalid", hint="name two ranks")
        if self.count > 1 and self.period.ps == 0:
            message = f"a flow of {self.count} messages without a period"
            raise ConfigError(message, kind="invalid", hint="give `period`, or one larger message")
        return self

    @property
    def core(self) -> tuple[int, int, int, int, int, int]:
        """As the core takes it: ranks, bytes, times in ps, count."""
        times = self.start.ps, self.period.ps
        return (self.source, self.destination, self.size.bytes, *times, self.count)


class Background(Parameters):
    """Traffic of others on the links of the platform's topology.

    Attributes:
        load: the share of a link's rate that it takes, from 0 to below 1: one for all links, or
            one for each kind of link, fastest first and then by latency. A message waits at each
            link on its way as in an M/M/1 queue.
        burst: how long a burst of that traffic is in the mean.
        flows: instead, or besides: messages of others, for a network in which messages meet.
    """

    load: Share | list[Share] | None = None
    burst: Size = Size(bytes=4096)
    flows: list[Flow] = Field(default_factory=list)

    _cores: dict[str, _core.LinkLoad] = PrivateAttr(default_factory=dict)

    def __copy__(self) -> Self:
        """A copy may be changed, so it keeps nothing that was made of the original."""
        copied = super().__copy__()
        copied._cores = {}
        return copied

    def core(self, routes: Routes | None) -> _core.LinkLoad | None:
        """The core's load on the links of these routes.

        Raises:
            NoiseError: there are no links, or the loads do not fit them.
        """
        if self.load is None:
            return None
        if routes is None:
            message = "a load needs links, and the platform has no topology"
            raise NoiseError(message, kind="no_links")
        key = str(id(routes.core))
        if key not in self._cores:
            loads = self.load if isinstance(self.load, list) else [self.load]
            self._cores[key] = _core.LinkLoad(routes.core, loads, self.burst.bytes)
        return self._cores[key]


class Conditions(Parameters):
    """What gets in the way of a run; nothing, unless it is given.

    Attributes:
        noise: time that is lost at random.
        arrival: how late each rank enters the collective.
        speed: ranks that work faster (above 1) or slower (below 1) than the others.
        background: traffic of others on the links.
        wait_for_sends: whether a rank ends a step only once all that it sent in it has arrived, as
            one that waits for its puts does; else once it has handed them over.
    """

    noise: Noise = Field(default_factory=Noise)
    arrival: Distribution | PerRank | None = Field(default=None, discriminator="kind")
    speed: dict[Rank, Annotated[float, Strict(), Field(gt=0, allow_inf_nan=False)]] = Field(
        default_factory=dict
    )
    background: Background = Field(default_factory=Background)
    wait_for_sends: Annotated[bool, Strict()] = False

    _cores: dict[int, _core.Conditions] = PrivateAttr(default_factory=dict)

    def __copy__(self) -> Self:
        """A copy may be changed, so it keeps nothing that was made of the original."""
        copied = super().__copy__()
        copied._cores = {}
        return copied

    def core(self, *, ranks: int, seed: int) -> _core.Conditions:
        """The core's conditions for a run on that many ranks.

        Raises:
            NoiseError: a distribution that cannot be, the speed of a rank that there is not, or
                too few arrivals.
        """
        check_seed(seed)
        beyond = [rank for rank in self.speed if rank >= ranks]
        if beyond:
            message = f"rank {beyond[0]} has a speed, but the ranks are 0 to {ranks - 1}"
            raise NoiseError(message, kind="speed", fields={"rank": beyond[0]})
        # Recorded distributions are long: they are read once, not for every repetition.
        if 0 not in self._cores:
            self._cores[0] = self._unseeded()
        recorded = isinstance(self.arrival, PerRank)
        arrivals = self.arrival.of(ranks=ranks, seed=seed) if recorded else []  # type: ignore[union-attr]
        return self._cores[0].with_seed(seed, arrivals)

    def _unseeded(self) -> _core.Conditions:
        last = max(self.speed, default=-1)
        return _core.Conditions(
            start_skew="none" if isinstance(self.arrival, PerRank) else _text(self.arrival),
            step=_text(self.noise.step),
            message=_text(self.noise.message),
            detours=self.noise.detours.core if self.noise.detours else None,
            speeds=[self.speed.get(rank, 1.0) for rank in range(last + 1)],
            wait_for_sends=self.wait_for_sends,
        )


def check_seed(seed: int) -> None:
    """Refuses seeds that results have no numbers for.

    Raises:
        ConfigError: it is negative or too large.
    """
    if not 0 <= seed < _MOST_SEEDS:
        message = f"seed {seed!r} is refused: expected a whole number from 0 to 2^63 - 1"
        raise ConfigError(message, kind="invalid", fields={"seed": seed})


def _text(distribution: Fixed | Any | None) -> str:  # noqa: ANN401 - any distribution
    """A distribution as the core reads it."""
    return "none" if distribution is None else str(distribution)

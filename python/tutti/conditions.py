"""What a run meets besides its schedule and its network: noise, arrival skew, slow ranks, traffic.

Everything random is drawn from a seed, by rank and step: the same seed gives the same bits,
whatever the order or the thread. Measured values come from files through the `read` of a class.

>>> rare = Mixture(parts=[Part(chance=0.01, distribution=Exponential(mean="10 us"))])
>>> str(Noise(step=rare).step)
'mixture(0.01 exponential(10 us))'
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import Field, PrivateAttr, Strict, ValidationInfo, model_validator

from tutti import _core
from tutti.distributions import (
    Distribution,
    Exponential,
    Fixed,
    Lognormal,
    Measured,
    Mixture,
    Normal,
    OfKind,
    Pareto,
    Part,
    PerRank,
    Recorded,
    Share,
    Uniform,
    read_file,
)
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

Aligned = Annotated[
    bool, Strict(), Field(description="Whether all ranks have them at the same time.")
]

_MOST_SEEDS = 1 << 63
"""Seeds stand in results as whole numbers of 64 bits with a sign."""


class Periodic(OfKind):
    """A detour in every period, as the ticks of an operating system are."""

    kind: Literal["periodic"] = "periodic"
    period: Annotated[Time, Field(description="From one detour's start to the next one's.")]
    duration: Annotated[Time, Field(description="How long each takes the processor away.")]
    aligned: Aligned = False

    @property
    def core(self) -> _core.Detours:
        """The core's detours.

        Raises:
            NoiseError: they leave no time to work.
        """
        return _core.Detours.trace(self.period.ps, [(0, self.duration.ps)], self.aligned)


class Poisson(OfKind):
    """Detours at random times: interrupts, or bursts of traffic that block a node's link."""

    kind: Literal["poisson"] = "poisson"
    interval: Annotated[Time, Field(description="From one start to the next, in the mean.")]
    duration: Annotated[Distribution, Field(description="How long each lasts.")]
    aligned: Aligned = False

    @property
    def core(self) -> _core.Detours:
        """The core's detours.

        Raises:
            NoiseError: they leave no time to work, or the durations are no distribution.
        """
        return _core.Detours.random(self.interval.ps, str(self.duration), self.aligned)


class Trace(Measured):
    """Detours as they were recorded, played over and over from a random place for each rank."""

    kind: Literal["trace"] = "trace"
    detours: list[tuple[Time, Time]] = Field(
        default_factory=list, description="Each as [start, duration]."
    )
    cycle: Annotated[
        Time | None,
        Field(description="When it starts again; else where its last detour ends."),
    ] = None
    unit: Annotated[str, Field(repr=False, description="Of the file's numbers.")] = "ns"
    aligned: Aligned = False

    @model_validator(mode="after")
    def _one_origin(self, info: ValidationInfo) -> Self:
        return self._read("detours", "detours", info, unit=self.unit)

    @classmethod
    def read(cls, path: str | Path, *, unit: str = "ns", aligned: bool = False) -> Self:
        """Reads a trace in the form of Netgauge and LogGOPSim: see `tutti.recordings.detours`.

        Raises:
            ConfigError: the file cannot be used; the message gives the line.
        """
        return cls(file=str(path), unit=unit, aligned=aligned)

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
    """Time that is lost at random, for example to the operating system."""

    step: Annotated[
        Distribution | None, Field(description="Lost by a rank at the start of a step.")
    ] = None
    message: Annotated[Distribution | None, Field(description="Added to a message's way.")] = None
    detours: Annotated[
        Annotated[Periodic | Poisson | Trace, Field(discriminator="kind")] | None,
        Field(description="Times in which a rank's processor does something else."),
    ] = None


class Flow(Parameters):
    """Messages of others between the NPUs of two ranks."""

    source: Annotated[Rank, Field(description="The rank on whose NPU they start.")]
    destination: Annotated[Rank, Field(description="The rank on whose NPU they end.")]
    size: Annotated[Size, Field(description="Of each.")]
    start: Annotated[Time, Field(description="When the first is sent.")] = Time(ps=0)
    period: Annotated[Time, Field(description="From one to the next.")] = Time(ps=0)
    count: Annotated[int, Strict(), Field(ge=1, lt=1 << 63, description="How many there are.")] = 1

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

    Where it takes a load of links, a message waits at each link of its route as in an M/M/1 queue.
    """

    load: Annotated[
        Share | list[Share] | None,
        Field(
            description="The share of a link's rate that it takes, from 0 to below 1: one for all "
            "links, or one for each kind of link, fastest first and then by latency.",
        ),
    ] = None
    burst: Annotated[Size, Field(description="How long a burst of it is in the mean.")] = Size(
        bytes=4096
    )
    flows: list[Flow] = Field(
        default_factory=list,
        description="Instead, or besides, for networks in which messages meet: messages.",
    )
    file: Annotated[
        str | None,
        Field(
            repr=False,
            description="More flows, from a CSV, Parquet or plain text file.",
        ),
    ] = None

    @model_validator(mode="after")
    def _with_file(self, info: ValidationInfo) -> Self:
        if self.file is not None:
            flows = self.flows + read_file(self.file, "flows", info, made_of=Flow)
            self.__dict__ |= {"flows": flows, "file": None}
        return self

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
    """What gets in the way of a run; nothing, unless it is given."""

    noise: Noise = Field(default_factory=Noise, description="Time that is lost at random.")
    arrival: Annotated[
        Distribution | PerRank | None,
        Field(discriminator="kind", description="How late each rank enters the collective."),
    ] = None
    speed: dict[Rank, Annotated[float, Strict(), Field(gt=0, allow_inf_nan=False)]] = Field(
        default_factory=dict,
        description="Ranks that work faster (above 1) or slower (below 1) than the others.",
    )
    background: Background = Field(default_factory=Background, description="Traffic of others.")
    wait_for_sends: Annotated[
        bool,
        Strict(),
        Field(
            description="Whether a rank ends a step only once all that it sent in it has arrived, "
            "as one that waits for its puts does; else once it has handed them over.",
        ),
    ] = False

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

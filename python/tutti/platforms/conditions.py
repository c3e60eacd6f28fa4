"""Conditions of a run: noise, arrival skew, slow ranks and background traffic.

Random values depend on the seed, the rank and the step only, so that a seed reproduces all bits on
any number of threads. The `read` methods read measured values from files.

Examples:
    >>> rare = Mixture(parts=[Part(chance=0.01, distribution=Exponential(mean="10 us"))])
    >>> str(Noise(step=rare).step)
    'mixture(0.01 exponential(10 us))'
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import Field, PrivateAttr, Strict, ValidationInfo, model_validator

from tutti import _core
from tutti.base.errors import ConfigError
from tutti.base.parameters import Parameters
from tutti.base.units import Size, Time
from tutti.platforms.distributions import (
    Distribution,
    Exponential,
    Fixed,
    Lognormal,
    Mixture,
    Normal,
    OfKind,
    Pareto,
    Part,
    PerRank,
    Recorded,
    RecordedValues,
    Share,
    Uniform,
    read_file,
)
from tutti.platforms.errors import NoiseError

if TYPE_CHECKING:
    from pathlib import Path

    from tutti.topologies import Routes

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
    "NoiseTrace",
    "Normal",
    "Pareto",
    "Part",
    "PerRank",
    "Periodic",
    "Poisson",
    "Recorded",
    "Uniform",
]


Rank = Annotated[int, Strict(), Field(ge=0)]

Aligned = Annotated[
    bool, Strict(), Field(description="Whether all ranks have detours at the same time.")
]

_MOST_SEEDS = 1 << 63
"""Results store seeds as signed 64-bit integers."""


class Periodic(OfKind):
    """Periodic detours, such as the timer ticks of an operating system."""

    kind: Literal["periodic"] = "periodic"
    period: Time = Field(description="Time between the starts of consecutive detours.")
    duration: Time = Field(description="Duration of each detour.")
    aligned: Aligned = False

    @property
    def core(self) -> _core.Detours:
        """The core's detours.

        Raises:
            NoiseError: The detours leave no time to work.
        """
        return _core.Detours.trace(self.period.ps, [(0, self.duration.ps)], self.aligned)


class Poisson(OfKind):
    """Detours at random times, such as interrupts or bursts that block a node's link."""

    kind: Literal["poisson"] = "poisson"
    interval: Time = Field(description="Mean time between starts.")
    duration: Distribution = Field(description="Duration of each detour.")
    aligned: Aligned = False

    @property
    def core(self) -> _core.Detours:
        """The core's detours.

        Raises:
            NoiseError: The detours leave no time to work, or the distribution is invalid.
        """
        return _core.Detours.random(self.interval.ps, str(self.duration), self.aligned)


class NoiseTrace(RecordedValues):
    """Recorded detours, repeated from a random offset for each rank."""

    kind: Literal["trace"] = "trace"
    detours: list[tuple[Time, Time]] = Field(
        default_factory=list, description="Detours, each as [start, duration]."
    )
    cycle: Time | None = Field(
        None, description="Length of the cycle; the end of the last detour if absent."
    )
    unit: str = Field("ns", repr=False, description="Unit of the numbers in the file.")
    aligned: Aligned = False

    @model_validator(mode="after")
    def _one_origin(self, info: ValidationInfo) -> Self:
        return self._read("detours", "detours", info, unit=self.unit)

    @classmethod
    def read(cls, path: str | Path, *, unit: str = "ns", aligned: bool = False) -> Self:
        """Reads a trace in the format of Netgauge and LogGOPSim; see
        `tutti.platforms.recordings.detours`.

        Raises:
            ConfigError: The file is invalid; the message gives the line.
        """
        return cls(file=str(path), unit=unit, aligned=aligned)

    @property
    def length(self) -> Time:
        """The length of the cycle."""
        end = max(start.ps + duration.ps for start, duration in self.detours)
        return self.cycle or Time(ps=end)

    @property
    def core(self) -> _core.Detours:
        """The core's detours.

        Raises:
            NoiseError: The detours leave no time to work, or one starts after the end of the cycle.
        """
        detours = [(start.ps, duration.ps) for start, duration in self.detours]
        return _core.Detours.trace(self.length.ps, detours, self.aligned)


class Noise(Parameters):
    """Random delays, for example from the operating system."""

    step: Distribution | None = Field(None, description="Delay of a rank at the start of a step.")
    message: Distribution | None = Field(None, description="Additional latency of a message.")
    detours: Annotated[Periodic | Poisson | NoiseTrace, Field(discriminator="kind")] | None = Field(
        None, description="Times in which a rank's processor is taken by other work."
    )


class Flow(Parameters):
    """Background messages between the NPUs of two ranks."""

    source: Rank = Field(description="The rank of the source NPU.")
    destination: Rank = Field(description="The rank of the destination NPU.")
    size: Size = Field(description="Size of each message.")
    start: Time = Field(Time(ps=0), description="Time of the first message.")
    period: Time = Field(Time(ps=0), description="Time between messages.")
    count: Annotated[int, Strict()] = Field(1, ge=1, lt=1 << 63, description="Number of messages.")

    @model_validator(mode="after")
    def _moves(self) -> Self:
        if self.source == self.destination:
            message = f"a flow from rank {self.source} to itself"
            raise ConfigError(message, kind="invalid", hint="name two different ranks")
        if self.count > 1 and self.period.ps == 0:
            message = f"a flow of {self.count} messages without a period"
            raise ConfigError(message, kind="invalid", hint="give `period`, or one larger message")
        return self

    @property
    def core(self) -> _core.BackgroundFlow:
        """The core's flow."""
        return _core.BackgroundFlow(
            self.source,
            self.destination,
            size=self.size.bytes,
            start_ps=self.start.ps,
            period_ps=self.period.ps,
            count=self.count,
        )


class Background(Parameters):
    """Background traffic on the links of the platform's topology.

    With a load, a message waits at each link of its route as in an M/M/1 queue.
    """

    load: Share | list[Share] | None = Field(
        None,
        description="Utilisation of links by background traffic, from 0 to below 1: one for "
        "all links, or one per link class, by descending rate, then by latency.",
    )
    burst: Size = Field(Size(bytes=4096), description="Mean size of a burst.")
    flows: list[Flow] = Field(
        default_factory=list,
        description="Background messages, which share links with others; may be combined with "
        "a load.",
    )
    file: str | None = Field(
        None, repr=False, description="A CSV, Parquet or text file with further flows."
    )

    @model_validator(mode="after")
    def _with_file(self, info: ValidationInfo) -> Self:
        if self.file is not None:
            flows = self.flows + read_file(self.file, "flows", info, build=Flow)
            self.__dict__ |= {"flows": flows, "file": None}
        return self

    _cores: dict[str, _core.LinkLoad] = PrivateAttr(default_factory=dict)

    def __copy__(self) -> Self:
        """Returns a copy without cached values, as copies may be changed."""
        copied = super().__copy__()
        copied._cores = {}
        return copied

    def core(self, routes: Routes | None) -> _core.LinkLoad | None:
        """Returns the core's load on the links of the routes.

        Raises:
            NoiseError: There are no links, or the number of loads does not match them.
        """
        if self.load is None:
            return None
        if routes is None:
            message = "a background load needs links, but the platform has no topology"
            raise NoiseError(message, kind="no_links")
        key = str(id(routes.core))
        if key not in self._cores:
            loads = self.load if isinstance(self.load, list) else [self.load]
            self._cores[key] = _core.LinkLoad(routes.core, loads, self.burst.bytes)
        return self._cores[key]


class Conditions(Parameters):
    """Noise, arrival skew, slow ranks and background traffic of a run; by default none."""

    noise: Noise = Field(default_factory=Noise, description="Random delays.")
    arrival: Distribution | PerRank | None = Field(
        None,
        discriminator="kind",
        description="Delay of each rank before it enters the collective.",
    )
    speed: dict[Rank, Annotated[float, Strict(), Field(gt=0, allow_inf_nan=False)]] = Field(
        default_factory=dict,
        description="Relative speed of the local work of ranks; above 1 is faster.",
    )
    background: Background = Field(default_factory=Background, description="Background traffic.")
    wait_for_sends: Annotated[bool, Strict()] = Field(
        False,
        description="Whether a step ends only when all its messages have arrived, as if the "
        "rank waits for puts; otherwise it ends when they are handed to the network.",
    )

    _cores: dict[int, _core.Conditions] = PrivateAttr(default_factory=dict)

    def __copy__(self) -> Self:
        """Returns a copy without cached values, as copies may be changed."""
        copied = super().__copy__()
        copied._cores = {}
        return copied

    def core(self, *, ranks: int, seed: int) -> _core.Conditions:
        """Returns the core's conditions for a run.

        Args:
            ranks: The number of ranks.
            seed: The random seed.

        Raises:
            NoiseError: A distribution is invalid, a rank with a speed does not exist, or there are
                too few arrivals.
        """
        check_seed(seed)
        beyond = [rank for rank in self.speed if rank >= ranks]
        if beyond:
            message = f"rank {beyond[0]} has a speed, but the ranks are 0 to {ranks - 1}"
            raise NoiseError(message, kind="speed", fields={"rank": beyond[0]})
        # Recorded distributions are long: convert them once, not for every repetition.
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
    """Rejects seeds that results cannot store.

    Raises:
        ConfigError: The seed is negative or too large.
    """
    if not 0 <= seed < _MOST_SEEDS:
        message = f"seed {seed!r} is out of range: expected an integer from 0 to 2^63 - 1"
        raise ConfigError(message, kind="invalid", fields={"seed": seed})


def _text(distribution: Fixed | Any | None) -> str:  # noqa: ANN401 - any distribution
    """Returns a distribution in the notation of the core."""
    return "none" if distribution is None else str(distribution)

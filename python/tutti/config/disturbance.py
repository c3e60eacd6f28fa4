"""Noise, skew and traffic as they stand in experiment files."""

from __future__ import annotations

from typing import Annotated, Literal, TypeVar

from pydantic import Field, model_validator

from tutti.files.custom_errors import refused
from tutti.files.tables import Table
from tutti.units import Size, Time


class FixedTime(Table):
    """The same time, always."""

    kind: Literal["fixed"]
    time: Annotated[Time, Field(description="The time.")]


class UniformTime(Table):
    """Any time between two, all equally likely."""

    kind: Literal["uniform"]
    low: Annotated[Time, Field(default="0 ns", description="The shortest time.")]
    high: Annotated[Time, Field(description="The longest time.")]


class ExponentialTime(Table):
    """Mostly short times and a few long ones."""

    kind: Literal["exponential"]
    mean: Annotated[Time, Field(description="The mean time.")]


class NormalTime(Table):
    """Times around a mean; of the normal distribution only what is not negative is drawn."""

    kind: Literal["normal"]
    mean: Annotated[Time, Field(description="The mean, before negative times are left out.")]
    deviation: Annotated[Time, Field(description="The standard deviation, likewise.")]


class LognormalTime(Table):
    """Times whose logarithm is normal: skewed, with a long tail."""

    kind: Literal["lognormal"]
    median: Annotated[Time, Field(description="Half of the times are longer.")]
    sigma: Annotated[
        float,
        Field(
            ge=0, allow_inf_nan=False, description="Standard deviation of the natural logarithm."
        ),
    ]


class ParetoTime(Table):
    """A heavy tail: a time is longer than t with chance (least / t) ** shape."""

    kind: Literal["pareto"]
    least: Annotated[Time, Field(description="The shortest time.")]
    shape: Annotated[
        float, Field(gt=0, allow_inf_nan=False, description="How fast the tail falls off.")
    ]
    most: Annotated[Time | None, Field(default=None, description="Longer times are not drawn.")]


class _FromFile(Table):
    file: Annotated[
        str | None,
        Field(default=None, description="Instead, a CSV, Parquet or plain text file with them."),
    ]


class RecordedTime(_FromFile):
    """Times that were measured, one drawn at random each time."""

    kind: Literal["recorded"]
    times: Annotated[list[Time], Field(default_factory=list, description="The measured times.")]
    column: Annotated[
        str | None, Field(default=None, description="Of the file's columns, this one.")
    ]
    unit: Annotated[
        str | None,
        Field(default=None, description="Of the file's numbers, if its header does not say it."),
    ]

    @model_validator(mode="after")
    def _one_origin(self) -> RecordedTime:
        return _one_of(self, "times")


class MixturePart(Table):
    """A part of a mixture: how likely it is, and what it draws."""

    chance: Annotated[float, Field(ge=0, le=1, description="How likely it is.")]
    distribution: Annotated[Distribution, Field(description="What it draws.")]


class MixtureTime(Table):
    """One of several distributions, each with its chance; nothing with the chance that is left."""

    kind: Literal["mixture"]
    parts: Annotated[list[MixturePart], Field(min_length=1, description="The parts.")]


Distribution = Annotated[
    FixedTime
    | UniformTime
    | ExponentialTime
    | NormalTime
    | LognormalTime
    | ParetoTime
    | RecordedTime
    | MixtureTime,
    Field(discriminator="kind"),
]


MixturePart.model_rebuild()


class PerRankTime(_FromFile):
    """How late each rank comes, as it was measured."""

    kind: Literal["per_rank"]
    times: Annotated[
        list[list[Time]],
        Field(
            default_factory=list,
            description="By rank; several such lists are taken in turn by the repetitions.",
        ),
    ]
    unit: Annotated[
        str | None,
        Field(default=None, description="Of the file's numbers, if its header does not say it."),
    ]

    @model_validator(mode="after")
    def _one_origin(self) -> PerRankTime:
        return _one_of(self, "times")


class PeriodicDetours(Table):
    """A detour in every period, as the ticks of an operating system are."""

    kind: Literal["periodic"]
    period: Annotated[Time, Field(description="From one detour's start to the next one's.")]
    duration: Annotated[Time, Field(description="How long each takes the processor away.")]
    aligned: Annotated[
        bool,
        Field(default=False, description="Whether all ranks have them at the same time."),
    ]


class PoissonDetours(Table):
    """Detours at random times: interrupts, or bursts of traffic that block a node's link."""

    kind: Literal["poisson"]
    interval: Annotated[Time, Field(description="From one start to the next, in the mean.")]
    duration: Annotated[Distribution, Field(description="How long each lasts.")]
    aligned: Annotated[
        bool,
        Field(default=False, description="Whether all ranks have them at the same time."),
    ]


class TraceDetours(_FromFile):
    """Detours as they were recorded, played over and over from a random place for each rank."""

    kind: Literal["trace"]
    detours: Annotated[
        list[tuple[Time, Time]],
        Field(default_factory=list, description="Each as [start, duration]."),
    ]
    cycle: Annotated[
        Time | None,
        Field(default=None, description="When it starts again; else where its last detour ends."),
    ]
    unit: Annotated[str, Field(default="ns", description="Of the file's numbers.")]
    aligned: Annotated[
        bool, Field(default=False, description="Whether all ranks are at the same place.")
    ]

    @model_validator(mode="after")
    def _one_origin(self) -> TraceDetours:
        return _one_of(self, "detours")


_Origin = TypeVar("_Origin", bound=_FromFile)


def _one_of(table: _Origin, values: str) -> _Origin:
    """Refuses a table that gives its values twice, or not at all."""
    if bool(getattr(table, values)) == (table.file is not None):
        raise refused("expected either `{values}` or `file`", values=values)
    return table


class Noise(Table):
    """Time that is lost at random, for example to the operating system."""

    step: Annotated[
        Distribution | None,
        Field(default=None, description="Lost by a rank at the start of a step."),
    ]
    message: Annotated[
        Distribution | None, Field(default=None, description="Added to a message's way.")
    ]
    detours: Annotated[
        Annotated[PeriodicDetours | PoissonDetours | TraceDetours, Field(discriminator="kind")]
        | None,
        Field(default=None, description="Times in which a rank's processor does something else."),
    ]


class FlowTable(Table):
    """Messages of others between the NPUs of two ranks."""

    source: Annotated[int, Field(ge=0, description="The rank on whose NPU they start.")]
    destination: Annotated[int, Field(ge=0, description="The rank on whose NPU they end.")]
    size: Annotated[Size, Field(description="Of each.")]
    start: Annotated[Time, Field(default="0 ns", description="When the first is sent.")]
    period: Annotated[Time, Field(default="0 ns", description="From one to the next.")]
    count: Annotated[int, Field(default=1, ge=1, lt=1 << 63, description="How many there are.")]


class Background(Table):
    """Traffic of others on the links of the platform's topology."""

    load: Annotated[
        float | list[float] | None,
        Field(
            default=None,
            description="The share of a link's rate that it takes, from 0 to below 1: one for all "
            "links, or one for each kind of link, fastest first and then by latency.",
        ),
    ]
    burst: Annotated[
        Size, Field(default="4 KiB", description="How long a burst of it is in the mean.")
    ]
    flows: Annotated[
        list[FlowTable],
        Field(default_factory=list, description="For networks in which messages meet: messages."),
    ]
    file: Annotated[
        str | None,
        Field(default=None, description="More flows, from a CSV, Parquet or plain text file."),
    ]

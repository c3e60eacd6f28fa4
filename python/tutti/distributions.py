"""Distributions of times, and times that were measured."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, Strict, ValidationInfo, field_validator, model_validator

from tutti.errors import ConfigError, NoiseError
from tutti.parameters import Parameters
from tutti.units import Time

Share = Annotated[float, Strict(), Field(ge=0, le=1, allow_inf_nan=False)]


def _with_kind(schema: dict[str, Any]) -> None:
    """Makes `kind` required in JSON Schemas: files name it, as nothing else tells tables apart."""
    del schema["properties"]["kind"]["default"]
    schema["required"] = ["kind", *schema.get("required", ())]


class OfKind(Parameters):
    """One of several classes that `kind` tells apart."""

    model_config = ConfigDict(json_schema_extra=_with_kind)


class Measured(OfKind):
    """Values that may stand in a file, which is read when they are checked."""

    file: Annotated[
        str | None,
        Field(
            repr=False,
            description="Instead, a CSV, Parquet or plain text file with them.",
        ),
    ] = None

    def _read(self, values: str, reader: str, info: ValidationInfo, **options: str | None) -> Self:
        """Fills in the values of the file, as a function of `tutti.recordings` reads them.

        Raises:
            ConfigError: values are given twice or not at all, or the file cannot be used.
        """
        if bool(getattr(self, values)) == (self.file is not None):
            raise ConfigError(f"expected either `{values}` or `file`", kind="invalid")
        if self.file is not None:
            # Recorded values are equal wherever they stood.
            fields = type(self).model_fields
            self.__dict__ |= {name: fields[name].default for name in ("file", *options)} | {
                values: read_file(self.file, reader, info, **options)
            }
        return self


def read_file(file: str, reader: str, info: ValidationInfo, **options: Any) -> Any:  # noqa: ANN401 - what the reader returns
    """Reads a recording; its path starts from the folder of a configuration file, if one names it.

    Args:
        file: The path.
        reader: A function of `tutti.recordings`.
        info: Whose context has the folder.
        options: Of the reader.

    Raises:
        ConfigError: the file cannot be used.
    """
    from tutti import recordings

    folder = (info.context or {}).get("folder") or Path()
    return getattr(recordings, reader)(folder / file, **options)


Unit = Annotated[
    str | None,
    Field(
        repr=False,
        description="Of the file's numbers, if its header does not say it.",
    ),
]


class Fixed(OfKind):
    """The same time, always."""

    kind: Literal["fixed"] = "fixed"
    time: Annotated[Time, Field(description="The time.")]

    def __str__(self) -> str:
        return f"fixed({self.time})"


class Uniform(OfKind):
    """Any time between two, all equally likely."""

    kind: Literal["uniform"] = "uniform"
    low: Annotated[Time, Field(description="The shortest time.")] = Time(ps=0)
    high: Annotated[Time, Field(description="The longest time.")]

    def __str__(self) -> str:
        return f"uniform({self.low}, {self.high})"


class Exponential(OfKind):
    """Mostly short times and a few long ones."""

    kind: Literal["exponential"] = "exponential"
    mean: Annotated[Time, Field(description="The mean time.")]

    def __str__(self) -> str:
        return f"exponential({self.mean})"


class Normal(OfKind):
    """Times around a mean; of the normal distribution only what is not negative is drawn."""

    kind: Literal["normal"] = "normal"
    mean: Annotated[Time, Field(description="The mean, before negative times are left out.")]
    deviation: Annotated[Time, Field(description="The standard deviation, likewise.")]

    def __str__(self) -> str:
        return f"normal({self.mean}, {self.deviation})"


class Lognormal(OfKind):
    """Times whose logarithm is normal: skewed, with a long tail."""

    kind: Literal["lognormal"] = "lognormal"
    median: Annotated[Time, Field(description="Half of the times are longer.")]
    sigma: Annotated[
        float,
        Strict(),
        Field(
            ge=0, allow_inf_nan=False, description="Standard deviation of the natural logarithm."
        ),
    ]

    def __str__(self) -> str:
        return f"lognormal({self.median}, {self.sigma!r})"


class Pareto(OfKind):
    """A heavy tail: a time is longer than t with chance (least / t) ** shape."""

    kind: Literal["pareto"] = "pareto"
    least: Annotated[Time, Field(description="The shortest time.")]
    shape: Annotated[
        float,
        Strict(),
        Field(gt=0, allow_inf_nan=False, description="How fast the tail falls off."),
    ]
    most: Annotated[
        Time | None,
        Field(description="Longer times are not drawn; without it the tail has no end."),
    ] = None

    def __str__(self) -> str:
        most = f", {self.most}" if self.most else ""
        return f"pareto({self.least}, {self.shape!r}{most})"


class Recorded(Measured):
    """Times that were measured, one drawn at random each time."""

    kind: Literal["recorded"] = "recorded"
    times: list[Time] = Field(default_factory=list, description="The measured times.")
    column: Annotated[
        str | None,
        Field(repr=False, description="Of the file's columns, this one."),
    ] = None
    unit: Unit = None

    @model_validator(mode="after")
    def _one_origin(self, info: ValidationInfo) -> Self:
        return self._read("times", "durations", info, column=self.column, unit=self.unit)

    @classmethod
    def read(cls, path: str | Path, *, column: str | None = None, unit: str | None = None) -> Self:
        """Reads durations from a file: see `tutti.recordings.durations`.

        Raises:
            ConfigError: the file cannot be used; the message gives the line.
        """
        return cls(file=str(path), column=column, unit=unit)

    def __str__(self) -> str:
        return f"recorded({', '.join(str(time) for time in self.times)})"


class Part(Parameters):
    """A part of a mixture: how likely it is, and what it draws."""

    chance: Annotated[Share, Field(description="How likely it is.")]
    distribution: Annotated[Distribution, Field(description="What it draws.")]


class Mixture(OfKind):
    """One of several distributions, each with its chance; nothing with the chance that is left.

    A single part of a small chance is a rare event.
    """

    kind: Literal["mixture"] = "mixture"
    parts: Annotated[list[Part], Field(min_length=1, description="The parts.")]

    def __str__(self) -> str:
        parts = (f"{part.chance!r} {part.distribution}" for part in self.parts)
        return f"mixture({', '.join(parts)})"


Distribution = Annotated[
    Fixed | Uniform | Exponential | Normal | Lognormal | Pareto | Recorded | Mixture,
    Field(discriminator="kind"),
]

Part.model_rebuild()


class PerRank(Measured):
    """How late each rank comes, as it was measured: a list of times by rank, or several such lists.

    Of several lists, the run with seed s takes the list s modulo their number: repetitions take one
    after the other.
    """

    kind: Literal["per_rank"] = "per_rank"
    times: list[Annotated[list[Time], Field(min_length=1)]] = Field(
        default_factory=list,
        description="By rank; several such lists are taken in turn by the repetitions.",
    )
    unit: Unit = None

    @model_validator(mode="after")
    def _one_origin(self, info: ValidationInfo) -> Self:
        return self._read("times", "arrivals", info, unit=self.unit)

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
        return cls(file=str(path), unit=unit)

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

"""Distributions of times, and recorded times."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, Strict, ValidationInfo, field_validator, model_validator

from tutti.base.errors import ConfigError
from tutti.base.parameters import Parameters
from tutti.base.units import Time
from tutti.platforms.errors import NoiseError

Share = Annotated[float, Strict(), Field(ge=0, le=1, allow_inf_nan=False)]


def _with_kind(schema: dict[str, Any]) -> None:
    """Makes `kind` required in JSON Schemas, as it distinguishes the tables."""
    del schema["properties"]["kind"]["default"]
    schema["required"] = ["kind", *schema.get("required", ())]


class OfKind(Parameters):
    """A class that `kind` distinguishes from others."""

    model_config = ConfigDict(json_schema_extra=_with_kind)


class RecordedValues(OfKind):
    """Values that may be read from a file, when they are validated."""

    file: str | None = Field(
        None, repr=False, description="A CSV, Parquet or text file that holds the values."
    )

    def _read(self, values: str, reader: str, info: ValidationInfo, **options: str | None) -> Self:
        """Sets the values from the file, read by a function of `tutti.platforms.recordings`.

        Raises:
            ConfigError: Values are given twice or not at all, or the file is invalid.
        """
        if bool(getattr(self, values)) == (self.file is not None):
            raise ConfigError(f"expected either `{values}` or `file`", kind="invalid")
        if self.file is not None:
            # Values compare equal whether they come from a file or not.
            fields = type(self).model_fields
            self.__dict__ |= {name: fields[name].default for name in ("file", *options)} | {
                values: read_file(self.file, reader, info, **options)
            }
        return self


def read_file(file: str, reader: str, info: ValidationInfo, **options: Any) -> Any:  # noqa: ANN401 - the result of the reader
    """Reads a recording; relative paths start from the folder of the configuration file.

    Args:
        file: The path.
        reader: The name of a function of `tutti.platforms.recordings`.
        info: Validation info, whose context holds the folder.
        options: Options of the reader.

    Raises:
        ConfigError: The file is invalid.
    """
    from tutti.platforms import recordings

    folder = (info.context or {}).get("folder") or Path()
    return getattr(recordings, reader)(folder / file, **options)


Unit = Annotated[
    str | None,
    Field(
        repr=False,
        description="Unit of the numbers in the file, if its header has none.",
    ),
]


class Fixed(OfKind):
    """A constant time."""

    kind: Literal["fixed"] = "fixed"
    time: Time = Field(description="The time.")

    def __str__(self) -> str:
        return f"fixed({self.time})"


class Uniform(OfKind):
    """A uniform distribution between two times."""

    kind: Literal["uniform"] = "uniform"
    low: Time = Field(Time(ps=0), description="The shortest time.")
    high: Time = Field(description="The longest time.")

    def __str__(self) -> str:
        return f"uniform({self.low}, {self.high})"


class Exponential(OfKind):
    """An exponential distribution."""

    kind: Literal["exponential"] = "exponential"
    mean: Time = Field(description="The mean time.")

    def __str__(self) -> str:
        return f"exponential({self.mean})"


class Normal(OfKind):
    """A normal distribution, truncated at zero."""

    kind: Literal["normal"] = "normal"
    mean: Time = Field(description="The mean, before truncation.")
    deviation: Time = Field(description="The standard deviation, before truncation.")

    def __str__(self) -> str:
        return f"normal({self.mean}, {self.deviation})"


class Lognormal(OfKind):
    """A lognormal distribution: skewed, with a long tail."""

    kind: Literal["lognormal"] = "lognormal"
    median: Time = Field(description="The median time.")
    sigma: Annotated[float, Strict()] = Field(
        ge=0, allow_inf_nan=False, description="Standard deviation of the natural logarithm."
    )

    def __str__(self) -> str:
        return f"lognormal({self.median}, {self.sigma!r})"


class Pareto(OfKind):
    """A Pareto distribution with P(time > t) = (least / t) ** shape: a heavy tail."""

    kind: Literal["pareto"] = "pareto"
    least: Time = Field(description="The shortest time.")
    shape: Annotated[float, Strict()] = Field(
        gt=0,
        allow_inf_nan=False,
        description="The shape parameter; larger values have a lighter tail.",
    )
    most: Time | None = Field(None, description="The longest time; unlimited if absent.")

    def __str__(self) -> str:
        most = f", {self.most}" if self.most else ""
        return f"pareto({self.least}, {self.shape!r}{most})"


class Recorded(RecordedValues):
    """Measured times, of which each draw selects one at random."""

    kind: Literal["recorded"] = "recorded"
    times: list[Time] = Field(default_factory=list, description="The measured times.")
    column: str | None = Field(None, repr=False, description="The column of the file.")
    unit: Unit = None

    @model_validator(mode="after")
    def _one_origin(self, info: ValidationInfo) -> Self:
        return self._read("times", "durations", info, column=self.column, unit=self.unit)

    @classmethod
    def read(cls, path: str | Path, *, column: str | None = None, unit: str | None = None) -> Self:
        """Reads durations from a file; see `tutti.platforms.recordings.durations`.

        Raises:
            ConfigError: The file is invalid; the message gives the line.
        """
        return cls(file=str(path), column=column, unit=unit)

    def __str__(self) -> str:
        return f"recorded({', '.join(str(time) for time in self.times)})"


class Part(Parameters):
    """A component of a mixture."""

    chance: Share = Field(description="The probability of the component.")
    distribution: Distribution = Field(description="The distribution of the component.")


class Mixture(OfKind):
    """A mixture of distributions by probability; the remaining probability is zero time.

    A single component of low probability is a rare event.
    """

    kind: Literal["mixture"] = "mixture"
    parts: list[Part] = Field(min_length=1, description="The components.")

    def __str__(self) -> str:
        parts = (f"{part.chance!r} {part.distribution}" for part in self.parts)
        return f"mixture({', '.join(parts)})"


Distribution = Annotated[
    Fixed | Uniform | Exponential | Normal | Lognormal | Pareto | Recorded | Mixture,
    Field(discriminator="kind"),
]

Part.model_rebuild()


class PerRank(RecordedValues):
    """Measured arrival times of each rank: one list by rank, or several.

    With several lists, the run with seed s uses the list s modulo their number, so repetitions use
    consecutive lists.
    """

    kind: Literal["per_rank"] = "per_rank"
    times: list[Annotated[list[Time], Field(min_length=1)]] = Field(
        default_factory=list,
        description="Times by rank; repetitions cycle through several such lists.",
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
        """Reads arrivals from a file; see `tutti.platforms.recordings.arrivals`.

        Raises:
            ConfigError: The file is invalid; the message gives the line.
        """
        return cls(file=str(path), unit=unit)

    def of(self, *, ranks: int, seed: int) -> list[int]:
        """Returns the arrival times of a run, in picoseconds.

        Raises:
            NoiseError: There are fewer times than ranks.
        """
        chosen = self.times[seed % len(self.times)]
        if len(chosen) < ranks:
            message = f"arrivals are given for {len(chosen)} ranks, but the run has {ranks}"
            raise NoiseError(message, kind="too_few_arrivals", fields={"ranks": ranks})
        return [time.ps for time in chosen[:ranks]]

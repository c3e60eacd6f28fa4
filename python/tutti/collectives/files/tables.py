"""The tables of experiment files: keys, types and units, not resolved.

Unknown keys are errors. `tutti.collectives.files.resolve` turns the tables into an `Experiment`.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Discriminator, Field, Tag

from tutti.base.files.custom_errors import CHOICE
from tutti.base.files.limits import RANKS
from tutti.base.files.tables import Table, kind_of
from tutti.base.units import Size
from tutti.platforms.conditions import Background, Conditions, Distribution, Noise, PerRank
from tutti.platforms.files.platform_file import PlatformChoice

RankCount = Annotated[int, Field(ge=2, le=RANKS)]


class RankRange(Table):
    """A geometric range of rank counts."""

    start: RankCount = Field(alias="from", description="The smallest rank count.")
    to: RankCount = Field(description="Upper limit of the rank counts.")
    factor: int = Field(default=2, ge=2, description="Ratio of consecutive rank counts.")


class SizeRange(Table):
    """A geometric range of sizes."""

    start: Size = Field(alias="from", description="The smallest size.")
    to: Size = Field(description="Upper limit of the sizes.")
    factor: int = Field(default=2, ge=2, description="Ratio of consecutive sizes.")


_RanksItem = Annotated[
    Annotated[RankCount, Tag("value")] | Annotated[RankRange, Tag("table")],
    Discriminator(kind_of, custom_error_type=CHOICE, custom_error_message="is not a rank count"),
]
Ranks = Annotated[
    Annotated[RankCount, Tag("value")]
    | Annotated[RankRange, Tag("table")]
    | Annotated[Annotated[list[_RanksItem], Field(min_length=1)], Tag("list")],
    Discriminator(kind_of),
]
_SizesItem = Annotated[
    Annotated[Size, Tag("value")] | Annotated[SizeRange, Tag("table")],
    Discriminator(kind_of, custom_error_type=CHOICE, custom_error_message="is not a size"),
]
Sizes = Annotated[
    Annotated[Size, Tag("value")]
    | Annotated[SizeRange, Tag("table")]
    | Annotated[Annotated[list[_SizesItem], Field(min_length=1)], Tag("list")],
    Discriminator(kind_of),
]
Algorithms = Annotated[
    Annotated[str, Tag("value")]
    | Annotated[Annotated[list[str], Field(min_length=1)], Tag("list")],
    Discriminator(kind_of),
]

_CONDITIONS = Conditions.model_fields
"""Experiments share keys, defaults and descriptions with `Conditions`."""


class Limits(Table):
    """Limits of the cost of measurements; results list the measurements omitted."""

    messages: int | None = Field(
        default=None,
        ge=1,
        description="Most messages of a measurement; larger ones are omitted and listed.",
    )


class RawExperiment(Table):
    """An experiment: a collective on a platform, its algorithms, rank counts and sizes."""

    title: str = Field(default="", description="Title of reports.")
    platform: PlatformChoice = Field(
        description="The platform: a name, the path of a file, a topology such as "
        "`torus:4x4x4,rate=25GB/s`, or a table."
    )
    model: str | None = Field(
        default=None, description="The platform's model; its default model if absent."
    )
    collective: str = Field(description="The collective, such as `all_reduce`.")
    root: int = Field(
        default=0, ge=0, description="The root of a rooted collective, such as broadcast."
    )
    blocks: str | None = Field(
        default=None,
        description="The relative sizes of the blocks of an all_to_all_v: `uniform`, `zipf:S` "
        "by destination, or a CSV file of bytes, a row per source.",
    )
    algorithms: Algorithms = Field(
        default="all", description='Algorithms, as `name` or `name:argument`, or `"all"`.'
    )
    ranks: Ranks = Field(
        description="Rank counts: a number, a list, or a range `{from, to, factor}`."
    )
    sizes: Sizes = Field(
        description="Sizes: one, a list, or a range `{from, to, factor}`. As in nccl-tests, "
        "the size of all_reduce is that of one rank's buffer; the size of all_gather and "
        "reduce_scatter is the total. That of all_to_all_v is what the busiest rank sends."
    )
    datatype: str = Field(default="float32", description="The datatype of the elements.")
    repetitions: int = Field(
        default=1,
        ge=1,
        le=1_000_000,
        description="Repetitions of each measurement, with consecutive seeds.",
    )
    seed: int = Field(
        default=1, ge=0, lt=1 << 63, description="The random seed of the first repetition."
    )
    noise: Annotated[Noise, _CONDITIONS["noise"]]
    arrival: Annotated[Distribution | PerRank | None, _CONDITIONS["arrival"]]
    background: Annotated[Background, _CONDITIONS["background"]]
    speed: dict[str, Annotated[float, Field(gt=0, allow_inf_nan=False)]] = Field(
        default_factory=dict,
        description="Relative speed of the local work of ranks: "
        '`{ "3" = 0.5 }` halves that of rank 3.',
    )
    wait_for_sends: Annotated[bool, _CONDITIONS["wait_for_sends"]]
    limits: Limits = Field(
        default_factory=Limits, description="Limits of the cost of measurements."
    )
    output: str = Field(
        default="out",
        min_length=1,
        description="The folder for results, relative to the working directory.",
    )

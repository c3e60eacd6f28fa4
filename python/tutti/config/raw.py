"""Experiment files as they are written: keys, types and units, and nothing resolved.

Unknown keys are refused. `tutti.config.resolve` turns a raw experiment into one that can be run.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Discriminator, Field, Tag

from tutti.conditions import Background, Conditions, Distribution, Noise, PerRank
from tutti.config.platform import RawPlatform
from tutti.files.custom_errors import CHOICE
from tutti.files.limits import RANKS
from tutti.files.tables import Table, kind_of
from tutti.units import Size

RankCount = Annotated[int, Field(ge=2, le=RANKS)]


class RankRange(Table):
    """Rank counts from `from` to `to`, each `factor` times the one before."""

    start: Annotated[RankCount, Field(alias="from", description="The first number of ranks.")]
    to: Annotated[RankCount, Field(description="No number of ranks is larger than this.")]
    factor: Annotated[
        int, Field(default=2, ge=2, description="Each number is this many times the one before.")
    ]


class SizeRange(Table):
    """Sizes from `from` to `to`, each `factor` times the one before."""

    start: Annotated[Size, Field(alias="from", description="The first size.")]
    to: Annotated[Size, Field(description="No size is larger than this.")]
    factor: Annotated[
        int, Field(default=2, ge=2, description="Each size is this many times the one before.")
    ]


_RanksItem = Annotated[
    Annotated[RankCount, Tag("value")] | Annotated[RankRange, Tag("table")],
    Discriminator(kind_of, custom_error_type=CHOICE, custom_error_message="is no rank count"),
]
Ranks = Annotated[
    Annotated[RankCount, Tag("value")]
    | Annotated[RankRange, Tag("table")]
    | Annotated[Annotated[list[_RanksItem], Field(min_length=1)], Tag("list")],
    Discriminator(kind_of),
]
_SizesItem = Annotated[
    Annotated[Size, Tag("value")] | Annotated[SizeRange, Tag("table")],
    Discriminator(kind_of, custom_error_type=CHOICE, custom_error_message="is no size"),
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
PlatformChoice = Annotated[
    Annotated[str, Tag("value")] | Annotated[RawPlatform, Tag("table")],
    Discriminator(kind_of),
]

_CONDITIONS = Conditions.model_fields
"""Experiments have the same keys, with the same defaults and descriptions."""


class Limits(Table):
    """What is left out because it would take too long; whatever is left out is listed."""

    messages: Annotated[
        int | None,
        Field(
            default=None,
            ge=1,
            description="Measurements of more messages than this are left out, and listed as such.",
        ),
    ]


class RawExperiment(Table):
    """One question: which collective, on which machine, how large, and by which algorithms."""

    title: Annotated[str, Field(default="", description="What is asked, for reports.")]
    platform: Annotated[
        PlatformChoice,
        Field(description="The machine: a known name, a path to a file, or a table of its own."),
    ]
    model: Annotated[
        str | None,
        Field(default=None, description="Which of the platform's models; without it, its default."),
    ]
    collective: Annotated[str, Field(description="The collective, such as `all_reduce`.")]
    root: Annotated[
        int,
        Field(default=0, ge=0, description="The root of a rooted collective such as broadcast."),
    ]
    algorithms: Annotated[
        Algorithms,
        Field(
            default="all",
            description='A list of algorithms as `name` or `name:argument`, or `"all"`.',
        ),
    ]
    ranks: Annotated[
        Ranks,
        Field(description="Numbers of ranks: one, a list, or a range `{from, to, factor}`."),
    ]
    sizes: Annotated[
        Sizes,
        Field(
            description="Sizes with units: one, a list, or a range `{from, to, factor}`. "
            "As in nccl-tests, the size of all_reduce is that of one rank's buffer, that of "
            "all_gather and reduce_scatter the total."
        ),
    ]
    datatype: Annotated[str, Field(default="float32", description="The datatype of an element.")]
    repetitions: Annotated[
        int,
        Field(
            default=1,
            ge=1,
            le=1_000_000,
            description="How often each measurement is repeated, each time with the next seed.",
        ),
    ]
    seed: Annotated[
        int,
        Field(default=1, ge=0, lt=1 << 63, description="The seed of everything that is random."),
    ]
    noise: Annotated[Noise, _CONDITIONS["noise"]]
    arrival: Annotated[Distribution | PerRank | None, _CONDITIONS["arrival"]]
    background: Annotated[Background, _CONDITIONS["background"]]
    speed: Annotated[
        dict[str, Annotated[float, Field(gt=0, allow_inf_nan=False)]],
        Field(
            default_factory=dict,
            description='Ranks whose local work runs at another speed: `{ "3" = 0.5 }` is half.',
        ),
    ]
    wait_for_sends: Annotated[bool, _CONDITIONS["wait_for_sends"]]
    limits: Annotated[
        Limits, Field(default_factory=Limits, description="What is too expensive to run.")
    ]
    output: Annotated[
        str,
        Field(
            default="out",
            min_length=1,
            description="The folder for results, from where the command is run.",
        ),
    ]

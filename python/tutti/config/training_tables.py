"""Files of training steps as they are written: keys, types and units, and nothing resolved."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag

from tutti.endpoint import Configuration, Efficiency, Npu, Ring
from tutti.files.custom_errors import CHOICE
from tutti.files.described import Positive, described_by, table_of
from tutti.files.tables import Table, kind_of
from tutti.training import Bucket, Chunk, Message, Order, Step
from tutti.units import Frequency
from tutti.workload import Chiplet, Parallelism, Systolic
from tutti.workload.compute import Dataflow


class TorusTable(Table):
    """The torus on whose rings the NPUs stand."""

    rings: Annotated[
        list[Ring],
        Field(min_length=1, max_length=8, description="The ring inside a package first."),
    ]
    efficiency: Efficiency = Step.efficiency


class RooflineTable(Table):
    """Operations or bytes of memory, whichever take longer."""

    model: Annotated[Literal["roofline"], Field(description="How time is told.")]


@described_by(Chiplet)
@described_by(Systolic)
class SystolicTable(Table):
    """A systolic array, as SCALE-Sim counts its cycles; memory is never late."""

    model: Annotated[Literal["systolic"], Field(description="How time is told.")]
    dataflow: Annotated[Dataflow, table_of(Systolic).model_fields["dataflow"]] = "weight_stationary"
    clock: Annotated[
        Frequency | None, Field(default=None, description="Its clock; the NPU's if left out.")
    ]
    elements: Annotated[
        Positive, Field(default=1, description="How many such arrays an NPU, or a chiplet, has.")
    ]


class MeasuredTable(Table):
    """Times that were measured, of each pass of each layer."""

    model: Annotated[Literal["measured"], Field(description="How time is told.")]
    file: Annotated[
        str,
        Field(
            description="A CSV file with the columns layer, forward, input_gradient and "
            "weight_gradient, its times with units.",
        ),
    ]


ComputeTable = Annotated[RooflineTable | SystolicTable | MeasuredTable, Discriminator("model")]


_Configuration = Annotated[
    Annotated[str, Tag("value")] | Annotated[Configuration, Tag("table")],
    Discriminator(kind_of, custom_error_type=CHOICE, custom_error_message="is no configuration"),
]


def _word_or_number(value: object) -> str:
    return "word" if value == "stable" else "number"


class RawTraining(Table):
    """A training step, and the configurations that it is run with."""

    title: Annotated[str, Field(default="", description="What is asked.")]
    output: Annotated[str, Field(default="out/training", description="The folder for results.")]
    model: Annotated[
        str,
        Field(
            description="As `name` or `name:argument`; `tutti train list` shows all. "
            "`scalesim:FILE` reads a topology of SCALE-Sim, `chakra:PREFIX` the traces "
            "PREFIX.RANK.et, which say what each NPU does."
        ),
    ]
    batch: Annotated[
        Positive,
        Field(
            default=1, description="Samples of each NPU, or of those that hold a model together."
        ),
    ]
    precision: Annotated[
        Literal["fp16", "bf16", "fp32"],
        Field(default="fp16", description="Of activations, weights and gradients."),
    ]
    iterations: Annotated[
        Annotated[Literal["stable"], Tag("word")] | Annotated[Positive, Tag("number")],
        Discriminator(_word_or_number),
        Field(
            default=2,
            description="How many, one after the other; `stable`: until the last two take as long.",
        ),
    ]
    torus: Annotated[TorusTable, Field(description="The network.")]
    npu: Annotated[Npu, Field(default_factory=Npu, description="Every NPU.")]
    compute: Annotated[
        ComputeTable,
        Field(
            default_factory=lambda: RooflineTable(model="roofline"),
            description="How long an NPU computes.",
        ),
    ]
    parallelism: Annotated[
        Parallelism,
        Field(default_factory=Parallelism, description="What is divided among NPUs."),
    ]
    configurations: Annotated[
        list[_Configuration],
        Field(
            default_factory=lambda: ["no_overlap", "comm_opt", "comp_opt", "ace", "ideal"],
            min_length=1,
            description="Names of those of Rashidi et al. 2021, or tables.",
        ),
    ]
    chunk: Chunk = Step.chunk
    message: Message = Step.message
    order: Order = Step.order
    bucket: Bucket = Step.bucket

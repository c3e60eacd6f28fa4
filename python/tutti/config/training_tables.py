"""Files of training steps as they are written: keys, types and units, and nothing resolved."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag

from tutti.files.custom_errors import CHOICE
from tutti.files.tables import Table, kind_of
from tutti.units import Frequency, OpRate, Size, Time, TimePerByte

Count = Annotated[int, Field(ge=0, lt=1 << 32)]
Positive = Annotated[int, Field(ge=1, lt=1 << 32)]


class RingTable(Table):
    """A ring of the torus."""

    name: Annotated[str, Field(min_length=1, description="What it is called.")]
    nodes: Annotated[Positive, Field(description="NPUs on it.")]
    rate: Annotated[TimePerByte, Field(description="Of a link, in one direction.")]
    latency: Annotated[Time, Field(description="Of a link, from end to end.")]


class TorusTable(Table):
    """The torus on whose rings the NPUs stand."""

    rings: Annotated[
        list[RingTable],
        Field(min_length=1, max_length=8, description="The ring inside a package first."),
    ]
    efficiency: Annotated[
        float,
        Field(default=1.0, gt=0, le=1, description="The part of what links carry that is data."),
    ]


class ParallelismTable(Table):
    """What is divided among how many NPUs; each kind takes whole rings of the torus."""

    tensor: Annotated[
        Positive,
        Field(default=1, description="The weights of a layer, among the first rings."),
    ]
    expert: Annotated[Positive, Field(default=1, description="Experts, among the next rings.")]
    pipeline: Annotated[
        Positive, Field(default=1, description="Layers: so many stages, on the last ring.")
    ]
    micro_batches: Annotated[
        Positive,
        Field(default=1, description="Into how many parts a batch goes through the pipeline."),
    ]
    zero: Annotated[
        Literal[0, 1, 2, 3],
        Field(
            default=0,
            description="The stage of ZeRO: what NPUs of the same weights divide; 3 is FSDP.",
        ),
    ]
    prefetch: Annotated[
        Count, Field(default=1, description="How many passes ahead FSDP gathers weights.")
    ]


class RooflineTable(Table):
    """Operations or bytes of memory, whichever take longer."""

    model: Annotated[Literal["roofline"], Field(description="How time is told.")]


class SystolicTable(Table):
    """A systolic array, as SCALE-Sim counts its cycles; memory is never late."""

    model: Annotated[Literal["systolic"], Field(description="How time is told.")]
    rows: Annotated[Positive, Field(description="Processing elements down.")]
    columns: Annotated[Positive, Field(description="Processing elements across.")]
    dataflow: Annotated[
        Literal["output_stationary", "weight_stationary", "input_stationary"],
        Field(default="weight_stationary", description="What stays in the array."),
    ]
    clock: Annotated[
        Frequency | None, Field(default=None, description="Its clock; the NPU's if left out.")
    ]
    elements: Annotated[
        Positive, Field(default=1, description="How many such arrays an NPU, or a chiplet, has.")
    ]
    share: Annotated[
        Literal["samples", "folds"],
        Field(
            default="samples",
            description="What they share: whole samples, or the folds of each product.",
        ),
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


class NpuTable(Table):
    """Every NPU; the defaults are those of Rashidi et al. 2021."""

    arithmetic: Annotated[
        OpRate,
        Field(default_factory=lambda: OpRate.parse("120 TFLOP/s"), description="All SMs together."),
    ]
    sms: Annotated[Positive, Field(default=80, description="How many SMs it has.")]
    memory: Annotated[
        TimePerByte,
        Field(
            default_factory=lambda: TimePerByte.parse("900 GB/s"),
            description="Bandwidth of its memory.",
        ),
    ]
    clock: Annotated[
        Frequency,
        Field(default_factory=lambda: Frequency.parse("1245 MHz"), description="Its clock."),
    ]
    per_sm: Annotated[
        TimePerByte,
        Field(
            default_factory=lambda: TimePerByte.parse("80 GB/s"),
            description="What one SM pulls when it communicates.",
        ),
    ]
    bus: Annotated[
        TimePerByte,
        Field(
            default_factory=lambda: TimePerByte.parse("500 GB/s"),
            description="Between the NPU and its links, each direction by itself.",
        ),
    ]


class AceTable(Table):
    """ACE; the defaults are those of Rashidi et al. 2021."""

    sram: Annotated[
        Size,
        Field(default_factory=lambda: Size.parse("4 MiB"), description="The scratchpad."),
    ]
    shares: Annotated[
        list[Positive] | None,
        Field(
            default=None,
            description="Its division among the phases and what is done; by rate x chunk if left "
            "out.",
        ),
    ]
    fsms: Annotated[
        Annotated[Positive, Tag("value")] | Annotated[list[Count], Tag("list")],
        Discriminator(kind_of),
        Field(default=16, description="State machines in all, or those of each phase."),
    ]
    division: Annotated[
        Literal["by_time", "evenly"],
        Field(
            default="by_time",
            description="How state machines are divided among the phases: by the time that a chunk "
            "takes in each, or evenly.",
        ),
    ]
    handover: Annotated[
        Literal["at_end", "ahead"],
        Field(
            default="at_end",
            description="When a chunk takes room in the partition of its next phase: when a phase "
            "is over, or ahead of it.",
        ),
    ]
    alus: Annotated[Positive, Field(default=4, description="ALUs, each 64 B a cycle.")]
    banks: Annotated[Positive, Field(default=4, description="Banks of the scratchpad.")]
    packet: Annotated[
        Size,
        Field(
            default_factory=lambda: Size.parse("256 B"),
            description="What is read, reduced and sent as one.",
        ),
    ]
    port: Annotated[
        Positive, Field(default=16, description="Packets that wait at most for a link.")
    ]


class ConfigurationTable(Table):
    """What carries collectives, and what that leaves to compute."""

    name: Annotated[str, Field(min_length=1, description="What it is called.")]
    kind: Annotated[Literal["ideal", "baseline", "ace"], Field(description="The endpoint.")]
    memory: Annotated[
        TimePerByte | None,
        Field(default=None, description="Bandwidth of memory set aside for communication."),
    ]
    sms: Annotated[
        Count, Field(default=0, description="SMs that communicate while others compute.")
    ]
    overlap: Annotated[
        bool,
        Field(
            default=True,
            description="Whether gradients are on their way while the backward pass goes on.",
        ),
    ]
    background: Annotated[
        bool,
        Field(
            default=False,
            description="Whether embedding tables are looked up and updated beside the loop.",
        ),
    ]
    ace: Annotated[AceTable, Field(default_factory=AceTable, description="Settings of ACE.")]
    fused: Annotated[
        bool,
        Field(
            default=True,
            description="Baseline: whether a last reduction and the next send are one kernel.",
        ),
    ]
    charge_writes: Annotated[
        bool,
        Field(
            default=False, description="Baseline: whether writes take from the bandwidth of reads."
        ),
    ]


_Configuration = Annotated[
    Annotated[str, Tag("value")] | Annotated[ConfigurationTable, Tag("table")],
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
    npu: Annotated[NpuTable, Field(default_factory=NpuTable, description="Every NPU.")]
    compute: Annotated[
        ComputeTable,
        Field(
            default_factory=lambda: RooflineTable(model="roofline"),
            description="How long an NPU computes.",
        ),
    ]
    parallelism: Annotated[
        ParallelismTable,
        Field(default_factory=ParallelismTable, description="What is divided among NPUs."),
    ]
    configurations: Annotated[
        list[_Configuration],
        Field(
            default_factory=lambda: ["no_overlap", "comm_opt", "comp_opt", "ace", "ideal"],
            min_length=1,
            description="Names of those of Rashidi et al. 2021, or tables.",
        ),
    ]
    chunk: Annotated[
        Size,
        Field(
            default_factory=lambda: Size.parse("64 KiB"),
            description="The most bytes of a collective that go as one.",
        ),
    ]
    message: Annotated[
        Size,
        Field(
            default_factory=lambda: Size.parse("8 KiB"),
            description="The most bytes that software handles, or a DMA moves, as one.",
        ),
    ]
    order: Annotated[
        Literal["lifo", "fifo"],
        Field(default="lifo", description="Which collective goes first: the newest or the oldest."),
    ]
    bucket: Annotated[
        Size | None,
        Field(default=None, description="Gradients wait until so many bytes have gathered."),
    ]

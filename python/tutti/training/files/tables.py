"""The tables of files of training steps: keys, types and units, not resolved."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag

from tutti.base.files.custom_errors import CHOICE
from tutti.base.files.described import Positive, described_by, table_of
from tutti.base.files.tables import Table, kind_of
from tutti.base.units import Frequency
from tutti.platforms.files.platform_file import PlatformChoice
from tutti.training.endpoint import Configuration, Efficiency, Npu, Ring
from tutti.training.fabric import Dimension
from tutti.training.step import Bucket, Chunk, Detail, Message, Order, Step
from tutti.workloads import Chiplet, Parallelism, Systolic
from tutti.workloads.compute import Dataflow
from tutti.workloads.kernels import Dispatcher, Graph, Precision
from tutti.workloads.transfers import Elements


class TorusTable(Table):
    """The torus that connects the NPUs."""

    rings: list[Ring] = Field(
        min_length=1,
        max_length=8,
        description="The rings, starting with the ring inside a package.",
    )
    efficiency: Efficiency = Step.efficiency


class RooflineTable(Table):
    """The longer of the times of arithmetic and of memory accesses."""

    model: Literal["roofline"] = Field(description="The compute model.")


@described_by(Chiplet)
@described_by(Systolic)
class SystolicTable(Table):
    """A systolic array with SCALE-Sim's cycle counts and ideal memory."""

    model: Literal["systolic"] = Field(description="The compute model.")
    dataflow: Annotated[Dataflow, table_of(Systolic).model_fields["dataflow"]] = "weight_stationary"
    clock: Frequency | None = Field(
        default=None, description="Clock of the array; the NPU's if absent."
    )
    elements: Positive = Field(default=1, description="Number of arrays of an NPU or chiplet.")


class MeasuredTable(Table):
    """Measured times of each pass of each layer."""

    model: Literal["measured"] = Field(description="The compute model.")
    file: str = Field(
        description="A CSV file with columns layer, forward, input_gradient and "
        "weight_gradient; times have units."
    )


class GpuTable(Table):
    """Kernels of a GPU, whose efficiencies are fitted to published training runs.

    `npu` should have the peaks of the GPU; a lower rate or bandwidth slows the kernels.
    """

    model: Literal["gpu"] = Field(description="The compute model.")
    gpu: str = Field(description="The GPU, such as `h100`.")
    precision: Precision = Field(default="bf16", description="The precision of matrix products.")
    efficiency: float | None = Field(
        default=None,
        gt=0,
        le=1,
        description="Fraction of the peak that matrix products and attention reach, instead "
        "of the fitted ones.",
    )
    dispatcher: Dispatcher | None = Field(
        default=None,
        description="Kernels of experts: `alltoall`, `flex` (DeepEP, HybridEP), `fused` or "
        "`dropping`. By default `fused` with MXFP8 and NVFP4, else `flex`.",
    )
    graph: Graph | None = Field(
        default=None,
        description="What CUDA graphs launch: nothing (`eager`), parts of layers (`partial`) "
        "or an iteration (`full`). By default `full` with `fused`, else `partial`.",
    )
    overlapped: bool = Field(
        default=False,
        description="Whether dispatch and combine overlap with another micro-batch, for `tutti "
        "train calibrate`; the simulation of the step exposes them in full.",
    )
    calibration: str | None = Field(
        default=None,
        description="A file of `tutti train calibrate` with factors on the fitted "
        "efficiencies of this GPU.",
    )


class CaptureTable(Table):
    """How the script of `model = "script:FILE"` is captured; see `tutti train capture`."""

    world_size: int = Field(ge=1, le=1 << 20, description="The number of ranks of the job.")
    arguments: dict[Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_.-]*$")],
                    bool | int | float | str] = Field(
        default_factory=dict,
        description="Options of the script: `layers = 16` is `--layers 16`, `checkpoint = true` "
        "is `--checkpoint`. `false` leaves the option out.",
    )  # fmt: skip
    words: list[str] = Field(
        default_factory=list, description="Positional arguments of the script, before its options."
    )
    ranks: list[int] = Field(
        default_factory=list,
        description="The captured ranks. By default rank 0, and those with which captured ranks "
        "exchange messages: one of each pipeline stage.",
    )
    step: Positive | None = Field(
        default=None, description="The captured step, from 1. By default 2, and 3 with DDP."
    )
    values: float | None = Field(
        default=None, description="What each value is that the script reads; refused if absent."
    )
    gpus_per_node: int = Field(
        default=8, ge=1, le=1024, description="GPUs of a node, for LOCAL_RANK."
    )
    store: str = Field(
        default="out/captures",
        min_length=1,
        description="The folder of captured steps, relative to the working directory. A capture "
        "is made again if the script, a module of its folder, PyTorch or tutti changes; files "
        "that the script reads do not count.",
    )


ComputeTable = Annotated[
    RooflineTable | SystolicTable | MeasuredTable | GpuTable, Discriminator("model")
]


_Configuration = Annotated[
    Annotated[str, Tag("value")] | Annotated[Configuration, Tag("table")],
    Discriminator(kind_of, custom_error_type=CHOICE, custom_error_message="is not a configuration"),
]


def _word_or_number(value: object) -> str:
    return "word" if value == "stable" else "number"


class RawTraining(Table):
    """A training step, and its endpoint configurations."""

    title: str = Field(default="", description="Title of reports.")
    output: str = Field(default="out/training", description="The folder for results.")
    model: str = Field(
        description="The model, as `name` or `name:argument`; `tutti train list` lists them. "
        "`scalesim:FILE` reads a SCALE-Sim topology, `chakra:PREFIX` the Chakra traces "
        "PREFIX.RANK.et, `kineto:FILES` profiles of PyTorch: a file, a pattern or a folder. "
        "`captured:FOLDER` is a step of `tutti train capture`, `script:FILE` one that is captured "
        "as `capture` states."
    )
    capture: CaptureTable | None = Field(
        default=None, description="How the script of `script:FILE` is captured."
    )
    batch: Positive = Field(
        default=1, description="Samples per NPU, or per group of NPUs that share a model."
    )
    precision: Literal["fp8", "fp16", "bf16", "fp32"] = Field(
        default="fp16", description="Datatype of activations, weights and gradients."
    )
    elements: Elements = Field(
        default_factory=Elements,
        description="Bytes per element of communication that differ from `precision`.",
    )
    iterations: Annotated[
        Annotated[Literal["stable"], Tag("word")] | Annotated[Positive, Tag("number")],
        Discriminator(_word_or_number),
    ] = Field(
        default=2,
        description="Number of consecutive steps; `stable`: until two take the same time.",
    )
    torus: TorusTable | None = Field(
        default=None, description="The torus between the NPUs; or give `platform`."
    )
    platform: PlatformChoice | None = Field(
        default=None,
        description="The platform instead of a torus, with a topology of flows or packets: a "
        "name, the path of a file, a topology such as `torus:4x4x4`, or a table.",
    )
    dimensions: list[Dimension] = Field(
        default_factory=list,
        max_length=8,
        description="The dimensions of the NPU numbers of `platform`, innermost first; each "
        "kind of parallelism takes complete dimensions.",
    )
    algorithms: dict[str, str | list[str]] = Field(
        default_factory=dict,
        description="The algorithm of each collective: a notation, a file, `auto` for the "
        "fastest alone, or a list with one per channel (chunks use the channels in turn). A "
        'key such as "all_reduce:data" selects the groups along these dimensions. `nccl` is '
        "the choice of the platform's library, `nccl:ring` one of its algorithms. Other "
        "collectives are those of the platform's library with `flows` and `isolated`, if it "
        "is known; else they use rings along each dimension.",
    )
    npu: Npu = Field(default_factory=Npu, description="The parameters of all NPUs.")
    compute: ComputeTable = Field(
        default_factory=lambda: RooflineTable(model="roofline"),
        description="The compute model of an NPU.",
    )
    parallelism: Parallelism = Field(
        default_factory=Parallelism, description="The degrees of parallelism."
    )
    configurations: Annotated[
        list[_Configuration],
        Field(
            default_factory=lambda: ["no_overlap", "comm_opt", "comp_opt", "ace", "ideal"],
            min_length=1,
            description="Endpoint configurations: names from Rashidi et al. 2021, or tables. "
            "The default for the details `flows` and `isolated` is `ideal`.",
        ),
    ]
    chunk: Chunk = Step.chunk
    message: Message = Step.message
    order: Order = Step.order
    detail: Detail = Step.detail
    bucket: Bucket = Step.bucket

"""The options of `tutti train plan`, and the training file of a plan."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tutti.cli import options
from tutti.platforms.files.presets import platform_of, platform_tables
from tutti.platforms.files.scaled import scaled_notation
from tutti.training.files.job import PLATFORM, TOKENS, Job
from tutti.training.plan import FixedDegrees
from tutti.training.plan.training_file import relative, training_file
from tutti.workloads.tokens import Format
from tutti.workloads.transfers import CpCommType, Recompute

if TYPE_CHECKING:
    from tutti.training.plan import Cluster, PlanSearch

_OF_FILES = ("hf", "file", "megatron")
"""Notations of models with the path of a file."""
_DEGREES = "Degrees that the search keeps"
_EXPERTS = "Experts"


@dataclass
class JobOptions(Job):
    """The model, the GPUs and the batch; defaults are those of a job."""

    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="A decoder of `tutti train list`, such as llama3_70b:tokens=8192; "
            "hf:FILE[,tokens=N] with the config.json of Hugging Face; or megatron:FILE with "
            "arguments of Megatron-LM, which also fix the recipe.",
            show_default=False,
        ),
    ]
    platform: Annotated[
        str | None,
        typer.Option("--platform", "-p", help=f"Name or file of a platform with GPUs. Default: "
                     f"{PLATFORM}."),
    ]  # fmt: skip
    gpus: Annotated[
        int | None,
        typer.Option("--gpus", "-g", min=2,
                     help="Number of GPUs. Default: those of the platform; of a rail-optimised "
                     "cluster, as many as have twice the memory of weights, gradients and "
                     "optimizer states."),
    ]  # fmt: skip
    batch: Annotated[
        int | None,
        typer.Option("--batch-tokens", min=1, metavar="TOKENS",
                     help="Tokens of a global batch; default: 4,194,304."),
    ]  # fmt: skip
    global_batch: Annotated[
        int | None,
        typer.Option("--global-batch", min=1, metavar="SEQUENCES",
                     help="Sequences of a global batch, instead of --batch-tokens."),
    ]  # fmt: skip
    npu: Annotated[
        str | None,
        typer.Option("--gpu", help="The GPU, such as h100; default: the one that the name of the "
                     "platform contains."),
    ]  # fmt: skip
    precision: Annotated[
        str | None,
        typer.Option("--precision", show_default=False,
                     help="Matrix products: bf16 (default), fp8 (a scale per tensor), mxfp8 or "
                     "nvfp4."),
    ]  # fmt: skip
    gradients: Annotated[
        str | None,
        typer.Option("--gradients", help="Reduced gradients: fp32 (default) or bf16.",
                     show_default=False),
    ]  # fmt: skip
    efficiency: Annotated[
        float | None,
        typer.Option("--efficiency", min=0.01, max=1.0,
                     help="Fraction of the peak that matrix products and attention reach. Default: "
                     "fitted to published runs, by GPU, precision and model.",
                     show_default=False),
    ]  # fmt: skip
    dispatcher: Annotated[
        str | None,
        typer.Option("--dispatcher", show_default=False,
                     help="Kernels of experts: alltoall (NCCL), flex (DeepEP, HybridEP) or fused "
                     "(with fused grouped products). Default: fused with mxfp8 and nvfp4, else "
                     "flex."),
    ]  # fmt: skip
    overlapped: Annotated[
        bool | None,
        typer.Option("--overlap-experts/--no-overlap-experts", show_default=False,
                     help="Overlap dispatch and combine with another micro-batch; default: no."),
    ]  # fmt: skip
    graph: Annotated[
        str | None,
        typer.Option("--cuda-graphs", show_default=False,
                     help="What CUDA graphs launch: eager (nothing), partial (parts of layers) or "
                     "full (an iteration). Default: full with fused kernels of experts, else "
                     "partial."),
    ]  # fmt: skip
    calibration: Annotated[
        Path | None,
        typer.Option("--calibration", metavar="FILE", show_default=False,
                     help="Factors on the fitted efficiencies, of `tutti train calibrate`."),
    ]  # fmt: skip
    usable: Annotated[
        float,
        typer.Option("--memory-fraction", min=0.01, max=10.0,
                     help="Fraction of the memory for states and activations. The default is "
                     "assumed; above 1, plans that do not fit are priced, too."),
    ]  # fmt: skip


@dataclass
class Degrees:
    """Degrees of parallelism and the exchange that the search keeps."""

    tensor: Annotated[
        int | None,
        typer.Option("--tensor", min=1, rich_help_panel=_DEGREES, help="Fixes the degree TP."),
    ] = None
    context: Annotated[
        int | None,
        typer.Option("--context", min=1, rich_help_panel=_DEGREES, help="Fixes the degree CP."),
    ] = None
    pipeline: Annotated[
        int | None,
        typer.Option("--pipeline", min=1, rich_help_panel=_DEGREES, help="Fixes the degree PP."),
    ] = None
    expert: Annotated[
        int | None,
        typer.Option(
            "--expert",
            min=1,
            rich_help_panel=_DEGREES,
            help="Fixes EP: GPUs with different experts.",
        ),
    ] = None
    data: Annotated[
        int | None,
        typer.Option("--data", min=1, rich_help_panel=_DEGREES, help="Fixes the degree DP."),
    ] = None
    micro_batch: Annotated[
        int | None,
        typer.Option("--micro-batch", min=1, rich_help_panel=_DEGREES,
                     help="Fixes the sequences of a micro-batch."),
    ] = None  # fmt: skip
    chunks: Annotated[
        int | None,
        typer.Option("--chunks", min=1, rich_help_panel=_DEGREES,
                     help="Fixes the model chunks of a pipeline stage."),
    ] = None  # fmt: skip
    recompute: Annotated[
        Recompute | None,
        typer.Option("--recompute", rich_help_panel=_DEGREES,
                     help="Fixes what the backward pass computes again."),
    ] = None  # fmt: skip
    zero: Annotated[
        int | None,
        typer.Option("--zero", min=0, max=3, rich_help_panel=_DEGREES,
                     help="Fixes the ZeRO stage; 3 is FSDP."),
    ] = None  # fmt: skip
    cp_comm_type: Annotated[
        CpCommType | None,
        typer.Option("--cp-comm-type", rich_help_panel=_DEGREES, show_default=False,
                     help="Exchange of keys and values of context parallelism: gathered before "
                     "attention (default), or a ring (p2p) that overlaps with it."),
    ] = None  # fmt: skip

    dispatch_format: Annotated[
        Format | None,
        typer.Option("--dispatch-format", rich_help_panel=_EXPERTS, show_default=False,
                     help="Format of dispatched tokens: bf16 (default), or fp8 with scales; "
                     "outputs of experts return in BF16."),
    ] = None  # fmt: skip
    expert_imbalance: Annotated[
        float | None,
        typer.Option("--expert-imbalance", min=1, max=1e4, rich_help_panel=_EXPERTS,
                     show_default=False,
                     help="Tokens of the busiest GPU over the mean, as `tutti moe` prints it; "
                     "default: 1, balanced routing."),
    ] = None  # fmt: skip

    @property
    def fixed(self) -> FixedDegrees:
        """What the search keeps."""
        given = {key: value for key, value in asdict(self).items() if value is not None}
        return FixedDegrees(**given)


@dataclass
class Shown:
    """What to simulate and to show."""

    top: Annotated[int, typer.Option("--top", min=1, help="Rows of the table.")] = 10
    simulate: Annotated[
        int | None,
        typer.Option("--simulate", min=0, help="Number of plans to simulate; default: 10, or 2 "
                     "beyond 2,048 GPUs."),
    ] = None  # fmt: skip
    threads: options.Threads = 0
    file: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", show_default=False,
                     help="Output file of the best plan, for `tutti train run` (TOML)."),
    ] = None  # fmt: skip


def training_text(job: Job, plans: PlanSearch, folder: Path) -> str:
    """Returns the training file of the best plan, for a folder, to which its paths are relative."""
    name = job.platform or PLATFORM
    raw = platform_of(name, folder=Path(), source="--platform")
    build = scaled_notation(raw, plans.cluster.gpus)
    tables = platform_tables(name, folder=Path(), source="--platform")
    return training_file(plans, plans.fitting[0], _located(job.model, folder), tables, build,
                         folder=folder)  # fmt: skip


def _located(model: str, folder: Path) -> str:
    """Returns the notation of a model whose file is relative to a folder."""
    kind, colon, rest = model.partition(":")
    if kind not in _OF_FILES or rest.lstrip().startswith("--"):
        return model
    file, comma, options = rest.partition(",")
    return f"{kind}{colon}{relative(Path(file), folder)}{comma}{options}"


def defaults_of(job: Job, cluster: Cluster) -> str:
    """Returns the defaults that decide the result; empty without any."""
    named = []
    if job.platform is None:
        named.append(f"platform {PLATFORM}")
    if job.gpus is None:
        named.append(f"{cluster.gpus:,} GPUs")
    if job.batch is None and job.global_batch is None:
        named.append(f"global batch of {TOKENS:,} tokens")
    return f"defaults: {'; '.join(named)}" if named else ""

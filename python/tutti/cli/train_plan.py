"""`tutti train plan`: the fastest parallelisation of a decoder on a number of GPUs."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from tutti.base.files.mistakes import mistake, shown
from tutti.cli.grouped import grouped
from tutti.platforms.files.presets import platform_of
from tutti.platforms.files.scaled import enough_gpus, scaled
from tutti.platforms.npus import NpuPeaks, npu, npu_names
from tutti.study.console import out, record, record_table, remark
from tutti.study.progress import Progress
from tutti.training.files.step_file import find_model
from tutti.training.plan import Cluster, FixedDegrees, least_gpus, search
from tutti.training.plan.cluster import EFFICIENCY, USABLE
from tutti.training.plan.explain import explained, table_of
from tutti.training.plan.timing import KINDS
from tutti.view.quantity import format_share, format_time
from tutti.workloads.pieces import Pieces
from tutti.workloads.transfers import CpCommType

if TYPE_CHECKING:
    from tutti.platforms.files.platform_file import RawPlatform
    from tutti.training.plan import PlanSearch, Ranked
    from tutti.workloads import Model

_TOKENS = 4 << 20
"""Tokens of a global batch, by default: the first batch of Llama 3 405B (Grattafiori et al. 2024,
section 3.4.1)."""
_PLATFORM = "dgx_h100_cluster"
_SIMULATED = 10
_SIMULATED_LARGE = 2
_LARGE = 2048

_DEGREES = "Degrees that the search keeps"


@dataclass
class Job:
    """The model, the GPUs and the batch."""

    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="A decoder of `tutti train list`, such as llama3_70b:tokens=8192.",
            show_default=False,
        ),
    ]
    platform: Annotated[
        str | None,
        typer.Option("--platform", "-p", help=f"Name or file of a platform with GPUs. Default: "
                     f"{_PLATFORM}."),
    ] = None  # fmt: skip
    gpus: Annotated[
        int | None,
        typer.Option("--gpus", "-g", min=2,
                     help="Number of GPUs. Default: those of the platform; of a rail-optimised "
                     "cluster, as many as have twice the memory of weights, gradients and "
                     "optimizer states."),
    ] = None  # fmt: skip
    batch: Annotated[
        int | None,
        typer.Option("--batch-tokens", min=1, metavar="TOKENS",
                     help="Tokens of a global batch; default: 4,194,304."),
    ] = None  # fmt: skip
    global_batch: Annotated[
        int | None,
        typer.Option("--global-batch", min=1, metavar="SEQUENCES",
                     help="Sequences of a global batch, instead of --batch-tokens."),
    ] = None  # fmt: skip
    npu: Annotated[
        str | None,
        typer.Option("--gpu", help="The GPU, such as h100; default: the one that the name of the "
                     "platform contains."),
    ] = None  # fmt: skip
    precision: Annotated[str, typer.Option("--precision", help="Matrix products: bf16 or fp8.")] = (
        "bf16"
    )
    efficiency: Annotated[
        float,
        typer.Option("--efficiency", min=0.01, max=1.0,
                     help="Fraction of the peak that kernels reach. The default is fitted to three "
                     "published runs of Llama 3 405B on H100; use a measured value for others."),
    ] = EFFICIENCY  # fmt: skip
    usable: Annotated[
        float,
        typer.Option("--memory-fraction", min=0.01, max=1.0,
                     help="Fraction of the memory for states and activations. The default is "
                     "assumed."),
    ] = USABLE  # fmt: skip


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
        typer.Option("--expert", min=1, rich_help_panel=_DEGREES, help="Fixes the degree EP."),
    ] = None
    data: Annotated[
        int | None,
        typer.Option("--data", min=1, rich_help_panel=_DEGREES, help="Fixes the degree DP."),
    ] = None
    cp_comm_type: Annotated[
        CpCommType,
        typer.Option("--cp-comm-type", rich_help_panel=_DEGREES,
                     help="Exchange of keys and values of context parallelism: gathered before "
                     "attention, or a ring (p2p) that overlaps with it."),
    ] = "all_gather"  # fmt: skip


@dataclass
class Shown:
    """What to simulate and to show."""

    top: Annotated[int, typer.Option("--top", min=1, help="Rows of the table.")] = 10
    simulate: Annotated[
        int | None,
        typer.Option("--simulate", min=0, help="Number of plans to simulate; default: 10, or 2 "
                     "beyond 2,048 GPUs."),
    ] = None  # fmt: skip


@grouped
def plan(job: Job, degrees: Degrees, output: Shown) -> None:
    """Find the fastest parallelisation of a decoder within the memory of the GPUs.

    Searches tensor, context, pipeline, expert and data parallelism, interleaving, micro-batches,
    ZeRO stages, recomputation, and whether stages or replicas are neighbours. A closed form ranks
    all plans, and the engine of `tutti train run` simulates the fastest ones as flows.

    `step` is the time of an iteration, `MFU` the FLOPs of the model over the peak, `GB` the memory
    of a GPU. The last columns are the shares of the step that compute does not hide: the pipeline
    bubble, and communication by kind of parallelism.

    \b
    Examples:
      tutti train plan llama3_8b
      tutti train plan llama3_8b --platform dgx_h100_cluster --gpus 16 \\
        --global-batch 64
      tutti train plan llama3_8b -p dgx_h100_cluster -g 16 --global-batch 64 \\
        --tensor 8 --simulate 2
    """
    model = find_model(job.model, Path())
    cluster = _cluster(job, model)
    _remark_defaults(job, cluster)
    most = output.simulate
    if most is None:
        most = _SIMULATED if cluster.gpus <= _LARGE else _SIMULATED_LARGE
    with Progress("simulating plans", work=max(most, 1), total=most) as progress:
        found = search(
            model,
            cluster,
            _sequences(job, model),
            fixed=FixedDegrees(**asdict(degrees)),
            simulated=most,
            progress=lambda done: progress.advance(1, done),
        )
    _record(found, output.top)
    _show(found, output.top)


def _remark_defaults(job: Job, cluster: Cluster) -> None:
    """Names the defaults that decide the result."""
    named = []
    if job.platform is None:
        named.append(f"platform {_PLATFORM}")
    if job.gpus is None:
        named.append(f"{cluster.gpus:,} GPUs")
    if job.batch is None and job.global_batch is None:
        named.append(f"global batch of {_TOKENS:,} tokens")
    if named:
        remark(f"defaults: {'; '.join(named)}")


def _gpus(job: Job, model: Model, platform: RawPlatform, peaks: NpuPeaks) -> int:
    """Returns the number of GPUs, which has a default."""
    if job.gpus is not None:
        return job.gpus
    capacity = peaks.memory_bytes.bytes * job.usable
    return enough_gpus(platform, 2 * least_gpus(model, capacity), source="--platform")


def _cluster(job: Job, model: Model) -> Cluster:
    if job.precision not in ("bf16", "fp8"):
        raise mistake("unknown precision", source="--precision", value=shown(job.precision),
                      expected="bf16 or fp8")  # fmt: skip
    platform = platform_of(job.platform or _PLATFORM, folder=Path(), source="--platform")
    name = job.npu
    if name is None:
        words = platform.name.split("_")
        known = [one for one in npu_names() if one in words]
        if not known:
            raise mistake(f"platform {platform.name} does not name its GPU", source="--gpu",
                          expected=f"one of {', '.join(npu_names())}")  # fmt: skip
        name = known[0]
    peaks = npu(name)
    return Cluster(
        platform=scaled(platform, _gpus(job, model, platform, peaks), source="--platform"),
        npu=peaks,
        precision=job.precision,  # type: ignore[arg-type]
        efficiency=job.efficiency,
        usable=job.usable,
        smaller=partial(scaled, platform, source="--platform"),
    )


def _sequences(job: Job, model: Model) -> int:
    """Returns the global batch in sequences."""
    if job.global_batch is not None:
        if job.batch is not None:
            raise mistake(
                "conflicts with --global-batch", source="--batch-tokens", expected="one of both"
            )
        return job.global_batch
    tokens = Pieces(model).decoder.tokens
    batch = job.batch or _TOKENS
    if batch % tokens:
        raise mistake("is not a number of sequences", source="--batch-tokens", value=f"{batch:,}",
                      expected=f"a multiple of {tokens:,} tokens")  # fmt: skip
    return batch // tokens


# --- output ---------------------------------------------------------------------------------------


def _show(found: PlanSearch, top: int) -> None:
    shape = Pieces(found.model).decoder
    cluster = found.cluster
    out().print(
        f"{found.model.name} on {cluster.gpus:,} {cluster.npu.name}, {found.batch:,} sequences of "
        f"{shape.tokens:,} tokens, {cluster.precision}",
        style="bold",
    )
    out().print(_table(found, top))
    remark(
        "TP, CP, PP x chunks, EP, DP: tensor, context, pipeline, expert, data; MB: sequences of a "
        "micro-batch; Z: ZeRO stage; F: full recomputation; bubble to DP: shares of the step; "
        "~: estimated, not simulated"
    )
    for text in explained(found):
        out().print(text, markup=False)
    out().print(f"\n{table_of(found.fitting[0])}", markup=False)
    for one in found.fitting[:top]:
        if one.problem:
            remark(f"not simulated: {one.problem}")


def _table(found: PlanSearch, top: int) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    names = ("TP", "CP", "PP", "EP", "DP", "MB", "Z", "", "step", "MFU", "GB", "bubble")
    for name in (*names, *(_SHORT[kind] for kind in KINDS)):
        table.add_column(name, justify="right", no_wrap=True)
    for one in found.fitting[:top]:
        kinds, timing = one.plan.kinds, one.timing
        chunks = f"x{kinds.interleaved}" if kinds.interleaved > 1 else ""
        table.add_row(
            str(kinds.tensor),
            str(kinds.context),
            f"{kinds.pipeline}{chunks}",
            str(kinds.expert),
            str(one.plan.data),
            str(one.plan.micro_batch),
            str(kinds.zero),
            "F" if kinds.recompute == "full" else "",
            f"{'' if one.simulated else '~'}{format_time(timing.step * 1e12)}",
            format_share(found.mfu(timing)),
            f"{one.memory.total / 1e9:.0f}",
            *(
                f"{100 * seconds / timing.step:.1f}" if seconds else "-"
                for seconds in (timing.idle, *(timing.exposed.get(kind, 0.0) for kind in KINDS))
            ),
        )
    return table


_SHORT = {"tensor": "TP", "context": "CP", "expert": "EP", "pipeline": "PP", "data": "DP"}


def _record(found: PlanSearch, top: int) -> None:
    record(
        model=found.model.name,
        gpus=found.cluster.gpus,
        npu=found.cluster.npu.name,
        precision=found.cluster.precision,
        batch_sequences=found.batch,
        capacity_bytes=found.cluster.capacity,
        exceeding_plans=len(found.exceeding),
        explanations=list(explained(found)),
    )
    record_table("plans", lambda: (_row(found, one) for one in found.fitting[:top]))


def _row(found: PlanSearch, one: Ranked) -> dict[str, Any]:
    kinds, timing = one.plan.kinds, one.timing
    return {
        **{kind: one.plan.degree(kind) for kind in kinds.order},
        "order": list(kinds.order),
        "interleaved": kinds.interleaved,
        "micro_batch": one.plan.micro_batch,
        "micro_batches": kinds.micro_batches,
        "zero": kinds.zero,
        "recompute": kinds.recompute,
        "within_domain": one.plan.inside(found.cluster.domain),
        "step_s": timing.step,
        "estimated_step_s": one.estimated.step,
        "simulated": one.simulated is not None,
        "mfu": found.mfu(timing),
        "compute_s": timing.compute,
        "bubble_s": timing.idle,
        "exposed_s": dict(timing.exposed),
        "memory_bytes": {**asdict(one.memory), "total": one.memory.total},
    }

"""The model, the GPUs and the batch of a plan, from options or a row of measured steps."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tutti.base.files.mistakes import known_name, mistake, shown
from tutti.platforms.files.presets import platform_names, platform_of
from tutti.platforms.files.scaled import enough_gpus, scaled
from tutti.platforms.npus import NpuPeaks, npu, npu_names
from tutti.training.files.calibration import read_calibration
from tutti.training.plan import Cluster, least_gpus
from tutti.training.plan.cluster import USABLE
from tutti.workloads.kernels import DISPATCHERS, GRAPHS, PRECISIONS
from tutti.workloads.pieces import Pieces

if TYPE_CHECKING:
    from tutti.platforms.files.platform_file import RawPlatform
    from tutti.training.plan.calibrated import Calibrated
    from tutti.workloads import Model

__all__ = ["PLATFORM", "TOKENS", "Job", "cluster_of", "sequences_of", "unlike_platform"]

TOKENS = 4 << 20
"""Tokens of a global batch, by default: the first batch of Llama 3 405B (Grattafiori et al. 2024,
section 3.4.1)."""
PLATFORM = "dgx_h100_cluster"
"""The default platform."""

_GRADIENTS = {"fp32": 4, "bf16": 2}
"""Bytes of a reduced gradient."""


@dataclass
class Job:
    """The model, the GPUs and the batch: the options of `tutti train plan`, None for a default."""

    model: str
    platform: str | None = None
    gpus: int | None = None
    batch: int | None = None
    global_batch: int | None = None
    npu: str | None = None
    precision: str | None = None
    gradients: str | None = None
    efficiency: float | None = None
    dispatcher: str | None = None
    overlapped: bool | None = None
    graph: str | None = None
    calibration: Path | None = None
    usable: float = USABLE


def _gpus(job: Job, model: Model, platform: RawPlatform, peaks: NpuPeaks) -> int:
    """Returns the number of GPUs, which has a default."""
    if job.gpus is not None:
        return job.gpus
    capacity = peaks.memory_bytes.bytes * job.usable
    return enough_gpus(platform, 2 * least_gpus(model, capacity), source="--platform")


def cluster_of(job: Job, model: Model) -> Cluster:
    """Returns the GPUs.

    Raises:
        ConfigError: An option is invalid, or the platform does not name its GPU.
    """
    precision, gradients = job.precision or PRECISIONS[0], job.gradients or "fp32"
    _check_word(precision, PRECISIONS, "--precision")
    _check_word(gradients, tuple(_GRADIENTS), "--gradients")
    if job.dispatcher is not None:
        _check_word(job.dispatcher, DISPATCHERS[:3], "--dispatcher")
    if job.graph is not None:
        _check_word(job.graph, GRAPHS, "--cuda-graphs")
    platform = platform_of(job.platform or PLATFORM, folder=Path(), source="--platform")
    name = job.npu
    if name is None:
        words = platform.name.split("_")
        named = [npu for npu in npu_names() if npu in words]
        if not named:
            raise mistake(f"platform {platform.name} does not name its GPU", source="--gpu",
                          expected=f"one of {', '.join(npu_names())}")  # fmt: skip
        name = named[0]
    peaks = npu(known_name(name, npu_names(), what="GPU", source="--gpu"))
    gpus = _gpus(job, model, platform, peaks)
    return Cluster(
        platform=scaled(platform, gpus, source="--platform"),
        npu=peaks,
        precision=precision,  # type: ignore[arg-type]
        efficiency=job.efficiency,
        dispatcher=job.dispatcher,  # type: ignore[arg-type]
        overlapped=bool(job.overlapped),
        graph=job.graph,  # type: ignore[arg-type]
        gradients=_GRADIENTS[gradients],
        usable=job.usable,
        calibrated=_calibrated(job, peaks),
        smaller=partial(scaled, platform, source="--platform"),
    )


def unlike_platform(cluster: Cluster) -> str:
    """Returns whose links a GPU gets on a platform of other GPUs; else an empty text."""
    name, words = cluster.npu.name, cluster.platform.name.split("_")
    of = [npu for npu in npu_names() if npu in words]
    if not of or name in of:
        return ""
    own = [one for one in platform_names() if name in one.split("_")]
    links = f"{name} on {cluster.platform.name}: links and library are those of {of[0]}"
    return f"{links}; --platform {' or '.join(own)} has its own" if own else links


def _calibrated(job: Job, peaks: NpuPeaks) -> Calibrated | None:
    """Returns the factors of a calibration, which the GPU must have.

    Raises:
        ConfigError: The file is invalid, or the efficiency is given, too.
    """
    if job.calibration is None:
        return None
    if job.efficiency is not None:
        raise mistake("conflicts with --calibration", source="--efficiency",
                      expected="one of both")  # fmt: skip
    found = read_calibration(job.calibration)
    found.check(peaks.name)
    return found


def _check_word(word: str, known: tuple[str, ...], option: str) -> None:
    """Refuses a word that is not an option's."""
    if word not in known:
        expected = f"{', '.join(known[:-1])} or {known[-1]}"
        problem = f"unknown {option.strip('-')}"
        raise mistake(problem, source=option, value=shown(word), expected=expected)


def sequences_of(job: Job, model: Model) -> int:
    """Returns the global batch in sequences.

    Raises:
        ConfigError: The tokens are not a number of sequences, or both options are given.
    """
    if job.global_batch is not None:
        if job.batch is not None:
            raise mistake(
                "conflicts with --global-batch", source="--batch-tokens", expected="one of both"
            )
        return job.global_batch
    tokens = Pieces(model).decoder.tokens
    batch = job.batch or TOKENS
    if batch % tokens:
        raise mistake("is not a number of sequences", source="--batch-tokens", value=f"{batch:,}",
                      expected=f"a multiple of {tokens:,} tokens")  # fmt: skip
    return batch // tokens

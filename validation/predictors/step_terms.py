"""The parts of a training step in closed form, at the published peaks of the NPU.

docs/models/measured-steps.md has the equations.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from tutti.base.files.mistakes import mistake
from tutti.platforms.npus import npu
from tutti.workloads.zoo.llm import DECODERS

if TYPE_CHECKING:
    from predictors.step_rows import TrainingStep

    from tutti.base.units import OpRate, TimePerByte
    from tutti.platforms.npus import NpuPeaks
    from tutti.workloads.decoder import Decoder

__all__ = ["terms"]

_SHAPES: Final = {
    "llama2_70b_lora": "llama2_70b",
    "llama31_8b": "llama3_8b",
    "llama31_405b": "llama3_405b",
}
_FROZEN: Final = frozenset({"llama2_70b_lora"})
"""Benchmarks that train adapters of frozen weights."""
_ADAPTER_BYTES: Final = 2 * 44.6e6
"""Adapters of rank 16 of the attention of Llama 2 70B (MLPerf Training), in BF16."""
_NVLINK_USED: Final = 0.75
"""Share of the NVLink bandwidth that NCCL's collectives reach with large messages."""
_NIC_USED: Final = 0.85
_TENSOR_LATENCY_S: Final = 8e-6
"""Of a small collective within a node."""
_OPTIMIZER_BYTES: Final = 30
"""Per weight: FP32 weight and two moments, read and written, gradient and BF16 weight."""


def terms(step: TrainingStep) -> dict[str, float]:
    """Returns the parts of a step.

    Returns:
        A number per part, which a fitted coefficient multiplies. `gemm`, `bf16`, `memory`, `cast`,
        `accumulate`, `optimizer`, `tensor`, `data`: seconds at peak rates (per byte of a weight for
        `cast` and `accumulate`). `kernels`, `context`, `ring`, `skew`, `step`: counts.

    Raises:
        ConfigError: The NPU is unknown, or lacks the precision.
    """
    one = step.configuration
    peaks = npu(one.npu)
    shape = _shape(_SHAPES[one.benchmark], step.sequence)
    bubble = 1 + (one.pipeline - 1) / (one.interleaved * step.accumulation)
    return {
        **{name: part * bubble for name, part in _passes(step, peaks, shape).items()},
        **_weights(step, peaks, shape),
        **_data(step, peaks, shape),
    }


@lru_cache(maxsize=64)
def _shape(name: str, tokens: int) -> Decoder:
    return replace(DECODERS[name].shape, tokens=tokens)


def _per_second(rate: TimePerByte) -> float:
    return rate.core.bytes_per_second


def _is_frozen(step: TrainingStep) -> bool:
    return step.configuration.benchmark in _FROZEN


def _passes(step: TrainingStep, peaks: NpuPeaks, shape: Decoder) -> dict[str, float]:
    """Forward and backward passes of all micro-batches of a stage, without the bubble."""
    one = step.configuration
    shards = one.tensor * one.pipeline
    tokens = step.accumulation * step.micro_batch * step.sequence / one.context
    # Frozen weights have no gradients: two of three products remain.
    flops = 4 if _is_frozen(step) else 6
    rate = _products(peaks, one.precision).per_second
    # The backward pass of attention computes the scores again: 7 products instead of 6.
    attention = 7 * shape.layers * shape.attended * (shape.queries + shape.values)
    classifier = flops * shape.vocabulary * shape.hidden
    # Norms, activations and residuals: 30 accesses of h and 14 of the feed-forward width per token.
    accesses = 2 * shape.layers * (30 * shape.hidden + 14 * shape.wide)
    layers = step.accumulation * shape.layers / one.pipeline
    return {
        "gemm": flops * shape.blocks * tokens / shards / rate,
        "bf16": (attention + classifier) * tokens / shards / peaks.bf16_flops.per_second,
        "memory": accesses * tokens / shards / _per_second(peaks.memory_bandwidth),
        "kernels": layers,
        "context": 3 * (one.context - 1) * layers,
        "tensor": layers * _tensor_layer(step, peaks, shape),
    }


def _products(peaks: NpuPeaks, precision: str) -> OpRate:
    rates = {"bf16": peaks.bf16_flops, "fp8": peaks.fp8_flops, "fp4": peaks.fp4_flops}
    found = rates[precision]
    if found is None:
        known = ", ".join(name for name, rate in rates.items() if rate is not None)
        problem = f"{peaks.name} does not compute in {precision}"
        raise mistake(problem, source="configuration: precision", expected=f"one of {known}")
    return found


def _tensor_layer(step: TrainingStep, peaks: NpuPeaks, shape: Decoder) -> float:
    """The four all_gathers and four reduce_scatters of a block, forward and backward."""
    one = step.configuration
    if one.tensor == 1:
        return 0.0
    tokens = step.micro_batch * step.sequence / one.context
    size = 2 * tokens * shape.hidden * (one.tensor - 1) / one.tensor
    return 8 * (size / (_per_second(peaks.nvlink_bandwidth) * _NVLINK_USED) + _TENSOR_LATENCY_S)


def _weights(step: TrainingStep, peaks: NpuPeaks, shape: Decoder) -> dict[str, float]:
    """Memory traffic of weights: casts, accumulation of gradients, optimizer."""
    one = step.configuration
    shards = one.tensor * one.pipeline
    rate = _per_second(peaks.memory_bandwidth)
    trained = 0.0 if _is_frozen(step) else shape.parameters / shards
    return {
        "cast": shape.blocks / shards / rate,
        "accumulate": step.accumulation * trained / rate,
        "optimizer": _OPTIMIZER_BYTES * trained / (step.replicas * one.context) / rate,
        "step": 1.0,
    }


def _data(step: TrainingStep, peaks: NpuPeaks, shape: Decoder) -> dict[str, float]:
    """Data parallelism: gradients are reduced and scattered, weights gathered."""
    one = step.configuration
    shards = one.tensor * one.pipeline
    group = step.replicas * one.context
    if _is_frozen(step):
        size = 2 * _ADAPTER_BYTES
    else:
        # BF16 gradients; weights travel in FP8 if the blocks compute in FP8, else in BF16.
        size = (2 + (1 if one.precision == "fp8" else 2)) * shape.parameters / shards
    together = min(group, max(1, one.npus_per_domain // shards))
    rate = _per_second(peaks.nvlink_bandwidth) * _NVLINK_USED
    if group > together:
        rate = min(rate, together * _NIC_USED * _per_second(peaks.nic_bandwidth))
    return {
        "data": size * (group - 1) / group / rate,
        "ring": 2.0 * (group - 1),
        "skew": math.log2(max(1.0, step.npus / one.npus_per_domain)),
    }

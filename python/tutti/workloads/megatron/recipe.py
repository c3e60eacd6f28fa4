"""The recipe of arguments of Megatron-LM: options of `tutti train plan`, and what is not modelled.

Defaults are those of Megatron-LM (`megatron/training/arguments.py`): context parallelism exchanges
keys and values in a ring, gradients of BF16 are reduced in FP32, and experts are divided as other
layers unless `--expert-tensor-parallel-size` is 1.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tutti.base.files.limits import parse_count
from tutti.workloads.megatron.arguments import read_arguments
from tutti.workloads.megatron.decoder import decoder_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from tutti.workloads.megatron.arguments import Arguments

__all__ = ["Recipe", "read_recipe"]

_DEGREES: Final = {
    "tensor": "tensor-model-parallel-size",
    "pipeline": "pipeline-model-parallel-size",
    "context": "context-parallel-size",
    "expert": "expert-model-parallel-size",
}
_MOST_GPUS: Final = 1 << 20
_SHARDING: Final = {"no_shard": 0, "optim": 1, "optim_grads": 2, "optim_grads_params": 3}
_FP8: Final = {"delayed": "fp8", "tensorwise": "fp8", "mxfp8": "mxfp8"}
_GRAPHS: Final = {"none": "eager", "transformer_engine": "partial", "local": "full",
                  "full_iteration": "full"}  # fmt: skip
_WITHOUT_EFFECT: Final = (
    "lr", "min-lr", "adam-", "weight-decay", "clip-grad", "train-", "eval-", "save", "load", "log-",
    "tensorboard", "wandb", "data-", "split", "tokenizer-", "seed", "init-method", "no-load",
    "no-save", "distributed-", "exit-", "vocab-file", "merge-file", "position-embedding", "rotary-",
    "use-rotary", "no-rope", "max-position", "normalization", "norm-epsilon", "layernorm-epsilon",
    "disable-bias-linear", "attention-dropout", "hidden-dropout", "no-masked-softmax",
    "attention-softmax", "qk-layernorm", "transformer-impl", "use-mcore-models", "use-flash-attn",
    "attention-backend", "mock-data", "num-workers", "fp8-amax", "ckpt-", "async-save",
    "timing-log", "master-addr", "master-port", "node-rank", "rdzv", "use-checkpoint", "override-",
    "moe-aux-loss", "moe-z-loss", "moe-router-load-balancing", "moe-router-dtype",
    "moe-router-bias",
    "moe-router-enable", "moe-router-score", "moe-router-pre-softmax", "moe-router-topk-scaling",
    "moe-router-force", "mtp-loss", "no-create-attention", "manual-gc", "apply-layernorm-1p",
    "use-cpu-init", "no-check-for-nan", "dataloader-", "optimizer", "eod-mask", "reset-",
    "calculate-per-token", "rampup", "legacy-", "trust-remote", "no-initialization",
)  # fmt: skip
"""Starts of the names of arguments that do not change the time of a step."""
_ALWAYS: Final = {
    "sequence-parallel": "sequence parallelism, with tensor parallelism",
    "overlap-grad-reduce": "the overlap of gradients with the backward pass",
    "overlap-param-gather": "the overlap of gathers of weights with the forward pass",
    "moe-grouped-gemm": "grouped products of experts",
}
"""Arguments that the model assumes."""


class Recipe(NamedTuple):
    """The recipe of arguments.

    Attributes:
        options: The values of options of `tutti train plan`, by field.
        names: The arguments behind them.
        remarks: Sentences on arguments that are not modelled, or assumed.
    """

    options: dict[str, Any]
    names: dict[str, str]
    remarks: list[str]


def read_recipe(notation: str, folder: Path) -> Recipe:
    """Returns the recipe of arguments.

    Args:
        notation: A file, relative to `folder`, or a text that starts with `--`.
        folder: The base of a relative path.

    Raises:
        ConfigError: The file cannot be read, or an argument has a value that is not modelled.
    """
    given = read_arguments(notation, folder)
    shape = decoder_of(given)
    options: dict[str, Any] = {key: given.count(name, 1) for key, name in _DEGREES.items()}
    names = dict(_DEGREES)

    def add(key: str, value: object, name: str) -> None:
        options[key] = value
        names[key] = name

    add("micro_batch", given.count("micro-batch-size"), "micro-batch-size")
    add("batch", given.optional("global-batch-size"), "global-batch-size")
    add("chunks", *_chunks(given, shape.layers, options["pipeline"]))
    add("zero", *_zero(given))
    add("recompute", *_recompute(given))
    ring = given.text("cp-comm-type", ("p2p", "all_gather", "allgather")) or "p2p"
    add("cp_comm_type", "p2p" if ring == "p2p" else "all_gather", "cp-comm-type")
    add("precision", *_precision(given))
    add("gradients", "bf16" if given.has("grad-reduce-in-bf16") else "fp32", "grad-reduce-in-bf16")
    add("gpus", _gpus(given), "nnodes")
    if shape.experts:
        _add_experts(given, add, options)
    graph = given.text("cuda-graph-impl", tuple(_GRAPHS))
    is_local = given.has("enable-cuda-graph") or given.has("external-cuda-graph")
    add("graph", _GRAPHS[graph] if graph else "partial" if is_local else None, "cuda-graph-impl")
    remarks = list(_remarks(given, options))
    return Recipe({key: one for key, one in options.items() if one is not None}, names, remarks)


def _chunks(given: Arguments, layers: int, stages: int) -> tuple[int, str]:
    """Returns the model chunks of a stage."""
    name = "num-virtual-stages-per-pipeline-rank"
    if name in given.values:
        return given.count(name), name
    name = "num-layers-per-virtual-pipeline-stage"
    if name not in given.values:
        return 1, name
    each = given.count(name)
    if layers % (stages * each):
        raise given.mistake(name, "does not divide the layers of a stage",
                            f"a divisor of {layers} layers / {stages} stages")  # fmt: skip
    return layers // stages // each, name


def _zero(given: Arguments) -> tuple[int, str]:
    """Returns the ZeRO stage."""
    name = "data-parallel-sharding-strategy"
    if sharding := given.text(name, tuple(_SHARDING)):
        return _SHARDING[sharding], name
    for name in ("use-torch-fsdp2", "use-megatron-fsdp", "use-custom-fsdp"):
        if given.has(name):
            return 3, name
    name = "use-distributed-optimizer"
    return int(given.has(name)), name


def _recompute(given: Arguments) -> tuple[str, str]:
    """Returns what the backward pass computes again; FlashAttention repeats its scores."""
    name = "recompute-granularity"
    given.has("recompute-activations")
    if given.text(name, ("selective", "full")) != "full":
        return "selective", name
    method = given.text("recompute-method", ("uniform",))
    if method:
        given.optional("recompute-num-layers")
    return "full", name


def _precision(given: Arguments) -> tuple[str, str]:
    given.has("bf16")
    if given.text("fp4-format"):
        given.text("fp4-recipe", ("nvfp4",))
        return "nvfp4", "fp4-format"
    if given.text("fp8-format") or given.has("fp8-hybrid"):
        recipe = given.text("fp8-recipe", tuple(_FP8)) or "delayed"
        return _FP8[recipe], "fp8-recipe"
    return "bf16", "bf16"


def _gpus(given: Arguments) -> int | None:
    """Returns the number of GPUs of the launcher, if it is stated."""
    given.used |= {"nnodes", "nproc-per-node"}
    counts = [
        parse_count(next(iter(given.values.get(name, [])), ""), _MOST_GPUS)
        for name in ("nnodes", "nproc-per-node")
    ]
    nodes, each = counts
    return nodes * each if nodes and each else None


def _add_experts(given: Arguments, add: Any, options: dict[str, Any]) -> None:  # noqa: ANN401 - a function
    """Adds the kernels of experts, and checks that tensor parallelism does not divide them."""
    name = "expert-tensor-parallel-size"
    tensor = options["tensor"]
    # Megatron-LM divides experts by the degree of tensor parallelism unless it is stated.
    if given.count(name, tensor) != 1:
        raise given.mistake(name, f"of {given.count(name, tensor)} is not modelled", "1",
                            "its default is the degree of tensor parallelism")  # fmt: skip
    kind = given.text("moe-token-dispatcher-type", ("alltoall", "flex")) or "alltoall"
    given.text("moe-flex-dispatcher-backend", ("deepep", "hybridep"))
    kind = "flex" if given.has("moe-enable-deepep") else kind
    add("dispatcher", kind, "moe-token-dispatcher-type")
    name = "overlap-moe-expert-parallel-comm"
    add("overlapped", given.has(name) or None, name)


def _close(name: str, known: Iterable[str]) -> str:
    """Returns a question if a name is a misspelt one."""
    (close,) = get_close_matches(name, known, n=1, cutoff=0.93) or [""]
    return f" (did you mean --{close}?)" if close else ""


def _remarks(given: Arguments, options: dict[str, Any]) -> list[str]:
    found = []
    missing = [
        f"{what} (--{name})"
        for name, what in _ALWAYS.items()
        if not given.has(name)
        and (name != "sequence-parallel" or options["tensor"] > 1)
        and (name != "moe-grouped-gemm" or "num-experts" in given.values)
    ]
    if missing:
        found.append(f"assumed, although {given.source} does not state it: {'; '.join(missing)}")
    rest = [name for name in given.values if name not in given.used]
    idle = [name for name in rest if name.startswith(_WITHOUT_EFFECT)]
    unmodelled = [f"--{name}{_close(name, given.used)}" for name in rest if name not in idle]
    if unmodelled:
        found.append(f"not modelled: {', '.join(unmodelled)}")
    if idle:
        found.append(f"without effect on the time: --{', --'.join(idle)}")
    return found

"""The decoder of arguments of Megatron-LM; the notation is `megatron:FILE` or `megatron:--...`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from tutti.workloads.decoder import MOST_LAYERS, Decoder, Experts, Latent
from tutti.workloads.megatron.arguments import read_arguments
from tutti.workloads.zoo.llm import model_of

if TYPE_CHECKING:
    from tutti.workloads.megatron.arguments import Arguments
    from tutti.workloads.model import Model

__all__ = ["decoder_of", "read_megatron"]

_DIVISIBLE = 128
"""`--make-vocab-size-divisible-by`, by default."""
_OTHER = (
    "window-size", "encoder-num-layers", "decoder-num-layers", "is-hybrid-model",
    "hybrid-override-pattern", "hybrid-attention-ratio", "hybrid-mlp-ratio", "spec",
    "heterogeneous-layers-config-path", "retro-add-retriever", "experimental-attention-variant",
    "linear-attention-type", "parallel-output-heads", "add-bias-linear-experts",
)  # fmt: skip
"""Arguments that change the model, and are not modelled."""
_PATTERN = re.compile(r"\(?\[0\]\*(\d{1,9})\+\[1\]\*(\d{1,9})\)?")
_EVERY = re.compile(r"\(?\[1\]\*(\d{1,9})\)?")


def read_megatron(notation: str, folder: Path) -> Model:
    """Returns the decoder of arguments.

    Raises:
        ConfigError: The file cannot be read, an argument is missing, or an argument changes the
            model and is not modelled.
    """
    found = read_arguments(notation, folder)
    shape = decoder_of(found)
    name = "megatron" if found.source == "megatron:" else Path(found.source).stem
    return model_of(f"{name}:tokens={shape.tokens}", found.source, shape)


def decoder_of(given: Arguments) -> Decoder:
    """Returns the shape of a decoder.

    Raises:
        ConfigError: As :func:`read_megatron`.
    """
    for name in _OTHER:
        if name in given.values:
            hint = "remove it to price the model without"
            raise given.mistake(name, "changes the model, and is not modelled", "no such argument",
                                hint)  # fmt: skip
    hidden, heads = given.count("hidden-size"), given.count("num-attention-heads")
    gated = given.has("swiglu")
    wide = given.count("ffn-hidden-size", _wide(hidden, gated=gated))
    if not wide:
        raise given.mistake("ffn-hidden-size", "is missing",
                            f"a width: two thirds of 4 x {hidden} round to 0")  # fmt: skip
    latent = _latent(given) if given.has("multi-latent-attention") else None
    head = given.optional("kv-channels")
    if head is None and latent is None and hidden % heads:
        raise given.mistake("kv-channels", "is missing", "the elements of a head")
    is_grouped = given.has("group-query-attention")
    groups = given.count("num-query-groups", 1)
    layers = given.count("num-layers", most=MOST_LAYERS)
    return Decoder(
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=groups if is_grouped and latent is None else heads,
        head=head if latent is None else None,
        wide=wide,
        vocabulary=_vocabulary(given),
        tied=not given.has("untie-embeddings-and-output-weights"),
        gated=gated,
        experts=_experts(given, wide, layers),
        latent=latent,
        tokens=given.count("seq-length"),
        mtp=given.count("mtp-num-layers", 0, least=0, most=MOST_LAYERS),
    )


def _wide(hidden: int, *, gated: bool) -> int:
    """Returns the width of feed-forward layers that Megatron-LM uses by default."""
    return 4 * hidden * 2 // 3 // 64 * 64 if gated else 4 * hidden


def _vocabulary(given: Arguments) -> int:
    """Returns the tokens of the vocabulary, padded for tensor parallelism."""
    if (padded := given.optional("padded-vocab-size")) is not None:
        return padded
    tokens = given.count("vocab-size")
    unit = given.count("make-vocab-size-divisible-by", _DIVISIBLE)
    unit *= given.count("tensor-model-parallel-size", 1)
    return -(-tokens // unit) * unit


def _latent(given: Arguments) -> Latent:
    return Latent(
        query=given.count("q-lora-rank", 0),
        key_value=given.count("kv-lora-rank", 32),
        rotary=given.count("qk-pos-emb-head-dim", 64),
        plain=given.count("qk-head-dim", 128),
        value=given.count("v-head-dim", 128),
    )


def _experts(given: Arguments, wide: int, layers: int) -> Experts | None:
    routed = given.optional("num-experts")
    if routed is None:
        return None
    each = given.count("moe-ffn-hidden-size", wide)
    shared = given.count("moe-shared-expert-intermediate-size", 0, least=0)
    if shared % each:
        raise given.mistake("moe-shared-expert-intermediate-size", "is not modelled",
                            f"a multiple of the width of an expert, {each}")  # fmt: skip
    groups = given.count("moe-router-num-groups", 1)
    if routed % groups:
        raise given.mistake("moe-router-num-groups", "does not divide the experts",
                            f"a divisor of {routed}")  # fmt: skip
    return Experts(
        routed=routed,
        top=given.count("moe-router-topk", 2),
        wide=each,
        shared=shared // each,
        dense=_dense(given, layers),
        groups=groups,
        most_groups=given.count("moe-router-group-topk", groups) if groups > 1 else None,
    )


def _dense(given: Arguments, layers: int) -> int:
    """Returns the number of first blocks without experts."""
    text = given.text("moe-layer-freq")
    compact = "".join((text or "1").split())
    found = _PATTERN.fullmatch(compact)
    if found and int(found[1]) + int(found[2]) == layers:
        return int(found[1])
    every = _EVERY.fullmatch(compact)
    if compact == "1" or (every and int(every[1]) == layers):
        return 0
    raise given.mistake("moe-layer-freq", "is not modelled",
                        f"1, or ([0]*D+[1]*E) with D + E = {layers} blocks")  # fmt: skip

"""Large language models with published shapes: dense decoders and mixtures of experts.

Layers of a block are the attention (projections, scores, weighted sums), the projection of all
heads, and one or two feed-forward layers in the same form: `up` (with the gate) and `down`. Experts
follow the shared expert, if any. Norms, biases, routers and attention sinks are left out. The
argument `mtp=N` adds modules of multi-token prediction.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import pairwise
from typing import TYPE_CHECKING

from tutti.workloads.decoder import Decoder, Experts, Latent
from tutti.workloads.model import Gemm, Model, ModelLayer, linear
from tutti.workloads.zoo.transformer import embedding, shared_classifier

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@dataclass(frozen=True)
class Published:
    """A published decoder.

    Attributes:
        summary: A sentence for lists.
        source: The source of the shape.
        shape: The shape, with the sequence length of pre-training.
    """

    summary: str
    source: str
    shape: Decoder


_LLAMA3 = (
    "Grattafiori et al. 2024 (Llama 3), table 3; vocabulary of config.json, 128,256; sequences of "
    "8,192 tokens (section 3.4)"
)
_LLAMA2 = (
    "Touvron et al. 2023 (Llama 2), table 1; feed-forward width and vocabulary of config.json of "
    "meta-llama/Llama-2-70b-hf"
)
_MIXTRAL = "Jiang et al. 2024 (Mixtral of Experts), table 1; sequences of 4,096 tokens: assumed"
_MIXTRAL_22B = "config.json of mistralai/Mixtral-8x22B-v0.1; sequences of 4,096 tokens: assumed"
_DEEPSEEK = (
    "DeepSeek-AI 2024 (DeepSeek-V3), section 4.2; vocabulary of config.json, 129,280; "
    "multi-token prediction is left out"
)
_QWEN3 = (
    "config.json of Qwen/{} on Hugging Face; Yang et al. 2025 (Qwen3), tables 1 and 2; sequences "
    "of 4,096 tokens (section 3.2)"
)
_GPT_OSS = (
    "config.json of openai/{} on Hugging Face; every second block attends to 128 tokens; biases "
    "and attention sinks are left out; sequences of 4,096 tokens: assumed"
)
_KIMI = (
    "config.json of moonshotai/Kimi-K2-Base on Hugging Face; Kimi team 2025 (Kimi K2), table 2; "
    "sequences of 4,096 tokens (section 2.5)"
)
_GPT3 = "Brown et al. 2020 (GPT-3), table 2.1; position embeddings are left out"


def _llama(layers: int, hidden: int, wide: int, vocabulary: int = 128_256) -> Decoder:
    return Decoder(
        layers=layers,
        hidden=hidden,
        heads=hidden // 128,
        kv_heads=8,
        wide=wide,
        vocabulary=vocabulary,
    )


def _mixtral(layers: int, hidden: int, wide: int, vocabulary: int) -> Decoder:
    experts = Experts(routed=8, top=2, wide=wide)
    return replace(_llama(layers, hidden, wide, vocabulary), experts=experts, tokens=4096)


def _qwen3(layers: int, hidden: int, heads: int, wide: int, experts: int = 0) -> Decoder:
    return Decoder(
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=4 if experts else 8,
        head=128,
        wide=wide,
        vocabulary=151_936,
        experts=Experts(routed=experts, top=8, wide=wide) if experts else None,
        tokens=4096,
    )


def _gpt_oss(layers: int, experts: int) -> Decoder:
    return Decoder(
        layers=layers,
        hidden=2880,
        heads=64,
        kv_heads=8,
        head=64,
        wide=2880,
        vocabulary=201_088,
        experts=Experts(routed=experts, top=4, wide=2880),
        window=128,
        tokens=4096,
    )


DECODERS = {
    "deepseek_v3": Published(
        "DeepSeek-V3: 671 B weights, 37 B active.",
        _DEEPSEEK,
        Decoder(
            layers=61,
            hidden=7168,
            heads=128,
            kv_heads=128,
            wide=18_432,
            vocabulary=129_280,
            experts=Experts(
                routed=256, top=8, wide=2048, shared=1, dense=3, groups=8, most_groups=4
            ),
            latent=Latent(query=1536, key_value=512, rotary=64, plain=128, value=128),
            tokens=4096,
        ),
    ),
    "gpt3_175b": Published(
        "GPT-3: 175 B weights.",
        _GPT3,
        Decoder(
            layers=96,
            hidden=12_288,
            heads=96,
            kv_heads=96,
            wide=4 * 12_288,
            vocabulary=50_257,
            tied=True,
            gated=False,
            tokens=2048,
        ),
    ),
    "gpt_oss_120b": Published(
        "GPT-OSS: 117 B weights, 5.1 B active.", _GPT_OSS.format("gpt-oss-120b"), _gpt_oss(36, 128)
    ),
    "gpt_oss_20b": Published(
        "GPT-OSS: 20.9 B weights, 3.6 B active.", _GPT_OSS.format("gpt-oss-20b"), _gpt_oss(24, 32)
    ),
    "kimi_k2": Published(
        "Kimi K2: 1,026 B weights, 33 B active.",
        _KIMI,
        Decoder(
            layers=61,
            hidden=7168,
            heads=64,
            kv_heads=64,
            wide=18_432,
            vocabulary=163_840,
            experts=Experts(routed=384, top=8, wide=2048, shared=1, dense=1),
            latent=Latent(query=1536, key_value=512, rotary=64, plain=128, value=128),
            tokens=4096,
        ),
    ),
    "llama2_70b": Published(
        "Llama 2: 69 B weights.",
        _LLAMA2,
        replace(_llama(80, 8192, 28_672, 32_000), tokens=4096),
    ),
    "llama3_405b": Published("Llama 3: 405 B weights.", _LLAMA3, _llama(126, 16_384, 53_248)),
    "llama3_70b": Published("Llama 3: 70.6 B weights.", _LLAMA3, _llama(80, 8192, 28_672)),
    "llama3_8b": Published("Llama 3: 8.0 B weights.", _LLAMA3, _llama(32, 4096, 14_336)),
    "mixtral_8x22b": Published(
        "Mixtral: 141 B weights, 39 B active.", _MIXTRAL_22B, _mixtral(56, 6144, 16_384, 32_000)
    ),
    "mixtral_8x7b": Published(
        "Mixtral: 46.7 B weights, 12.9 B active.", _MIXTRAL, _mixtral(32, 4096, 14_336, 32_000)
    ),
    "qwen3_235b_a22b": Published(
        "Qwen3: 235 B weights, 22 B active.",
        _QWEN3.format("Qwen3-235B-A22B"),
        _qwen3(94, 4096, 64, 1536, experts=128),
    ),
    "qwen3_30b_a3b": Published(
        "Qwen3: 30.5 B weights, 3.3 B active.",
        _QWEN3.format("Qwen3-30B-A3B"),
        _qwen3(48, 2048, 32, 768, experts=128),
    ),
    "qwen3_32b": Published(
        "Qwen3: 32.8 B weights.", _QWEN3.format("Qwen3-32B"), _qwen3(64, 5120, 64, 25_600)
    ),
    "qwen3_8b": Published(
        "Qwen3: 8.2 B weights.", _QWEN3.format("Qwen3-8B"), _qwen3(36, 4096, 32, 12_288)
    ),
}
"""The decoders by name."""


@cache
def preset_of(shape: Decoder) -> str | None:
    """Returns the name of the decoder with a shape; tokens and padding of the vocabulary differ."""
    for name, one in DECODERS.items():
        words = one.shape.vocabulary
        is_padded = words <= shape.vocabulary <= _PADDED * words
        if is_padded and _bare(one.shape) == _bare(shape):
            return name
    return None


_PADDED = 1.02
"""Largest ratio of a padded vocabulary."""


def _bare(shape: Decoder) -> Decoder:
    """Returns a shape without what does not distinguish models."""
    head = None if shape.latent else shape.head_width
    return replace(shape, tokens=0, mtp=0, vocabulary=0, head=head)


def build(name: str) -> Callable[[str | None], Model]:
    """Returns the function that builds a decoder; its argument is `tokens=N,mtp=N`."""
    return partial(_build, name)


def _build(name: str, argument: str | None) -> Model:
    published = DECODERS[name]
    given = dict(part.split("=") for part in argument.split(",")) if argument else {}
    shape = published.shape
    tokens, mtp = int(given.get("tokens", shape.tokens)), int(given.get("mtp", shape.mtp))
    shape = replace(shape, tokens=tokens, mtp=mtp)
    return model_of(f"{name}:{argument}" if argument else name, published.source, shape)


def model_of(name: str, source: str, shape: Decoder) -> Model:
    """Returns the model of a decoder."""
    layers = tuple(_layers(shape))
    return Model(
        name=name,
        source=source,
        layers=layers,
        samples="sequences",
        decoder=shape,
        cuts=tuple(_ends(layers)),
    )


def _ends(layers: tuple[ModelLayer, ...]) -> Iterator[int]:
    """Yields the ends of the blocks, the first with the embedding, and that of the classifier."""
    for at, (one, following) in enumerate(pairwise(layers), start=1):
        if one.name.startswith("block_") and following.name.endswith(("attention", "classifier")):
            yield at
    yield len(layers)


def _layers(shape: Decoder) -> Iterator[ModelLayer]:
    hidden, tokens = shape.hidden, shape.tokens
    yield embedding(hidden, shape.vocabulary, tokens)
    for block in range(shape.depth):
        name = f"block_{block + 1}"
        if block >= shape.layers:
            yield linear(f"{name}_merge", 2 * hidden, hidden, tokens=tokens, split="k")
        yield _attention(name, shape, shape.attended_in(block))
        yield linear(f"{name}_projection", shape.values, hidden, tokens=tokens, split="k")
        yield from _block_feed_forward(name, block, shape)
    classify = shared_classifier(hidden, shape.vocabulary, tokens * (1 + shape.mtp))
    yield classify if shape.tied else replace(classify, parameters=hidden * shape.vocabulary)


def _block_feed_forward(name: str, block: int, shape: Decoder) -> Iterator[ModelLayer]:
    experts = shape.experts
    if experts is None or block < experts.dense:
        yield from _feed_forward(name, shape, shape.wide)
        return
    if experts.shared:
        yield from _feed_forward(f"{name}_shared", shape, experts.shared * experts.wide)
    yield from _feed_forward(
        f"{name}_expert", shape, experts.wide, top=experts.top, experts=experts.routed
    )


def _attention(name: str, shape: Decoder, attended: int) -> ModelLayer:
    """Returns queries, keys and values, scores, and sums; a causal mask halves the latter two."""
    tokens = shape.tokens
    projections = shape.projections
    return ModelLayer(
        name=f"{name}_attention",
        gemms=(
            *(Gemm(m=tokens, n=outputs, k=inputs) for inputs, outputs in projections),
            Gemm(m=tokens, n=attended, k=shape.queries, weights=False, split="k"),
            Gemm(m=tokens, n=shape.values, k=attended, weights=False),
        ),
        parameters=sum(inputs * outputs for inputs, outputs in projections),
        inputs=tokens * shape.hidden,
        outputs=tokens * (sum(outputs for _, outputs in projections) + shape.values),
        context=tokens * shape.keys_values,
    )


def _feed_forward(
    name: str, shape: Decoder, wide: int, *, top: int = 1, experts: int = 1
) -> Iterator[ModelLayer]:
    """Yields the matrices to `wide`, with the gate, and back; each token passes `top` experts."""
    into, tokens = (shape.matrices - 1) * wide, top * shape.tokens
    yield linear(f"{name}_up", shape.hidden, into, tokens=tokens, experts=experts)
    yield linear(f"{name}_down", wide, shape.hidden, tokens=tokens, split="k", experts=experts)

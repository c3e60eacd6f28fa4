"""Transformers: the base model of 2017, and decoders of any size."""

from __future__ import annotations

from tutti.workloads.decoder import Decoder, Experts
from tutti.workloads.model import Gemm, Model, ModelLayer, linear

BASE_SOURCE = "Vaswani et al. 2017, table 3, base; vocabulary 37,000, sequences of 128 tokens"
GPT_SOURCE = (
    "Radford et al. 2019 in structure: blocks of self-attention (4 h^2 weights) and a feed-forward "
    "layer of 4 h (8 h^2); biases and normalisation are left out"
)

_BASE_TOKENS = 128
_GPT = {"layers": 24, "hidden": 2048, "tokens": 1024, "vocabulary": 50_257, "experts": 1}


def build_base(argument: str | None) -> Model:
    """Builds the base model; the argument is the number of tokens per sequence."""
    tokens = int(argument) if argument else _BASE_TOKENS
    hidden, wide, vocabulary = 512, 2048, 37_000
    layers = [embedding(hidden, vocabulary, tokens)]
    for block in range(1, 7):
        layers += _attention(f"encoder_{block}", hidden, tokens)
        layers += _feed_forward(f"encoder_{block}", hidden, wide, tokens)
    for block in range(1, 7):
        layers += _attention(f"decoder_{block}_self", hidden, tokens)
        layers += _attention(f"decoder_{block}_cross", hidden, tokens)
        layers += _feed_forward(f"decoder_{block}", hidden, wide, tokens)
    layers.append(shared_classifier(hidden, vocabulary, tokens))
    name = "transformer" if tokens == _BASE_TOKENS else f"transformer:{tokens}"
    return Model(name=name, source=BASE_SOURCE, layers=tuple(layers), samples="sequences")


def build_gpt(argument: str | None) -> Model:
    """Builds a decoder; the argument sets some of its sizes.

    The default is `layers=24,hidden=2048,tokens=1024,vocabulary=50257,experts=1`. All feed-forward
    layers have the same number of experts; each token passes one (Fedus et al. 2021). The weights
    of the router are left out.
    """
    given = dict(part.split("=") for part in argument.split(",")) if argument else {}
    size = _GPT | {key: int(value) for key, value in given.items()}
    hidden, tokens = size["hidden"], size["tokens"]
    layers = [embedding(hidden, size["vocabulary"], tokens)]
    for block in range(1, size["layers"] + 1):
        layers += _attention(f"block_{block}", hidden, tokens)
        layers += _feed_forward(
            f"block_{block}", hidden, 4 * hidden, tokens, experts=size["experts"]
        )
    layers.append(shared_classifier(hidden, size["vocabulary"], tokens))
    name = f"gpt:{argument}" if argument else "gpt"
    return Model(
        name=name,
        source=GPT_SOURCE,
        layers=tuple(layers),
        samples="sequences",
        decoder=_decoder(size),
    )


def _decoder(size: dict[str, int]) -> Decoder:
    """Returns the shape; the heads have 128 elements, if these divide the width."""
    hidden, experts = size["hidden"], size["experts"]
    heads = max(1, hidden // 128) if hidden % 128 == 0 else 1
    return Decoder(
        layers=size["layers"],
        hidden=hidden,
        heads=heads,
        kv_heads=heads,
        wide=4 * hidden,
        vocabulary=size["vocabulary"],
        tied=True,
        gated=False,
        causal=False,
        experts=Experts(routed=experts, top=1, wide=4 * hidden) if experts > 1 else None,
        tokens=size["tokens"],
    )


def embedding(hidden: int, vocabulary: int, tokens: int) -> ModelLayer:
    """Returns the embedding, a table by rows: no arithmetic."""
    return ModelLayer(
        name="embedding",
        gemms=(),
        parameters=vocabulary * hidden,
        inputs=tokens * hidden,
        outputs=tokens * hidden,
        first=True,
    )


def shared_classifier(hidden: int, vocabulary: int, tokens: int) -> ModelLayer:
    """Returns the scores of all words; the weights are shared with the embedding."""
    layer = linear("classifier", hidden, vocabulary, tokens=tokens)
    return ModelLayer(
        name=layer.name,
        gemms=layer.gemms,
        parameters=0,
        inputs=layer.inputs,
        outputs=layer.outputs,
    )


def _attention(name: str, hidden: int, tokens: int) -> list[ModelLayer]:
    """Returns queries, keys and values, scores and sums, and the projection of all heads."""
    inside = ModelLayer(
        name=f"{name}_attention",
        gemms=(
            Gemm(m=tokens, n=3 * hidden, k=hidden),
            Gemm(m=tokens, n=tokens, k=hidden, weights=False, split="k"),
            Gemm(m=tokens, n=hidden, k=tokens, weights=False),
        ),
        parameters=3 * hidden * hidden,
        inputs=tokens * hidden,
        outputs=4 * tokens * hidden,
        context=2 * tokens * hidden,
    )
    return [inside, linear(f"{name}_projection", hidden, hidden, tokens=tokens, split="k")]


def _feed_forward(
    name: str, hidden: int, wide: int, tokens: int, *, experts: int = 1
) -> list[ModelLayer]:
    return [
        linear(f"{name}_up", hidden, wide, tokens=tokens, experts=experts),
        linear(f"{name}_down", wide, hidden, tokens=tokens, split="k", experts=experts),
    ]

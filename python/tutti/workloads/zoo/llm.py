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
from typing import TYPE_CHECKING, Any

from tutti.base.bundled import bundled
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


def _published(summary: str, source: str, shape: dict[str, Any]) -> Published:
    parts: dict[str, type[Any]] = {"experts": Experts, "latent": Latent}
    built = {key: kind(**shape[key]) for key, kind in parts.items() if key in shape}
    return Published(summary, source, Decoder(**{**shape, **built}))


DECODERS = {name: _published(**table) for name, table in bundled("workloads/zoo/llm.toml").items()}
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
    """Returns a shape without what does not distinguish models.

    Configurations state a width of dense layers also for models without any.
    """
    head = None if shape.latent else shape.head_width
    experts = shape.experts
    wide = 0 if experts and not experts.dense and experts.every == 1 else shape.wide
    full = shape.full_every if shape.window else 0
    return replace(shape, tokens=0, mtp=0, vocabulary=0, head=head, wide=wide, full_every=full)


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
    if experts is None or not experts.are_in(block):
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

"""GNMT, recurrent translation, as MLPerf trained it: 4 + 4 layers of 1,024."""

from __future__ import annotations

from tutti.workloads.model import Gemm, Model, ModelLayer, linear, lstm

SOURCE = (
    "Wu et al. 2016 in the size of MLPerf training v0.6 (hidden 1,024, 4 encoder and 4 decoder "
    "layers, vocabulary 32,320); the layers that Rashidi et al. 2021 simulated are not published: "
    "inferred"
)

_HIDDEN = 1024
_VOCABULARY = 32_320
_TOKENS = 25
"""Tokens of a sentence on each side; about the mean of WMT'16 English-German: inferred."""


def build(argument: str | None) -> Model:
    """Builds the model.

    Args:
        argument: The number of tokens per sentence on each side, and `,unrolled` if each time step
            of a cell is one product of its inputs and its state.
    """
    length, _, unrolled = (argument or "").partition(",")
    tokens = int(length or _TOKENS)
    name = f"gnmt:{argument}" if unrolled or tokens != _TOKENS else "gnmt"
    layers = tuple(_layers(tokens, bool(unrolled)))
    return Model(name=name, source=SOURCE, layers=layers, samples="sentence pairs")


def _layers(tokens: int, unrolled: bool) -> list[ModelLayer]:
    def recurrent(name: str, inputs: int, both: bool = False) -> ModelLayer:
        return lstm(name, inputs, _HIDDEN, tokens=tokens, both=both, unrolled=unrolled)

    encoder = [
        _embedding("embedding", tokens),
        recurrent("encoder_1", _HIDDEN, both=True),
        recurrent("encoder_2", 2 * _HIDDEN),
        recurrent("encoder_3", _HIDDEN),
        recurrent("encoder_4", _HIDDEN),
    ]
    decoder = [recurrent(f"decoder_{layer}", 2 * _HIDDEN) for layer in range(1, 5)]
    attention = ModelLayer(
        name="attention",
        gemms=(
            Gemm(m=tokens, n=_HIDDEN, k=_HIDDEN),
            Gemm(m=tokens, n=_HIDDEN, k=_HIDDEN),
            Gemm(m=tokens, n=tokens, k=_HIDDEN, weights=False),
            Gemm(m=tokens, n=_HIDDEN, k=tokens, weights=False),
        ),
        parameters=2 * _HIDDEN * _HIDDEN,
        inputs=2 * tokens * _HIDDEN,
        outputs=tokens * _HIDDEN + tokens * tokens,
    )
    return [
        *encoder,
        decoder[0],
        attention,
        *decoder[1:],
        linear("classifier", _HIDDEN, _VOCABULARY, tokens=tokens),
    ]


def _embedding(name: str, tokens: int) -> ModelLayer:
    """Returns a table that both sides share: no arithmetic, gradients as large as the table."""
    return ModelLayer(
        name=name,
        gemms=(),
        parameters=_VOCABULARY * _HIDDEN,
        inputs=2 * tokens * _HIDDEN,
        outputs=2 * tokens * _HIDDEN,
        first=True,
    )

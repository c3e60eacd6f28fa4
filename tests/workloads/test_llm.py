"""Decoders: weights and FLOPs per token compared with published figures."""

from __future__ import annotations

import pytest

from tutti.workloads import build
from tutti.workloads.errors import WorkloadError
from tutti.workloads.zoo.llm import DECODERS


@pytest.mark.parametrize(
    ("name", "total", "active"),
    [
        # The model cards of each; for Llama 3, of meta-llama on Hugging Face.
        ("llama3_8b", 8.03e9, None),
        ("llama3_70b", 70.6e9, None),
        ("llama3_405b", 405.9e9, None),
        ("llama2_70b", 69.0e9, None),
        # Jiang et al. 2024: 47 B weights of which 13 B are active; 46.7 and 12.9 in Mistral's post.
        ("mixtral_8x7b", 46.7e9, 12.9e9),
        ("mixtral_8x22b", 141e9, 39e9),
        # DeepSeek-V3, abstract: 671 B weights, 37 B active.
        ("deepseek_v3", 671e9, 37e9),
        ("gpt3_175b", 175e9, None),
        # Yang et al. 2025 (Qwen3), tables 1 and 2, and the model cards.
        ("qwen3_8b", 8.2e9, None),
        ("qwen3_32b", 32.8e9, None),
        ("qwen3_30b_a3b", 30.5e9, 3.34e9),
        ("qwen3_235b_a22b", 235e9, 22.2e9),
        # OpenAI 2025 (GPT-OSS model card), table 1; active weights with the embedding.
        ("gpt_oss_120b", 116.8e9, 5.71e9),
        ("gpt_oss_20b", 20.9e9, 4.19e9),
        # Kimi team 2025, table 2: 1.04 T weights, 32.6 B active.
        ("kimi_k2", 1.027e12, 32.9e9),
    ],
)
def test_decoders_have_the_published_weights(name: str, total: float, active: float | None) -> None:
    model = build(name)
    assert model.decoder is not None
    assert model.parameters == pytest.approx(total, rel=3e-3)
    assert model.decoder.active == pytest.approx(active or total, rel=0.013)


@pytest.mark.parametrize(
    "name", [*DECODERS, "gpt", "gpt:experts=4", "deepseek_v3:mtp=1", "kimi_k2:tokens=128,mtp=2"]
)
def test_the_shape_has_the_weights_and_flops_of_the_layers(name: str) -> None:
    model = build(name)
    assert model.decoder is not None
    assert model.decoder.parameters == model.parameters
    assert model.decoder.flops * model.decoder.tokens == 6 * model.macs


@pytest.mark.parametrize(
    ("notation", "gflop", "tolerance"),
    [
        # DeepSeek-AI 2025, Insights into DeepSeek-V3 (ISCA), table 2: sequences of 4,096 tokens.
        ("deepseek_v3:tokens=4096", 250, 2e-3),
        ("llama3_405b:tokens=4096", 2448, 0.011),
    ],
)
def test_flops_per_token_are_the_published_ones(
    notation: str, gflop: float, tolerance: float
) -> None:
    decoder = build(notation).decoder
    assert decoder is not None
    assert decoder.flops / 1e9 == pytest.approx(gflop, rel=tolerance)


def test_a_longer_sequence_changes_attention_only() -> None:
    short, long = build("llama3_8b:tokens=4096"), build("llama3_8b:tokens=8192")
    assert short.decoder is not None
    assert long.decoder is not None
    assert short.parameters == long.parameters
    # 4,096 elements in each of two products of 32 blocks with 2,048 further tokens on average.
    assert long.decoder.flops - short.decoder.flops == 6 * 32 * 2048 * 2 * 4096


def test_a_window_limits_every_second_block() -> None:
    decoder = build("gpt_oss_120b:tokens=4096").decoder
    assert decoder is not None
    assert decoder.attended_in(1) == 2048
    # The first 128 tokens attend to 64.5 on average, the others to 128.
    assert decoder.attended_in(0) == pytest.approx(127, abs=1)


def test_multi_token_prediction_adds_a_block_and_scores() -> None:
    """DeepSeek-V3 has 14 B weights in its module (its model card), of which 11.5 B are new here."""
    plain, more = build("deepseek_v3").decoder, build("deepseek_v3:mtp=1").decoder
    assert plain is not None
    assert more is not None
    assert more.parameters - plain.parameters == pytest.approx(11.5e9, rel=0.01)
    # 1 of 61 blocks, and the scores: 0.93 of 37 B active weights.
    assert more.flops / plain.flops == pytest.approx(1 + 1 / 61 + 0.93 / 37, abs=2e-3)


def test_a_token_passes_the_top_experts() -> None:
    """Two of eight experts: as many rows as two tokens, and the weights of all experts."""
    layer = next(one for one in build("mixtral_8x7b").layers if one.name == "block_1_expert_up")
    assert layer.gemms[0].m == 2 * 4096
    assert layer.experts == 8
    assert layer.parameters == 8 * 2 * 14_336 * 4096


@pytest.mark.parametrize("notation", ["llama3_8b:tokens=0", "llama3_8b:8192", "llama3_8b:layers=2"])
def test_an_invalid_argument_is_refused(notation: str) -> None:
    with pytest.raises(WorkloadError, match="llama3_8b:tokens=N"):
        build(notation)

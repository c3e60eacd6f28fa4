"""Decoders from config.json."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tutti.base.errors import ConfigError
from tutti.platforms import npu
from tutti.training.files.step_file import find_model
from tutti.training.plan.efficiency import setting_of, unmeasured
from tutti.workloads import build
from tutti.workloads.zoo.llm import preset_of

if TYPE_CHECKING:
    from pathlib import Path

LLAMA: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14_336,
    "vocab_size": 128_256,
    "tie_word_embeddings": False,
}
QWEN: dict[str, Any] = {
    **LLAMA,
    "architectures": ["Qwen3MoeForCausalLM"],
    "hidden_size": 2048,
    "num_hidden_layers": 48,
    "num_key_value_heads": 4,
    "head_dim": 128,
    "intermediate_size": 6144,
    "moe_intermediate_size": 768,
    "num_experts": 128,
    "num_experts_per_tok": 8,
    "vocab_size": 151_936,
    "sliding_window": None,
}
KIMI: dict[str, Any] = {
    **LLAMA,
    "architectures": ["DeepseekV3ForCausalLM"],
    "hidden_size": 7168,
    "num_hidden_layers": 61,
    "num_attention_heads": 64,
    "num_key_value_heads": 64,
    "intermediate_size": 18_432,
    "moe_intermediate_size": 2048,
    "n_routed_experts": 384,
    "n_shared_experts": 1,
    "num_experts_per_tok": 8,
    "first_k_dense_replace": 1,
    "q_lora_rank": 1536,
    "kv_lora_rank": 512,
    "qk_rope_head_dim": 64,
    "qk_nope_head_dim": 128,
    "v_head_dim": 128,
    "vocab_size": 163_840,
}
GPT_OSS: dict[str, Any] = {
    **LLAMA,
    "architectures": ["GptOssForCausalLM"],
    "hidden_size": 2880,
    "num_hidden_layers": 36,
    "num_attention_heads": 64,
    "head_dim": 64,
    "intermediate_size": 2880,
    "num_local_experts": 128,
    "num_experts_per_tok": 4,
    "sliding_window": 128,
    "layer_types": ["sliding_attention", "full_attention"] * 18,
    "vocab_size": 201_088,
}
GEMMA: dict[str, Any] = {
    "architectures": ["Gemma2ForCausalLM"],
    "hidden_size": 3584,
    "num_hidden_layers": 42,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "head_dim": 256,
    "intermediate_size": 14_336,
    "sliding_window": 4096,
    "vocab_size": 256_000,
}
"""Gemma 2 9B; the classifier shares the embedding although the file does not state it."""
GEMMA_3: dict[str, Any] = {
    **GEMMA,
    "architectures": ["Gemma3ForCausalLM"],
    "hidden_size": 1152,
    "num_hidden_layers": 26,
    "num_attention_heads": 4,
    "num_key_value_heads": 1,
    "intermediate_size": 6912,
    "sliding_window": 512,
    "vocab_size": 262_144,
}
GEMMA_3_4B = {
    "hidden_size": 2560,
    "intermediate_size": 10_240,
    "model_type": "gemma3_text",
    "num_hidden_layers": 34,
    "sliding_window": 1024,
}
LLAMA_4: dict[str, Any] = {
    "attention_chunk_size": 8192,
    "head_dim": 128,
    "hidden_size": 5120,
    "interleave_moe_layer_step": 1,
    "intermediate_size": 8192,
    "intermediate_size_mlp": 16_384,
    "model_type": "llama4_text",
    "num_attention_heads": 40,
    "num_experts_per_tok": 1,
    "num_hidden_layers": 48,
    "num_key_value_heads": 8,
    "num_local_experts": 16,
    "vocab_size": 202_048,
}
MAVERICK = {**LLAMA_4, "interleave_moe_layer_step": 2, "num_local_experts": 128}


def multimodal(text: dict[str, Any]) -> dict[str, Any]:
    """A file of Llama 4, whose text model is a part."""
    names = ["Llama4ForConditionalGeneration"]
    return {"architectures": names, "text_config": text, "vision_config": {}}


def written(folder: Path, fields: dict[str, Any]) -> Path:
    (folder / "config.json").write_text(json.dumps(fields))
    return folder


@pytest.mark.parametrize(
    ("fields", "preset"),
    [
        (LLAMA, "llama3_8b"),
        (QWEN, "qwen3_30b_a3b"),
        (KIMI, "kimi_k2"),
        (GPT_OSS, "gpt_oss_120b"),
    ],
)
def test_a_config_is_the_preset(fields: dict[str, Any], preset: str, tmp_path: Path) -> None:
    read = find_model(f"hf:{written(tmp_path, fields)},tokens=4096", tmp_path)
    expected = build(f"{preset}:tokens=4096")
    assert read.layers == expected.layers
    assert read.parameters == expected.parameters


@pytest.mark.parametrize(("fields", "preset"), [(LLAMA, "llama3_8b"), (QWEN, "qwen3_30b_a3b")])
def test_a_config_has_the_fitted_factors_of_its_preset(
    fields: dict[str, Any], preset: str, tmp_path: Path
) -> None:
    """Qwen3 states a width of dense layers, which it does not have."""
    (tmp_path / "own.json").write_text(json.dumps(fields), encoding="utf-8")
    model = find_model("hf:own.json,tokens=4096", tmp_path)
    assert model.name.startswith("own:")
    assert model.decoder is not None
    assert preset_of(model.decoder) == preset
    (sentence,) = unmeasured(setting_of(npu("h100"), model, "bf16"), "own")
    assert sentence == f"own has the shape of {preset}, whose fitted factors apply"


def test_the_sequence_length_is_in_the_name(tmp_path: Path) -> None:
    folder = written(tmp_path, LLAMA)
    assert find_model("hf:config.json", folder).name == f"{folder.name}:tokens=4096"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"hidden_size": None}, "hidden_size: is not valid"),
        ({"architectures": ["MambaForCausalLM"]}, "unknown architecture"),
        ({"sliding_window": 4096}, "sliding_window: is not modelled"),
        ({"num_hidden_layers": True}, "num_hidden_layers: is not valid"),
        ({"num_hidden_layers": 2**31}, "expected: an integer from 1 to 4,096"),
        ({"model_type": "lama"}, r"model_type: (?s:.*)expected: llama\nhint: did you mean `llama`"),
        ({"architectures": None, "model_type": "qwn3"}, "one of (?s:.*)did you mean `qwen3`"),
    ],
)
def test_a_field_that_is_not_modelled_is_named(
    changes: dict[str, Any], words: str, tmp_path: Path
) -> None:
    written(tmp_path, {**LLAMA, **changes})
    with pytest.raises(ConfigError, match=words):
        find_model("hf:config.json", tmp_path)


def test_a_missing_field_is_named(tmp_path: Path) -> None:
    written(tmp_path, {key: value for key, value in QWEN.items() if key != "num_experts"})
    with pytest.raises(ConfigError, match=r'num_experts: is missing(?s:.*)add "num_experts"'):
        find_model("hf:config.json", tmp_path)


def test_another_prefix_is_named(tmp_path: Path) -> None:
    written(tmp_path, LLAMA)
    with pytest.raises(ConfigError, match=r"hint: hf:.*config\.json reads it"):
        find_model("file:config.json", tmp_path)


def test_a_sequence_above_the_longest_is_remarked(tmp_path: Path) -> None:
    written(tmp_path, {**LLAMA, "model_type": "llama", "max_position_embeddings": 8192})
    assert find_model("hf:config.json,tokens=8192", tmp_path).remarks == ()
    (remark,) = find_model("hf:config.json,tokens=8193", tmp_path).remarks
    assert "8,193 tokens exceed max_position_embeddings" in remark


@pytest.mark.parametrize("option", ["tokens=0", "tokens=x", "layers=2", "tokens=99999999"])
def test_an_invalid_option_is_refused(option: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        find_model(f"hf:config.json,{option}", written(tmp_path, LLAMA))


@pytest.mark.parametrize(
    ("fields", "published", "within"),
    [
        # Weights of the files on Hugging Face; norms are left out.
        ({**GEMMA, "hidden_size": 2304, "num_hidden_layers": 26, "num_attention_heads": 8,
          "num_key_value_heads": 4, "intermediate_size": 9216}, 2_614_341_888, 1e-4),
        (GEMMA, 9_241_705_984, 1e-4),
        ({**GEMMA, "hidden_size": 4608, "num_hidden_layers": 46, "num_attention_heads": 32,
          "num_key_value_heads": 16, "head_dim": 128, "intermediate_size": 36_864},
         27_227_128_320, 1e-4),
        (GEMMA_3, 999_885_952, 2e-4),
        # Gemma team 2025 (Gemma 3), table 1, without the vision encoder.
        ({**GEMMA_3, "hidden_size": 5376, "num_hidden_layers": 62, "num_attention_heads": 32,
          "num_key_value_heads": 16, "head_dim": 128, "intermediate_size": 21_504,
          "vocab_size": 262_208}, 1_416_000_000 + 25_600_000_000, 1e-3),
        # Model card of Meta, 109 B and 400 B with the vision encoder of some 0.9 B.
        (multimodal(LLAMA_4), 109e9 - 0.9e9, 5e-3),
        (multimodal(MAVERICK), 400e9, 5e-3),
        # The file of Gemma 3 4B omits heads and vocabulary; Keras Hub, gemma3_4b_text, counts
        # 3,880,099,328 with a vocabulary of 262,144.
        (multimodal(GEMMA_3_4B), 3_880_099_328 + 64 * 2560, 1e-4),
    ],
    ids=["gemma2-2b", "gemma2-9b", "gemma2-27b", "gemma3-1b", "gemma3-27b", "scout", "maverick",
         "gemma3-4b"],
)  # fmt: skip
def test_weights_are_the_published_ones(
    fields: dict[str, Any], published: float, within: float, tmp_path: Path
) -> None:
    text = ",text=1" if "text_config" in fields else ""
    model = find_model(f"hf:{written(tmp_path, fields)}{text}", tmp_path)
    assert model.decoder is not None
    assert model.decoder.parameters == pytest.approx(published, rel=within)
    # Of the classifier, the model has only the weights that the embedding does not have.
    assert model.parameters == model.decoder.parameters
    omitted = (
        "vocab_size = 262,208, num_attention_heads = 8, num_key_value_heads = 4, head_dim = 256"
    )
    is_partial = fields.get("text_config") == GEMMA_3_4B
    assert (omitted in "".join(model.remarks)) is is_partial
    if text and not is_partial:
        assert model.decoder.active == pytest.approx(17e9, rel=0.02)


def test_windows_experts_and_dense_blocks_alternate_as_stated(tmp_path: Path) -> None:
    gemma = find_model(f"hf:{written(tmp_path, GEMMA_3)},tokens=4096", tmp_path).decoder
    assert gemma is not None
    full = [block for block in range(26) if gemma.attended_in(block) == gemma.attended]
    assert full == [5, 11, 17, 23]
    kinds = ["sliding_attention"] * 3 + ["full_attention"]
    fields = {**GEMMA_3, "num_hidden_layers": 8, "layer_types": kinds * 2}
    listed = find_model(f"hf:{written(tmp_path, fields)}", tmp_path).decoder
    assert listed is not None
    assert listed.full_every == 4
    mistral = {**LLAMA, "architectures": ["MistralForCausalLM"], "sliding_window": 1024}
    shape = find_model(f"hf:{written(tmp_path, mistral)}", tmp_path).decoder
    assert shape is not None
    assert {shape.attended_in(block) for block in range(32)} == {shape.attended_in(0)}
    assert shape.attended_in(0) < shape.attended
    model = find_model(f"hf:{written(tmp_path, multimodal(MAVERICK))},text=1", tmp_path)
    experts = [layer.name for layer in model.layers if layer.name.endswith("_expert_up")]
    assert experts == [f"block_{block}_expert_up" for block in range(2, 49, 2)]
    for changes in ({"moe_layers": [], "num_local_experts": 0}, {"interleave_moe_layer_step": 49}):
        dense = {**LLAMA_4, "architectures": ["Llama4ForCausalLM"], **changes}
        shape = find_model(f"hf:{written(tmp_path, dense)}", tmp_path).decoder
        assert shape is not None
        assert (shape.experts, shape.wide) == (None, 16_384)


@pytest.mark.parametrize(
    ("fields", "option", "words"),
    [
        (multimodal(LLAMA_4), "", "vision_config: is not modelled"),
        (LLAMA, ",text=1", "text_config: is missing"),
        (multimodal(LLAMA_4), ",text=1,tokens=16384", "attention_chunk_size: is not modelled"),
        (multimodal({**MAVERICK, "moe_layers": [1, 2]}), ",text=1", "moe_layers: is not modelled"),
        ({**GEMMA, "head_dim": None}, "", "head_dim: is not valid"),
        ({**GEMMA_3, "use_bidirectional_attention": True}, "", "use_bidirectional_attention: is"),
        ({**GEMMA_3, "layer_types": ["full_attention", "sliding_attention"] * 13}, "",
         "layer_types: is not modelled"),
        ({**KIMI, "moe_layer_freq": 2}, "", "moe_layer_freq: is not valid"),
        ({**QWEN, "mlp_only_layers": [0]}, "", "mlp_only_layers: is not modelled"),
        ({**QWEN, "decoder_sparse_step": 2}, "", "decoder_sparse_step: is not modelled"),
        ({**QWEN, "num_experts_per_tok": 200}, "", "num_experts_per_tok: is not valid"),
        ({**LLAMA, "num_key_value_heads": 5}, "", "num_key_value_heads: is not valid"),
        (multimodal({**LLAMA_4, "interleave_moe_layer_step": 0}), ",text=1", "step: is not valid"),
    ],
)  # fmt: skip
def test_patterns_that_are_not_modelled_are_named(
    fields: dict[str, Any], option: str, words: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=words):
        find_model(f"hf:{written(tmp_path, fields)}{option}", tmp_path)

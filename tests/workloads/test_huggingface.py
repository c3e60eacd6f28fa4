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
    with pytest.raises(ConfigError, match="num_experts: is missing"):
        find_model("hf:config.json", tmp_path)


@pytest.mark.parametrize("option", ["tokens=0", "tokens=x", "layers=2", "tokens=99999999"])
def test_an_invalid_option_is_refused(option: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        find_model(f"hf:config.json,{option}", written(tmp_path, LLAMA))

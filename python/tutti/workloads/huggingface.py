"""Decoders from the `config.json` of Hugging Face.

The notation is `hf:FILE`, optionally with `,tokens=N` and `,mtp=N`. FILE is a `config.json` or its
folder.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tutti.base.files import limits
from tutti.base.files.mistakes import mistake, shown
from tutti.base.files.reader import parse_count, read_json
from tutti.workloads.decoder import MOST_LAYERS, Decoder, Experts, Latent
from tutti.workloads.zoo.llm import model_of

if TYPE_CHECKING:
    from pathlib import Path

    from tutti.base.errors import ConfigError
    from tutti.workloads.model import Model

_MOST = (1 << 32) - 1
_TOKENS = 4096
"""Tokens of a sequence, by default: that of most pre-training; a file states the longest only."""
_DENSE = {"LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM"}
_EXPERTS = {
    "MixtralForCausalLM": ("num_local_experts", "intermediate_size"),
    "GptOssForCausalLM": ("num_local_experts", "intermediate_size"),
    "Qwen3MoeForCausalLM": ("num_experts", "moe_intermediate_size"),
    "DeepseekV3ForCausalLM": ("n_routed_experts", "moe_intermediate_size"),
}
"""Architectures with experts: the keys of their number and of their width."""
_LATENT = {"DeepseekV3ForCausalLM"}


def read_config(notation: str, folder: Path) -> Model:
    """Returns the decoder of a `config.json`.

    Args:
        notation: A file or folder, relative to `folder`, with `,tokens=N` or `,mtp=N`.
        folder: The base of a relative path.

    Raises:
        ConfigError: The file cannot be read, lacks a field, or has an unknown architecture.
    """
    name, *options = notation.split(",")
    path = folder / name
    path = path / "config.json" if path.is_dir() else path
    expected = "the config.json of a decoder on Hugging Face"
    read = read_json(path, expected, limits.Bytes.LOG)
    given = {"tokens": _TOKENS, "mtp": 0} | _options(options, notation)
    shape = _Config(read, str(path)).decoder(**given)
    text = ",".join(f"{key}={value}" for key, value in given.items() if value)
    # The file of a downloaded model lies in a folder with the name of the model.
    title = path.resolve().parent.name if path.name == "config.json" else path.stem
    return model_of(f"{title or path.stem}:{text}", str(path), shape)


def _options(options: list[str], notation: str) -> dict[str, int]:
    found = {}
    for option in options:
        key, _, value = option.partition("=")
        most = {"tokens": 1 << 24, "mtp": 4}.get(key)
        if most is None or not value.isdigit() or not (key == "mtp" or value.strip("0")):
            raise mistake("invalid model", source=f"hf:{notation}", value=shown(option),
                          expected="hf:FILE, and ,tokens=N or ,mtp=N")  # fmt: skip
        number = parse_count(value, most)
        if number is None:
            raise mistake(f"{key} is too large", source=f"hf:{notation}", value=shown(value),
                          expected=f"at most {most:,}")  # fmt: skip
        found[key] = number
    return found


@dataclass(frozen=True)
class _Config:
    """The fields of a file."""

    fields: dict[str, Any]
    source: str

    def decoder(self, tokens: int, mtp: int) -> Decoder:
        name = self._architecture()
        hidden, heads = self._count("hidden_size"), self._count("num_attention_heads")
        latent = self._latent() if name in _LATENT else None
        head = self.fields.get("head_dim") if latent is None else None
        if head is None and latent is None and hidden % heads:
            raise self._mistake("head_dim", "the elements of a head")
        return Decoder(
            layers=self._count("num_hidden_layers", most=MOST_LAYERS),
            hidden=hidden,
            heads=heads,
            kv_heads=heads if latent else self._count("num_key_value_heads"),
            head=self._count("head_dim") if head is not None else None,
            wide=self._count("intermediate_size"),
            vocabulary=self._count("vocab_size"),
            tied=bool(self.fields.get("tie_word_embeddings", False)),
            experts=self._experts(name),
            latent=latent,
            window=self._window(name),
            tokens=tokens,
            mtp=mtp,
        )

    def _architecture(self) -> str:
        names = self.fields.get("architectures")
        known = sorted(_DENSE | set(_EXPERTS))
        if not isinstance(names, list) or not names:
            raise self._mistake("architectures", f"one of {', '.join(known)}")
        if names[0] not in known:
            raise mistake("unknown architecture", source=self.source, key="architectures",
                          value=shown(names[0]), expected=f"one of {', '.join(known)}",
                          hint="for others, a model file (file:FILE)")  # fmt: skip
        return str(names[0])

    def _experts(self, name: str) -> Experts | None:
        if name not in _EXPERTS:
            return None
        number, width = _EXPERTS[name]
        routed, groups = self._count(number), 1
        if name in _LATENT and self.fields.get("n_group") is not None:
            groups = self._count("n_group")
            if routed % groups:
                raise self._mistake("n_group", f"a divisor of {routed} experts")
        return Experts(
            routed=routed,
            top=self._count("num_experts_per_tok"),
            wide=self._count(width),
            shared=self._count("n_shared_experts", least=0) if name in _LATENT else 0,
            dense=self._count("first_k_dense_replace", least=0) if name in _LATENT else 0,
            groups=groups,
            most_groups=self._most_groups(groups),
        )

    def _most_groups(self, groups: int) -> int | None:
        """Returns the most groups of a token's experts, if they are limited."""
        if groups == 1:
            return None
        most = self._count("topk_group")
        if most > groups:
            raise self._mistake("topk_group", f"at most `n_group`, {groups}")
        return most

    def _latent(self) -> Latent:
        is_plain = "q_lora_rank" in self.fields and self.fields["q_lora_rank"] is None
        return Latent(
            query=0 if is_plain else self._count("q_lora_rank"),
            key_value=self._count("kv_lora_rank"),
            rotary=self._count("qk_rope_head_dim"),
            plain=self._count("qk_nope_head_dim"),
            value=self._count("v_head_dim"),
        )

    def _window(self, name: str) -> int:
        """Returns the window of every second block; other windows are refused."""
        kinds = self.fields.get("layer_types")
        window = self.fields.get("sliding_window")
        if not window or self.fields.get("use_sliding_window") is False:
            return 0
        if name == "GptOssForCausalLM" and (kinds is None or _alternate(kinds)):
            return self._count("sliding_window")
        raise mistake("is not modelled", source=self.source, key="sliding_window",
                      value=shown(window), expected="null, or GPT-OSS",
                      hint="set it to null to price attention to all tokens")  # fmt: skip

    def _count(self, key: str, least: int = 1, most: int = _MOST) -> int:
        value = self.fields.get(key)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise self._mistake(key, f"an integer from {least} to {most:,}")
        return value

    def _mistake(self, key: str, expected: str) -> ConfigError:
        problem = "is not valid" if key in self.fields else "is missing"
        value = shown(self.fields[key]) if key in self.fields else ""
        return mistake(problem, source=self.source, key=key, value=value, expected=expected)


def _alternate(kinds: list[Any]) -> bool:
    """Whether sliding and full attention alternate, starting with the former."""
    pattern = ("sliding_attention", "full_attention")
    return all(kind == pattern[at % 2] for at, kind in enumerate(kinds))

"""Decoders from the `config.json` of Hugging Face.

The notation is `hf:FILE`, optionally with `,tokens=N`, `,mtp=N` and `,text=1`. FILE is a
`config.json` or its folder; `text=1` reads the text model of a multimodal one.

Files of multimodal models omit fields that have the default of their class. `_DEFAULTS` has those
of transformers 4.51 and later, src/transformers/models/MODEL/configuration_MODEL.py.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tutti.base.files import limits
from tutti.base.files.limits import parse_count
from tutti.base.files.mistakes import did_you_mean, mistake, shown
from tutti.base.files.reader import read_json
from tutti.workloads.decoder import MOST_LAYERS, Decoder, Experts, Latent
from tutti.workloads.zoo.llm import model_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tutti.base.errors import ConfigError
    from tutti.workloads.model import Model

_MOST = (1 << 32) - 1
_TOKENS = 4096
"""Tokens of a sequence, by default: that of most pre-training; a file states the longest only."""
_GEMMA = {"Gemma2ForCausalLM", "Gemma3ForCausalLM"}
_DENSE = _GEMMA | {
    "LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM",
}  # fmt: skip
_EXPERTS = {
    "MixtralForCausalLM": ("num_local_experts", "intermediate_size"),
    "GptOssForCausalLM": ("num_local_experts", "intermediate_size"),
    "Llama4ForCausalLM": ("num_local_experts", "intermediate_size"),
    "Qwen3MoeForCausalLM": ("num_experts", "moe_intermediate_size"),
    "DeepseekV3ForCausalLM": ("n_routed_experts", "moe_intermediate_size"),
}
"""Architectures with experts: the keys of their number and of their width."""
_LATENT = {"DeepseekV3ForCausalLM"}
_LLAMA_4 = "Llama4ForCausalLM"
_FULL_EVERY = {
    "Gemma2ForCausalLM": 2,
    "Gemma3ForCausalLM": 6,
    "GptOssForCausalLM": 2,
    "MistralForCausalLM": 0,
}
"""Architectures with sliding windows: every n-th block attends to all tokens, unless `layer_types`
states otherwise."""
_TYPES = {
    "deepseek_v3": "DeepseekV3ForCausalLM",
    "gemma2": "Gemma2ForCausalLM",
    "gemma3_text": "Gemma3ForCausalLM",
    "gpt_oss": "GptOssForCausalLM",
    "kimi_k2": "DeepseekV3ForCausalLM",
    "llama": "LlamaForCausalLM",
    "llama4_text": _LLAMA_4,
    "mistral": "MistralForCausalLM",
    "mixtral": "MixtralForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
    "qwen3_moe": "Qwen3MoeForCausalLM",
}
"""Architectures by `model_type`; the text model of a multimodal file states the type only."""
_DEFAULTS: dict[str, tuple[str, dict[str, int]]] = {
    "Gemma3ForCausalLM": (
        "Gemma3TextConfig",
        {
            "vocab_size": 262_208,
            "hidden_size": 2304,
            "intermediate_size": 9216,
            "num_hidden_layers": 26,
            "num_attention_heads": 8,
            "num_key_value_heads": 4,
            "head_dim": 256,
            "sliding_window": 4096,
        },
    ),
    _LLAMA_4: (
        "Llama4TextConfig",
        {
            "vocab_size": 202_048,
            "hidden_size": 5120,
            "intermediate_size": 8192,
            "intermediate_size_mlp": 16_384,
            "num_hidden_layers": 48,
            "num_attention_heads": 40,
            "num_key_value_heads": 8,
            "head_dim": 128,
            "num_experts_per_tok": 1,
            "num_local_experts": 16,
            "attention_chunk_size": 8192,
        },
    ),
}
"""Architectures whose published files omit fields: the class, and its defaults."""


def read_config(notation: str, folder: Path) -> Model:
    """Returns the decoder of a `config.json`.

    Args:
        notation: A file or folder, relative to `folder`, with `,tokens=N`, `,mtp=N` or `,text=1`.
        folder: The base of a relative path.

    Raises:
        ConfigError: The file cannot be read, lacks a field, or has an unknown architecture.
    """
    name, *options = notation.split(",")
    path = folder / name
    path = path / "config.json" if path.is_dir() else path
    expected = "the config.json of a decoder on Hugging Face"
    read = read_json(path, expected, limits.Bytes.LOG)
    given = {"tokens": _TOKENS, "mtp": 0, "text": 0} | _options(options, notation)
    config = _Config(read, str(path))
    config = (config.text() if given["text"] else config).completed()
    shape = config.decoder(given["tokens"], given["mtp"])
    text = ",".join(f"{key}={value}" for key, value in given.items() if value)
    # The file of a downloaded model lies in a folder with the name of the model.
    title = path.resolve().parent.name if path.name == "config.json" else path.stem
    model = model_of(f"{title or path.stem}:{text}", str(path), shape)
    return replace(model, remarks=tuple(config.remarks(given["tokens"])))


def _options(options: list[str], notation: str) -> dict[str, int]:
    found = {}
    for option in options:
        key, _, value = option.partition("=")
        most = {"tokens": 1 << 24, "mtp": 4, "text": 1}.get(key)
        if most is None or not value.isdigit() or not (key != "tokens" or value.strip("0")):
            raise mistake("invalid model", source=f"hf:{notation}", value=shown(option),
                          expected="hf:FILE, and ,tokens=N, ,mtp=N or ,text=1")  # fmt: skip
        number = parse_count(value, most)
        if number is None:
            raise mistake(f"{key} is too large", source=f"hf:{notation}", value=shown(value),
                          expected=f"at most {most:,}")  # fmt: skip
        found[key] = number
    return found


@dataclass(frozen=True)
class _Config:
    """The fields of a file.

    Attributes:
        fields: The fields, with the defaults that the file omits.
        source: The file, for messages.
        omitted: The names of the fields that have defaults.
    """

    fields: dict[str, Any]
    source: str
    omitted: tuple[str, ...] = ()

    def text(self) -> _Config:
        """Returns the text model of a multimodal file."""
        found = self.fields.get("text_config")
        if not isinstance(found, dict):
            raise self._mistake("text_config", "the fields of a text model")
        return _Config(found, f"{self.source}: text_config")

    def completed(self) -> _Config:
        """Returns the fields with the defaults of the class of the architecture."""
        name = self._architecture()
        _, defaults = _DEFAULTS.get(name, ("", {}))
        omitted = tuple(key for key in defaults if key not in self.fields)
        fields = {**defaults, **self.fields, "architectures": [name]}
        return _Config(fields, self.source, omitted)

    def remarks(self, tokens: int) -> Iterator[str]:
        """Yields what the file does not state, and a sequence that is longer than it allows."""
        if self.omitted:
            name, _ = _DEFAULTS[self.fields["architectures"][0]]
            values = ", ".join(f"{key} = {self.fields[key]:,}" for key in self.omitted)
            yield f"{self.source} omits fields, which have the defaults of {name}: {values}"
        most = self.fields.get("max_position_embeddings")
        if isinstance(most, int) and not isinstance(most, bool) and tokens > most:
            yield (
                f"sequences of {tokens:,} tokens exceed max_position_embeddings of {self.source}, "
                f"{most:,}; ,tokens=N changes them"
            )

    def decoder(self, tokens: int, mtp: int) -> Decoder:
        name = self.fields["architectures"][0]
        hidden, heads = self._count("hidden_size"), self._count("num_attention_heads")
        latent = self._latent() if name in _LATENT else None
        head = self.fields.get("head_dim") if latent is None else None
        is_given = latent is not None or head is not None
        if not is_given and (name in _GEMMA or hidden % heads):
            raise self._mistake("head_dim", "the elements of a head")
        kv_heads = heads if latent else self._key_value_heads(name, heads)
        if heads % kv_heads:
            raise self._mistake("num_key_value_heads", f"a divisor of {heads} heads")
        window, full_every = self._windows(name, tokens)
        return Decoder(
            layers=self._count("num_hidden_layers", most=MOST_LAYERS),
            hidden=hidden,
            heads=heads,
            kv_heads=kv_heads,
            head=self._count("head_dim") if head is not None else None,
            wide=self._count("intermediate_size_mlp" if name == _LLAMA_4 else "intermediate_size"),
            vocabulary=self._count("vocab_size"),
            tied=bool(self.fields.get("tie_word_embeddings", name in _GEMMA)),
            experts=self._experts(name),
            latent=latent,
            window=window,
            full_every=full_every,
            tokens=tokens,
            mtp=mtp,
        )

    def _key_value_heads(self, name: str, heads: int) -> int:
        """Returns the key-value heads; the class of Llama has as many as heads, unless stated."""
        if name == "LlamaForCausalLM" and self.fields.get("num_key_value_heads") is None:
            return heads
        return self._count("num_key_value_heads", most=heads)

    def _architecture(self) -> str:
        """Returns the architecture, by its name or its type."""
        names, kind = self.fields.get("architectures"), self.fields.get("model_type")
        known = sorted(_DENSE | set(_EXPERTS))
        if names is None and isinstance(kind, str) and "text_config" not in self.fields:
            names = [self._architecture_of(kind)]
        if not isinstance(names, list) or not names:
            raise self._mistake("architectures", f"one of {', '.join(known)}")
        if "text_config" in self.fields:
            value, hint = shown(names[0]), "add ,text=1 to price the text model alone"
            raise mistake("is not modelled", source=self.source, key="vision_config", value=value,
                          expected="a text model", hint=hint)  # fmt: skip
        if names[0] not in known:
            raise mistake("unknown architecture", source=self.source, key="architectures",
                          value=shown(names[0]), expected=f"one of {', '.join(known)}",
                          hint="for others, a model file (file:FILE)")  # fmt: skip
        types = [each for each, name in _TYPES.items() if name == names[0]]
        # Code of a repository (auto_map) registers types of any name.
        if kind is not None and kind not in types and not self.fields.get("auto_map"):
            raise mistake(f"is not the type of {names[0]}", source=self.source, key="model_type",
                          value=shown(kind), expected=" or ".join(types),
                          hint=did_you_mean(str(kind), types))  # fmt: skip
        return str(names[0])

    def _architecture_of(self, kind: str) -> str:
        """Returns the architecture of a `model_type`."""
        if kind not in _TYPES:
            raise mistake("unknown type of model", source=self.source, key="model_type",
                          value=shown(kind), expected=f"one of {', '.join(_TYPES)}",
                          hint=did_you_mean(kind, _TYPES))  # fmt: skip
        return _TYPES[kind]

    def _experts(self, name: str) -> Experts | None:
        every = self._interleaved() if name == _LLAMA_4 else 1
        if name not in _EXPERTS or every == 0:
            return None
        number, width = _EXPERTS[name]
        routed, groups = self._count(number), 1
        if self.fields.get("mlp_only_layers"):
            raise self._unmodelled("mlp_only_layers", "[]")
        if self.fields.get("decoder_sparse_step") not in (None, 1):
            raise self._unmodelled("decoder_sparse_step", "1")
        if name in _LATENT and self.fields.get("n_group") is not None:
            groups = self._count("n_group")
            if routed % groups:
                raise self._mistake("n_group", f"a divisor of {routed} experts")
        shared, dense = int(name == _LLAMA_4), 0
        if name in _LATENT:
            shared = self._count("n_shared_experts", least=0)
            dense = self._count("first_k_dense_replace", least=0)
            if self.fields.get("moe_layer_freq") not in (None, 1):
                raise self._mistake("moe_layer_freq", "1")
        return Experts(
            routed=routed,
            top=self._count("num_experts_per_tok", most=routed),
            wide=self._count(width),
            shared=shared,
            dense=dense,
            every=every,
            groups=groups,
            most_groups=self._most_groups(groups),
        )

    def _interleaved(self) -> int:
        """Returns the distance of blocks with experts; 0 if there are none. A list has priority."""
        listed = self.fields.get("moe_layers")
        blocks = self._count("num_hidden_layers", most=MOST_LAYERS)
        if listed is None:
            key = "interleave_moe_layer_step"
            every = self._count(key) if self.fields.get(key) is not None else 1
            return every if every <= blocks else 0
        if listed == []:
            return 0
        first = listed[0] if isinstance(listed, list) else None
        every = first + 1 if isinstance(first, int) and first >= 0 else blocks
        if listed != list(range(every - 1, blocks, every)):
            raise self._unmodelled("moe_layers", "every n-th block, from the n-th")
        return every

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

    def _windows(self, name: str, tokens: int) -> tuple[int, int]:
        """Returns `window` and `full_every` of the shape; other patterns are refused."""
        chunk = self.fields.get("attention_chunk_size") if name == _LLAMA_4 else None
        if chunk is not None and self._count("attention_chunk_size") < tokens:
            raise self._unmodelled("attention_chunk_size", f"at least {tokens:,}, the sequence",
                                   "shorten the sequence with ,tokens=N")  # fmt: skip
        if self.fields.get("use_bidirectional_attention"):
            raise self._unmodelled("use_bidirectional_attention", "false")
        if not self.fields.get("sliding_window") or self.fields.get("use_sliding_window") is False:
            return 0, 2
        kinds = self.fields.get("layer_types")
        if name not in _FULL_EVERY and (kinds is None or not name.startswith("Qwen")):
            hint = "set it to null to price attention to all tokens"
            expected = f"null, `layer_types` of Qwen, or one of {', '.join(sorted(_FULL_EVERY))}"
            raise self._unmodelled("sliding_window", expected, hint)
        return self._count("sliding_window"), self._full_every(name, kinds)

    def _full_every(self, name: str, kinds: object) -> int:
        """Returns the distance of blocks that attend to all tokens; 0 if there are none."""
        if kinds is None:
            key = "sliding_window_pattern"
            is_given = self.fields.get(key) is not None
            return self._count(key, most=MOST_LAYERS) if is_given else _FULL_EVERY[name]
        full = "full_attention"
        if isinstance(kinds, list) and len(kinds) == self._count("num_hidden_layers"):
            every = kinds.index(full) + 1 if full in kinds else 0
            expected = [full if every and (at + 1) % every == 0 else "sliding_attention"
                        for at in range(len(kinds))]  # fmt: skip
            if kinds == expected:
                return every
        raise self._unmodelled("layer_types", "a type per block: every n-th `full_attention`, the "
                               "others `sliding_attention`")  # fmt: skip

    def _unmodelled(self, key: str, expected: str, hint: str = "") -> ConfigError:
        value = self.fields[key]
        return mistake("is not modelled", source=self.source, key=key,
                       value=shown(value) if not isinstance(value, list) else "",
                       expected=expected, hint=hint)  # fmt: skip

    def _count(self, key: str, least: int = 1, most: int = _MOST) -> int:
        value = self.fields.get(key)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise self._mistake(key, f"an integer from {least} to {most:,}")
        return value

    def _mistake(self, key: str, expected: str) -> ConfigError:
        if key in self.fields:
            value = shown(self.fields[key])
            return mistake("is not valid", source=self.source, key=key, value=value,
                           expected=expected)  # fmt: skip
        hint = f'add "{key}" to the file: the defaults of its class may not be those of the model'
        return mistake("is missing", source=self.source, key=key, expected=expected, hint=hint)

"""Files of `tutti train plan` and `tutti train calibrate` to mutate."""

from __future__ import annotations

import json

from seeds import Target

__all__ = ["CALIBRATION", "CONFIGS", "LOGS", "OPERATOR", "SCRIPT", "STEP", "TIMES", "targets"]

LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 256,
    "num_hidden_layers": 2,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "intermediate_size": 512,
    "vocab_size": 1000,
}
LATENT = {
    **LLAMA,
    "architectures": ["DeepseekV3ForCausalLM"],
    "n_routed_experts": 8,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 64,
    "n_shared_experts": 1,
    "first_k_dense_replace": 1,
    "n_group": 4,
    "topk_group": 2,
    "q_lora_rank": 32,
    "kv_lora_rank": 16,
    "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 16,
    "v_head_dim": 16,
}
CONFIGS = tuple(json.dumps(one, indent=1).encode() for one in (LLAMA, LATENT))
"""Files `config.json` of Hugging Face."""

SCRIPT = b"""\
# arguments of Megatron-LM
TP=${TP:-2}
ARGS=(
    --num-layers 2 --hidden-size 256 --num-attention-heads 8 --seq-length 64
    --vocab-size 1000 --swiglu --num-experts 8 --moe-router-topk 2
    --moe-layer-freq '([0]*1+[1]*1)' --expert-tensor-parallel-size 1
)
run ${ARGS[@]} --micro-batch-size 1 --global-batch-size 16 --nnodes 1 --nproc_per_node 8 \\
    --tensor-model-parallel-size $TP --expert-model-parallel-size 2 --fp8-format hybrid
"""

STEP = (
    b'{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "ts": 0, "dur": 900, '
    b'"pid": 1, "tid": 1},'
)
"""An event of a profile of PyTorch: a step."""

OPERATOR = (
    b'{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 0, "dur": 900, "pid": 1, "tid": 1, '
    b'"args": {"External id": 3, "Input Dims": [[8, 4], [4, 2], [[2], [3]], []], "Input type": '
    b'["c10::BFloat16", "float", "TensorList", "Scalar"]}},'
)
"""An event of a profile of PyTorch: an operator with shapes."""

TIMES = b"# tutti.kernel_times/1 gpu=h100\nname,dtype,shapes,us\naten.mm,bfloat16,8x4 4x2 +1,1.5\n"

LOGS = {
    "steps.csv": b"model,platform,gpus,global_batch,tensor,seconds\n"
    b"llama3_8b,dgx_h100_cluster,8,16,2,2.5\nllama3_8b,dgx_h100_cluster,8,16,4,2.6\n",
    "steps.toml": b'[[step]]\nmodel = "llama3_8b"\nplatform = "dgx_h100_cluster"\ngpus = 8\n'
    b"global_batch = 16\nmicro_batch = 2\ntokens_per_s_per_gpu = 7000.0\n",
}
"""Logs of measured steps."""

CALIBRATION = b"""\
gpu = "h100"
precisions = ["bf16"]
models = ["llama3_8b"]
steps = 1

[factors.products]
factor = 1.1
low = 1.0
high = 1.2
determined = 0.5
"""


def targets() -> list[Target]:
    """Returns commands that plan and calibrate."""
    fast = ("--simulate", "0", "--top", "1", "--json")
    size = ("-p", "dgx_h100_cluster", "-g", "8", "--global-batch", "16", "--pipeline", "1")
    named = ("train", "plan", "llama3_8b", *size, "--tensor", "2")
    return [
        *(
            Target(
                f"plan hf {number}",
                {"config.json": text},
                ("train", "plan", "hf:config.json,tokens=64", *size, *fast),
            )
            for number, text in enumerate(CONFIGS)
        ),
        Target("plan megatron", {"a.sh": SCRIPT}, ("train", "plan", "megatron:a.sh", *fast)),
        Target(
            "plan calibrated",
            {"c.toml": CALIBRATION},
            (*named, "--calibration", "c.toml", *fast),
        ),
        *(
            Target(
                f"calibrate {name}", {name: text}, ("train", "calibrate", name, "--out", "c.toml")
            )
            for name, text in LOGS.items()
        ),
    ]
